//! Options for the stamps of the messages that are generated.

use punctual_metrics::Checksum;

use crate::args::metrics::MetricsFormat;

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
    /// The format of the stamps: srt-xtransmit's, or that of draft-sharabayko-moq-metrics-00, whose
    /// messages belong to groups. The receiver must have the same
    #[arg(long, value_enum, default_value_t, requires = "enable_metrics")]
    metricsformat: MetricsFormat,
    /// Messages of a group in the draft's format: the packets of a frame, for example
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u64).range(1..),
        requires = "enable_metrics"
    )]
    metricsgroup: u64,
}

/// The stamps of messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stamping {
    /// srt-xtransmit's.
    Xtransmit(Checksum),
    /// The draft's, in groups of this number.
    Draft(Checksum, u64),
}

impl StampArgs {
    /// The stamps, if messages are stamped.
    pub(crate) fn stamping(&self) -> Option<Stamping> {
        let checksum = if self.no_checksum { Checksum::None } else { Checksum::Md5 };
        self.enable_metrics.then_some(match self.metricsformat {
            MetricsFormat::Xtransmit => Stamping::Xtransmit(checksum),
            MetricsFormat::Draft => Stamping::Draft(checksum, self.metricsgroup),
        })
    }
}

impl Stamping {
    /// Bytes of the shortest message that can be stamped.
    pub(crate) const fn least(self) -> usize {
        match self {
            Self::Xtransmit(_) => punctual_metrics::MIN_PAYLOAD,
            Self::Draft(..) => punctual_metrics::draft::MIN_PAYLOAD,
        }
    }

    /// Whether checksums are computed.
    pub(crate) fn has_checksum(self) -> bool {
        let (Self::Xtransmit(checksum) | Self::Draft(checksum, _)) = self;
        checksum != Checksum::None
    }
}
