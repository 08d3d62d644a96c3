use thiserror::Error;

/// An error in a trace: its line, and what would be right.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{}{problem}", line.map_or(String::new(), |line| format!("line {line}: ")))]
pub struct TraceError {
    line: Option<usize>,
    problem: String,
}

impl TraceError {
    /// Of the trace as a whole.
    pub(crate) fn whole(problem: impl Into<String>) -> Self {
        Self { line: None, problem: problem.into() }
    }

    /// Of a line, counted from 1.
    pub(crate) fn at(line: usize, problem: impl Into<String>) -> Self {
        Self { line: Some(line), problem: problem.into() }
    }

    /// Number of the line, counted from 1; `None` if it is the whole that is wrong.
    pub fn line(&self) -> Option<usize> {
        self.line
    }
}
