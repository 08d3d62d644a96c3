//! Errors of a configuration: the file, the line, the column, the key, and what would be right.

use std::fmt;
use std::ops::Range;

use serde::Serialize;

use crate::origin::ValueOrigin;

/// An error of a configuration, or a warning about it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct ConfigProblem {
    /// The name of the file, or of the environment variable.
    pub place: String,
    /// The number of the line, from 1; `None` outside files.
    pub line: Option<usize>,
    /// The number of the character in the line, from 1; `None` if no character shows the fault.
    pub column: Option<usize>,
    /// The key with its table, such as `http.listen`; empty if the text is not TOML.
    pub key: String,
    /// The fault, and what would be right.
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        match self.key.as_str() {
            "" => write!(f, ": {}", self.message),
            key => write!(f, ": `{key}`: {}", self.message),
        }
    }
}

/// The text of a source of a configuration, with its lines.
#[derive(Debug)]
pub(crate) struct Place<'a> {
    name: &'a str,
    text: &'a str,
    /// The first byte of each line.
    starts: Vec<usize>,
}

impl<'a> Place<'a> {
    /// A file with this text.
    pub(crate) fn file(name: &'a str, text: &'a str) -> Self {
        let after = text.match_indices('\n').map(|(end, _)| end + 1);
        Self { name, text, starts: std::iter::once(0).chain(after).collect() }
    }

    /// Whether the text has more than this number of bytes.
    pub(crate) const fn is_longer_than(&self, most: u64) -> bool {
        self.text.len() as u64 > most
    }

    /// The name of the file.
    pub(crate) const fn name(&self) -> &'a str {
        self.name
    }

    /// A problem at this byte of the text.
    pub(crate) fn problem(&self, at: usize, key: &str, message: &str) -> ConfigProblem {
        let line = self.line(at);
        let start = self.starts[line - 1];
        let before = self.text.get(start..).unwrap_or_default().char_indices();
        let column = before.take_while(|(character, _)| start + character < at).count() + 1;
        ConfigProblem { line: Some(line), column: Some(column), ..problem(self.name, key, message) }
    }

    /// The number of the line of a byte, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.starts.partition_point(|start| *start <= at)
    }
}

/// A problem of a value with this origin.
pub(crate) fn problem_of(origin: &ValueOrigin, key: &str, message: &str) -> ConfigProblem {
    match origin {
        ValueOrigin::File { name, line } => {
            ConfigProblem { line: Some(*line), ..problem(name, key, message) }
        }
        other => problem(&other.to_string(), key, message),
    }
}

/// A problem without a line.
pub(crate) fn problem(place: &str, key: &str, message: &str) -> ConfigProblem {
    let message = punctual_units::one_line(message).into_owned();
    let key = punctual_units::one_line(key).into_owned();
    ConfigProblem { place: place.to_owned(), line: None, column: None, key, message }
}

/// The faults of one value. A value with parts, such as a list of tables, may have several.
#[derive(Debug)]
pub(crate) struct Faults(pub(crate) Vec<PartFault>);

/// The fault of a value, or of a part of it.
#[derive(Debug)]
pub(crate) struct PartFault {
    /// The path from the value to the part: `[2].to`, or nothing.
    pub(crate) path: String,
    /// The place of the part, if it is not that of the value.
    pub(crate) span: Option<Range<usize>>,
    pub(crate) message: String,
}

impl Faults {
    /// The faults of a part, which lies at this path.
    pub(crate) fn within(mut self, path: &str, span: &Range<usize>) -> Self {
        for fault in &mut self.0 {
            fault.path.insert_str(0, path);
            fault.span.get_or_insert_with(|| span.clone());
        }
        self
    }
}

impl From<String> for Faults {
    fn from(message: String) -> Self {
        Self(vec![PartFault { path: String::new(), span: None, message }])
    }
}

impl From<&str> for Faults {
    fn from(message: &str) -> Self {
        Self::from(message.to_owned())
    }
}

impl From<punctual_units::ParseUnitError> for Faults {
    fn from(error: punctual_units::ParseUnitError) -> Self {
        Self::from(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_names_line_and_column_in_characters() {
        let text = "a = 1\nü = \"x\"\r\nb";
        let place = Place::file("relay.toml", text);
        let shown = |at| place.problem(at, "b", "wrong").to_string();
        assert_eq!(shown(0), "relay.toml:1:1: `b`: wrong");
        assert_eq!(shown(text.find('"').unwrap()), "relay.toml:2:5: `b`: wrong");
        assert_eq!(shown(7), "relay.toml:2:2: `b`: wrong", "the middle of a character");
        assert_eq!(shown(1_000), "relay.toml:3:2: `b`: wrong", "beyond the end");
        let shown = problem("PUNCTUAL_RELAY_HTTP_LISTEN", "", "a\nb").to_string();
        assert_eq!(shown, "PUNCTUAL_RELAY_HTTP_LISTEN: a\\nb");
    }
}
