//! `punctual emulate`.

use std::time::Duration;

use crate::args::link::{BothWays, Down, LinkError, Up};
use crate::args::tun::TunArgs;
use crate::args::value;
use punctual_netem::LinkConfig;

/// Put a bad network between any two UDP programs
///
/// A relay for UDP, in real time: what arrives at LISTEN is sent to TARGET, and the answers go
/// back, through a model of a network link in each direction. Each client gets its own links and
/// its own port, as behind a NAT. At the end (Ctrl-C or --duration) it tells what the links did,
/// and how exactly in time it was: the difference between when the model delivers a packet and
/// when it was really sent. For exact times on a busy machine let it have real-time priority (root,
/// or CAP_SYS_NICE on Linux).
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct EmulateArgs {
    /// Where to receive: `:5000`, `127.0.0.1:5000`, `[::1]:5000`
    #[arg(value_name = "LISTEN", required_unless_present = "tun")]
    pub(crate) listen: Option<String>,
    /// Where to send to: `host:4200`
    #[arg(value_name = "TARGET", required_unless_present = "tun")]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) tun: TunArgs,
    #[command(flatten)]
    both: BothWays,
    #[command(flatten)]
    up: Up,
    #[command(flatten)]
    down: Down,
    /// Which packets the links choose; the same seed and the same packets give the same choice
    #[arg(long, help_heading = RUN, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,
    /// Clients at a time, at most; others are not heard
    #[arg(long, help_heading = RUN, value_name = "N", default_value = "1024")]
    pub(crate) max_clients: usize,
    /// Forget a client that was silent, both ways, for this long; a bare number is seconds
    #[arg(long, help_heading = RUN, value_name = "TIME", default_value = "60s",
          value_parser = value::seconds)]
    pub(crate) client_timeout: Duration,
    /// End after this time; a bare number is seconds; 0 for no limit
    #[arg(long, help_heading = RUN, value_name = "TIME", default_value = "0",
          value_parser = value::seconds)]
    duration: Duration,
}

impl EmulateArgs {
    /// The links from the clients to the target and back.
    pub(crate) fn links(&self) -> Result<(LinkConfig, LinkConfig), LinkError> {
        let both = self.both.config()?;
        Ok((self.up.apply(both.clone())?, self.down.apply(both)?))
    }

    /// Time to run for; `None` for no limit.
    pub(crate) fn duration(&self) -> Option<Duration> {
        Some(self.duration).filter(|duration| !duration.is_zero())
    }
}

const RUN: &str = "The run";

const EXAMPLES: &str = "\
Each option of the link holds both ways; with -up behind its name only from the client to the
target, with -down only back (--loss 2% --loss-down 0). --rtt is split in halves.

Examples:
  The link of SRT's retransmission experiments, between a sender and port 4200:
      punctual emulate :5000 127.0.0.1:4200 --rtt 20ms --loss 5% --rate 45Mbps
      punctual generate srt://127.0.0.1:5000 --sendrate 5Mbps --duration 60s

  A satellite link with bursts of loss (2 % lost, 8 in a row on average) and a narrow way back:
      punctual emulate :5000 host:4200 --rtt 600ms --burst-loss 2%:8 --rate 20Mbps --rate-down 1Mbps

  A 4G modem (20 Mb/s, jitter, loss in bursts), for a minute:
      punctual emulate :5000 host:4200 --preset mobile --duration 60s";
