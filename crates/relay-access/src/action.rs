use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// Something that a right allows.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Action {
    /// To send a stream to the relay.
    Publish,
    /// To take a stream from the relay while it comes in.
    Read,
    /// To take what was recorded of a stream.
    Playback,
    /// To read the metrics.
    Metrics,
    /// To use the API and the page.
    Api(Role),
}

/// The part of the API that a user may use. A greater role includes the smaller ones.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Role {
    /// To see streams, connections, refusals and events.
    Read,
    /// Also to kick, switch, record and forward.
    Operate,
    /// Also to change the configuration.
    Admin,
}

/// A word that is no action.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "`{0}` is no action: write publish, read, playback, metrics, api-read, api-operate or api-admin"
)]
pub struct ActionError(String);

impl Action {
    /// Every action.
    pub const ALL: [Self; 7] = [
        Self::Publish,
        Self::Read,
        Self::Playback,
        Self::Metrics,
        Self::Api(Role::Read),
        Self::Api(Role::Operate),
        Self::Api(Role::Admin),
    ];

    /// The word in files, tokens and callouts.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Read => "read",
            Self::Playback => "playback",
            Self::Metrics => "metrics",
            Self::Api(Role::Read) => "api-read",
            Self::Api(Role::Operate) => "api-operate",
            Self::Api(Role::Admin) => "api-admin",
        }
    }

    /// Whether the action is about one stream.
    pub const fn has_stream(self) -> bool {
        matches!(self, Self::Publish | Self::Read | Self::Playback)
    }

    /// Whether a right to this action is also one to `other`.
    pub fn includes(self, other: Self) -> bool {
        match (self, other) {
            (Self::Api(mine), Self::Api(wanted)) => mine >= wanted,
            _ => self == other,
        }
    }

    /// The place in sets of actions: a bit.
    pub(crate) const fn bit(self) -> u8 {
        match self {
            Self::Publish => 1,
            Self::Read => 2,
            Self::Playback => 4,
            Self::Metrics => 8,
            Self::Api(Role::Read) => 16,
            Self::Api(Role::Operate) => 32,
            Self::Api(Role::Admin) => 64,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// `api` alone is `MediaMTX`'s word for all of the API.
impl FromStr for Action {
    type Err = ActionError;

    fn from_str(word: &str) -> Result<Self, ActionError> {
        if word == "api" {
            return Ok(Self::Api(Role::Admin));
        }
        let known = Self::ALL.into_iter().find(|action| action.word() == word);
        known.ok_or_else(|| ActionError(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_is_read_from_its_word_and_has_a_bit_of_its_own() {
        let mut bits = 0;
        for action in Action::ALL {
            assert_eq!(action.to_string().parse(), Ok(action));
            assert_eq!(bits & action.bit(), 0);
            bits |= action.bit();
        }
        assert_eq!("api".parse(), Ok(Action::Api(Role::Admin)));
        let error = "watch".parse::<Action>().unwrap_err().to_string();
        assert!(error.contains("`watch`") && error.contains("api-operate"), "{error}");
    }

    #[test]
    fn a_greater_role_includes_the_smaller_ones_and_nothing_else() {
        let admin = Action::Api(Role::Admin);
        assert!(admin.includes(Action::Api(Role::Read)) && !admin.includes(Action::Metrics));
        assert!(!Action::Api(Role::Read).includes(Action::Api(Role::Operate)));
        assert!(Action::Read.includes(Action::Read) && !Action::Read.includes(Action::Playback));
    }
}
