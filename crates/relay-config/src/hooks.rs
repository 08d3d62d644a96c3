//! `[[hook]]`: commands and URLs that events start.

use std::fmt;
use std::time::Duration;

use punctual_relay_access::StreamPattern;

use crate::http::{shown_url, url};
use crate::listener::word;
use crate::problem::Faults;
use crate::rows::{KeyFacts, KeyRow, ReloadEffect, Shown, store};
use crate::secret::SecretValue;
use crate::toml_text::{quoted, shown_list, shown_plain, shown_text, shown_time};
use crate::users::{pattern, shown_secret_file};

/// A command or a URL that events start.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HookSettings {
    /// The events that start it.
    pub on: Vec<HookEvent>,
    /// The streams whose events count.
    pub stream: StreamPattern,
    /// The program with its arguments; exactly one of `run` and `url` is set.
    pub run: Option<HookCommand>,
    /// The URL that gets the event by POST, in JSON.
    pub url: Option<SecretValue>,
    /// The key of the HMAC-SHA-256 over the body of the request.
    pub secret: Option<SecretValue>,
    /// Whether a program that ends is started again while the state of the event lasts.
    pub restart: bool,
    /// The time after which a program or a request is ended; zero: no limit.
    pub timeout: Duration,
}

/// A command line, as it is written and in words. It is shown without what may be a secret.
#[derive(Clone, Eq, PartialEq)]
pub struct HookCommand {
    line: SecretValue,
    words: Vec<String>,
}

/// An event that can start a hook.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum HookEvent {
    /// A caller is connected.
    Connect,
    /// The connection of a caller has ended.
    Disconnect,
    /// A caller was refused.
    Refused,
    /// A stream can be viewed.
    Available,
    /// A stream can no longer be viewed.
    Unavailable,
    /// A stream has a source that sends.
    Online,
    /// A stream has lost its source.
    Offline,
    /// A stream goes on from another source.
    Switch,
    /// A viewer begins.
    Read,
    /// A viewer has ended.
    Unread,
    /// A segment of a recording begins.
    RecordSegmentCreate,
    /// A segment of a recording is complete.
    RecordSegmentComplete,
    /// A destination of a stream is connected.
    ForwardUp,
    /// A destination of a stream is lost.
    ForwardDown,
    /// The relay begins to drain.
    Drain,
}

impl HookEvent {
    /// The word of the configuration.
    pub fn name(self) -> &'static str {
        word(EVENTS, self)
    }
}

impl HookCommand {
    /// Splits a command line into words, as a shell does; variables stay as they are written.
    pub(crate) fn parse(line: &str) -> Result<Self, String> {
        let words = shlex::split(line).ok_or("a quote is not closed")?;
        if words.is_empty() {
            return Err("it names no program".to_owned());
        }
        Ok(Self { line: SecretValue::written(line), words })
    }

    /// The program and its arguments. Words may contain `$NAME` and `${NAME}` of the environment of
    /// the hook.
    pub fn words(&self) -> &[String] {
        &self.words
    }
}

impl fmt::Debug for HookCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        punctual_uri::redacted_words(self.line.secret.expose()).fmt(f)
    }
}

impl Default for HookSettings {
    fn default() -> Self {
        Self {
            on: Vec::new(),
            stream: StreamPattern::all(),
            run: None,
            url: None,
            secret: None,
            restart: false,
            timeout: Duration::ZERO,
        }
    }
}

impl HookSettings {
    /// The fault of several keys together.
    pub(crate) fn fault(&self) -> Option<String> {
        let message = match (&self.run, &self.url) {
            _ if self.on.is_empty() => "it has no event: write `on = [\"available\"]`",
            (None, None) => "it has neither `run` nor `url`",
            (Some(_), Some(_)) => "it has `run` and `url`; write a `[[hook]]` for each",
            (Some(_), None) if self.secret.is_some() => {
                "`secret-file` signs requests: it belongs to `url`, not to `run`"
            }
            (None, Some(_)) if self.restart => "`restart` belongs to `run`, not to `url`",
            _ => return None,
        };
        Some(message.to_owned())
    }
}

fn events(value: &crate::value::Value<'_>) -> Result<Vec<HookEvent>, Faults> {
    let mut events = value.list(EVENTS.len(), |part| part.choice(EVENTS))?;
    events.sort_unstable();
    events.dedup();
    Ok(events)
}

/// A command line without what may be a secret.
fn shown_command(command: &HookCommand) -> Shown<'_> {
    let shown = punctual_uri::redacted_words(command.line.secret.expose());
    Shown::Hidden(vec![&command.line], quoted(&shown))
}

const fn facts(
    name: &'static str,
    form: &'static str,
    habit: &'static str,
    meaning: &'static str,
) -> KeyFacts {
    KeyFacts { section: "hook", name, form, meaning, habit, reload: ReloadEffect::Live }
}

/// The keys of `[[hook]]`.
pub(crate) const HOOK: &[KeyRow<HookSettings>] = &[
    KeyRow {
        facts: facts(
            "on",
            "a list of events: connect, disconnect, refused, available, unavailable, online, \
             offline, switch, read, unread, record-segment-create, record-segment-complete, \
             forward-up, forward-down, drain",
            "MediaMTX: runOn…",
            "the events that start the hook",
        ),
        set: |it, value| store(&mut it.on, events(value)),
        show: |it| shown_list(it.on.iter().map(|event| event.name())),
    },
    KeyRow {
        facts: facts(
            "stream",
            "a name, a pattern like \"live/*\", or \"~\" and a regular expression",
            "",
            "the streams whose events count",
        ),
        set: |it, value| store(&mut it.stream, pattern(value)),
        show: |it| shown_text(it.stream.as_str()),
    },
    KeyRow {
        facts: facts(
            "run",
            "a program with its arguments, like \"/usr/bin/logger $PUNCTUAL_STREAM\"",
            "MediaMTX: runOn…",
            "the command, which no shell reads; variables have the names of `PUNCTUAL_…` and `MTX_…`",
        ),
        set: |it, value| {
            it.run = Some(HookCommand::parse(value.filled_text(4_096)?)?);
            Ok(())
        },
        show: |it| it.run.as_ref().map_or(Shown::Nothing, shown_command),
    },
    KeyRow {
        facts: facts(
            "url",
            "a URL with http:// or https://",
            "",
            "the address that gets the event by POST, in JSON",
        ),
        set: |it, value| store(&mut it.url, url(value)),
        show: |it| shown_url(it.url.as_ref()),
    },
    KeyRow {
        facts: facts(
            "secret-file",
            "the path of a file",
            "",
            "the file with the key by which requests are signed (HMAC-SHA-256 over the body)",
        ),
        set: |it, value| store(&mut it.secret, value.secret_file().map(Some)),
        show: |it| shown_secret_file(it.secret.as_ref()),
    },
    KeyRow {
        facts: facts(
            "restart",
            "true or false",
            "MediaMTX: runOn…Restart",
            "start a program again that ends while the state of its event lasts",
        ),
        set: |it, value| store(&mut it.restart, value.switch()),
        show: |it| shown_plain(&it.restart),
    },
    KeyRow {
        facts: facts(
            "timeout",
            "a time from \"0s\" to \"1d\"; 0s: no limit for programs, 10s for requests",
            "",
            "the time after which a program or a request is ended",
        ),
        set: |it, value| {
            store(&mut it.timeout, value.time(Duration::ZERO..=Duration::from_secs(86_400)))
        },
        show: |it| shown_time(it.timeout),
    },
];

const EVENTS: &[(&str, HookEvent)] = &[
    ("connect", HookEvent::Connect),
    ("disconnect", HookEvent::Disconnect),
    ("refused", HookEvent::Refused),
    ("available", HookEvent::Available),
    ("unavailable", HookEvent::Unavailable),
    ("online", HookEvent::Online),
    ("offline", HookEvent::Offline),
    ("switch", HookEvent::Switch),
    ("read", HookEvent::Read),
    ("unread", HookEvent::Unread),
    ("record-segment-create", HookEvent::RecordSegmentCreate),
    ("record-segment-complete", HookEvent::RecordSegmentComplete),
    ("forward-up", HookEvent::ForwardUp),
    ("forward-down", HookEvent::ForwardDown),
    ("drain", HookEvent::Drain),
];
