//! Messages on standard error.

use std::fmt::{Debug, Write};
use std::io::{self, IsTerminal};
use std::time::SystemTime;

use punctual_units::{grouped, one_line, without_os_error};
use punctual_uri::did_you_mean;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::{Interest, set_global_default};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::args::LogArgs;
use crate::exit::Failure;
use crate::output;
use crate::timepoint::local_timepoint;

/// Starts saying what the options ask for, and from level `default` up if they do not.
///
/// # Errors
///
/// The level is unknown, or messages are said already.
pub fn start(args: &LogArgs, default: &str) -> Result<(), Failure> {
    let log = Log { filter: filter(args, default)?, is_terminal: io::stderr().is_terminal() };
    set_global_default(log).map_err(|error| Failure::runtime(error.to_string()))
}

/// Hands each message over to the thread that writes them.
struct Log {
    filter: LogFilter,
    /// On a terminal the level has a colour, and there is no time.
    is_terminal: bool,
}

impl Subscriber for Log {
    fn register_callsite(&self, metadata: &'static Metadata<'static>) -> Interest {
        if self.enabled(metadata) { Interest::always() } else { Interest::never() }
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= self.filter.level_of(metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.filter.most())
    }

    fn event(&self, event: &Event<'_>) {
        let level = *event.metadata().level();
        let mut line = match self.is_terminal {
            true => format!("\x1b[{}m{level:>5}\x1b[0m", colour(level)),
            false => format!("{} {level:>5}", local_timepoint(SystemTime::now())),
        };
        event.record(&mut Fields(&mut line));
        output::message(line + "\n");
    }

    // The program has no spans.
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The number by which terminals know the colour of a level.
fn colour(level: Level) -> u8 {
    match level {
        Level::ERROR => 31,
        Level::WARN => 33,
        Level::INFO => 32,
        Level::DEBUG => 34,
        Level::TRACE => 35,
    }
}

/// Adds a message and its fields to a line: names in them were chosen by others.
struct Fields<'a>(&'a mut String);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let text = format!("{value:?}");
        let text = one_line(&without_os_error(&text)).into_owned();
        // A string takes all that is written.
        let _ = match field.name() {
            "message" => write!(self.0, " {text}"),
            name => write!(self.0, " {name}={text}"),
        };
    }
}

/// The lowest level of messages from each module.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
struct LogFilter {
    /// Starts of modules' names with their levels, the longest first.
    modules: Vec<(String, LevelFilter)>,
    /// The level of all others.
    others: Option<LevelFilter>,
}

impl LogFilter {
    /// Reads levels, modules and `MODULE=LEVEL`, with commas between them.
    fn parse(text: &str) -> Result<Self, String> {
        let mut filter = Self::default();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let level = |level: &str| {
                level.parse::<LevelFilter>().map_err(|_| format!("`{level}` is no level"))
            };
            match word.split_once('=') {
                Some((module, of)) => filter.modules.push((module.to_owned(), level(of)?)),
                None if word.starts_with("punctual") || word.contains(':') => {
                    filter.modules.push((word.to_owned(), LevelFilter::TRACE));
                }
                None => filter.others = Some(level(word)?),
            }
        }
        filter.modules.sort_by_key(|(module, _)| std::cmp::Reverse(module.len()));
        Ok(filter)
    }

    fn level_of(&self, module: &str) -> LevelFilter {
        let own = self.modules.iter().find(|(start, _)| module.starts_with(start.as_str()));
        own.map(|(_, level)| *level).or(self.others).unwrap_or(LevelFilter::OFF)
    }

    /// The lowest level that any module has.
    fn most(&self) -> LevelFilter {
        let modules = self.modules.iter().map(|(_, level)| *level);
        modules.chain(self.others).max().unwrap_or(LevelFilter::OFF)
    }
}

fn filter(args: &LogArgs, default: &str) -> Result<LogFilter, Failure> {
    let level = match (args.loglevel.as_deref(), args.quiet, args.verbose) {
        (Some("fatal"), ..) | (None, true, _) => "error".to_owned(),
        (Some("note"), ..) => "info".to_owned(),
        (Some("warning"), ..) => "warn".to_owned(),
        (Some(level), ..) => level.to_owned(),
        (None, _, 1) => "debug".to_owned(),
        (None, _, 2..) => "trace".to_owned(),
        (None, ..) => std::env::var("RUST_LOG").unwrap_or_else(|_| default.to_owned()),
    };
    let wrong = |why: &dyn std::fmt::Display| {
        let levels = "error, warn, info, debug or trace, or a filter such as punctual=debug";
        Failure::usage(format!("the log level `{level}` must be {levels}{why}"))
    };
    // A filter takes a word that is no level for the name of a module.
    if let Some(word) = level.split(',').map(str::trim).find(|word| is_misspelt(word)) {
        return Err(wrong(&did_you_mean(&word.to_lowercase(), LEVELS)));
    }
    LogFilter::parse(&level).map_err(|error| wrong(&format_args!(": {error}")))
}

/// Whether a part of a filter is neither a level nor the name of a module of this program.
fn is_misspelt(word: &str) -> bool {
    let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let is_filter = word.contains(['=', ':']) || word.starts_with("punctual");
    !is_level && !is_filter
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// The message that tells of messages that are missing before it, as a line.
pub fn left_out(count: u64) -> String {
    let time = match io::stderr().is_terminal() {
        true => String::new(),
        false => local_timepoint(SystemTime::now()) + " ",
    };
    let count = grouped(count);
    format!("{time} WARN {count} messages are missing here, because they could not be written\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_the_srt_tools_and_filters_are_understood() {
        let filter = |level: &str| {
            let args = LogArgs { loglevel: Some(level.to_owned()), ..LogArgs::default() };
            filter(&args, "info")
        };
        let others = |level: &str| filter(level).expect("it is a level").level_of("any");
        assert_eq!(others("note"), LevelFilter::INFO);
        assert_eq!(others("fatal"), LevelFilter::ERROR);
        assert_eq!(others("punctual=trace"), LevelFilter::OFF);
        assert_eq!(others("off"), LevelFilter::OFF);
        assert!(filter("a=loud").unwrap_err().is_usage());
        let told = filter("debgu").unwrap_err();
        assert!(told.is_usage());
        let told = told.to_string();
        assert!(told.contains("error, warn, info") && told.contains("mean `debug`?"), "{told}");
    }

    #[test]
    fn the_longest_name_of_a_module_decides_its_level() {
        let filter =
            LogFilter::parse("Debug, punctual=warn,punctual_io::udp=trace").expect("levels");
        for (module, level) in [
            ("quinn_proto", LevelFilter::DEBUG),
            ("punctual_io", LevelFilter::WARN),
            ("punctual_io::udp::gather", LevelFilter::TRACE),
        ] {
            assert_eq!(filter.level_of(module), level, "{module}");
        }
        assert_eq!(filter.most(), LevelFilter::TRACE);
    }
}
