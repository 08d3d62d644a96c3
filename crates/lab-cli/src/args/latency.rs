//! `punctual-lab latency`.

use std::time::Duration;

use punctual::Bitrate;
use punctual_probe::model::{PathFigureError, PathFigures};

use crate::args::value;

/// Compute the latency that a link needs, from its round-trip time and its loss
///
/// Uses the model of docs/retransmission.md and sends nothing. For each retransmission algorithm it
/// prints the least latency at which no more packets stay lost than --target-loss, the rounds of
/// NAK and retransmission within it, the overhead, and the bound below which no algorithm can be.
/// If the link can be used, `punctual probe` measures it first, and also takes `maxbw` into
/// account, which delays retransmissions.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LatencyArgs {
    /// The round-trip time, 1ms to 10s. A bare number is ms
    #[arg(long, value_name = "TIME", value_parser = value::milliseconds)]
    pub(crate) rtt: Duration,
    /// The share of packets lost from the sender to the receiver: 5%, 0.05; up to 50%
    #[arg(long, value_name = "SHARE", value_parser = punctual_units::parse_share)]
    pub(crate) loss: f64,
    /// The share of packets lost on the way back, such as NAKs [default: as --loss]
    #[arg(long, value_name = "SHARE", value_parser = punctual_units::parse_share)]
    loss_back: Option<f64>,
    /// The mean number of packets lost in a row, in both directions; 1 for independent losses
    #[arg(long, value_name = "PACKETS", default_value = "1")]
    pub(crate) bursts: f64,
    /// The mean deviation of the round-trip time, `mdev` of ping. A bare number is ms
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = value::milliseconds)]
    pub(crate) jitter: Duration,
    /// The rate of the stream, in messages of 1316 bytes: it sets how soon a loss is noticed, and
    /// how long bursts last
    #[arg(long, value_name = "RATE", default_value = "10Mbps", value_parser = value::rate)]
    pub(crate) rate: Bitrate,
    /// The share of packets that may stay lost: 0.001%, 1e-5
    #[arg(long, visible_alias = "target", value_name = "SHARE", default_value = "0.001%",
          value_parser = target)]
    pub(crate) target_loss: f64,
    /// The most that `retransmitalgo=deadline` may retransmit, as a share of the originals:
    /// programs limit it by `Config::with_retransmit_ceiling`. More makes a lower latency possible,
    /// and less than the loss makes any impossible [default: the sender limits copies]
    #[arg(long, value_name = "SHARE", value_parser = punctual_units::parse_share)]
    pub(crate) ceiling: Option<f64>,
    /// The longest latency that is acceptable, up to 65530ms. A bare number is ms
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = max_latency)]
    pub(crate) max_latency: Duration,
    /// Print JSON instead of text (schema punctual-latency/1)
    #[arg(long)]
    pub(crate) json: bool,
}

impl LatencyArgs {
    /// The share lost on the way back.
    pub(crate) fn loss_back(&self) -> f64 {
        self.loss_back.unwrap_or(self.loss)
    }

    /// The path that is asked about.
    pub(crate) fn path(&self) -> Result<PathFigures, PathFigureError> {
        let path = PathFigures::new(self.rtt, self.jitter, self.rate, PAYLOAD)?;
        path.with_loss(self.loss, self.loss_back(), self.bursts)
    }
}

/// A share of unrecovered packets that the model can reach.
fn target(text: &str) -> Result<f64, String> {
    let share = punctual_units::parse_share(text).map_err(|error| error.to_string())?;
    if share < LEAST_TARGET {
        return Err(format!(
            "`{text}` is out of reach; it must be at least 0.00000001% (1e-10), because \
             retransmissions may be lost too"
        ));
    }
    Ok(share)
}

/// A latency that fits the field of a handshake.
fn max_latency(text: &str) -> Result<Duration, String> {
    let latency = value::milliseconds(text).map_err(|error| error.to_string())?;
    if latency > LONGEST_LATENCY {
        return Err(format!(
            "`{text}` is more than a handshake can say; it must be 65530ms at most"
        ));
    }
    Ok(latency)
}

const LONGEST_LATENCY: Duration = Duration::from_millis(65_530);

/// One packet in weeks of a fast stream.
const LEAST_TARGET: f64 = 1e-10;

/// Seven MPEG-TS packets.
const PAYLOAD: usize = 1_316;

const EXAMPLES: &str = "\
Examples:
  One packet in a million may be lost, at 5 % of loss and a round trip of 40 ms:
      punctual-lab latency --rtt 40ms --loss 5% --target 1e-6

  The same where 20 % may be retransmitted, and where losses come in bursts of 8 packets:
      punctual-lab latency --rtt 40ms --loss 5% --target 1e-6 --ceiling 20%
      punctual-lab latency --rtt 40ms --loss 5% --target 1e-6 --bursts 8

  For a script:
      punctual-lab latency --rtt 40ms --loss 5% --json | jq .efficient.latency_ms";
