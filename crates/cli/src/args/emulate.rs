//! `punctual emulate`.

use std::time::Duration;

use crate::args::link::{BothWays, Down, PresetName, Up, list_presets};
use crate::args::tun::TunArgs;
use crate::args::value;
use punctual_netem::PathProfile;

/// Put a bad network between any two programs
///
/// Relays UDP in real time: datagrams that arrive at LISTEN go to TARGET, and the answers go back,
/// through a model of a network link in each direction. Each client gets its own links and its own
/// port, as behind a NAT. No privilege is needed.
///
/// With --tun it makes two networks instead, left and right, with nothing but the link between
/// them. Programs in them use any protocol over IP, the kernel's TCP included. This needs Linux and
/// root, and leaves nothing behind, even if it is killed.
///
/// At the end (Ctrl-C, --duration, or the end of the commands) it reports the packets of each link,
/// and the exactness of its times: the difference between the model's time of a packet and the time
/// at which it was really sent. Real-time priority (root, or CAP_SYS_NICE on Linux) makes times
/// exact on a busy machine.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES, override_usage = USAGE)]
pub(crate) struct EmulateArgs {
    /// The address to receive at: `:5000`, `127.0.0.1:5000`, `[::1]:5000`
    #[arg(value_name = "LISTEN", required_unless_present_any = ["tun", "preset"])]
    pub(crate) listen: Option<String>,
    /// The address to send to: `host:4200`
    #[arg(value_name = "TARGET", required_unless_present_any = ["tun", "preset"])]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) tun: TunArgs,
    #[command(flatten)]
    both: BothWays,
    #[command(flatten)]
    up: Up,
    #[command(flatten)]
    down: Down,
    /// The seed of the links' chance: the same seed and the same packets give the same losses
    #[arg(long, help_heading = RUN, value_name = "NUMBER", default_value = "1")]
    pub(crate) seed: u64,
    /// Begin the times of --at and of traces anew with each client, so that each meets the same; by
    /// default they begin once for all, with the first client
    #[arg(long, help_heading = RUN)]
    pub(crate) each_client: bool,
    /// The most clients at the same time; datagrams of others are dropped
    #[arg(long, help_heading = RUN, value_name = "N", default_value = "1024")]
    pub(crate) max_clients: usize,
    /// Forget a client after this time without a datagram in either direction; a bare number is
    /// seconds
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
    pub(crate) fn links(&self) -> PathProfile {
        self.both.path(&self.up, &self.down, self.seed)
    }

    /// The description of the presets, if `--preset list` asks for it.
    pub(crate) fn presets(&self) -> Option<String> {
        matches!(self.both.preset, Some(PresetName::List)).then(list_presets)
    }

    /// Time to run for; `None` for no limit.
    pub(crate) fn duration(&self) -> Option<Duration> {
        Some(self.duration).filter(|duration| !duration.is_zero())
    }
}

const RUN: &str = "The run";

const USAGE: &str = "\
punctual emulate [OPTIONS] <LISTEN> <TARGET>
       punctual emulate --tun [OPTIONS] [--left <COMMAND>] [--right <COMMAND>]
       punctual emulate --preset list";

const EXAMPLES: &str = "\
Each option of the link applies to both directions; with -up after its name it applies only from the
client to the target (from the left side to the right), with -down only to the way back
(--loss 2% --loss-down 0). Half of --rtt is the delay of each direction. Times of --at and of traces
begin with the first datagram of all clients, so that one that calls again meets the link as it is
then; with --each-client they begin anew with the first datagram of each client, and with --tun with
the left command, or with the emulator if there are not two commands.

The environment of a command of --left or --right has PUNCTUAL_SIDE (left or right) and the addresses
PUNCTUAL_PEER, PUNCTUAL_LEFT and PUNCTUAL_RIGHT; a 6 after the name gives the IPv6 address. Its
network has the device punctual0 and a loopback, and no other. All processes that it starts end with
it. If a command fails, the exit code is 1, and the command's own exit code is printed. The report
goes to standard output, or to standard error if a command writes to standard output (see
--left-log). A side without a command stays open for a shell, and the way to enter it is printed.

Examples:
  The link of SRT's retransmission experiments, between a sender and port 4200:
      punctual emulate :5000 127.0.0.1:4200 --rtt 20ms --loss 5% --rate 45Mbps
      punctual generate srt://127.0.0.1:5000 --sendrate 5Mbps --duration 60s

  A satellite link with bursts of loss (2 % lost, 8 in a row on average) and a narrow way back:
      punctual emulate :5000 host:4200 --rtt 600ms --burst-loss 2%:8 --rate 20Mbps --rate-down 1Mbps

  A 4G modem (20 Mb/s, jitter, loss in bursts), for a minute; then the list of all presets:
      punctual emulate :5000 host:4200 --preset mobile --duration 60s
      punctual emulate --preset list

  A link that gets worse, stops for a second, and then delivers its queue at once:
      punctual emulate :5000 host:4200 --rtt 60ms --rate 20Mbps \\
          --at '10s: loss=5% over 20s' --at '40s: stall 1s drain 12Mbps' --at '60s: outage 500ms'

  The recorded capacity of a mobile network on the way to the target:
      punctual emulate :5000 host:4200 --rtt 60ms --trace-up verizon-lte.up --queue 300ms

  TCP over 200 ms and 2 % of loss each way:
      sudo punctual emulate --tun --rtt 200ms --loss 2% \\
          --right 'iperf3 -s' --left 'iperf3 -c $PUNCTUAL_PEER'

  Two other programs with SRT, for a minute; their messages go to files:
      sudo punctual emulate --tun --rtt 60ms --loss 5% --duration 1min \\
          --right \"srt-live-transmit 'srt://:4200?latency=250' file://con > got.ts\" \\
          --left \"ffmpeg -re -i clip.ts -c copy -f mpegts 'srt://10.73.0.2:4200?latency=250000'\" \\
          --right-log right.log --left-log left.log

  Pings over a link; a shell at one end of it:
      sudo punctual emulate --tun --preset mobile --left 'ping -c 20 $PUNCTUAL_PEER'
      sudo punctual emulate --tun --preset mobile --left bash";
