//! `punctual probe`.

use std::time::Duration;

use punctual::Bitrate;
use punctual_probe::{Constraints, ProbeConfig, ProbeConfigError};
use punctual_uri::Uri;

use crate::args::value;

/// Measure a link, and recommend SRT settings for it
///
/// Sends a stream of MPEG-TS null packets to an SRT listener, at rates that rise step by step until
/// the link shows congestion, and then at the rate that it is going to recommend. It reports round
/// trips, loss, bursts, reordering and the usable rate, and recommends latency, rate, maximum
/// bandwidth and buffers, with the reasons and with URIs that can be copied: for any SRT programs,
/// and for Punctual at both ends, which needs less latency (retransmitalgo=deadline).
///
/// `punctual probe --listen` runs at the other end and reports the packets that arrive there. Any
/// other SRT listener will do as well, but the figures that only the receiving end can measure are
/// then missing. The null packets do no harm to a decoder, but a server may take them for a stream
/// that has begun.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ProbeArgs {
    /// The listener to call, or the peer of a rendezvous with mode=rendezvous: srt://host:port,
    /// with any key of `punctual help uri`. The latency is 500ms unless the URI has another one
    #[arg(value_name = "URI", required_unless_present = "listen", conflicts_with = "listen")]
    pub(crate) uri: Option<Uri>,
    /// Be the other end: wait for probes at this address, one after the other; with the URI of a
    /// rendezvous, for one
    #[arg(long, value_name = "[HOST]:PORT", value_parser = listen_uri)]
    pub(crate) listen: Option<Uri>,
    /// End after the first probe
    #[arg(long, requires = "listen")]
    pub(crate) once: bool,
    /// Print JSON instead of text (schema punctual-probe/1)
    #[arg(long, conflicts_with = "listen")]
    pub(crate) json: bool,
    #[command(flatten)]
    ramp: RampArgs,
    #[command(flatten)]
    constraints: ConstraintArgs,
}

/// The rates that are tried.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Rates to try")]
struct RampArgs {
    /// The first rate
    #[arg(long, value_name = "RATE", default_value = "2.5Mbps", value_parser = value::rate)]
    start: Bitrate,
    /// The difference from one step to the next
    #[arg(long, value_name = "RATE", default_value = "2.5Mbps", value_parser = value::rate)]
    step: Bitrate,
    /// The time of each step. A bare number is seconds
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = value::seconds)]
    step_time: Duration,
    /// The highest rate, if no congestion comes before
    #[arg(long, value_name = "RATE", default_value = "20Mbps", value_parser = value::rate)]
    max_rate: Bitrate,
    /// The time for which the recommended rate is tried at the end; 0 leaves that out
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = value::seconds)]
    soak: Duration,
    /// The longest time that the whole probe may take
    #[arg(long, value_name = "TIME", default_value = "210s", value_parser = value::seconds)]
    duration: Duration,
}

/// The demands on the stream.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Constraints")]
struct ConstraintArgs {
    /// The share of packets that may stay lost: 0.001%, 1e-5
    #[arg(long, value_name = "SHARE", default_value = "0.001%", value_parser = punctual_units::parse_share)]
    target_loss: f64,
    /// The rate of the stream that is going to be sent [default: the rate that the link carries]
    #[arg(long, value_name = "RATE", value_parser = stream_rate)]
    rate: Option<Bitrate>,
    /// The longest latency that is acceptable. A bare number is ms
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = value::milliseconds)]
    max_latency: Duration,
    /// Treat the link as a mobile one: latency of five round trips or more [default: as measured]
    #[arg(long, conflicts_with = "steady")]
    mobile: bool,
    /// Treat the link as a steady one, whatever was measured
    #[arg(long)]
    steady: bool,
}

impl ProbeArgs {
    /// The configuration of the probe over a connection of this latency and largest payload.
    pub(crate) fn config(
        &self,
        latency: Duration,
        max_payload: usize,
    ) -> Result<ProbeConfig, ProbeConfigError> {
        let RampArgs { start, step, step_time, max_rate, soak, duration } = self.ramp;
        Ok(ProbeConfig::default()
            .with_ramp(start, step, step_time, max_rate)?
            .with_sustained_time(soak)?
            .with_duration(duration)?
            .with_connection(latency, max_payload))
    }

    /// The demands on the stream.
    pub(crate) fn constraints(&self) -> Constraints {
        let constraints = &self.constraints;
        Constraints {
            target: constraints.target_loss,
            rate: constraints.rate,
            mobile: (constraints.mobile || constraints.steady).then_some(constraints.mobile),
            max_latency: constraints.max_latency,
        }
    }
}

/// A rate that a stream can have.
fn stream_rate(text: &str) -> Result<Bitrate, String> {
    let rate = value::rate(text).map_err(|error| error.to_string())?;
    if rate < LEAST_STREAM {
        return Err(format!(
            "{rate:#} is too low for a stream; it must be at least {LEAST_STREAM:#}"
        ));
    }
    Ok(rate)
}

/// The URI to listen at: from an address, or a whole URI with keys.
fn listen_uri(text: &str) -> Result<Uri, String> {
    let uri = if text.contains("://") { text.to_owned() } else { format!("srt://{text}") };
    let listens = if uri.contains("mode=") {
        uri
    } else {
        format!("{uri}{}mode=listener", if uri.contains('?') { '&' } else { '?' })
    };
    listens.parse().map_err(|error: punctual_uri::UriError| error.to_string())
}

const LEAST_STREAM: Bitrate = Bitrate::from_bits_per_sec(10_000);

const EXAMPLES: &str = "\
Examples:
  Measure the path to a host. On the host:
      punctual probe --listen :4200
  Here:
      punctual probe srt://host:4200

  A link that should carry 6 Mb/s, with no more than one packet in a million lost:
      punctual probe srt://host:4200 --rate 6Mbps --max-rate 10Mbps --target-loss 0.0001%

  A quick look at a server of another make, half a minute in all:
      punctual probe 'srt://host:4200?streamid=publish:test' --step-time 5s --soak 10s \\
          --max-rate 10Mbps --duration 30s

  For a script:
      punctual probe srt://host:4200 --json --quiet | jq .recommendation.latency_ms";
