//! The answers to callers.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_proto::RejectReason;
use punctual_units::{Bitrate, one_line};

use crate::action::Action;
use crate::call::{Call, CallError};
use crate::name::StreamName;
use crate::secret::Secret;
use crate::token::{KeyPrint, TokenError};
use crate::user::UserPrint;

/// The answer to a caller.
pub type Decision = Result<Admitted, Refused>;

/// A caller beside its call.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Caller {
    /// The address.
    pub address: IpAddr,
    /// The connection, by an ID that logs and the API have too.
    pub id: String,
    /// The protocol, in `MediaMTX`'s words where it has one: `srt`, `quic`, `http`, `hls`.
    pub protocol: &'static str,
    /// The program, if it names itself.
    pub user_agent: String,
}

impl Caller {
    /// A caller over SRT.
    pub fn srt(address: IpAddr, id: impl Into<String>) -> Self {
        Self { address, id: id.into(), protocol: "srt", user_agent: String::new() }
    }
}

/// A caller that is let in, and on what terms.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Admitted {
    action: Action,
    stream: StreamName,
    user: Option<Arc<str>>,
    ground: Ground,
    address: IpAddr,
    terms: Terms,
}

/// The terms that a callout sets for a caller.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Terms {
    pub(crate) passphrase: Option<Secret>,
    pub(crate) lifetime: Option<Duration>,
    pub(crate) max_bitrate: Option<Bitrate>,
}

/// The rule that lets a caller in.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Ground {
    /// No rule is configured.
    Open,
    /// An entry of the file.
    User(UserPrint),
    /// A signed token for these streams, and the key that signed it.
    Token { streams: Arc<str>, key: Option<KeyPrint> },
    /// A JSON web token, by the keys at this address.
    Jwt { keys: Arc<str> },
    /// The callout at this address.
    Callout { url: Arc<str> },
}

impl Admitted {
    pub(crate) fn new(call: &Call, user: Option<&str>, ground: Ground, address: IpAddr) -> Self {
        let user = user.filter(|user| !user.is_empty()).map(Arc::from);
        let (action, stream) = (call.action(), call.stream().clone());
        Self { action, stream, user, ground, address, terms: Terms::default() }
    }

    pub(crate) fn with_terms(self, terms: Terms) -> Self {
        Self { terms, ..self }
    }

    pub(crate) fn on(self, stream: StreamName) -> Self {
        Self { stream, ..self }
    }

    pub(crate) fn ground(&self) -> &Ground {
        &self.ground
    }

    /// The action that the caller may do.
    pub const fn action(&self) -> Action {
        self.action
    }

    /// The stream, which a callout may have changed.
    pub const fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// The user, for limits per user, the page and logs; `None` for callers without a name.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The address of the caller.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// The passphrase that the connection must have, instead of the stream's.
    pub const fn passphrase(&self) -> Option<&Secret> {
        self.terms.passphrase.as_ref()
    }

    /// The time after which the connection ends.
    pub const fn lifetime(&self) -> Option<Duration> {
        self.terms.lifetime
    }

    /// The highest bit rate that the caller may send or take.
    pub const fn max_bitrate(&self) -> Option<Bitrate> {
        self.terms.max_bitrate
    }

    /// Whether this publisher may take the place of `other`: it is the same user; or neither has a
    /// name, and the same kind of rule lets both in, such as tokens for the same streams.
    pub fn may_replace(&self, other: &Self) -> bool {
        let same_ground = match (&self.ground, &other.ground) {
            (Ground::Token { streams: one, .. }, Ground::Token { streams: two, .. }) => one == two,
            (one, two) => std::mem::discriminant(one) == std::mem::discriminant(two),
        };
        self.user == other.user && (self.user.is_some() || same_ground)
    }
}

/// A caller that is not let in. Nothing in it is secret.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    reason: Refusal,
    code: RejectReason,
    text: String,
}

/// The kinds of refusals, for counting.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Refusal {
    /// The stream ID means no call.
    StreamId,
    /// The address is in no network that is let in.
    Address,
    /// The caller gave no proof of who it is, and needs one.
    NoCredentials,
    /// There is no such user or token.
    UnknownUser,
    /// The password is wrong.
    WrongPassword,
    /// The token was signed by nobody known, or is for something else.
    WrongToken,
    /// The token has expired.
    ExpiredToken,
    /// The user is known but has no right to this.
    NoRight,
    /// The callout said no.
    Callout,
    /// The callout, or the server of keys, failed.
    CalloutFailed,
    /// Too many decisions are under way.
    Overload,
}

impl Refusal {
    /// The word in metrics and the API.
    pub const fn word(self) -> &'static str {
        match self {
            Self::StreamId => "stream-id",
            Self::Address => "address",
            Self::NoCredentials => "no-credentials",
            Self::UnknownUser => "unknown-user",
            Self::WrongPassword => "wrong-password",
            Self::WrongToken => "wrong-token",
            Self::ExpiredToken => "expired-token",
            Self::NoRight => "no-right",
            Self::Callout => "callout",
            Self::CalloutFailed => "callout-failed",
            Self::Overload => "overload",
        }
    }

    const fn code(self) -> RejectReason {
        match self {
            Self::StreamId => RejectReason::BAD_REQUEST,
            Self::Address | Self::NoRight | Self::Callout => RejectReason::FORBIDDEN,
            Self::NoCredentials
            | Self::UnknownUser
            | Self::WrongPassword
            | Self::WrongToken
            | Self::ExpiredToken => RejectReason::UNAUTHORIZED,
            Self::CalloutFailed => RejectReason::BAD_GATEWAY,
            Self::Overload => RejectReason::OVERLOAD,
        }
    }
}

impl Refused {
    pub(crate) fn new(reason: Refusal, text: impl AsRef<str>) -> Self {
        let text = one_line(text.as_ref()).into_owned();
        Self { reason, code: reason.code(), text }
    }

    pub(crate) fn with_code(self, code: RejectReason) -> Self {
        Self { code, ..self }
    }

    /// The refusal of a caller whose address no network of the listener has.
    pub fn by_network(address: IpAddr) -> Self {
        Self::new(Refusal::Address, format!("the listener lets in no callers from {address}"))
    }

    /// The kind of the refusal.
    pub const fn reason(&self) -> Refusal {
        self.reason
    }

    /// The code that the caller gets.
    pub const fn code(&self) -> RejectReason {
        self.code
    }

    /// The status of HTTP that means the same.
    pub const fn http_status(&self) -> u16 {
        match self.code {
            RejectReason::BAD_REQUEST | RejectReason::BAD_MODE => 400,
            RejectReason::UNAUTHORIZED => 401,
            RejectReason::NOT_FOUND => 404,
            RejectReason::CONFLICT => 409,
            RejectReason::BAD_GATEWAY => 502,
            RejectReason::OVERLOAD | RejectReason::UNAVAILABLE => 503,
            RejectReason::GATEWAY_TIMEOUT => 504,
            _ => 403,
        }
    }

    /// The cause in words, in one line, for the operator. The caller gets the code only.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refused {}

impl From<CallError> for Refused {
    fn from(error: CallError) -> Self {
        Self::new(Refusal::StreamId, error.to_string()).with_code(error.code())
    }
}

impl From<TokenError> for Refused {
    fn from(error: TokenError) -> Self {
        let reason = match error {
            TokenError::Expired(_) => Refusal::ExpiredToken,
            TokenError::OtherStream { .. } | TokenError::OtherAction(_) => Refusal::NoRight,
            _ => Refusal::WrongToken,
        };
        Self::new(reason, error.to_string())
    }
}
