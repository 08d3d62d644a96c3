//! The common part of Punctual's programs: how they read a command line, run a command, write
//! messages, rows and results, hear signals, and end.

#![forbid(unsafe_code)]
// A write to a place that stalls would hold up a stream: `output` writes.
#![warn(clippy::print_stderr, clippy::print_stdout)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program has clocks and locks"
)]

pub mod args;
pub mod completions;
pub mod exit;
pub mod hangup;
pub mod line;
pub mod log;
pub mod output;
pub mod run;
mod same_file;
pub mod stop;
pub mod timepoint;
pub mod usage;
pub mod written;
