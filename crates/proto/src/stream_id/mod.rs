//! The contents of a stream ID: the user, the stream, and whether the caller sends or receives it.
//!
//! A stream ID is free text, and servers use it in different forms. The forms in use are parsed
//! into a [`StreamId`], which is written in the standard form of SRT's documentation (draft
//! appendix B).

mod parse;
mod raw;

use std::fmt;

use thiserror::Error;

pub use self::raw::RawStreamId;
use punctual_wire::RejectReason;

/// The length of the longest stream ID, bytes.
pub(crate) const MAX_LEN: usize = 512;

/// The contents of a stream ID of any form.
///
/// | form | example | known from |
/// |---|---|---|
/// | standard | `#!::u=user,r=live/a,m=publish,s=token,h=host` | SRT, `MediaMTX`, srtrelay |
/// | nested | `#!:{u=user,r=live/a}` | SRT |
/// | colon | `publish:path[:user:pass][:query]`, `read:path` | `MediaMTX` |
/// | slash | `publish/name[/password]`, `play/name` | srtrelay |
/// | domain | `uplive.host/app/stream`, `live.host/app/stream` | srt-live-server |
/// | path | `/live/a?token=x`, `publish:/live/a` | gosrt |
/// | bare | `mystream` | most programs |
///
/// The forms cannot be distinguished with certainty: `publish/a` may be a bare name. A server that
/// has its own form should parse the text itself.
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

/// The direction of the stream that the caller requests: the key `m`.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum AccessMode {
    /// The caller receives the stream; the default.
    #[default]
    Request,
    /// The caller sends the stream.
    Publish,
    /// Both directions.
    Bidirectional,
}

/// The content of the connection: the key `t`.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub enum ContentType {
    /// A live stream, or content that the application defines; the default.
    #[default]
    Stream,
    /// A file, whose name is the resource.
    File,
    /// An exchange of secrets.
    Auth,
    /// Another type, which the specification leaves to applications.
    Other(String),
}

/// An error in a stream ID: it begins as the standard form but violates its syntax, or cannot be
/// written in that form.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum StreamIdError {
    /// `#!` is not followed by `::` or `:{`.
    #[error("a stream ID that begins with #! must continue with :: or :{{")]
    Syntax,
    /// The nested form has unbalanced braces.
    #[error("the braces of the stream ID are not balanced")]
    Braces,
    /// A pair without `=`, or without a key before it.
    #[error("`{0}` in the stream ID is not of the form key=value")]
    Pair(String),
    /// A key that is present twice.
    #[error("the key `{0}` is present twice in the stream ID")]
    Twice(String),
    /// An unknown mode.
    #[error("the mode `{0}` in the stream ID must be request, publish or bidirectional")]
    Mode(String),
    /// The colon form has too many parts.
    #[error("the stream ID must be MODE:PATH, optionally with :USER:PASSWORD and :QUERY")]
    Colons,
    /// A value that cannot be written in the standard form.
    #[error("the standard form cannot express `{0}`: a comma in its value, or no such key")]
    Unwritable(String),
    /// The text is too long for a stream ID.
    #[error("the stream ID has {0} bytes; it must have at most 512")]
    TooLong(usize),
}

impl StreamIdError {
    /// The code to reject a caller with such a stream ID with.
    pub const fn reject_reason(&self) -> RejectReason {
        match self {
            Self::Mode(_) => RejectReason::BAD_MODE,
            _ => RejectReason::BAD_REQUEST,
        }
    }
}

impl StreamId {
    /// A stream ID with this resource and nothing else.
    pub fn new(resource: impl Into<String>) -> Self {
        Self { resource: Some(resource.into()), ..Self::default() }
    }

    /// Parses a stream ID of any form. A text of no other form is a bare name; an empty text is an
    /// empty stream ID.
    ///
    /// # Errors
    ///
    /// It begins as the standard form or the colon form but violates its syntax.
    pub fn parse(text: &str) -> Result<Self, StreamIdError> {
        parse::stream_id(text)
    }

    /// Sets the mode.
    #[must_use]
    pub fn with_mode(self, mode: AccessMode) -> Self {
        Self { mode: Some(mode), ..self }
    }

    /// Sets the user.
    #[must_use]
    pub fn with_user(self, user: impl Into<String>) -> Self {
        Self { user: Some(user.into()), ..self }
    }

    /// Sets the session ID, which some servers use as a password or a token.
    #[must_use]
    pub fn with_session(self, session: impl Into<String>) -> Self {
        Self { session: Some(session.into()), ..self }
    }

    /// Sets the host that has the resource.
    #[must_use]
    pub fn with_host(self, host: impl Into<String>) -> Self {
        Self { host: Some(host.into()), ..self }
    }

    /// Sets the content type.
    #[must_use]
    pub fn with_content(self, content: ContentType) -> Self {
        Self { content: Some(content), ..self }
    }

    /// Adds a custom key. The specification requires it to begin with `user_`, or with a company's
    /// name and `_`.
    #[must_use]
    pub fn with_other(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.others.push((key.into(), value.into()));
        self
    }

    /// The user: the key `u`.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The stream: the key `r`. A slash at the start of a path is removed, so that `/live/a` and
    /// `live/a` are equal.
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// The mode: the key `m`, or request if it is missing.
    pub fn mode(&self) -> AccessMode {
        self.mode.unwrap_or_default()
    }

    /// The mode, if the stream ID has one. A server may have another default than request.
    pub const fn stated_mode(&self) -> Option<AccessMode> {
        self.mode
    }

    /// The password or token, in the forms that have one; otherwise the session ID (the key `s`),
    /// where `MediaMTX` expects it.
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

    /// The content type: the key `t`, or a stream if it is missing.
    pub fn content(&self) -> ContentType {
        self.content.clone().unwrap_or_default()
    }

    /// The text after the `?` of a path, or the query of the colon form.
    pub fn query(&self) -> Option<&str> {
        self.query.as_deref()
    }

    /// The value of a custom key of the standard form.
    pub fn other(&self, key: &str) -> Option<&str> {
        self.others.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// The custom keys of the standard form with their values, in their order.
    pub fn others(&self) -> impl Iterator<Item = (&str, &str)> {
        self.others.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The stream ID in the standard form. A password is written as session ID if there is no
    /// session ID.
    ///
    /// # Errors
    ///
    /// A value contains a comma, or there is a query, which the standard form lacks; or the text is
    /// longer than 512 bytes.
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
        if text.len() > MAX_LEN {
            return Err(StreamIdError::TooLong(text.len()));
        }
        Ok(text)
    }
}

/// Does not show passwords and session IDs, since this text gets into logs.
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
    /// The word in the standard form.
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
