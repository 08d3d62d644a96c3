//! Errors in a plan.

use std::fmt;
use std::sync::Arc;

/// An error in a plan: the file, the line, the key, and what would be right.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub struct PlanError {
    /// Its place, for people: `my.toml:12`, or `--set loss=5`.
    pub place: String,
    /// The number of the line, from 1; `None` if it is in no line.
    pub line: Option<usize>,
    /// The line itself.
    pub excerpt: Option<String>,
    /// The error, and what would be right.
    pub message: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        match (self.line, &self.excerpt) {
            (Some(line), Some(excerpt)) => write!(f, "\n  {line} | {excerpt}"),
            _ => Ok(()),
        }
    }
}

/// A text with values in it: a plan, or an override on a command line.
#[derive(Debug)]
pub(crate) struct Source {
    name: String,
    text: String,
    /// Whether it has lines that are worth telling.
    lines: bool,
}

/// A place in a plan.
#[derive(Clone, Debug)]
pub(crate) struct PlanPlace {
    source: Arc<Source>,
    /// Bytes from the start of the source's text.
    offset: usize,
}

impl Source {
    /// A file, or something with lines like one.
    pub(crate) fn file(name: &str, text: &str) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), text: text.to_owned(), lines: true })
    }

    /// A word on a command line.
    pub(crate) fn word(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), text: String::new(), lines: false })
    }
}

impl PlanPlace {
    pub(crate) fn new(source: &Arc<Source>, offset: usize) -> Self {
        Self { source: Arc::clone(source), offset }
    }

    /// An error there.
    pub(crate) fn error(&self, message: impl Into<String>) -> PlanError {
        let message = message.into();
        let Source { name, text, lines } = &*self.source;
        if !lines {
            return PlanError { place: name.clone(), line: None, excerpt: None, message };
        }
        let before = text.get(..self.offset).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let excerpt =
            text.lines().nth(line - 1).map(|line| punctual_uri::redacted_line(line.trim()));
        PlanError { place: format!("{name}:{line}"), line: Some(line), excerpt, message }
    }
}
