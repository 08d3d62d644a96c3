//! How well ours agrees with what was published: counted over all cells of all tables.

use std::collections::BTreeSet;

use punctual_figures::{Column, Page, Table};

use super::{number, words};
use crate::plan::Grouping;
use crate::results::{Estimate, Results, Tabulation};

/// What was compared: metric, backend, reference.
type Pair = (String, String, String);

/// Cells of one pair: ours and theirs.
type Cells = Vec<(Estimate, Estimate)>;

/// Writes a table with a row for each pair of ours and a reference.
pub(super) fn write(page: &mut Page, results: &Results, tables: &[(&Grouping, Tabulation)]) {
    let pairs = pairs(tables);
    if pairs.is_empty() {
        return;
    }
    page.heading("How well it agrees");
    let heads = [
        Column::text("what"),
        Column::text("ours"),
        Column::text("beside"),
        Column::number("cells"),
        Column::number("intervals overlap"),
        Column::number("median difference"),
        Column::number("greatest difference"),
    ];
    let mut table = Table::new("", heads);
    for ((metric, backend, reference), cells) in &pairs {
        let title = results.plan.references.iter().find(|known| known.name == *reference);
        let mut differences: Vec<f64> =
            cells.iter().map(|(ours, theirs)| ours.value - theirs.value).collect();
        differences.sort_by(f64::total_cmp);
        let median = differences[differences.len() / 2];
        let greatest = differences.iter().copied().max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let unit = words::unit(results, metric);
        let unit = if unit == "%" { "points" } else { &*unit };
        let with_intervals = cells.iter().filter(|(ours, _)| ours.interval.is_some()).count();
        let agreeing = cells.iter().filter(|(ours, theirs)| overlap(ours, theirs)).count();
        let share = match with_intervals {
            0 => "–".to_owned(),
            all => format!("{agreeing} of {all}"),
        };
        table.row([
            words::title(results, metric),
            words::short_backend(results, backend).to_owned(),
            title.map_or_else(|| reference.clone(), |known| known.title.clone()),
            cells.len().to_string(),
            share,
            format!("{} {unit}", number::four_digits(median)),
            format!("{} {unit}", number::four_digits(greatest.unwrap_or(median))),
        ]);
    }
    page.table(table);
    page.text(
        "Counted over the cells of all tables below that show a metric itself: in how many of them \
         the 95 % intervals overlap. Where what stands beside has no interval, ours must hold its \
         value.",
    );
}

/// All cells with something beside, each once.
fn pairs(tables: &[(&Grouping, Tabulation)]) -> Vec<(Pair, Cells)> {
    let mut pairs: Vec<(Pair, Cells)> = Vec::new();
    let mut seen = BTreeSet::new();
    for (table, cells) in tables.iter().filter(|(table, _)| table.compare.is_none()) {
        for (key, row) in &cells.rows {
            for (at, column) in cells.columns.iter().enumerate() {
                let (None, Some(ours)) = (&column.reference, &row[at]) else { continue };
                for (beside, other) in cells.columns.iter().enumerate() {
                    let (Some(reference), Some(theirs)) = (&other.reference, &row[beside]) else {
                        continue;
                    };
                    if other.key != column.key || other.metric != column.metric {
                        continue;
                    }
                    let place = (&table.name, key, &column.key, &column.metric, &column.backend);
                    let pair = (column.metric.clone(), column.backend.clone(), reference.clone());
                    if !seen.insert(format!("{place:?} {reference}")) {
                        continue;
                    }
                    match pairs.iter_mut().find(|(known, _)| *known == pair) {
                        Some((_, cells)) => cells.push((*ours, *theirs)),
                        None => pairs.push((pair, vec![(*ours, *theirs)])),
                    }
                }
            }
        }
    }
    pairs
}

/// Whether the intervals of two estimates have a value in common.
fn overlap(ours: &Estimate, theirs: &Estimate) -> bool {
    let Some((low, high)) = ours.interval else { return false };
    let (least, most) = theirs.interval.unwrap_or((theirs.value, theirs.value));
    low <= most && least <= high
}
