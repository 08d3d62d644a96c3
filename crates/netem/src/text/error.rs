//! Errors in texts about links.

use thiserror::Error;

/// An error in a text about a link: the wrong word, and what would be right.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{}{message}", line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct LinkTextError {
    line: Option<usize>,
    message: String,
}

impl LinkTextError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { line: None, message: message.into() }
    }

    /// The error in this line of a file, counted from 1.
    pub(crate) fn at_line(self, line: usize) -> Self {
        Self { line: Some(line), ..self }
    }

    /// Said of this.
    pub(crate) fn of(self, what: &str) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// Number of the line, counted from 1, if the text was a file of several.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}

impl From<punctual_units::ParseUnitError> for LinkTextError {
    fn from(error: punctual_units::ParseUnitError) -> Self {
        Self::new(error.to_string())
    }
}
