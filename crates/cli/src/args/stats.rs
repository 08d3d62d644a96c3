//! Options for the file of statistics.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;

use crate::args::value;

/// Options for the file with the statistics of SRT connections.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Statistics")]
pub(crate) struct StatsArgs {
    /// Add SRT statistics to this file, which is opened anew at SIGHUP; - for standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) statsfile: Option<PathBuf>,
    /// Add the statistics of QUIC connections to this file, as CSV; - for standard output. The
    /// JSON of --statsfile has them, too
    #[arg(long, value_name = "FILE")]
    pub(crate) quicstats: Option<PathBuf>,
    /// The time between rows; each row counts the time since the previous one. A bare number is ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::period)]
    pub(crate) statsfreq: Duration,
    /// The format of statistics: libsrt's columns, or its JSON with one object a line
    #[arg(long, value_name = "FORMAT", default_value = "csv")]
    pub(crate) statsformat: StatsFormat,
}

/// The format of statistics.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum StatsFormat {
    Csv,
    Json,
}
