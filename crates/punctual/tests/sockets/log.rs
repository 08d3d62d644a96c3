//! The library's log, for tests to read.
#![expect(clippy::disallowed_types, reason = "all tests of the process share one log")]

use std::sync::{Mutex, OnceLock};
use std::thread::{self, ThreadId};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The log of one thread: that of a test, whose runtime has no other.
#[derive(Debug)]
pub(crate) struct Log {
    thread: ThreadId,
}

impl Log {
    /// The log of the running test. One collector serves all tests: tracing caches whether a
    /// message is collected, so with a collector per test, a message that a thread without one logs
    /// first would never be collected.
    pub(crate) fn of_this_test() -> Self {
        static COLLECTS: OnceLock<()> = OnceLock::new();
        COLLECTS.get_or_init(|| tracing::subscriber::set_global_default(Collector).unwrap());
        Self { thread: thread::current().id() }
    }

    /// The number of lines of this level that have all of these `parts`.
    pub(crate) fn count(&self, level: Level, parts: &[&str]) -> usize {
        let fits = |line: &&Line| {
            let is_here = line.thread == self.thread && line.level == level;
            is_here && parts.iter().all(|part| line.text.contains(part))
        };
        LINES.lock().unwrap().iter().filter(fits).count()
    }
}

struct Line {
    thread: ThreadId,
    level: Level,
    text: String,
}

static LINES: Mutex<Vec<Line>> = Mutex::new(Vec::new());

struct Collector;

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("punctual")
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let (thread, level) = (thread::current().id(), *event.metadata().level());
        LINES.lock().unwrap().push(Line { thread, level, text: text.0 });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0 += &format!("{field}={value:?} ");
    }
}
