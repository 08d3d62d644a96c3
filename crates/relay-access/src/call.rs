//! A call: the wish of a caller, from its stream ID.

use std::fmt;

use punctual_proto::{AccessMode, RawStreamId, RejectReason, StreamIdError};
use punctual_units::one_line;
use punctual_uri::redacted_stream_id;
use thiserror::Error;

use crate::action::Action;
use crate::credentials::Credentials;
use crate::forms;
use crate::name::{StreamName, StreamNameError};
use crate::query::{Query, decoded};

/// The wish of a caller: an action on a stream, with its proofs of who it is.
///
/// ```
/// use punctual_relay_access::{Action, Call, CallDefaults};
///
/// let call = Call::parse(&"publish:live/cam:ann:hush".into(), &CallDefaults::default())?;
/// assert_eq!((call.action(), call.stream().as_str()), (Action::Publish, "live/cam"));
/// assert_eq!(call.shown(), "publish:live/cam:ann:…");
/// # Ok::<(), punctual_relay_access::CallError>(())
/// ```
#[derive(Clone, Eq, PartialEq)]
pub struct Call {
    action: Action,
    stream: StreamName,
    credentials: Credentials,
    query: Query,
    at: Option<String>,
    is_backup: bool,
    shown: String,
}

/// The wishes of callers whose stream ID does not say all, as a listener has them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CallDefaults {
    /// The stream of callers that name none.
    pub stream: Option<StreamName>,
    /// Whether callers that do not say so publish or read; they read if this is `None`.
    pub action: Option<Action>,
}

/// A stream ID that is no call.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum CallError {
    /// Bytes that are no text.
    #[error("the stream ID is not UTF-8")]
    NotText,
    /// No stream is named, and the listener has none either.
    #[error("the stream ID names no stream: write publish:NAME, read:NAME or #!::r=NAME,m=publish")]
    NoStream,
    /// The name of the stream is invalid.
    #[error(transparent)]
    Name(#[from] StreamNameError),
    /// A part of the standard form has no `=`. The part is not shown: it may belong to a password.
    #[error("a part of the stream ID is not of the form key=value; values cannot have commas")]
    Pair,
    /// A relay does not have this mode.
    #[error("the mode `{0}` must be request or publish")]
    Mode(String),
    /// Another fault of the syntax.
    #[error(transparent)]
    Syntax(StreamIdError),
}

impl CallError {
    /// The code to refuse the caller with.
    pub const fn code(&self) -> RejectReason {
        match self {
            Self::Mode(_) => RejectReason::BAD_MODE,
            _ => RejectReason::BAD_REQUEST,
        }
    }
}

impl From<StreamIdError> for CallError {
    fn from(error: StreamIdError) -> Self {
        match error {
            StreamIdError::Pair(_) => Self::Pair,
            StreamIdError::Mode(mode) => Self::Mode(mode),
            other => Self::Syntax(other),
        }
    }
}

impl Call {
    /// The call that a stream ID means, in any form that encoders, players and servers use. The
    /// defaults say what it leaves open.
    ///
    /// # Errors
    ///
    /// It means no call. The error has no secret.
    pub fn parse(raw: &RawStreamId, defaults: &CallDefaults) -> Result<Self, CallError> {
        if raw.bytes() != raw.as_str().as_bytes() {
            return Err(CallError::NotText);
        }
        let text = forms::whole(raw.as_str());
        let (id, query) = forms::parse(&text)?;
        // SRS's users write the path into the key `h` when they leave out `r`.
        let named = id.resource().or_else(|| id.host().filter(|host| host.contains('/')));
        let (name, _) = forms::split_query(named.unwrap_or_default());
        let is_url = text.starts_with('/') || forms::is_url(&text);
        let name = if is_url { decoded(name) } else { name.to_owned() };
        let stream = match (StreamName::new(&name), &defaults.stream) {
            (Ok(stream), _) => stream,
            (Err(StreamNameError::Empty), Some(stream)) => stream.clone(),
            (Err(StreamNameError::Empty), None) => return Err(CallError::NoStream),
            (Err(error), _) => return Err(error.into()),
        };
        let key = |name: &str| id.other(name).map(str::to_owned).or_else(|| query.get(name));
        let at = key("at").filter(|at| !at.is_empty());
        let action = action(id.stated_mode(), defaults.action, at.is_some())?;
        let is_backup = key("backup").is_some_and(|it| matches!(&it[..], "1" | "true" | "yes"));
        let own =
            Credentials::password(id.user().unwrap_or_default(), id.secret().unwrap_or_default());
        let credentials = own.or_token(id.other("token").or(id.other("jwt"))).or_query(&query);
        let shown = without_secrets(redacted_stream_id(&text), &credentials);
        Ok(Self { action, stream, credentials, query, at, is_backup, shown })
    }

    /// A call that came by HTTP.
    pub fn by_http(
        action: Action,
        stream: StreamName,
        credentials: Credentials,
        query: &str,
    ) -> Self {
        let query = Query::new(query);
        let at = query.get("at").filter(|_| action == Action::Playback);
        let shown = format!("{action}:{stream}");
        let credentials = credentials.or_query(&query);
        Self { action, stream, credentials, query, at, is_backup: false, shown }
    }

    /// The action: to publish, to read, or to read what was recorded.
    pub fn action(&self) -> Action {
        self.action
    }

    /// The stream.
    pub fn stream(&self) -> &StreamName {
        &self.stream
    }

    /// The proofs of who the caller is.
    pub fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// The text after the `?`, or the query of the colon form; empty if there is none. Secrets
    /// are part of it.
    pub fn query(&self) -> &str {
        self.query.as_str()
    }

    /// The time to read a recording from, as written: the key `at`.
    pub fn at(&self) -> Option<&str> {
        self.at.as_deref()
    }

    /// Whether a publisher wants to be the backup of another one: the key `backup`.
    pub fn is_backup(&self) -> bool {
        self.is_backup
    }

    /// The stream ID without secrets, in one line, for logs, the page and the API.
    pub fn shown(&self) -> &str {
        &self.shown
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("action", &self.action)
            .field("stream", &self.stream)
            .field("user", &self.credentials.user())
            .field("shown", &self.shown)
            .finish_non_exhaustive()
    }
}

/// A stream ID without secrets, in one line, whether or not it means a call. The raw one stays
/// secret.
pub fn shown(raw: &RawStreamId) -> String {
    one_line(&redacted_stream_id(&forms::whole(raw.as_str()))).into_owned()
}

/// The text in one line, without the secrets that the caller gave. Most stand in places where they
/// are redacted already.
fn without_secrets(shown: String, credentials: &Credentials) -> String {
    let secrets = credentials.secret().into_iter().chain(credentials.own_token());
    let shown = secrets.fold(shown, |shown, secret| shown.replace(secret.expose(), "…"));
    one_line(&shown).into_owned()
}

fn action(
    stated: Option<AccessMode>,
    default: Option<Action>,
    is_playback: bool,
) -> Result<Action, CallError> {
    let action = match stated {
        Some(AccessMode::Publish) => Action::Publish,
        Some(AccessMode::Request) => Action::Read,
        Some(mode @ AccessMode::Bidirectional) => return Err(CallError::Mode(mode.to_string())),
        None => default.unwrap_or(Action::Read),
    };
    Ok(if is_playback && action == Action::Read { Action::Playback } else { action })
}

#[cfg(test)]
#[path = "call_tests.rs"]
mod tests;
