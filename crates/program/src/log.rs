//! Messages on standard error.

use std::fmt::Debug;
use std::io::{self, IsTerminal, Write};
use std::time::SystemTime;

use punctual_units::{grouped, one_line, without_os_error};
use punctual_uri::did_you_mean;
use tracing::field::Field;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::args::LogArgs;
use crate::exit::Failure;
use crate::output;
use crate::timepoint::local_timepoint;

/// Starts saying what the options ask for, and from level `default` up if they do not.
pub fn start(args: &LogArgs, default: &str) -> Result<(), Failure> {
    let format = tracing_subscriber::fmt::layer()
        .with_target(false)
        .fmt_fields(debug_fn(write_field).delimited(" "))
        .with_ansi(io::stderr().is_terminal())
        .with_writer(Messages);
    let format = match io::stderr().is_terminal() {
        true => format.without_time().boxed(),
        false => format.with_timer(LocalTime).boxed(),
    };
    tracing_subscriber::registry().with(format).with(filter(args, default)?).init();
    Ok(())
}

fn filter(args: &LogArgs, default: &str) -> Result<Targets, Failure> {
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
    level.parse::<Targets>().map_err(|error| wrong(&format_args!(": {error}")))
}

/// Whether a part of a filter is neither a level nor the name of a module of this program.
fn is_misspelt(word: &str) -> bool {
    let is_level = LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let is_filter = word.contains(['=', ':']) || word.starts_with("punctual");
    !is_level && !is_filter
}

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Writes a message or a field as one line: names in it were chosen by others.
fn write_field(out: &mut Writer<'_>, field: &Field, value: &dyn Debug) -> std::fmt::Result {
    let text = format!("{value:?}");
    let text = one_line(&without_os_error(&text)).into_owned();
    match field.name() {
        "message" => out.write_str(&text),
        name => write!(out, "{name}={text}"),
    }
}

/// The message that tells of messages that are missing before it, as a line.
pub fn left_out(count: u64) -> String {
    let time = match io::stderr().is_terminal() {
        true => String::new(),
        false => local_timepoint(SystemTime::now()) + " ",
    };
    let count = grouped(count);
    format!("{time} WARN {count} messages are missing here, because they could not be written\n")
}

/// Hands each message over to the thread that writes them.
struct Messages;

impl<'a> MakeWriter<'a> for Messages {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

impl Write for Messages {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        output::message(message);
        Ok(message.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The local time with its offset from UTC.
struct LocalTime;

impl FormatTime for LocalTime {
    fn format_time(&self, out: &mut Writer<'_>) -> std::fmt::Result {
        out.write_str(&local_timepoint(SystemTime::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_the_srt_tools_and_filters_are_understood() {
        let filter = |level: &str| {
            let loglevel = Some(level.to_owned());
            {
                let args = LogArgs { loglevel, ..LogArgs::default() };
                filter(&args, "info")
            }
            .map(|filter| filter.to_string())
        };
        assert_eq!(filter("note").unwrap(), "info");
        assert_eq!(filter("fatal").unwrap(), "error");
        assert_eq!(filter("punctual=trace").unwrap(), "punctual=trace");
        assert_eq!(filter("a=loud").unwrap_err().code(), 2);
        let told = filter("debgu").unwrap_err();
        assert_eq!(told.code(), 2);
        let told = told.to_string();
        assert!(told.contains("error, warn, info") && told.contains("mean `debug`?"), "{told}");
        assert_eq!(filter("Debug,punctual_io=trace").unwrap_or_else(|it| panic!("{it}")), {
            "punctual_io=trace,debug"
        });
    }
}
