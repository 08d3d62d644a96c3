//! `punctual receive`.

use std::num::NonZeroUsize;
use std::time::Duration;

use crate::args::{CallerArgs, ConnectionArgs, MetricsArgs, StatsArgs, ThreadArgs, value};
use punctual_uri::Uri;

/// Receive a stream, measure it, and discard it
///
/// Counts the messages. With --enable-metrics it also measures the messages of `generate
/// --enable-metrics`: transmission delay (by the system clocks of both ends, which must be
/// synchronised), jitter (RFC 3550), time-stamped delay factor (EBU TECH 3337), loss, reordering
/// and integrity. It writes a row of CSV each second, in srt-xtransmit's columns. `route` keeps the
/// stream.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReceiveArgs {
    /// A source: srt://, udp://, rtp://, tcp://, a file or -
    #[arg(value_name = "URI", required_unless_present = "input")]
    positional: Vec<Uri>,
    /// The same as URI
    #[arg(short, long, value_name = "URI", num_args = 1..)]
    input: Vec<Uri>,
    /// The most bytes in a message, which is also the size into which a stream of bytes is cut
    #[arg(long, value_name = "BYTES", default_value = "1316", value_parser = value::message_size)]
    pub(crate) msgsize: usize,
    /// Print a line for each message
    #[arg(long)]
    pub(crate) printmsg: bool,
    /// Answer each message with `Message received`
    #[arg(long)]
    pub(crate) twoway: bool,
    /// Let work gather for this time. Messages are then early or late by half of it at most, and
    /// fewer wake-ups take a fraction of the CPU time; srt-live-transmit works like 5ms. A bare
    /// number is ms
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = value::coalesce)]
    pub(crate) coalesce: Duration,
    /// End after this time: 60s, 2min; a bare number is seconds; 0 for no limit
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = value::seconds)]
    duration: Duration,
    #[command(flatten)]
    pub(crate) callers: CallerArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    pub(crate) metrics: MetricsArgs,
    #[command(flatten)]
    pub(crate) connections: ConnectionArgs,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
}

impl ReceiveArgs {
    /// Threads that carry the streams; `None` for one for each core.
    pub(crate) fn threads(&self) -> Option<NonZeroUsize> {
        let streams = self.connections.concurrent_streams.get();
        self.threads.number(streams.saturating_mul(self.sources().count()))
    }

    /// The sources.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Uri> {
        self.positional.iter().chain(&self.input)
    }

    /// Time to receive for; `None` for no limit.
    pub(crate) fn duration(&self) -> Option<Duration> {
        Some(self.duration).filter(|duration| !duration.is_zero())
    }
}

const EXAMPLES: &str = "\
Examples:
  Wait for a caller and measure its stream; delay, jitter and loss go to a file:
      punctual receive 'srt://:4200?latency=200ms' --enable-metrics --metricsfile metrics.csv

  Take up to 50 callers at once on one port, until Ctrl-C, with libsrt's statistics:
      punctual receive 'srt://:4200' --concurrent-streams 50 --maxconns -1 --statsfile stats.csv

  Join a source-specific multicast group and measure for ten minutes:
      punctual receive 'udp://@232.1.1.1:5000?source=10.0.0.7&adapter=eth0' \\
          --enable-metrics --duration 10min";
