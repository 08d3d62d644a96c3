//! A plan's text as a tree whose parts know their places.

use std::ops::Range;
use std::sync::Arc;

use punctual_uri::did_you_mean;
use toml::de::{DeTable, DeValue};

use crate::plan::error::{PlanError, PlanPlace, Source};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct DocumentNode {
    pub(crate) place: PlanPlace,
    pub(crate) content: DocumentContent,
}

#[derive(Clone, Debug)]
pub(crate) enum DocumentContent {
    /// A string.
    Text(String),
    /// A number or a switch, as it is written.
    Scalar(String),
    List(Vec<DocumentNode>),
    Table(DocumentTable),
}

/// Keys and their values, in the order of the text.
#[derive(Clone, Debug)]
pub(crate) struct DocumentTable {
    pub(crate) place: PlanPlace,
    pub(crate) entries: Vec<DocumentEntry>,
}

#[derive(Clone, Debug)]
pub(crate) struct DocumentEntry {
    pub(crate) key: String,
    pub(crate) place: PlanPlace,
    pub(crate) value: DocumentNode,
}

impl DocumentTable {
    /// Reads a whole document.
    pub(crate) fn parse(source: &Arc<Source>, text: &str) -> Result<Self, PlanError> {
        let table = DeTable::parse(text).map_err(|error| toml_error(source, &error))?;
        Ok(Self::new(source, &table.span(), table.get_ref()))
    }

    fn new(source: &Arc<Source>, span: &Range<usize>, table: &DeTable<'_>) -> Self {
        let mut entries: Vec<DocumentEntry> = table
            .iter()
            .map(|(key, value)| DocumentEntry {
                key: key.get_ref().to_string(),
                place: PlanPlace::new(source, key.span().start),
                value: DocumentNode::new(source, &value.span(), value.get_ref()),
            })
            .collect();
        entries.shrink_to_fit();
        Self { place: PlanPlace::new(source, span.start), entries }
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&DocumentEntry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// The place of a key; the table's own place if it has no such key.
    pub(crate) fn place_of(&self, key: &str) -> PlanPlace {
        self.get(key).map_or(&self.place, |entry| &entry.place).clone()
    }

    /// Refuses keys that are not among `known`; `what` names the table.
    pub(crate) fn only(&self, what: &str, known: &[&str]) -> Result<(), PlanError> {
        match self.entries.iter().find(|entry| !known.contains(&entry.key.as_str())) {
            None => Ok(()),
            Some(entry) => Err(entry.unknown(what, known)),
        }
    }

    /// The text of a key that need not be there.
    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, PlanError> {
        self.get(key).map(|entry| entry.text().map(str::to_owned)).transpose()
    }

    /// The text of a key that must be there; `what` names the table.
    pub(crate) fn required(&self, what: &str, key: &str) -> Result<String, PlanError> {
        self.text(key)?.ok_or_else(|| self.place.error(format!("{what} has no `{key}`")))
    }

    /// One or several texts.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<String>, PlanError> {
        self.get(key).map_or(Ok(Vec::new()), DocumentEntry::texts)
    }

    /// A switch that need not be there.
    pub(crate) fn switch(&self, key: &str) -> Result<Option<bool>, PlanError> {
        let Some(entry) = self.get(key) else { return Ok(None) };
        match &entry.value.content {
            DocumentContent::Scalar(text) if text == "true" => Ok(Some(true)),
            DocumentContent::Scalar(text) if text == "false" => Ok(Some(false)),
            _ => Err(entry.error("must be true or false")),
        }
    }

    /// The tables of a key: `[[key]]`, or a single `[key]`.
    pub(crate) fn tables(&self, key: &str) -> Result<Vec<&Self>, PlanError> {
        let Some(entry) = self.get(key) else { return Ok(Vec::new()) };
        match &entry.value.content {
            DocumentContent::Table(table) => Ok(vec![table]),
            DocumentContent::List(nodes) => nodes
                .iter()
                .map(|node| match &node.content {
                    DocumentContent::Table(table) => Ok(table),
                    _ => Err(node.place.error(format!("`{key}` must be a table: `[[{key}]]`"))),
                })
                .collect(),
            _ => Err(entry.error("must be a table")),
        }
    }

    /// The table of a key.
    pub(crate) fn table(&self, key: &str) -> Result<Option<&Self>, PlanError> {
        self.get(key).map(DocumentEntry::table).transpose()
    }
}

impl DocumentEntry {
    /// An error about this key.
    pub(crate) fn error(&self, message: impl AsRef<str>) -> PlanError {
        self.place.error(format!("`{}` {}", self.key, message.as_ref()))
    }

    /// An unknown key, with the nearest known one.
    pub(crate) fn unknown(&self, what: &str, known: &[&str]) -> PlanError {
        let suggestion = did_you_mean(&self.key, known.iter().copied());
        let known = known.join(", ");
        let message = format!("unknown key `{}` in {what}{suggestion} (known: {known})", self.key);
        self.place.error(message)
    }

    pub(crate) fn text(&self) -> Result<&str, PlanError> {
        self.value.text().ok_or_else(|| self.error("must be a text or a number"))
    }

    /// One or several texts.
    pub(crate) fn texts(&self) -> Result<Vec<String>, PlanError> {
        let wrong = || self.error("must be a text or a list of texts");
        let text = |node: &DocumentNode| node.text().map(str::to_owned).ok_or_else(wrong);
        match &self.value.content {
            DocumentContent::List(nodes) => nodes.iter().map(text).collect(),
            _ => Ok(vec![text(&self.value)?]),
        }
    }

    pub(crate) fn table(&self) -> Result<&DocumentTable, PlanError> {
        match &self.value.content {
            DocumentContent::Table(table) => Ok(table),
            _ => Err(self.error("must be a table")),
        }
    }
}

impl DocumentNode {
    fn new(source: &Arc<Source>, span: &Range<usize>, value: &DeValue<'_>) -> Self {
        let content = match value {
            DeValue::String(text) => DocumentContent::Text(text.to_string()),
            DeValue::Integer(number) => DocumentContent::Scalar(number.to_string()),
            DeValue::Float(number) => DocumentContent::Scalar(number.to_string()),
            DeValue::Boolean(switch) => DocumentContent::Scalar(switch.to_string()),
            DeValue::Datetime(time) => DocumentContent::Text(time.to_string()),
            DeValue::Array(values) => DocumentContent::List(
                values.iter().map(|v| Self::new(source, &v.span(), v.get_ref())).collect(),
            ),
            DeValue::Table(table) => {
                DocumentContent::Table(DocumentTable::new(source, span, table))
            }
        };
        Self { place: PlanPlace::new(source, span.start), content }
    }

    /// The value after `key=` on a command line: TOML, or else a text.
    pub(crate) fn word(source: &Arc<Source>, text: &str) -> Self {
        match DeValue::parse(text) {
            Ok(value) => Self::new(source, &(0..0), value.get_ref()),
            Err(_) => Self {
                place: PlanPlace::new(source, 0),
                content: DocumentContent::Text(text.to_owned()),
            },
        }
    }

    /// A string, a number or a switch as a text.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            DocumentContent::Text(text) | DocumentContent::Scalar(text) => Some(text),
            DocumentContent::List(_) | DocumentContent::Table(_) => None,
        }
    }
}

fn toml_error(source: &Arc<Source>, error: &toml::de::Error) -> PlanError {
    let offset = error.span().map_or(0, |span| span.start);
    PlanPlace::new(source, offset).error(format!("not TOML: {}", error.message()))
}
