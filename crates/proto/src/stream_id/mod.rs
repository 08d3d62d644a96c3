//! What a stream ID says: who calls, for which stream, to send or to receive it.
//!
//! A stream ID is free text, and each server has its own habits. Those that are in use are read
//! here into one [`StreamId`], and written in the one form that SRT's documentation sets down.

mod parse;

use std::fmt;

use thiserror::Error;

use crate::config::Config;
use punctual_wire::RejectReason;

/// What a stream ID says, whichever form it has.
///
/// | form | example | known from |
/// |---|---|---|
/// | standard | `#!::u=user,r=live/a,m=publish,s=token,h=host` | SRT, `MediaMTX`, srtrelay |
/// | nested | `#!:{u=user,r=live/a}` | SRT |
/// | colon | `publish:path[:user:pass][:query]`, `read:path` | `MediaMTX` |
/// | slash | `publish/name[/password]`, `play/name` | srtrelay |
/// | domain | `uplive.host/app/stream`, `live.host/app/stream` | srt-live-server |
/// | path | `/live/a?token=x`, `publish:/live/a` | gosrt |
/// | bare | `mystream` | everybody |
///
/// The forms cannot be told apart with certainty: `publish/a` may be meant as a bare name. A
/// server that has its own form should read the text itself.
///
/// ```
/// use punctual_proto::{AccessMode, StreamId};
///
/// let id = StreamId::parse("publish:live/camera:ann:secret")?;
/// assert_eq!((id.resource(), id.mode()), (Some("live/camera"), AccessMode::Publish));
/// assert_eq!((id.user(), id.secret()), (Some("ann"), Some("secret")));
///
/// let id = StreamId::new("live/camera").with_mode(AccessMode::Publish).with_user("ann");
/// assert_eq!(id.to_standard()?, "#!::u=ann,r=live/camera,m=publish");
/// # Ok::<(), punctual_proto::StreamIdError>(())
/// ```
#[derive(Clone, Default, Eq, PartialEq)]
pub struct StreamId {
    user: Option<String>,
    resource: Option<String>,
    mode: Option<AccessMode>,
    session: Option<String>,
    password: Option<String>,
    host: Option<String>,
    content: Option<ContentType>,
    query: Option<String>,
    others: Vec<(String, String)>,
}

/// What a caller wants to do: the key `m`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum AccessMode {
    /// Receive the stream. What is meant when nothing is said.
    #[default]
    Request,
    /// Send the stream.
    Publish,
    /// Both.
    Bidirectional,
}

/// What a connection is for: the key `t`.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub enum ContentType {
    /// A live stream, or whatever the application wants. What is meant when nothing is said.
    #[default]
    Stream,
    /// A file, whose name is the resource.
    File,
    /// An exchange of secrets.
    Auth,
    /// Another type, which the specification leaves to applications.
    Other(String),
}

/// A stream ID that begins as the standard form does and then breaks its rules, or that cannot be
/// written in that form.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum StreamIdError {
    /// `#!` is not followed by `::` or `:{`.
    #[error("a stream ID that begins with #! must go on with :: or :{{")]
    Syntax,
    /// The nested form has unbalanced braces.
    #[error("the braces of the stream ID are not balanced")]
    Braces,
    /// A part without `=`, or with nothing before it.
    #[error("`{0}` in the stream ID is not of the form key=value")]
    Pair(String),
    /// A key that stands twice.
    #[error("the key `{0}` stands twice in the stream ID")]
    Twice(String),
    /// A mode that there is not.
    #[error("the mode `{0}` in the stream ID must be request, publish or bidirectional")]
    Mode(String),
    /// The colon form has one part that is too many, or a user without a password.
    #[error("the stream ID must be MODE:PATH, with :USER:PASSWORD and :QUERY if need be")]
    Colons,
    /// A value that the standard form cannot carry.
    #[error("the standard form cannot carry `{0}`: it has no way to write a comma or this key")]
    Unwritable(String),
    /// Too long for a stream ID.
    #[error("the stream ID has {0} bytes; it must have at most 512")]
    TooLong(usize),
}

impl StreamIdError {
    /// The code with which a caller of such a stream ID is to be refused.
    pub const fn reject_reason(&self) -> RejectReason {
        match self {
            Self::Mode(_) => RejectReason::BAD_MODE,
            _ => RejectReason::BAD_REQUEST,
        }
    }
}

impl StreamId {
    /// The ID of a resource, to be requested by nobody in particular.
    pub fn new(resource: impl Into<String>) -> Self {
        Self { resource: Some(resource.into()), ..Self::default() }
    }

    /// With a mode.
    #[must_use]
    pub fn with_mode(self, mode: AccessMode) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// With a user.
    #[must_use]
    pub fn with_user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// With a session ID, which some servers read as a password or a token.
    #[must_use]
    pub fn with_session(self, session: impl Into<String>) -> Self {
        Self { session: Some(session.into()), ..self }
    }

    /// With the host that has the resource.
    #[must_use]
    pub fn with_host(self, host: impl Into<String>) -> Self {
        Self { host: Some(host.into()), ..self }
    }

    /// With a type.
    #[must_use]
    pub fn with_content(self, content: ContentType) -> Self {
        Self { content: Some(content), ..self }
    }

    /// With a key of the application's own. The specification wants it to begin with `user_` or
    /// with a company's name and `_`.
    #[must_use]
    pub fn with_other(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.others.push((key.into(), value.into()));
        self
    }

    /// Who calls: the key `u`.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The stream: the key `r`. A slash at the start of a path is left out, so that `/live/a` and
    /// `live/a` are the same.
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// What the caller wants to do: the key `m`, or request if it did not say.
    pub fn mode(&self) -> AccessMode {
        self.mode.unwrap_or_default()
    }

    /// What the caller wants to do, if it said so. A server may have another default than request.
    pub const fn stated_mode(&self) -> Option<AccessMode> {
        self.mode
    }

    /// The password or token: that of the forms which have one, else the session ID (the key `s`),
    /// which is where `MediaMTX` expects it.
    pub fn secret(&self) -> Option<&str> {
        self.password.as_deref().or(self.session.as_deref())
    }

    /// The session ID: the key `s`.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The host that has the resource: the key `h`.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// What the connection is for: the key `t`, or a stream.
    pub fn content(&self) -> ContentType {
        self.content.clone().unwrap_or_default()
    }

    /// What stands behind the `?` of a path, or in the query of the colon form.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// The value of another key of the standard form.
    pub fn other(&self, key: &str) -> Option<&str> {
        self.others.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The other keys of the standard form, in their order, with their values.
    pub fn others(&self) -> impl Iterator<Item = (&str, &str)> {
        self.others.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The ID in the standard form. A password is written as session ID if there is none.
    ///
    /// # Errors
    ///
    /// A value has a comma, or there is a query, for which the standard form has no place; or the
    /// whole is longer than 512 bytes.
    pub fn to_standard(&self) -> Result<String, StreamIdError> {
        let mode = self.mode.map(AccessMode::word);
        let content = self.content.as_ref().map(ContentType::word);
        let standard = [
            ("u", self.user()),
            ("r", self.resource()),
            ("m", mode),
            ("h", self.host()),
            ("s", self.session().or(self.secret())),
            ("t", content),
        ];
        let standard = standard.iter().filter_map(|&(key, value)| Some((key, value?)));
        if self.query.is_some() {
            return Err(StreamIdError::Unwritable("query".to_owned()));
        }
        let mut text = parse::FLAT.to_owned();
        let mut seen = Vec::new();
        for (key, value) in standard.chain(self.others()) {
            if key.is_empty() || key.contains([',', '=']) || value.contains(',') {
                return Err(StreamIdError::Unwritable(key.to_owned()));
            }
            if seen.contains(&key) {
                return Err(StreamIdError::Twice(key.to_owned()));
            }
            if !seen.is_empty() {
                text.push(',');
            }
            seen.push(key);
            text.extend([key, "=", value]);
        }
        if text.len() > Config::MAX_STREAM_ID {
            return Err(StreamIdError::TooLong(text.len()));
        }
        Ok(text)
    }
}

/// Passwords and session IDs are left out: this is what ends up in logs.
impl fmt::Debug for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamId")
            .field("user", &self.user)
            .field("resource", &self.resource)
            .field("mode", &self.mode)
            .field("host", &self.host)
            .field("content", &self.content)
            .field("others", &self.others)
            .finish_non_exhaustive()
    }
}

impl AccessMode {
    /// As it stands in the standard form.
    const fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Publish => "publish",
            Self::Bidirectional => "bidirectional",
        }
    }
}

impl fmt::Display for AccessMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl ContentType {
    fn word(&self) -> &str {
        match self {
            Self::Stream => "stream",
            Self::File => "file",
            Self::Auth => "auth",
            Self::Other(other) => other,
        }
    }
}

impl fmt::Display for ContentType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
