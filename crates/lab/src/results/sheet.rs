//! Rows and columns of text, as a CSV file holds them.

use std::collections::BTreeMap;

/// Rows of results, as their CSV file holds them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sheet {
    columns: Vec<String>,
    /// The place of each column: there are hundreds, and every cell is asked for by name.
    places: BTreeMap<String, usize>,
    rows: Vec<Vec<String>>,
}

impl Sheet {
    /// An empty sheet with these columns.
    pub fn new(columns: Vec<String>) -> Self {
        // Of two columns of one name, the first is meant.
        let places = columns.iter().enumerate().rev();
        let places = places.map(|(place, name)| (name.clone(), place)).collect();
        Self { columns, places, rows: Vec::new() }
    }

    /// Reads CSV with a header.
    ///
    /// # Errors
    ///
    /// A row whose length is not the header's, or text that is not UTF-8.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let row = |record: csv::StringRecord| record.iter().map(str::to_owned).collect();
        let columns = reader.headers().map(|header| row(header.clone()));
        let rows = reader.records().map(|record| record.map(row)).collect::<Result<_, _>>();
        let wrong = |error: csv::Error| error.to_string();
        Ok(Self { rows: rows.map_err(wrong)?, ..Self::new(columns.map_err(wrong)?) })
    }

    /// Names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows, each as long as there are columns.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// The place of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.places.get(name).copied()
    }

    /// A cell; empty if there is no such column.
    pub fn text(&self, row: usize, column: &str) -> &str {
        let place = self.column(column);
        place.and_then(|place| self.rows.get(row)?.get(place)).map_or("", String::as_str)
    }

    /// The number in a cell; `None` if there is none.
    pub fn number(&self, row: usize, column: &str) -> Option<f64> {
        self.text(row, column).parse().ok()
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Vec<String>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row has a cell for each column");
        self.rows.push(row);
    }

    /// The sheet as CSV, with its header.
    pub fn to_csv(&self) -> String {
        let mut text = csv_line(&self.columns);
        for row in &self.rows {
            text += &csv_line(row);
        }
        text
    }
}

/// One line of CSV with its end.
pub(crate) fn csv_line(cells: &[String]) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    let written = writer.write_record(cells).and_then(|()| Ok(writer.flush()?));
    written.expect("writing into memory never fails");
    let bytes = writer.into_inner().expect("it was flushed");
    String::from_utf8(bytes).expect("texts make text")
}

/// A number as results hold it: as short as it can be and still read back; empty for none.
pub(crate) fn cell(number: f64) -> String {
    if number.is_finite() { number.to_string() } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_sheet_reads_back() {
        let mut sheet = Sheet::new(vec!["a".to_owned(), "b".to_owned()]);
        sheet.push(vec!["1.5".to_owned(), "no answer, \"closed\"\nthen".to_owned()]);
        sheet.push(vec![String::new(), cell(f64::NAN)]);
        let back = Sheet::parse(&sheet.to_csv()).unwrap();
        assert_eq!(back, sheet);
        assert_eq!((back.number(0, "a"), back.number(1, "a")), (Some(1.5), None));
        assert_eq!(back.text(0, "c"), "");
        assert!(Sheet::parse("a,b\n1\n").is_err());
    }

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        assert_eq!(cell(56_526.0), "56526");
        assert_eq!(cell(0.1), "0.1");
        assert_eq!(cell(f64::INFINITY), "");
    }
}
