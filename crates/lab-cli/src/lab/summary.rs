//! Results as a table on the terminal.

use std::fmt::Write as _;

use punctual_lab::results::{Column, Estimate, Results};

/// The metrics of each combination of values, over its repeats.
pub(super) fn of(results: &Results) -> String {
    let table = results.summary();
    let head = |column: &Column| {
        let title = results.title_of(&column.metric);
        let unit =
            if column.unit.is_empty() { String::new() } else { format!(" ({})", column.unit) };
        let several = results.meta.backends.len() > 1;
        let backend = if several { format!(", {}", column.backend) } else { String::new() };
        format!("{title}{unit}{backend}")
    };
    let names = table.row_names.iter().cloned();
    let mut rows: Vec<Vec<String>> = vec![names.chain(table.columns.iter().map(head)).collect()];
    for (key, cells) in &table.rows {
        let values = key.iter().cloned();
        rows.push(
            values.chain(cells.iter().map(|cell| cell.map_or("-".to_owned(), shown))).collect(),
        );
    }
    let mut text = fitting(&aligned(&rows), columns());
    let failed = results.failed_runs();
    for row in failed.iter().take(MOST_TOLD) {
        let (run, status) = (results.sheet.text(*row, "run"), results.sheet.text(*row, "status"));
        let _ = writeln!(text, "{run}: {status}");
    }
    if failed.len() > MOST_TOLD {
        let _ = writeln!(text, "and {} runs more did not end well", failed.len() - MOST_TOLD);
    }
    let late = results.late_runs();
    for (row, us) in late.iter().take(MOST_TOLD) {
        let run = results.sheet.text(*row, "run");
        let backend = results.sheet.text(*row, "backend");
        let ms = us / 1e3;
        let _ = writeln!(text, "{run} ({backend}): the machine stalled, packets {ms:.1} ms late");
    }
    if late.len() > MOST_TOLD {
        let _ = writeln!(text, "and in {} runs more it stalled", late.len() - MOST_TOLD);
    }
    text
}

/// The table if the terminal is wide enough; otherwise its width, since it is in the report too.
fn fitting(table: &str, columns: Option<usize>) -> String {
    let width = table.lines().map(|line| line.chars().count()).max().unwrap_or_default();
    match columns {
        Some(columns) if width > columns => format!(
            "The table of results is {width} columns wide, and the terminal {columns}: the report \
             has it.\n"
        ),
        _ => table.to_owned(),
    }
}

/// The width of the terminal; `None` if standard output is not one.
fn columns() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout())
        .map(|(terminal_size::Width(columns), _)| columns.into())
}

/// An estimate with half the width of its interval.
fn shown(estimate: Estimate) -> String {
    let Estimate { value, interval, .. } = estimate;
    let digits = |number: f64| match number.abs() {
        0.0 => "0".to_owned(),
        0.0..0.1 => format!("{number:.4}"),
        0.1..100.0 => format!("{number:.2}"),
        _ => format!("{number:.0}"),
    };
    match interval {
        None => digits(value),
        Some((low, high)) => format!("{} ({} to {})", digits(value), digits(low), digits(high)),
    }
}

fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  "));
    }
    text
}

/// The most failed runs that are printed one by one.
const MOST_TOLD: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_wider_than_the_terminal_is_left_to_the_report() {
        let table = "loss  overhead\n  5%      5.78\n";
        assert_eq!(fitting(table, None), table);
        assert_eq!(fitting(table, Some(14)), table);
        let told = fitting(table, Some(13));
        assert!(told.contains("14 columns wide, and the terminal 13"), "{told}");
    }

    #[test]
    fn estimates_are_shown_with_their_intervals() {
        let estimate = |value, interval| Estimate { value, interval, runs: 3 };
        assert_eq!(shown(estimate(9.934, Some((9.876, 9.991)))), "9.93 (9.88 to 9.99)");
        assert_eq!(shown(estimate(0.0, Some((0.0, 0.0065)))), "0 (0 to 0.0065)");
        assert_eq!(shown(estimate(1234.5, None)), "1234");
    }

    #[test]
    fn columns_are_aligned() {
        let row = |cells: [&str; 2]| cells.map(str::to_owned).to_vec();
        assert_eq!(aligned(&[row(["loss", "x"]), row(["5", "12.5"])]), "loss     x\n   5  12.5\n");
    }
}
