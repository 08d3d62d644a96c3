//! The origins of values.

use std::collections::BTreeMap;
use std::fmt;

/// The source that gave a value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ValueOrigin {
    /// None: it is the default.
    Default,
    /// A file.
    File {
        /// Its name.
        name: String,
        /// The number of the line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment(String),
    /// A change by the API.
    Api {
        /// Whether it outlives the relay, in `state.toml`.
        persistent: bool,
    },
}

impl fmt::Display for ValueOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { name, line } => write!(f, "{name}:{line}"),
            Self::Environment(variable) => f.write_str(variable),
            Self::Api { persistent: true } => f.write_str("API, state.toml"),
            Self::Api { persistent: false } => f.write_str("API"),
        }
    }
}

/// A part of a configuration, with keys.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Part {
    /// The listener of this number.
    Listen(usize),
    Http,
    Defaults,
    /// The section of this pattern.
    Stream(String),
    /// The user of this number.
    User(usize),
    Auth,
    /// The hook of this number.
    Hook(usize),
    Drain,
}

impl Part {
    /// The name of the table.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Listen(_) => "listen".to_owned(),
            Self::Http => "http".to_owned(),
            Self::Defaults => "defaults".to_owned(),
            Self::Stream(pattern) => format!("stream.{pattern:?}"),
            Self::User(_) => "user".to_owned(),
            Self::Auth => "auth".to_owned(),
            Self::Hook(_) => "hook".to_owned(),
            Self::Drain => "drain".to_owned(),
        }
    }
}

/// The origin of each value that is not the default.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins(BTreeMap<Part, BTreeMap<&'static str, ValueOrigin>>);

impl Origins {
    /// A value came from there, over an earlier one.
    pub(crate) fn note(&mut self, part: Part, key: &'static str, origin: ValueOrigin) {
        self.0.entry(part).or_default().insert(key, origin);
    }

    /// The origin of a value. If it is the default, but other keys of its part are given, any of
    /// theirs; without a key the same.
    pub(crate) fn of(&self, part: &Part, key: &str) -> ValueOrigin {
        let keys = self.0.get(part);
        let exact = keys.and_then(|keys| keys.get(key));
        let any = || keys.and_then(|keys| keys.values().next());
        exact.or_else(any).cloned().unwrap_or(ValueOrigin::Default)
    }

    /// The origin of exactly this value.
    pub(crate) fn exactly(&self, part: &Part, key: &str) -> ValueOrigin {
        let exact = self.0.get(part).and_then(|keys| keys.get(key));
        exact.cloned().unwrap_or(ValueOrigin::Default)
    }
}
