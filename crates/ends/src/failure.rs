//! The reason for which a stream could not be carried, in words.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use punctual::{CloseReason, RejectReason};
use punctual_units::{one_line, without_os_error};

/// The reason for which an end could not be opened, or a stream not be carried.
#[derive(Debug)]
pub struct Failure {
    kind: FailureKind,
    message: String,
}

/// The kinds of failures that a program may treat differently.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FailureKind {
    /// The system, the network or the peer ended the work.
    Runtime,
    /// The disk, here or at the other end, refuses the data.
    Unwritable,
    /// A fault in the request, such as a wrong URI.
    Usage,
    /// A file exists already, and nobody has said whether to replace it or to append to it.
    Exists,
    /// A file is to be sent at the pace of its clock, and has none.
    NoClock,
    /// The other end, or this one, refused the call.
    Rejected(RejectReason),
    /// Nobody answered or called in time.
    NoAnswer,
    /// Somebody ended the work before it was done.
    Interrupted,
}

impl Failure {
    /// A failure at run time.
    pub fn runtime(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Runtime, message: message.into() }
    }

    /// A fault in what was asked for, or in what it names.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: FailureKind::Usage, message: message.into() }
    }

    /// A file could not be opened, read or written.
    pub fn file(path: &Path, error: &io::Error) -> Self {
        Self::runtime(format!("{}: {error}", one_line(&path.display().to_string())))
    }

    /// The file at `path` exists already and is kept.
    pub(crate) fn exists(path: &Path) -> Self {
        let path = one_line(&path.display().to_string()).into_owned();
        Self { kind: FailureKind::Exists, message: format!("{path} exists already and is kept") }
    }

    /// A file has no clock that gives its pace, and the reason.
    pub(crate) fn no_clock(why: impl Into<String>) -> Self {
        Self { kind: FailureKind::NoClock, message: why.into() }
    }

    /// Somebody ended the work before it was done.
    pub fn interrupted() -> Self {
        let message = "interrupted: what was not done yet was given up".to_owned();
        Self { kind: FailureKind::Interrupted, message }
    }

    /// Nobody called within the time that a listener was to wait.
    pub fn nobody_called(limit: Duration) -> Self {
        let limit = punctual_units::DisplayDuration(limit);
        Self { kind: FailureKind::NoAnswer, message: format!("nobody called within {limit:#}") }
    }

    /// Nobody was there until the end, at an end that `calls` or waits for callers.
    pub fn nobody(calls: bool) -> Self {
        let message = match calls {
            true => "no connection was made until the end (is somebody listening there?)",
            false => "nobody called until the end",
        };
        Self { kind: FailureKind::NoAnswer, message: message.to_owned() }
    }

    /// Nothing arrived until the end, at an end without connections.
    pub fn nothing_arrived() -> Self {
        Self { kind: FailureKind::NoAnswer, message: "nothing arrived until the end".to_owned() }
    }

    /// The same failure, with the place or the work where it happened before it.
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        let place = format!("{place}: ");
        // The failure of a file has its name already.
        if !self.message.starts_with(&place) {
            self.message.insert_str(0, &place);
        }
        self
    }

    /// The same failure, with its remedy or a fact that explains it.
    pub fn with_advice(mut self, advice: &str) -> Self {
        self.message = format!("{} ({advice})", self.message);
        self
    }

    /// The kind of the failure.
    pub const fn kind(&self) -> FailureKind {
        self.kind
    }

    /// Whether what was asked for is at fault, so that trying again cannot help.
    pub fn is_usage(&self) -> bool {
        matches!(self.kind, FailureKind::Usage | FailureKind::Exists)
    }

    /// The same failure, marked as one of files that cannot be written.
    pub fn unwritable(self) -> Self {
        Self { kind: FailureKind::Unwritable, ..self }
    }

    /// Whether files could not be written, here or at the other end.
    pub fn is_unwritable(&self) -> bool {
        self.kind == FailureKind::Unwritable
    }

    /// The reason for which the other end or this one refused the call, if one did.
    pub fn refusal(&self) -> Option<RejectReason> {
        match self.kind {
            FailureKind::Rejected(reason) => Some(reason),
            _ => None,
        }
    }

    /// Whether the other end refuses the call for a reason that only other settings change.
    pub fn is_lasting(&self) -> bool {
        self.refusal().is_some_and(|reason| {
            [
                RejectReason::BAD_SECRET,
                RejectReason::UNSECURE,
                RejectReason::CRYPTO,
                RejectReason::VERSION,
                RejectReason::MESSAGE_API,
                RejectReason::CONGESTION,
                RejectReason::FILTER,
                RejectReason::GROUP,
                RejectReason::KEY_NOT_SUPPORTED,
                RejectReason::BAD_REQUEST,
                RejectReason::UNAUTHORIZED,
                RejectReason::FORBIDDEN,
                RejectReason::BAD_MODE,
            ]
            .contains(&reason)
        })
    }

    /// Whether nobody answered or called in time.
    pub fn is_no_answer(&self) -> bool {
        self.kind == FailureKind::NoAnswer
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&for_people(&self.message))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::runtime(error.to_string())
    }
}

impl From<CloseReason> for Failure {
    fn from(reason: CloseReason) -> Self {
        let kind = match reason {
            CloseReason::Rejected(code) | CloseReason::Incompatible(code) => {
                FailureKind::Rejected(code)
            }
            CloseReason::ConnectTimeout(_) | CloseReason::ConclusionTimeout(_) => {
                FailureKind::NoAnswer
            }
            _ => FailureKind::Runtime,
        };
        let message = match reason {
            CloseReason::Rejected(code) => {
                format!("the peer refused the call: {}{}", explain(code), advice(code, true))
            }
            CloseReason::Incompatible(code) => {
                format!("{reason}{}", advice(code, false))
            }
            CloseReason::ConnectTimeout(time) => {
                let time = punctual_units::DisplayDuration(time);
                format!(
                    "no answer within {time:#} (is somebody listening there? is UDP let through?)"
                )
            }
            CloseReason::ConclusionTimeout(time) => {
                let time = punctual_units::DisplayDuration(time);
                format!(
                    "no answer within {time:#} (the listener is there: it answered the first \
                     handshake, and may have taken the call; call again)"
                )
            }
            other => other.to_string(),
        };
        Self { kind, message }
    }
}

impl From<punctual::Error> for Failure {
    fn from(error: punctual::Error) -> Self {
        match error {
            punctual::Error::Closed(reason) => reason.into(),
            punctual::Error::Config(error) => Self::usage(error.to_string()),
            other => Self::runtime(other.to_string()),
        }
    }
}

/// A message without control characters, which a terminal might obey, and without the numbers of
/// system errors, whose text is there. Line breaks stay: some messages have several lines.
fn for_people(message: &str) -> String {
    let lines = message.split('\n').map(|line| {
        let mut line = one_line(&without_os_error(line)).into_owned();
        if line.ends_with("Too many open files") {
            line += " (`ulimit -n` raises the limit)";
        }
        line
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The reason of a refusal, with the number by which users of libsrt know it: on the wire the
/// numbers of applications are 1000 higher than in libsrt's API.
fn explain(reason: RejectReason) -> String {
    match reason.code() {
        code @ 2000.. => format!("{reason}, {} in libsrt's API", code - 1000),
        _ => reason.to_string(),
    }
}

/// The remedy for a refusal, as the end of a sentence; empty if the reason suggests none. `by_peer`
/// if the other end refused this one.
fn advice(reason: RejectReason, by_peer: bool) -> &'static str {
    match reason {
        RejectReason::BACKLOG => "; it has all the callers that it takes, and may have room later",
        RejectReason::RESOURCE => "; it may have room later",
        RejectReason::VERSION if by_peer => "; its `minversion` is above 1.5.5, which this end has",
        RejectReason::VERSION => "; it is older than `minversion` allows",
        RejectReason::BAD_SECRET => "; both ends need the same `passphrase`",
        RejectReason::UNSECURE => "; give both ends the same `passphrase`, or neither end one",
        RejectReason::MESSAGE_API | RejectReason::CONGESTION => {
            "; both ends need the same `transtype`, live or file"
        }
        RejectReason::FILTER => "; give both ends the same `packetfilter`, or only the caller one",
        RejectReason::GROUP => "; a listener accepts groups with `groupconnect=1`",
        RejectReason::CRYPTO => "; both ends need the same `cryptomode`",
        RejectReason::KEY_NOT_SUPPORTED
        | RejectReason::BAD_REQUEST
        | RejectReason::UNAUTHORIZED
        | RejectReason::FORBIDDEN
        | RejectReason::NOT_FOUND
        | RejectReason::BAD_MODE
        | RejectReason::CONFLICT => "; `streamid` says who calls, and for which stream",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_call_that_was_half_answered_says_that_the_listener_is_there() {
        let limit = Duration::from_secs(3);
        let silent = Failure::from(CloseReason::ConnectTimeout(limit)).to_string();
        assert!(silent.contains("is somebody listening there?"), "{silent}");
        let half = Failure::from(CloseReason::ConclusionTimeout(limit)).to_string();
        assert!(half.starts_with("no answer within 3 s"), "{half}");
        assert!(half.contains("the listener is there"), "{half}");
        assert!(half.contains("may have taken the call"), "{half}");
    }

    #[test]
    fn a_failure_is_printed_in_words_without_control_characters() {
        let error = io::Error::from_raw_os_error(2);
        let text = Failure::file(Path::new("a\nb\u{1b}[2J"), &error).to_string();
        assert!(text.starts_with("a\\nb\\u{1b}[2J: ") && !text.contains("os error"), "{text}");
    }

    #[test]
    fn a_rejection_tells_libsrts_code_and_its_meaning() {
        let text = Failure::from(CloseReason::Rejected(RejectReason::NOT_FOUND)).to_string();
        assert!(text.contains("no such stream"), "{text}");
        assert!(text.contains("1404 in libsrt's API"), "{text}");
        let text = Failure::from(CloseReason::Rejected(RejectReason::BACKLOG)).at("srt://h:1");
        assert!(text.to_string().starts_with("srt://h:1: the peer refused the call: "), "{text}");
        assert!(text.to_string().contains("1005"), "{text}");
    }

    #[test]
    fn a_refusal_suggests_its_remedy() {
        let text = |reason| Failure::from(reason).to_string();
        let secret = text(CloseReason::Rejected(RejectReason::BAD_SECRET));
        assert!(secret.ends_with("; both ends need the same `passphrase`"), "{secret}");
        let theirs = text(CloseReason::Rejected(RejectReason::VERSION));
        assert!(theirs.contains("its `minversion` is above 1.5.5"), "{theirs}");
        let ours = text(CloseReason::Incompatible(RejectReason::VERSION));
        assert!(ours.contains("older than `minversion` allows"), "{ours}");
        assert!(text(CloseReason::Rejected(RejectReason::UNKNOWN)).ends_with("code 1000)"));
    }
}
