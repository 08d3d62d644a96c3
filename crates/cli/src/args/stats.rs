//! Where the statistics of connections are written.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::args::value;

/// Where the statistics of SRT connections are written, and how often.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Statistics")]
pub(crate) struct StatsArgs {
    /// Write SRT statistics to this file; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) statsfile: Option<PathBuf>,
    /// Time between rows; each counts what happened since the one before. A bare number is ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::period)]
    pub(crate) statsfreq: Duration,
    /// How they are written: libsrt's columns, or its JSON, one object a line
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub(crate) statsformat: StatsFormat,
}

/// How statistics are written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum StatsFormat {
    Csv,
    Json,
}
