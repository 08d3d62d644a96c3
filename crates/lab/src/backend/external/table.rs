//! Statistics that libsrt's programs write as CSV, a row a period.

use std::collections::BTreeMap;
use std::path::Path;

use crate::numbers::NamedNumber;
use crate::results::columns::{is_total, statistic_names};
use crate::results::sheet::Sheet;

/// The statistics of a whole run: what counts is summed over the rows, what holds at a moment is
/// that of the last row.
pub(super) fn read(end: &str, path: &Path) -> Result<Vec<NamedNumber>, String> {
    let text = punctual_units::read_text(path);
    let text = text.map_err(|error| format!("{}: {error}", path.display()))?;
    // A row that the end of the program cut off is left out.
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    sums(end, whole).map_err(|error| format!("{}: {error}", path.display()))
}

fn sums(end: &str, text: &str) -> Result<Vec<NamedNumber>, String> {
    // Some programs write the header again for each connection.
    let header = text.lines().next().unwrap_or_default();
    let rows = text.lines().filter(|line| *line != header);
    let text: String = [header].into_iter().chain(rows).flat_map(|line| [line, "\n"]).collect();
    let sheet = Sheet::parse(&text)?;
    let mut numbers: BTreeMap<&str, f64> = BTreeMap::new();
    for row in 0..sheet.rows().len() {
        for name in statistic_names() {
            if let Some(number) = sheet.number(row, name) {
                let known = numbers.entry(name).or_insert(0.0);
                *known = if is_total(name) { *known + number } else { number };
            }
        }
    }
    Ok(numbers.into_iter().map(|(name, number)| (format!("{end}.{name}"), number)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_summed_and_gauges_are_the_last_values() {
        let text = "Timepoint,Time,SocketID,Time,msRTT,pktSent,pktRetrans\n\
                    a,1,7,1,20.5,100,3\nTimepoint,Time,SocketID,Time,msRTT,pktSent,pktRetrans\n\
                    b,2,7,2,21.5,50,1\n";
        let numbers = sums("sender", text).unwrap();
        let number = |name: &str| numbers.iter().find(|(known, _)| known == name).map(|n| n.1);
        assert_eq!(number("sender.pktSent"), Some(150.0));
        assert_eq!(number("sender.pktRetrans"), Some(4.0));
        assert_eq!(number("sender.msRTT"), Some(21.5));
        assert_eq!(number("sender.pktRcvDrop"), None);
        assert!(sums("sender", "").unwrap().is_empty());
    }
}
