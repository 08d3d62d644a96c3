//! The agreement of our results with the published ones, counted over all cells of all tables.

use std::collections::BTreeSet;

use punctual_figures::{Page, Table, TableColumn};

use super::{number, words};
use crate::plan::Grouping;
use crate::results::Results;
use crate::results::interval::Estimate;
use crate::results::tabulation::Tabulation;

/// The compared results: metric, backend, reference.
type Pair = (String, String, String);

/// Cells of one pair: ours, theirs, and their places.
type Cells = Vec<(Estimate, Estimate, String)>;

/// Writes a table with a row for each pair of ours and a reference.
pub(super) fn write(page: &mut Page, results: &Results, tables: &[(&Grouping, Tabulation)]) {
    let pairs = pairs(results, tables);
    if pairs.is_empty() {
        return;
    }
    page.heading("How well it agrees");
    let heads = [
        TableColumn::text("what"),
        TableColumn::text("ours"),
        TableColumn::text("beside"),
        TableColumn::number("cells"),
        TableColumn::number("intervals overlap"),
        TableColumn::number("median difference"),
        TableColumn::number("greatest difference"),
    ];
    let mut table = Table::new("", heads);
    let mut places = Vec::new();
    for ((metric, backend, reference), cells) in &pairs {
        let known = results.plan.references.iter().find(|known| known.name == *reference);
        let beside = known.map_or_else(|| reference.clone(), |known| known.title.clone());
        let title = words::title(results, metric);
        let mut differences: Vec<(f64, &str)> = cells
            .iter()
            .map(|(ours, theirs, place)| (ours.value - theirs.value, place.as_str()))
            .collect();
        differences.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let median = differences[differences.len() / 2].0;
        let greatest = differences.iter().max_by(|(a, _), (b, _)| a.abs().total_cmp(&b.abs()));
        let (greatest, place) = greatest.copied().unwrap_or((median, ""));
        if cells.len() > 1 {
            places.push(format!("{title}: {beside} differs most in {place}."));
        }
        let unit = words::unit(results, metric);
        let unit = if unit == "%" { "points" } else { &*unit };
        let with_intervals = cells.iter().filter(|(ours, ..)| ours.interval.is_some()).count();
        let agreeing = cells.iter().filter(|(ours, theirs, _)| overlap(ours, theirs)).count();
        let share = match with_intervals {
            0 => "–".to_owned(),
            all => format!("{agreeing} of {all}"),
        };
        let [median, greatest] = number::alike([median, greatest]);
        table.row([
            title,
            words::short_backend(results, backend).to_owned(),
            beside,
            cells.len().to_string(),
            share,
            format!("{median} {unit}"),
            format!("{greatest} {unit}"),
        ]);
    }
    page.table(table);
    page.text(
        "Counted over the cells of all tables below that show a metric itself: in how many of them \
         the 95 % intervals overlap. A published value without an interval must lie within ours.",
    );
    if !places.is_empty() {
        page.list(places);
    }
}

/// All cells with something beside, each once.
fn pairs(results: &Results, tables: &[(&Grouping, Tabulation)]) -> Vec<(Pair, Cells)> {
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
                    let names = cells.row_names.iter().zip(key);
                    let names = names.chain(cells.column_names.iter().zip(&column.key));
                    let names = names.map(|(name, value)| words::parameter(results, name, value));
                    let table = std::iter::once(format!("table {}", table.name));
                    let cell = (*ours, *theirs, table.chain(names).collect::<Vec<_>>().join(", "));
                    match pairs.iter_mut().find(|(known, _)| *known == pair) {
                        Some((_, cells)) => cells.push(cell),
                        None => pairs.push((pair, vec![cell])),
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
