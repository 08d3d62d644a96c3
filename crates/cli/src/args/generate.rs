//! `punctual generate`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use punctual::Bitrate;

use crate::args::stamp::StampArgs;
use crate::args::value::{self, Limit};
use crate::args::{ConnectionArgs, OutputArgs, StatsArgs, ThreadArgs};
use punctual_metrics::Checksum;
use punctual_uri::Uri;

/// Send a generated stream at an exact rate
///
/// Sends messages of one size at an exact rate to one destination or several. Each message has its
/// time in an absolute schedule, so that rate and duration are exact to the message. With
/// --enable-metrics each message is stamped with its number and time, for `receive
/// --enable-metrics` at the other end. Several URIs get a stream each, at the same time; with
/// grouptype in the first one, a single stream goes over all of them.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    /// A destination: srt://, udp://, tcp://, a file or -
    #[arg(value_name = "URI", required_unless_present = "output")]
    positional: Vec<Uri>,
    /// The same as URI
    #[arg(short, long, value_name = "URI", num_args = 1..)]
    output: Vec<Uri>,
    /// The bit rate of the payloads: 5Mbps, 800kbps; a bare number is bits per second; 0 for no
    /// limit [default: 5Mbps if a destination is live (srt://, udp://), which loses what
    /// is too fast; no limit to files, pipes, tcp:// and streams of bytes]
    #[arg(long, value_name = "RATE", value_parser = value::rate)]
    pub(crate) sendrate: Option<Bitrate>,
    /// The bytes of each message
    #[arg(long, value_name = "BYTES", default_value = "1316", value_parser = value::message_size)]
    pub(crate) msgsize: usize,
    /// The number of messages to send; -1 for no limit
    #[arg(long, value_name = "N", default_value = "-1", allow_hyphen_values = true)]
    num: Limit,
    /// The time to send for, instead of --num: 60s, 2min; a bare number is seconds; 0 for no limit
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = value::seconds)]
    duration: Duration,
    /// Send at the times in this file instead of at a rate. Each line is a number of seconds since
    /// the start; the file is repeated
    #[arg(long, value_name = "FILE", conflicts_with = "sendrate")]
    pub(crate) playback_csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stamps: StampArgs,
    /// Receive as well, and count the messages that come back
    #[arg(long)]
    pub(crate) twoway: bool,
    /// Send messages together that are due within this time, which makes them late by up to this
    /// time and saves wake-ups at high rates; 0 sends each at its own time. A bare number is ms
    #[arg(long, value_name = "TIME", default_value = "500us", value_parser = value::coalesce)]
    pub(crate) coalesce: Duration,
    /// Spin instead of sleeping until a message is due: takes a whole core, and gains some
    /// microseconds of precision
    #[arg(long, conflicts_with = "coalesce")]
    pub(crate) spin_wait: bool,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    pub(crate) connections: ConnectionArgs,
    #[command(flatten)]
    pub(crate) output_files: OutputArgs,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
}

impl GenerateArgs {
    /// Threads that carry the streams; `None` for one for each core.
    pub(crate) fn threads(&self) -> Option<NonZeroUsize> {
        // All streams leave through one port: only their checksums are work for several cores.
        let is_work = self.stamps.checksum().is_some_and(|it| it != Checksum::None);
        let streams = if is_work { self.connections.concurrent_streams.get() } else { 1 };
        self.threads.number(streams.saturating_mul(self.destinations().count()))
    }

    /// The destinations.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = &Uri> {
        self.positional.iter().chain(&self.output)
    }

    /// Messages to send; `None` for no limit or a limit in time.
    pub(crate) fn limit(&self) -> Option<u64> {
        self.num.0.filter(|_| self.duration.is_zero())
    }

    /// Time to send for; `None` for no limit.
    pub(crate) fn duration(&self) -> Option<Duration> {
        Some(self.duration).filter(|duration| !duration.is_zero())
    }
}

const EXAMPLES: &str = "\
Examples:
  5 Mb/s for a minute, measurable at the other end, with libsrt's statistics ten times a second:
      punctual generate 'srt://host:4200?latency=200ms' --sendrate 5Mbps --duration 60s \\
          --enable-metrics --statsfile stats.csv --statsfreq 100ms

  Wait for callers and send to each of them, up to 100 at a time, until Ctrl-C:
      punctual generate 'srt://:4200' --sendrate 2Mbps --concurrent-streams 100 --maxconns -1

  The same over bare UDP, for comparison:
      punctual generate udp://host:4300 --sendrate 5Mbps --duration 60s --enable-metrics";
