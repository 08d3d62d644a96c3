//! The lines of a CSV file, among which may be lines of a log.

use csv::StringRecord;

use super::{ParsedRows, ReadStatsError};

/// The lines of a text that are not empty, each as a record of its own: a quotation mark in one
/// line cannot swallow the next.
pub(super) struct Lines<'a> {
    lines: std::iter::Peekable<std::iter::Zip<std::ops::RangeFrom<u64>, std::str::Lines<'a>>>,
    delimiter: u8,
    /// Whether the text ends within a line.
    has_no_end: bool,
}

/// Lines that are no rows.
#[derive(Default)]
pub(super) struct LeftOutLines {
    count: u64,
    first: Option<ReadStatsError>,
}

impl<'a> Lines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let lines = (1..).zip(text.lines()).peekable();
        Self { lines, delimiter: b',', has_no_end: !text.ends_with('\n') }
    }

    /// The first line that names known columns.
    ///
    /// # Errors
    ///
    /// There is none; the error is that of the first line.
    pub(super) fn header(&mut self) -> Result<ParsedRows, ReadStatsError> {
        let mut fault = None;
        while let Some((line, text)) = self.next_text() {
            self.delimiter = delimiter(text);
            match ParsedRows::new(&self.record(text)) {
                Ok(rows) => return Ok(rows),
                Err(error) => fault = fault.or(Some(ReadStatsError { line, ..error })),
            }
        }
        Err(fault.unwrap_or_else(|| ReadStatsError::at(1, "the file is empty".to_owned())))
    }

    /// The next line with its number.
    pub(super) fn next(&mut self) -> Option<(u64, StringRecord)> {
        let (line, text) = self.next_text()?;
        Some((line, self.record(text)))
    }

    /// Whether the line that was taken last has no end.
    pub(super) fn is_cut(&mut self) -> bool {
        self.has_no_end && self.lines.peek().is_none()
    }

    fn next_text(&mut self) -> Option<(u64, &'a str)> {
        self.lines.by_ref().find(|(_, text)| !text.trim_matches([' ', ',', ';', '\t']).is_empty())
    }

    /// The fields of a line; none if it is no CSV.
    fn record(&self, text: &str) -> StringRecord {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .delimiter(self.delimiter)
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let record = reader.records().next().and_then(Result::ok).unwrap_or_default();
        match self.delimiter {
            b',' => record,
            _ => record.iter().map(with_point).collect(),
        }
    }
}

impl LeftOutLines {
    /// Counts a line with `fields` fields where the header has `expected`.
    pub(super) fn add(&mut self, line: u64, fields: usize, expected: usize) {
        self.count += 1;
        self.first.get_or_insert_with(|| {
            let what = format!("{fields} fields, where the header has {expected}");
            ReadStatsError::at(line, what)
        });
    }

    /// The warning about these lines, if there are any.
    ///
    /// # Errors
    ///
    /// The first of these lines, if the file has no rows.
    pub(super) fn warning(self, has_rows: bool) -> Result<Option<String>, ReadStatsError> {
        let Some(first) = self.first else { return Ok(None) };
        if !has_rows {
            return Err(first);
        }
        Ok(Some(match self.count {
            1 => format!("a line is no row and was left out: {first}"),
            count => format!("{count} lines are no rows and were left out; the first: {first}"),
        }))
    }
}

/// The character between the fields of a header.
fn delimiter(header: &str) -> u8 {
    let count = |delimiter: &u8| header.bytes().filter(|byte| byte == delimiter).count();
    // Of equal counts the last wins: the comma.
    *b"\t;,".iter().max_by_key(|delimiter| count(delimiter)).unwrap_or(&b',')
}

/// A number with its decimal comma replaced; any other text as it is.
fn with_point(field: &str) -> String {
    let is_number = |c: char| c.is_ascii_digit() || matches!(c, ',' | '-' | '+' | 'e' | 'E');
    let has_one_comma = field.bytes().filter(|byte| *byte == b',').count() == 1;
    match has_one_comma && field.chars().all(is_number) {
        true => field.replace(',', "."),
        false => field.to_owned(),
    }
}
