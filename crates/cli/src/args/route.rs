//! `punctual route`.

use std::num::NonZeroUsize;
use std::time::Duration;

use punctual::Bitrate;
use punctual_ends::FilePace;

use crate::args::{CallerArgs, OutputArgs, SpoolArgs, StatsArgs, ThreadArgs, value};
use punctual_uri::Uri;

/// Carry a stream from a source to one destination or several
///
/// Carries messages from the source to each destination. A file of MPEG-TS is sent at the pace of
/// its clock (PCR). A stream of bytes (a file, standard input, TCP) becomes messages of seven
/// transport packets, 1316 bytes; a message that is not full within 10 ms is sent as it is. After
/// the end of the source, buffered messages are still sent, and the command ends.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RouteArgs {
    /// The source: srt://, udp://, rtp://, tcp://, a file or -
    #[arg(value_name = "SRC", required_unless_present = "input", conflicts_with = "input")]
    src: Option<Uri>,
    /// A destination: srt://, udp://, rtp://, tcp://, a file or -
    #[arg(value_name = "DST", required_unless_present = "output")]
    dst: Vec<Uri>,
    /// The same as SRC; several are the links of a group
    #[arg(short, long, value_name = "URI", num_args = 1..)]
    input: Vec<Uri>,
    /// The same as DST
    #[arg(short, long, value_name = "URI", num_args = 1..)]
    output: Vec<Uri>,
    /// Carry messages back from the destination to the source as well
    #[arg(long)]
    pub(crate) bidir: bool,
    /// The pace of a file: pcr (MPEG-TS by its own clock), none (as fast as possible), or a rate
    /// such as 5Mbps [default: pcr for a file of MPEG-TS, else none]
    #[arg(long, value_name = "PACE", value_parser = pace)]
    pub(crate) pace: Option<FilePace>,
    /// Repeat a file without a gap
    #[arg(long = "loop")]
    pub(crate) repeat: bool,
    /// The most bytes in a message, which is also the size into which a stream of bytes is cut
    #[arg(long, value_name = "BYTES", default_value = "1316", value_parser = value::message_size)]
    pub(crate) msgsize: usize,
    /// Let work gather for this time. Messages are then early or late by half of it at most, and
    /// fewer wake-ups take a fraction of the CPU time; srt-live-transmit works like 5ms. A bare
    /// number is ms
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = value::coalesce)]
    pub(crate) coalesce: Duration,
    /// End after this time: 60s, 2min; a bare number is seconds; 0 for no limit
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = value::seconds)]
    duration: Duration,
    /// The lost destinations that end the command, as the end of the source does: `all` of them, or
    /// `any` one. Until then the other destinations go on
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = EndOfRoute::All)]
    pub(crate) end: EndOfRoute,
    /// The treatment of one of several destinations for which --sink-buffer bytes wait. With
    /// `spool` further messages wait in a temporary file, and if that is full, it is as with
    /// `wait`: the source, and so the others, wait, unless the destination takes nothing at all for
    /// 10 s. With `end` it is lost. Of a live source it misses messages in any case
    #[arg(long, value_enum, value_name = "HOW", default_value_t = SlowDestination::Spool)]
    pub(crate) slow: SlowDestination,
    /// The most bytes that wait in memory for one of several destinations
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = value::buffer_size)]
    pub(crate) sink_buffer: u64,
    /// The size of the temporary file for --slow spool, one for each destination, in $TMPDIR or
    /// else /var/tmp
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = value::buffer_size)]
    pub(crate) sink_spool: u64,
    /// Connect again, or wait for another caller, after the source or a destination was lost; at
    /// most once a second. A stream of bytes (transtype=stream) between two routes with --reconnect
    /// then goes on at the byte where it was
    #[arg(long, overrides_with = "_no_reconnect")]
    pub(crate) reconnect: bool,
    /// End when the source is lost, or the destinations of --end (default)
    #[arg(long = "no-reconnect", overrides_with = "reconnect")]
    _no_reconnect: bool,
    /// Stop listening once a caller has been accepted
    #[arg(long, overrides_with = "_no_close_listener")]
    pub(crate) close_listener: bool,
    /// Go on listening, and refuse further callers (default)
    #[arg(long = "no-close-listener", overrides_with = "close_listener")]
    _no_close_listener: bool,
    /// Send the stream to this number of callers at most of each DST that listens, to each from the
    /// time of its call; further callers are refused. A viewer that does not keep up delays no
    /// other and is disconnected
    #[arg(long, value_name = "N", conflicts_with_all = ["bidir", "close_listener"])]
    pub(crate) viewers: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) callers: CallerArgs,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    pub(crate) output_files: OutputArgs,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
}

/// The lost destinations that end a route.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum EndOfRoute {
    /// All of them.
    All,
    /// Any one.
    Any,
}

/// The treatment of a destination that is slower than the stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum SlowDestination {
    /// Its messages wait in a temporary file.
    Spool,
    /// The others wait for it.
    Wait,
    /// It is lost, and the others go on.
    End,
}

impl RouteArgs {
    /// The source, or the links of the group that is the source.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Uri> {
        self.src.iter().chain(&self.input)
    }

    /// The destinations.
    pub(crate) fn destinations(&self) -> impl Iterator<Item = &Uri> {
        self.dst.iter().chain(&self.output)
    }

    /// Threads that carry the streams; `None` for one for each core.
    pub(crate) fn threads(&self) -> Option<NonZeroUsize> {
        self.threads.number(self.viewers.map_or(1, NonZeroUsize::get))
    }

    /// Time to run for; `None` for no limit.
    pub(crate) fn duration(&self) -> Option<Duration> {
        Some(self.duration).filter(|duration| !duration.is_zero())
    }
}

fn pace(text: &str) -> Result<FilePace, String> {
    match text {
        "none" => Ok(FilePace::None),
        "pcr" => Ok(FilePace::Pcr),
        rate => match value::rate(rate) {
            Ok(Bitrate::ZERO) => Err("a pace of 0 sends nothing; `none` sets no limit".to_owned()),
            Ok(rate) => Ok(FilePace::Rate(rate)),
            Err(error) => Err(format!("it must be pcr, none or a rate: {error}")),
        },
    }
}

const EXAMPLES: &str = "\
Examples:
  Send a recording as a live stream, and repeat it:
      punctual route clip.ts 'srt://host:4200?streamid=live/one' --loop

  Send FFmpeg's output, and play it at the other end:
      ffmpeg -re -i in.mp4 -c copy -f mpegts - | punctual route - 'srt://host:4200'
      punctual route 'srt://:4200?latency=300ms' - | ffplay -

  Carry multicast from one site to another, and recover losses on the way:
      punctual route 'udp://@239.1.1.1:5000?adapter=eth0' 'srt://site-b:4200?latency=500ms'
      punctual route 'srt://:4200' 'udp://239.2.2.2:5000?ttl=8' --reconnect

  Record a stream and pass it on at the same time:
      punctual route 'srt://:4200' udp://127.0.0.1:1234 recording.ts

  Send a growing recording; no byte is lost in outages and restarts of both ends:
      punctual route 'file:///rec/a.ts?grow=wait' 'srt://host:4200?transtype=stream' --reconnect \\
          --spool a.spool
      punctual route 'srt://:4200?transtype=stream' a.ts --reconnect --append

  Give one stream to up to 50 viewers, and publish under names that a file lists:
      punctual route udp://:5000 'srt://:4200' --viewers 50
      punctual route 'srt://:4201' 'srt://:4200' --viewers 50 --allow-streamids streamids.txt";
