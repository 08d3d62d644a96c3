//! Text with a little in it that is not plain.

use super::markdown;

/// A paragraph, or the content of a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text {
    pub(crate) spans: Vec<Span>,
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq)]
pub enum Span {
    /// As it is.
    Plain(String),
    /// Emphasised.
    Strong(String),
    /// Text that is typed, or read by machines.
    Code(String),
    /// A link: its text and its address.
    Link(String, String),
}

impl Text {
    /// Adds plain text.
    #[must_use]
    pub fn plain(self, text: impl Into<String>) -> Self {
        self.with(Span::Plain(text.into()))
    }

    /// Adds emphasised text.
    #[must_use]
    pub fn strong(self, text: impl Into<String>) -> Self {
        self.with(Span::Strong(text.into()))
    }

    /// Adds text that is typed, or read by machines.
    #[must_use]
    pub fn code(self, text: impl Into<String>) -> Self {
        self.with(Span::Code(text.into()))
    }

    /// Adds a link. An address that is neither `http(s)://` nor `#…` becomes plain text.
    #[must_use]
    pub fn link(self, text: impl Into<String>, address: impl Into<String>) -> Self {
        self.with(Span::Link(text.into(), address.into()))
    }

    fn with(mut self, span: Span) -> Self {
        self.spans.push(span);
        self
    }

    /// The text as Markdown in one line.
    pub fn to_markdown(&self) -> String {
        markdown::text(self)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::default().plain(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self::default().plain(text)
    }
}
