//! All that the program writes to standard error, to standard output and to files of rows:
//! messages, the live line, rows of measurements and results. Threads that do nothing else write
//! it, one for each place, so that a place that stalls or fails stops no stream.
//!
//! Messages and rows wait in limited room, and are left out if they cannot be written; their number
//! is told when writing works again. Results are never left out.

mod console;
mod patient;
mod queue;
mod row_file;
mod rows;
mod wrapped;
mod writer;

use std::fmt::Display;
use std::sync::{LazyLock, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use punctual_units::grouped;

use crate::exit::Failure;
use crate::stop;
use console::{Borrowed, Messages, Output};
use queue::{Kind, Piece};
pub use rows::{Columns, Rows};
pub use wrapped::print_wrapped;
use writer::Writer;

/// The places of this process. There is one of each, as there is one standard error.
static OUTPUTS: LazyLock<Outputs> = LazyLock::new(Outputs::new);

struct Outputs {
    /// Standard error; and standard output, if both are one place.
    messages: Writer,
    is_one_place: bool,
    /// Standard output, from the first text on.
    output: OnceLock<Writer>,
    /// Files of rows, with their names.
    files: Mutex<Vec<(String, Writer)>>,
    /// The time until which the end of the program waits for places that do not take their texts.
    limit: OnceLock<Instant>,
}

impl Outputs {
    fn new() -> Self {
        let is_one_place = console::is_one_place();
        Self {
            messages: Messages::open(is_one_place)
                .map_or_else(|_| Writer::start(Borrowed), Writer::start),
            is_one_place,
            output: OnceLock::new(),
            files: Mutex::default(),
            limit: OnceLock::new(),
        }
    }

    fn output(&self) -> &Writer {
        match self.is_one_place {
            true => &self.messages,
            false => self.output.get_or_init(|| match Output::open() {
                Ok(output) => Writer::start(output),
                Err(error) => Writer::without_place(error),
            }),
        }
    }

    /// The end of the time for places that do not take their texts, which begins now.
    fn limit(&self) -> Instant {
        *self.limit.get_or_init(|| Instant::now() + PATIENCE)
    }

    fn files(&self) -> Vec<(String, Writer)> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Opens standard error for messages before anything else takes the descriptors.
///
/// # Errors
///
/// There are too few descriptors; messages are still written.
pub fn open() -> std::io::Result<()> {
    let enough = console::check();
    LazyLock::force(&OUTPUTS);
    enough
}

/// Writes a message on standard error, above the live line.
pub fn message(text: impl Into<Vec<u8>>) {
    OUTPUTS.messages.write(Piece { kind: Kind::Message, text: text.into() });
}

/// Shows this text in the live line at the bottom of the terminal; an empty one removes the line.
pub fn show(line: String) {
    OUTPUTS.messages.show(line);
}

/// Writes a row of measurements on standard output.
pub fn row(text: String) {
    if OUTPUTS.output().write(Piece { kind: Kind::Row, text: text.into() }) {
        tell_nobody_reads(console::NAME);
    }
}

/// Prints a result of the command on standard output. A reader that ends early, as in
/// `punctual uri | head`, is no failure.
///
/// # Errors
///
/// An earlier result could not be written. [`finish_results`] tells of the others.
pub fn print(text: impl Display) -> Result<(), Failure> {
    let output = OUTPUTS.output();
    output.write(Piece { kind: Kind::Result, text: text.to_string().into() });
    output.take_problem().map_or(Ok(()), |error| Err(Failure::from(error).at(console::NAME)))
}

/// Waits until the results of the command are written, as long as that takes; a signal ends it.
///
/// # Errors
///
/// A result could not be written.
pub fn finish_results() -> Result<(), Failure> {
    let Some(output) = OUTPUTS.output.get().or(Some(&OUTPUTS.messages)) else { return Ok(()) };
    output.wait_for_results(|| stop::signalled().then(|| OUTPUTS.limit()));
    output.take_problem().map_or(Ok(()), |error| Err(Failure::from(error).at(console::NAME)))
}

/// Waits until messages and rows are written, but only a second for places that do not take them.
pub fn finish() {
    let limit = || Some(OUTPUTS.limit());
    for (name, writer) in OUTPUTS.files() {
        writer.wait_until_done(limit);
        tell_rows_missing(&name, writer.untold());
    }
    if let Some(output) = OUTPUTS.output.get() {
        output.wait_until_done(limit);
        tell_rows_missing(console::NAME, output.untold());
    }
    show(String::new());
    OUTPUTS.messages.wait_until_done(limit);
}

/// Opens the files of rows anew, because they may have been renamed.
fn reopen_files() {
    OUTPUTS.files().iter().for_each(|(_, writer)| writer.reopen());
}

fn tell_nobody_reads(name: &str) {
    tracing::warn!("{name}: nobody takes the rows, so further ones are left out");
}

fn tell_rows_fail(name: &str, error: &std::io::Error) {
    tracing::warn!("{name}: rows cannot be written and are left out: {error}");
}

fn tell_rows_again(name: &str, left_out: u64) {
    tracing::warn!("{name}: rows are written again; {} were left out", grouped(left_out));
}

fn tell_rows_missing(name: &str, left_out: u64) {
    if left_out > 0 {
        tracing::warn!("{name}: {} rows could not be written", grouped(left_out));
    }
}

/// The time that places which do not take their texts get at the end of the program.
const PATIENCE: Duration = Duration::from_secs(1);
