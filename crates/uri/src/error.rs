//! Errors of a URI: the wrong part, and a valid value.

use punctual::ConfigError;
use punctual_units::ParseUnitError;
use thiserror::Error;

/// An error of a URI, with the reason.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("{problem}")]
pub struct UriError {
    /// The URI as it was written.
    pub(crate) uri: String,
    pub(crate) problem: Problem,
}

impl UriError {
    /// The URI as it was written.
    pub fn uri(&self) -> &str {
        &self.uri
    }
}

/// The fault of a URI.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub(crate) enum Problem {
    #[error("`{host}` is not a host and port; {hint}")]
    BadHost { host: String, hint: &'static str },
    #[error("the bytes written with `%` in `{text}` are not UTF-8 text")]
    BadPercent { text: String },
    #[error("`{port}` is not a port; it must be 1 to 65535")]
    BadPort { port: String },
    #[error("{key}={value}: {fault}")]
    BadValue { key: String, value: String, fault: ValueError },
    #[error("{0} may be a host and port or a file: write `srt://{0}` or `./{0}`")]
    Bare(String),
    #[error("`{0}` is the name of a file without keys; for keys write `file://{0}`")]
    BareKeys(String),
    #[cfg(feature = "quic")]
    #[error("{keys}: {fault}")]
    Certificate { keys: &'static str, fault: String },
    #[error(
        "passphrase=: it is empty; leave the key out for a stream that is not encrypted, or give it \
         10 to 80 bytes"
    )]
    EmptyPassphrase,
    #[error(
        "`{scheme}://` is not among the forms of URIs here, but FFmpeg has it, and a pipe joins \
         both: `ffmpeg -i '{scheme}://…' -c copy -f mpegts - | punctual route - srt://host:4200` \
         to read it, `punctual route srt://:4200 - | ffmpeg -i - … '{scheme}://…'` to write it"
    )]
    Foreign { scheme: String },
    #[error("`{key}` is given twice{alias}")]
    GivenTwice { key: String, alias: String },
    #[error(transparent)]
    Contradiction(#[from] ConfigError),
    #[error("{0}")]
    Mode(&'static str),
    #[error("the host is missing; {0}")]
    NoHost(&'static str),
    #[error("`{written}` lacks the `:`: write `{scheme}://{rest}`, or `./{written}` for a file")]
    NoColon { scheme: String, rest: String, written: String },
    #[error("`{written}` lacks the `//`: write `{scheme}://{rest}`, or `./{written}` for a file")]
    NoSlashes { scheme: String, rest: String, written: String },
    #[error("the port is missing; write it after the host, like `:4200`")]
    NoPort,
    #[error("{key}={value}: {reason}")]
    NotHere { key: String, value: String, reason: &'static str },
    #[cfg(not(feature = "quic"))]
    #[error("this build has no QUIC: it was built without the feature `quic`")]
    NoQuic,
    #[cfg(feature = "quic")]
    #[error("`{key}` is a key of `srt+quic://`, not of `srt://`")]
    QuicOnly { key: String },
    #[error("unknown key `{key}`{suggestion} (`punctual help uri` lists all keys)")]
    UnknownKey { key: String, suggestion: String },
    #[error(
        "unknown scheme `{scheme}`{suggestion}; known are srt, srt+quic, udp, rtp, tcp \
         and file, and `-` for standard input and output"
    )]
    UnknownScheme { scheme: String, suggestion: String },
}

/// The fault of a key's value.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
#[error("{0}")]
pub(crate) struct ValueError(pub(crate) String);

impl From<ParseUnitError> for ValueError {
    fn from(error: ParseUnitError) -> Self {
        Self(error.to_string())
    }
}

impl From<ConfigError> for ValueError {
    fn from(error: ConfigError) -> Self {
        Self(format!("it must be {}", error.expected))
    }
}

impl From<Problem> for ValueError {
    fn from(problem: Problem) -> Self {
        Self(problem.to_string())
    }
}
