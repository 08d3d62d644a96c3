//! Tables of keys: one row has the name of a key, its form, its meaning and its effect. The check
//! of a file, the environment, the printed configuration, the comparison of two configurations and
//! the pages for readers use the same rows.

use serde::Serialize;

use crate::problem::Faults;
use crate::secret::SecretValue;
use crate::value::Value;

/// The description of a key.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct KeyFacts {
    /// The table that has the key: `http`, or `listen` for `[[listen]]`. `stream` stands for
    /// `[defaults]` and for `[stream."NAME"]`.
    pub section: &'static str,
    /// The name of the key.
    pub name: &'static str,
    /// The form of the value, with its range or the allowed values.
    pub form: &'static str,
    /// The meaning, in one sentence.
    pub meaning: &'static str,
    /// The program or the standard whose users know the key, and its name there; may be empty.
    pub habit: &'static str,
    /// The time at which a reload gives a new value effect.
    pub reload: ReloadEffect,
}

/// The time at which a changed value has effect.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReloadEffect {
    /// At once, also for streams and connections that exist.
    Live,
    /// For connections, requests and recordings that begin after the reload.
    NewConnections,
    /// At the next start of the relay.
    Restart,
}

impl ReloadEffect {
    /// The word for tables and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::NewConnections => "new connections",
            Self::Restart => "restart",
        }
    }
}

/// A key of a table that becomes a `T`.
pub(crate) struct KeyRow<T> {
    pub(crate) facts: KeyFacts,
    /// Reads a value into the target.
    pub(crate) set: fn(&mut T, &Value<'_>) -> Result<(), Faults>,
    /// The value of the target.
    pub(crate) show: for<'a> fn(&'a T) -> Shown<'a>,
}

/// A value as it may be shown and compared.
#[derive(Debug, PartialEq)]
pub(crate) enum Shown<'a> {
    /// The key has no value.
    Nothing,
    /// A value in TOML, on one line.
    Toml(String),
    /// A value with secrets, which are compared, and its form without them.
    Hidden(Vec<&'a SecretValue>, String),
}

impl Shown<'_> {
    /// The value in TOML, without secrets.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Nothing => None,
            Self::Toml(text) | Self::Hidden(_, text) => Some(text),
        }
    }
}

/// The row of this name.
pub(crate) fn find<'a, T>(rows: &'a [KeyRow<T>], name: &str) -> Option<&'a KeyRow<T>> {
    rows.iter().find(|row| row.facts.name == name)
}

/// Stores what was read.
pub(crate) fn store<T>(place: &mut T, read: Result<T, Faults>) -> Result<(), Faults> {
    *place = read?;
    Ok(())
}

/// The keys whose values differ between two targets.
pub(crate) fn differing<T>(rows: &'static [KeyRow<T>], old: &T, new: &T) -> Vec<&'static KeyFacts> {
    let differs = |row: &&KeyRow<T>| (row.show)(old) != (row.show)(new);
    rows.iter().filter(differs).map(|row| &row.facts).collect()
}
