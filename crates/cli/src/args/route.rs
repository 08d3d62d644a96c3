//! `punctual route`.

use std::num::NonZeroUsize;
use std::time::Duration;

use punctual::Bitrate;

use crate::args::{CallerArgs, OutputArgs, StatsArgs, ThreadArgs, value};
use punctual_uri::Uri;

/// Carry a stream from one place to another, or to several
///
/// Carries messages from a source to each destination. A file of MPEG-TS is sent at the pace of its
/// clock (PCR). A stream of bytes (a file, standard input, TCP) becomes messages of seven transport
/// packets, 1316 bytes; one that does not fill within 10 ms is sent as it is. When the source ends,
/// what is buffered is still sent, and the command ends.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct RouteArgs {
    /// Where the stream comes from: srt://, udp://, tcp://, a file or -
    #[arg(value_name = "SRC", required_unless_present = "input", conflicts_with = "input")]
    src: Option<Uri>,
    /// Where it goes to: srt://, udp://, tcp://, a file or -
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
    /// Pace of a file: pcr (MPEG-TS at its own clock), none (as fast as it goes), or a rate such as
    /// 5Mbps [default: pcr for a file of MPEG-TS, else none]
    #[arg(long, value_name = "PACE", value_parser = pace)]
    pub(crate) pace: Option<Pace>,
    /// Send a file over and over, without a gap
    #[arg(long = "loop")]
    pub(crate) repeat: bool,
    /// Bytes of a message: the most that one has, and where a stream of bytes is cut
    #[arg(long, value_name = "BYTES", default_value = "1316", value_parser = value::message_size)]
    pub(crate) msgsize: usize,
    /// Let work gather for this time: a message is early or late by half of it at most, and fewer
    /// wake-ups take a fraction of the CPU time; 5ms is about what srt-live-transmit takes without
    /// being asked. A bare number is ms
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = value::coalesce)]
    pub(crate) coalesce: Duration,
    /// End after this time: 60s, 2min; a bare number is seconds; 0 for no limit
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = value::seconds)]
    duration: Duration,
    /// Which lost destinations end the command, as the end of the source does: `all` of them, or
    /// `any` one. Until then the others go on
    #[arg(long, value_enum, value_name = "WHICH", default_value_t = EndOfRoute::All)]
    pub(crate) end: EndOfRoute,
    /// Connect, or wait for a caller, again after an end was lost, the source or a destination; at
    /// most once a second
    #[arg(long, overrides_with = "_no_reconnect")]
    pub(crate) reconnect: bool,
    /// End when the source is lost, and when destinations are as --end says (default)
    #[arg(long = "no-reconnect", overrides_with = "reconnect")]
    _no_reconnect: bool,
    /// Stop listening once a caller has been taken
    #[arg(long, overrides_with = "_no_close_listener")]
    pub(crate) close_listener: bool,
    /// Go on listening: further callers are refused (default)
    #[arg(long = "no-close-listener", overrides_with = "close_listener")]
    _no_close_listener: bool,
    /// Give the stream to up to this many callers at once of each DST that listens, to each from
    /// the moment when it called; further callers are refused. A viewer that does not keep up
    /// delays nobody and is disconnected
    #[arg(long, value_name = "N", conflicts_with_all = ["bidir", "close_listener"])]
    pub(crate) viewers: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) callers: CallerArgs,
    #[command(flatten)]
    threads: ThreadArgs,
    #[command(flatten)]
    pub(crate) output_files: OutputArgs,
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
}

/// Which lost destinations end a route.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum EndOfRoute {
    /// All of them.
    All,
    /// Any one.
    Any,
}

/// How fast a file is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Pace {
    /// As fast as it goes.
    None,
    /// At the pace of its program clock references.
    Pcr,
    /// At a bit rate.
    Rate(Bitrate),
}

impl RouteArgs {
    /// Where the stream comes from.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Uri> {
        self.src.iter().chain(&self.input)
    }

    /// Where it goes to.
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

fn pace(text: &str) -> Result<Pace, String> {
    match text {
        "none" => Ok(Pace::None),
        "pcr" => Ok(Pace::Pcr),
        rate => match value::rate(rate) {
            Ok(Bitrate::ZERO) => Err("a pace of 0 sends nothing; `none` sets no limit".to_owned()),
            Ok(rate) => Ok(Pace::Rate(rate)),
            Err(error) => Err(format!("it must be pcr, none or a rate: {error}")),
        },
    }
}

const EXAMPLES: &str = "\
Examples:
  Send a recording as if it were live, over and over:
      punctual route clip.ts 'srt://host:4200?streamid=live/one' --loop

  Send what FFmpeg makes; play it at the other end:
      ffmpeg -re -i in.mp4 -c copy -f mpegts - | punctual route - 'srt://host:4200'
      punctual route 'srt://:4200?latency=300ms' - | ffplay -

  Bring multicast from one site to another, and lose nothing on the way:
      punctual route 'udp://@239.1.1.1:5000?adapter=eth0' 'srt://site-b:4200?latency=500ms'
      punctual route 'srt://:4200' 'udp://239.2.2.2:5000?ttl=8' --reconnect

  Record a stream and pass it on at the same time:
      punctual route 'srt://:4200' udp://127.0.0.1:1234 recording.ts

  Give one stream to up to 50 viewers, and publish under names that a file lists:
      punctual route udp://:5000 'srt://:4200' --viewers 50
      punctual route 'srt://:4201' 'srt://:4200' --viewers 50 --allow-streamids streamids.txt";
