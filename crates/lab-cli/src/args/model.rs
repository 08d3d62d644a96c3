//! `punctual-lab model`.

use std::path::PathBuf;
use std::time::Duration;

use punctual::Bitrate;
use punctual_probe::model::glitch::{Question, Setting, WantedTime};

use crate::args::value;

/// Compute how rarely a reliable stream glitches, from loss, round trip, rate and buffer
///
/// A reliable stream loses nothing; it glitches where a packet is not there yet when the player
/// wants it. Name at least three of --rate, --loss, --rtt, --buffer, --glitch-target and
/// --overhead: with --glitch-target the least buffer is computed, or the highest loss, the longest
/// round trip or the highest rate if that is left out; figures that are still open are varied. Uses
/// the model of docs/model.md and sends nothing.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ModelArgs {
    #[command(flatten)]
    figures: FigureArgs,
    #[command(flatten)]
    setting: SettingArgs,
    #[command(flatten)]
    pub(crate) output: ModelOutputArgs,
}

/// The figures, of which at least three are known.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Figures, at least three")]
struct FigureArgs {
    /// The bit rate of the stream: 10kbps to 10Gbps
    #[arg(long, value_name = "RATE", value_parser = value::rate)]
    rate: Option<Bitrate>,
    /// The share of packets lost from the sender to the receiver: 2%, 0.02; up to 50%
    #[arg(long, value_name = "SHARE", value_parser = punctual_units::parse_share)]
    loss: Option<f64>,
    /// The round-trip time, 1ms to 10s. A bare number is ms
    #[arg(long, value_name = "TIME", value_parser = value::milliseconds)]
    rtt: Option<Duration>,
    /// The time from when a packet should arrive to when the player wants it (`playout`), up to 1h.
    /// A bare number is ms
    #[arg(long, visible_alias = "playout", value_name = "TIME",
          value_parser = value::milliseconds)]
    buffer: Option<Duration>,
    /// The least mean time to a glitch: 10min, 6h, 1day, 3weeks, 1year
    #[arg(long, visible_alias = "mean-time", value_name = "TIME", value_parser = mean_time)]
    glitch_target: Option<f64>,
    /// The most that may be retransmitted, as a share of the originals: 5%
    #[arg(long, value_name = "SHARE", value_parser = punctual_units::parse_share)]
    overhead: Option<f64>,
}

/// How losses happen, and how they are recovered.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Setting")]
struct SettingArgs {
    /// Copies of the last retransmission that can be in time, 0 to 32 [default: a row for each]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(0..=32))]
    copies: Option<u32>,
    /// Datagrams in which each NAK is sent, 1 to 32
    #[arg(long, value_name = "NUMBER", default_value = "2",
          value_parser = clap::value_parser!(u32).range(1..=32))]
    nak_datagrams: u32,
    /// Datagrams of the last NAK that can be answered in time, 1 to 32
    #[arg(long, value_name = "NUMBER", default_value = "4",
          value_parser = clap::value_parser!(u32).range(1..=32))]
    last_nak_datagrams: u32,
    /// The time beyond a round trip after which a NAK is repeated. A bare number is ms; 0 is a
    /// round trip exactly, and a loss that is noticed at once, as in the paper [default: as the NAK
    /// timers: four times the jitter, at least 1ms, and a sixteenth of the round trip, up to 5ms]
    #[arg(long, value_name = "TIME", value_parser = value::milliseconds)]
    margin: Option<Duration>,
    /// The share of packets lost on the way back, such as NAKs [default: as --loss]
    #[arg(long, value_name = "SHARE", value_parser = punctual_units::parse_share)]
    loss_back: Option<f64>,
    /// The mean number of packets lost in a row, in both directions; 1 for independent losses
    #[arg(long, value_name = "PACKETS", default_value = "1")]
    bursts: f64,
    /// The mean deviation of the round-trip time, `mdev` of ping. A bare number is ms
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = value::milliseconds)]
    jitter: Duration,
    /// The payload of a packet, 1 to 1456 bytes
    #[arg(long, value_name = "BYTES", default_value = "1456", value_parser = value::message_size)]
    block: usize,
    /// The time of video in a readchunk, in which late packets count as one glitch, up to 1h. A
    /// bare number is ms
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = value::milliseconds)]
    readchunk: Duration,
    /// The player wants each readchunk as a whole, so that its first packets have more time
    #[arg(long)]
    whole_readchunks: bool,
}

/// The output.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct ModelOutputArgs {
    /// Print JSON instead of text (schema punctual-model/1)
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write a page with curves of the mean time to a glitch over the buffer
    #[arg(long, value_name = "FILE")]
    pub(crate) page: Option<PathBuf>,
}

impl ModelArgs {
    /// The figures that are known.
    pub(crate) fn question(&self) -> Question {
        let FigureArgs { rate, loss, rtt, buffer, glitch_target, overhead } = self.figures;
        let copies = self.setting.copies;
        Question { rate, loss, rtt, buffer, mean_time: glitch_target, overhead, copies }
    }

    /// How losses happen, and how they are recovered.
    pub(crate) fn setting(&self) -> Setting {
        let args = &self.setting;
        Setting {
            return_loss: args.loss_back,
            burst: args.bursts,
            jitter: args.jitter,
            block: args.block,
            datagrams: args.nak_datagrams,
            last_datagrams: args.last_nak_datagrams,
            margin: args.margin,
            readchunk: args.readchunk,
            wanted: if args.whole_readchunks { WantedTime::ByChunk } else { WantedTime::ByPacket },
        }
    }
}

/// A long time in seconds; bare numbers are seconds.
fn mean_time(text: &str) -> Result<f64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic() || c == ' ');
    let days = match text[digits.len()..].trim() {
        "d" | "day" | "days" => 1.0,
        "w" | "week" | "weeks" => 7.0,
        "month" | "months" => 365.25 / 12.0,
        "y" | "year" | "years" => 365.25,
        _ => {
            let time = value::seconds(text).map_err(|error| {
                format!("{error}; longer times are written as 1day, 3weeks, 6months or 1year")
            })?;
            return Ok(time.as_secs_f64());
        }
    };
    match digits.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number * days * 86_400.0),
        _ => Err(format!("`{text}` is no time; write it as 10min, 6h, 1day, 3weeks or 1year")),
    }
}

const EXAMPLES: &str = "\
Examples, of the FASPstream paper's cases:
  How rarely does 40 Mb/s glitch at 200 ms, 2 % of loss and the paper's advice of half a second?
      punctual-lab model --rate 40Mbps --loss 2% --rtt 200ms --buffer 500ms --block 1373

  The same with the paper's own rounds: one NAK for each loss, no copies, exact round trips:
      punctual-lab model --rate 40Mbps --loss 2% --rtt 200ms --buffer 500ms --block 1373 \\
          --copies 0 --nak-datagrams 1 --last-nak-datagrams 1 --margin 0

  Which buffer does a week without a glitch need, at 6, 10 and 40 Mb/s and other rates?
      punctual-lab model --loss 2% --rtt 200ms --glitch-target 1week

  Which loss is bearable with a second of buffer and 5 % of retransmissions?
      punctual-lab model --rate 10Mbps --rtt 200ms --buffer 1s --glitch-target 1day --overhead 5%

  Curves for a page:
      punctual-lab model --rate 10Mbps --loss 2% --rtt 200ms --page model.html

  For a script:
      punctual-lab model --rate 10Mbps --loss 2% --rtt 200ms --glitch-target 1day --json |
          jq '.answers[] | {copies, buffer_ms, overhead_share}'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_times_may_be_long() {
        assert_eq!(mean_time("1day"), Ok(86_400.0));
        assert_eq!(mean_time("3 weeks"), Ok(1_814_400.0));
        assert_eq!(mean_time("0.5years"), Ok(15_778_800.0));
        assert_eq!(mean_time("10min"), Ok(600.0));
        assert_eq!(mean_time("90"), Ok(90.0));
        assert!(mean_time("-1day").unwrap_err().contains("1day, 3weeks"));
        assert!(mean_time("soon").unwrap_err().contains("1day, 3weeks"));
    }
}
