//! Options for the stamps of the messages that are generated.

use punctual_metrics::Checksum;

/// Options for the stamps of the messages that are generated.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StampArgs {
    /// Stamp each message so that the receiver can measure delay, jitter and loss
    #[arg(long)]
    enable_metrics: bool,
    /// Stamp messages without a checksum, which takes most of the CPU time of a message. The
    /// receiver then notices damage to a message's length only, and srt-xtransmit's receiver counts
    /// a checksum error for each message
    #[arg(long, requires = "enable_metrics")]
    no_checksum: bool,
}

impl StampArgs {
    /// The checksum of the stamps, if messages are stamped.
    pub(crate) fn checksum(&self) -> Option<Checksum> {
        let checksum = if self.no_checksum { Checksum::None } else { Checksum::Md5 };
        self.enable_metrics.then_some(checksum)
    }
}
