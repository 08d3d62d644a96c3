//! Options for measuring a stream by its payloads.

use std::path::PathBuf;
use std::time::Duration;

use punctual_metrics::Checksum;

use crate::args::value;

/// Options for measuring a stream by its payloads.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Metrics")]
pub(crate) struct MetricsArgs {
    /// Measure delay, jitter, TS-DF, loss, reordering and integrity by the stamps in the payloads,
    /// which `generate --enable-metrics` writes, of Punctual or of srt-xtransmit
    #[arg(long)]
    pub(crate) enable_metrics: bool,
    /// Do not check the checksums of the payloads, which takes most of the CPU time of a message.
    /// Payloads of `generate --no-checksum` have none
    #[arg(long, requires = "enable_metrics")]
    pub(crate) no_checksum: bool,
    /// Add the metrics to this file, which is opened anew at SIGHUP [default: standard output]
    #[arg(long, value_name = "FILE", requires = "enable_metrics")]
    pub(crate) metricsfile: Option<PathBuf>,
    /// The time between rows, which is the measurement period. A bare number is ms
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
