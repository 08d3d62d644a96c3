//! The configuration that an import writes, and the values of YAML that it reads.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value as Json;

use crate::load;
use crate::named_files::NamedFiles;
use crate::rows::{KeyRow, find};
use crate::sources::Sources;
use crate::toml_text;
use crate::value::{Context, Value};

/// A configuration made from that of MediaMTX, and what could not be taken over.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Imported {
    /// The configuration, in TOML. It passes the check if `left` says nothing about it.
    pub toml: String,
    /// Keys without a counterpart, in the order of the file.
    pub left: Vec<LeftKey>,
}

/// A key of MediaMTX that could not be taken over.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct LeftKey {
    /// The key, with its path: `paths.cam.source`.
    pub key: String,
    /// The reason.
    pub reason: String,
    /// The remedy; may be empty.
    pub advice: String,
}

/// The tables that are written, and the keys that are left.
#[derive(Default)]
pub(super) struct Document {
    tables: Vec<Table>,
    left: Vec<LeftKey>,
}

/// A table in TOML.
pub(super) struct Table {
    head: String,
    entries: Vec<(&'static str, String)>,
}

impl Document {
    /// The text, after a check of the whole.
    pub(super) fn finish(self) -> Imported {
        let mut toml = "# From mediamtx.yml, by `punctual relay import`.\n".to_owned();
        for Table { head, entries } in &self.tables {
            let _ = writeln!(toml, "\n{head}");
            for (key, value) in entries {
                let _ = writeln!(toml, "{key} = {value}");
            }
        }
        let mut left = self.left;
        // The files that it names may lie elsewhere: the check at the relay finds missing ones.
        let problems = load::check(&Sources::text("relay.toml", &toml)).err().unwrap_or_default();
        for problem in problems.into_iter().filter(|it| !it.message.contains("cannot be named")) {
            left.push(LeftKey {
                key: problem.key,
                reason: problem.message,
                advice: "mend it in the new file".to_owned(),
            });
        }
        Imported { toml, left }
    }

    /// Sets a key of a table, if the key takes the value. Returns whether it does.
    pub(super) fn takes<T: Default>(
        &mut self,
        table: &mut Table,
        rows: &[KeyRow<T>],
        (key, value): (&'static str, String),
        from: &str,
    ) -> bool {
        let before = self.left.len();
        self.set(table, rows, (key, value), from);
        self.left.len() == before
    }

    /// Notes a key that is left.
    pub(super) fn leave(
        &mut self,
        key: impl Into<String>,
        reason: impl Into<String>,
        advice: impl Into<String>,
    ) {
        let (key, reason, advice) = (key.into(), reason.into(), advice.into());
        self.left.push(LeftKey { key, reason, advice });
    }

    /// Adds a table, unless it is empty.
    pub(super) fn add(&mut self, table: Table) {
        if !table.entries.is_empty() {
            self.tables.push(table);
        }
    }

    /// Sets a key of a table, if the key takes the value; otherwise `from` is left.
    pub(super) fn set<T: Default>(
        &mut self,
        table: &mut Table,
        rows: &[KeyRow<T>],
        (key, value): (&'static str, String),
        from: &str,
    ) {
        match fault(rows, key, &value) {
            None => table.entries.push((key, value)),
            Some(message) => self.leave(from, message, format!("see `{key}` in relay-keys.md")),
        }
    }
}

impl Table {
    /// An empty table with this head.
    pub(super) fn new(head: impl Into<String>) -> Self {
        Self { head: head.into(), entries: Vec::new() }
    }
}

/// The reason for which a key does not take this value in TOML.
fn fault<T: Default>(rows: &[KeyRow<T>], key: &str, value: &str) -> Option<String> {
    let row = find(rows, key)?;
    let value = match toml::de::DeValue::parse(value) {
        Ok(value) => value,
        Err(error) => return Some(error.message().to_owned()),
    };
    let files = NamedFiles::none();
    let context = Context { files: &files, only_texts: false };
    let value = Value::new(value.get_ref(), &context);
    let fault = (row.set)(&mut T::default(), &value).err()?.0.into_iter().next()?;
    let is_file = fault.message.contains("cannot be named");
    (!is_file).then_some(fault.message)
}

/// A switch, also as YAML 1.1 writes it.
pub(super) fn switch(value: &Json) -> Option<bool> {
    match value {
        Json::Bool(switch) => Some(*switch),
        Json::String(text) => match text.to_ascii_lowercase().as_str() {
            "yes" | "true" | "on" | "y" => Some(true),
            "no" | "false" | "off" | "n" => Some(false),
            _ => None,
        },
        _ => None,
    }
}

/// A text that is not empty; a number or a switch as it is written.
pub(super) fn text(value: &Json) -> Option<String> {
    match value {
        Json::String(text) if !text.is_empty() => Some(text.clone()),
        Json::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The texts of a list, or of a text with commas.
pub(super) fn texts(value: &Json) -> Vec<String> {
    match value {
        Json::Array(parts) => parts.iter().filter_map(text).collect(),
        Json::String(text) => {
            text.split(',').map(|part| part.trim().to_owned()).filter(|it| !it.is_empty()).collect()
        }
        _ => Vec::new(),
    }
}

/// A time as Go writes it, such as `1h30m`, in TOML.
pub(super) fn time(value: &Json) -> Option<String> {
    let text = text(value)?;
    let mut rest = text.as_str();
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let unit = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let end =
            rest[unit..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| unit + at);
        sum = sum.checked_add(punctual_units::parse_duration(&rest[..end]).ok()?)?;
        rest = &rest[end..];
    }
    Some(toml_text::quoted(&toml_text::time(sum)))
}

/// Whether a value says nothing: none, an empty text or an empty list.
pub(super) fn is_nothing(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(parts) => parts.is_empty(),
        _ => false,
    }
}
