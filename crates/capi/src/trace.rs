//! The messages of Punctual's crates, for the log of C programs.

use std::ffi::c_int;
use std::fmt::{Debug, Write as _};

use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber};

use crate::log;

/// The functional areas that messages come from: libsrt's numbers and short names.
pub(crate) const AREAS: [(c_int, &str); 4] = [GENERAL, CONNECTION, CRYPTO, GROUPS];
const GENERAL: (c_int, &str) = (0, "gg");
const CONNECTION: (c_int, &str) = (2, "cn");
const CRYPTO: (c_int, &str) = (6, "hc");
const GROUPS: (c_int, &str) = (45, "gm");

/// Passes messages to the log.
struct LogForwarder;

/// Installs the forwarder, unless the program has another one: then it is a Rust program that links
/// this library, and has its own log.
pub(crate) fn install() {
    let _ = tracing::subscriber::set_global_default(LogForwarder);
}

/// Lets the places where messages come from ask again whether they are wanted.
pub(crate) fn level_changed() {
    tracing::callsite::rebuild_interest_cache();
}

fn libsrt_level(level: Level) -> c_int {
    match level {
        Level::ERROR => log::ERROR,
        Level::WARN => log::WARNING,
        Level::INFO => log::NOTICE,
        _ => log::DEBUG,
    }
}

fn area(target: &str) -> (c_int, &'static str) {
    if target.contains("group") {
        GROUPS
    } else if target.contains("crypt") {
        CRYPTO
    } else if ["handshake", "listener", "port", "caller"].iter().any(|it| target.contains(it)) {
        CONNECTION
    } else {
        GENERAL
    }
}

impl Subscriber for LogForwarder {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && libsrt_level(*metadata.level()) <= log::level()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(match log::level() {
            ..log::ERROR => LevelFilter::OFF,
            log::ERROR => LevelFilter::ERROR,
            log::WARNING => LevelFilter::WARN,
            log::NOTICE..log::DEBUG => LevelFilter::INFO,
            // Messages for each packet are not for C programs.
            _ => LevelFilter::DEBUG,
        })
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut text = MessageText::default();
        event.record(&mut text);
        log::write(&log::Line {
            level: libsrt_level(*metadata.level()),
            area: area(metadata.target()),
            file: metadata.file().unwrap_or_default(),
            line: metadata.line().unwrap_or_default(),
            text: &format!("{}{}", text.message, text.fields),
        });
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        // Spans are not wanted, and this one is never looked at.
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// The text of a message and its fields.
#[derive(Default)]
struct MessageText {
    message: String,
    fields: String,
}

impl Visit for MessageText {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing into a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
