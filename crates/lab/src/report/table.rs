//! Tables: cells become text.

use punctual_figures::{Page, Table, TableColumn};

use super::{number, words};
use crate::plan::Grouping;
use crate::results::tabulation::Tabulation;
use crate::results::{self, Results};

/// Writes a table of the plan.
pub(super) fn write(page: &mut Page, results: &Results, table: &Grouping, cells: &Tabulation) {
    let Some(written) = titled(results, table, cells) else { return };
    page.table(written);
    if !table.caption.is_empty() {
        page.text(&*table.caption);
    }
    if !table.published.is_empty() {
        page.quotation(&*table.published);
    }
}

/// A table of the plan under its title; `None` if no cell has a value.
pub(super) fn titled(results: &Results, table: &Grouping, cells: &Tabulation) -> Option<Table> {
    let mut all = cells.rows.iter().flat_map(|(_, cells)| cells);
    all.any(Option::is_some).then(|| {
        let title = match table.title.starts_with("Table") {
            true => table.title.clone(),
            false => format!("Table {}. {}", table.name, table.title),
        };
        filled(results, title, cells)
    })
}

/// The results of a plan without figures and tables.
pub(super) fn summary(results: &Results) -> Table {
    filled(results, "Means over repeats".to_owned(), &results.summary())
}

fn filled(results: &Results, title: String, cells: &Tabulation) -> Table {
    // Columns without any cell are not there.
    let is_there = |index: usize| cells.rows.iter().any(|(_, row)| row[index].is_some());
    let there: Vec<usize> = (0..cells.columns.len()).filter(|index| is_there(*index)).collect();
    let heads = cells.row_names.iter().map(|name| TableColumn::text(name.clone()));
    // A unit that all columns share is written above the table.
    let unit = cells.columns.first().map_or("", |column| column.unit.as_str());
    let is_shared = !unit.is_empty() && cells.columns.iter().all(|column| column.unit == unit);
    let title = if is_shared { format!("{title}, {unit}") } else { title };
    let values =
        there.iter().map(|index| column(results, cells, &cells.columns[*index], !is_shared));
    let mut table = Table::new(title, heads.chain(values));
    let decimals: Vec<usize> = (0..cells.columns.len())
        .map(|index| {
            let column: Vec<_> = cells.rows.iter().filter_map(|(_, row)| row[index]).collect();
            number::column(&column)
        })
        .collect();
    for (key, row) in &cells.rows {
        let names = cells.row_names.iter().zip(key);
        let names = names.map(|(name, value)| words::value(results, name, value));
        let values = there.iter().map(|index| match &row[*index] {
            Some(estimate) => number::estimate(estimate, decimals[*index]),
            None => "–".to_owned(),
        });
        table.row(names.chain(values));
    }
    table
}

/// The head of a column: the values that the column is for, and below them the source.
fn column(
    results: &Results,
    cells: &Tabulation,
    column: &results::Column,
    with_unit: bool,
) -> TableColumn {
    let mut group: Vec<String> = (cells.column_names.iter().zip(&column.key))
        .map(|(name, value)| words::parameter(results, name, value))
        .collect();
    if cells.columns.iter().any(|other| other.metric != column.metric) {
        group.push(words::title(results, &column.metric));
    }
    let unit = match column.unit.as_str() {
        unit if with_unit && !unit.is_empty() => format!(", {unit}"),
        _ => String::new(),
    };
    let who = who(results, column);
    let is_alone = cells.columns.iter().all(|other| self::who(results, other) == who);
    // Where all is measured by one, nothing but the values tells columns apart.
    if is_alone && !group.is_empty() {
        return TableColumn::number(format!("{}{unit}", group.join(", ")));
    }
    TableColumn::number(format!("{who}{unit}")).group(group.join(", "))
}

fn who(results: &Results, column: &results::Column) -> String {
    match &column.reference {
        Some(name) => {
            let known = results.plan.references.iter().find(|known| known.name == *name);
            known.map_or_else(|| name.clone(), |known| known.title.clone())
        }
        None => words::short_backend(results, &column.backend).to_owned(),
    }
}

/// Writes the cells of the first table that is small and has something beside ours.
pub(super) fn key_figures(page: &mut Page, results: &Results, tables: &[(&Grouping, Tabulation)]) {
    let ours = |cells: &Tabulation| {
        cells.rows.len() * cells.columns.iter().filter(|c| c.reference.is_none()).count()
    };
    let small = tables.iter().find(|(table, cells)| {
        let is_plain = table.compare.is_none() && table.values.len() == 1;
        !table.references.is_empty() && is_plain && (1..=8).contains(&ours(cells))
    });
    let Some((table, cells)) = small else { return };
    let mut keys = Vec::new();
    for (key, row) in &cells.rows {
        for (index, column) in cells.columns.iter().enumerate() {
            let (None, Some(estimate)) = (&column.reference, &row[index]) else { continue };
            let names = cells.row_names.iter().zip(key);
            let mut label: Vec<String> = names
                .chain(cells.column_names.iter().zip(&column.key))
                .map(|(name, value)| words::parameter(results, name, value))
                .collect();
            if results.meta.backends.len() > 1 {
                label.push(column.backend.clone());
            }
            let same = |other: &&(usize, &results::Column)| {
                other.1.reference.is_some()
                    && other.1.key == column.key
                    && other.1.metric == column.metric
            };
            let beside = cells.columns.iter().enumerate().collect::<Vec<_>>();
            let beside: Vec<String> = beside
                .iter()
                .filter(same)
                .filter_map(|(at, other)| {
                    let estimate = row[*at].as_ref()?;
                    Some(format!(
                        "{}: {}",
                        who(results, other),
                        number::four_digits(estimate.value)
                    ))
                })
                .collect();
            let value = format!("{} {}", number::value(estimate), column.unit);
            let interval = number::half(estimate).map(|half| format!("± {half}"));
            let note: Vec<String> = interval.into_iter().chain(beside).collect();
            keys.push([label.join(", "), value.trim_end().to_owned(), note.join("; ")]);
        }
    }
    if !keys.is_empty() {
        page.heading("Key figures");
        page.text(format!("{}.", table.title.trim_end_matches('.')));
        page.key_figures(keys);
    }
}
