//! What is measured from the payloads, and where it is written.

use std::path::PathBuf;
use std::time::Duration;

use punctual_metrics::Checksum;

use crate::args::value;

/// What is measured from the payloads, and where it is written.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct MetricsArgs {
    /// Measure delay, jitter, TS-DF, loss, reordering and integrity from the payloads, which
    /// `generate --enable-metrics` or srt-xtransmit's must have made
    #[arg(long)]
    pub(crate) enable_metrics: bool,
    /// Do not check the checksums of the payloads, which takes most of the time that a message
    /// takes. Those that `generate --no-checksum` made have none
    #[arg(long, requires = "enable_metrics")]
    pub(crate) no_checksum: bool,
    /// Write them to this file [default: standard output]
    #[arg(long, value_name = "FILE", requires = "enable_metrics")]
    pub(crate) metricsfile: Option<PathBuf>,
    /// Time between rows, the measurement period. A bare number is ms
    #[arg(
        long,
        value_name = "TIME",
        default_value = "1s",
        value_parser = value::period,
        requires = "enable_metrics"
    )]
    pub(crate) metricsfreq: Duration,
}

impl MetricsArgs {
    /// The checksum that payloads are checked by.
    pub(crate) fn checksum(&self) -> Checksum {
        if self.no_checksum { Checksum::None } else { Checksum::Md5 }
    }
}
