//! The options of an emulated link: for both directions, for one, for the other.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use punctual_netem::{Change, LinkProfile, PathProfile, Preset, Timeline, Trace, presets};

use crate::args::value;

/// The help of an option: in full for both directions, and a reference to that for one of them.
macro_rules! help {
    ("", $name:literal, $text:literal) => {
        $text
    };
    ($suffix:literal, $name:literal, $text:literal) => {
        concat!("As --", $name, ", this way only")
    };
}

/// A reader of a parameter's value.
macro_rules! change {
    ($name:literal) => {
        |text: &str| Change::parse($name, text)
    };
}

macro_rules! link_options {
    ($name:ident, $suffix:tt, $heading:literal) => {
        /// The options of a link, as typed.
        #[derive(Clone, Debug, clap::Args)]
        #[command(next_help_heading = $heading)]
        pub(crate) struct $name {
            #[arg(id = concat!("loss", $suffix), long = concat!("loss", $suffix),
                                          value_name = "LOSS", value_parser = change!("loss"),
                                          conflicts_with = concat!("burst-loss", $suffix),
                                          help = help!($suffix, "loss", "\
                      Share of packets lost, each by chance (5%); or each \
                      hundredth packet (every:100), three in a row \
                      (every:100:3), 50 in a row each 10 s (every:10s:50), or \
                      these, counted from 0 (list:3,17,20-25)"))]
            loss: Option<Change>,
            #[arg(id = concat!("burst-loss", $suffix), long = concat!("burst-loss", $suffix),
                                          value_name = "SHARE:LENGTH",
                                          value_parser = change!("burst-loss"),
                                          help = help!($suffix, "burst-loss", "\
                      Loss in bursts (Gilbert–Elliott): share lost and mean \
                      length of a burst (2%:8), or the model's p,r,good,bad \
                      (0.5%,10%,0.1%,40%)"))]
            burst_loss: Option<Change>,
            #[arg(id = concat!("delay", $suffix), long = concat!("delay", $suffix),
                                          value_name = "TIME", value_parser = change!("delay"),
                                          help = help!($suffix, "delay", "\
                      Delay one way"))]
            delay: Option<Change>,
            #[arg(id = concat!("jitter", $suffix), long = concat!("jitter", $suffix),
                                          value_name = "TIME", value_parser = change!("jitter"),
                                          help = help!($suffix, "jitter", "\
                      Variation of the delay: standard deviation of a normal \
                      distribution (4ms) or of one with a long tail \
                      (pareto:4ms), or uniform:4ms for up to 4 ms up and \
                      down"))]
            jitter: Option<Change>,
            #[arg(id = concat!("rate", $suffix), long = concat!("rate", $suffix),
                                          value_name = "RATE", value_parser = change!("rate"),
                                          help = help!($suffix, "rate", "\
                      Bit rate; IP and UDP headers count"))]
            rate: Option<Change>,
            #[arg(id = concat!("queue", $suffix), long = concat!("queue", $suffix),
                                          value_name = "LIMIT", value_parser = change!("queue"),
                                          help = help!($suffix, "queue", "\
                      The most that may wait for transmission: packets (1000), \
                      time (300ms), bytes (64KiB) or unlimited"))]
            queue: Option<Change>,
            #[arg(id = concat!("codel", $suffix), long = concat!("codel", $suffix),
                                          value_name = "TARGET:INTERVAL",
                                          value_parser = change!("codel"), num_args = 0..=1,
                                          require_equals = true, default_missing_value = "on",
                                          help = help!($suffix, "codel", "\
                      Keep the wait short by CoDel (RFC 8289), with target and \
                      interval if not 5ms:100ms"))]
            codel: Option<Change>,
            #[arg(id = concat!("mtu", $suffix), long = concat!("mtu", $suffix),
                                          value_name = "BYTES", value_parser = change!("mtu"),
                                          help = help!($suffix, "mtu", "\
                      Longest packet that passes, IP and UDP headers included; \
                      longer ones are dropped"))]
            mtu: Option<Change>,
            #[arg(id = concat!("overhead", $suffix), long = concat!("overhead", $suffix),
                                          value_name = "BYTES", value_parser = change!("overhead"),
                                          allow_negative_numbers = true,
                                          help = help!($suffix, "overhead", "\
                      Bytes that count for the rate beside each packet's own: \
                      38 on Ethernet, -28 to count what UDP carries alone"))]
            overhead: Option<Change>,
            #[arg(id = concat!("reorder", $suffix), long = concat!("reorder", $suffix),
                                          value_name = "SHARE[:TIME]",
                                          value_parser = change!("reorder"),
                                          help = help!($suffix, "reorder", "\
                      Share of packets held back, and how long: 1%:10ms; or \
                      sent ahead: ahead:1%:10ms"))]
            reorder: Option<Change>,
            #[arg(id = concat!("duplicate", $suffix), long = concat!("duplicate", $suffix),
                                          value_name = "SHARE",
                                          value_parser = change!("duplicate"),
                                          help = help!($suffix, "duplicate", "\
                      Share of packets sent twice"))]
            duplicate: Option<Change>,
            #[arg(id = concat!("corrupt", $suffix), long = concat!("corrupt", $suffix),
                                          value_name = "SHARE", value_parser = change!("corrupt"),
                                          help = help!($suffix, "corrupt", "\
                      Share of packets with a flipped bit"))]
            corrupt: Option<Change>,
            #[arg(id = concat!("at", $suffix), long = concat!("at", $suffix),
                                          value_name = "EVENT", value_parser = Timeline::from_str,
                                          help = help!($suffix, "at", "\
                      An event, at its time since the first packet; may be \
                      given several times: '20s: delay=300ms over 2s', \
                      '60s: outage 1s', '30s: stall 1050ms drain 12Mbps', \
                      'every 10s: rate=2Mbps'"))]
            at: Vec<Timeline>,
            #[arg(id = concat!("timeline", $suffix), long = concat!("timeline", $suffix),
                                          value_name = "FILE", value_parser = timeline,
                                          help = help!($suffix, "timeline", "\
                      A file of such events, one a line"))]
            timeline: Option<Timeline>,
            #[arg(id = concat!("trace", $suffix), long = concat!("trace", $suffix),
                                          value_name = "FILE", value_parser = trace,
                                          help = help!($suffix, "trace", "\
                      A recording of the capacity: mahimahi's format, or CSV \
                      with the columns time, rate, delay, loss; it is repeated"))]
            trace: Option<Trace>,
        }

        impl $name {
            /// Applies the options that were typed to `profile`.
            pub(crate) fn apply(&self, profile: &mut LinkProfile) {
                let changes = [
                    &self.loss,
                    &self.burst_loss,
                    &self.delay,
                    &self.jitter,
                    &self.rate,
                    &self.queue,
                    &self.codel,
                    &self.mtu,
                    &self.overhead,
                    &self.reorder,
                    &self.duplicate,
                    &self.corrupt,
                ];
                for change in changes.into_iter().flatten() {
                    change.apply(&mut profile.config);
                }
                for timeline in self.timeline.iter().chain(&self.at) {
                    profile.timeline.extend(timeline.events().iter().cloned());
                }
                if let Some(trace) = &self.trace {
                    profile.trace = Some(trace.clone());
                }
            }
        }
    };
}

link_options!(Options, "", "The link, both ways");
link_options!(Up, "-up", "Only from the client to the target");
link_options!(Down, "-down", "Only from the target to the client");

/// The options that hold both ways.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "The link, both ways")]
pub(crate) struct BothWays {
    /// A typical link as the start, which other options change; `list` describes each preset and
    /// its source
    #[arg(long, value_name = "NAME", value_parser = preset())]
    pub(crate) preset: Option<PresetName>,
    /// Round-trip time: half of it is the delay of each way
    #[arg(long, value_name = "TIME", value_parser = value::milliseconds, conflicts_with = "delay")]
    rtt: Option<Duration>,
    /// Let packets overtake others when jitter delays them differently, instead of keeping their
    /// order
    #[arg(long)]
    overtake: bool,
    /// Play traces once instead of repeating them
    #[arg(long)]
    trace_once: bool,
    /// Interpolate between the rows of a CSV trace instead of changing in steps
    #[arg(long)]
    trace_lines: bool,
    #[command(flatten)]
    options: Options,
}

impl BothWays {
    /// The links from the clients to the target and back.
    pub(crate) fn path(&self, up: &Up, down: &Down, seed: u64) -> PathProfile {
        let mut path = match self.preset {
            Some(PresetName::Of(preset)) => preset.path(seed),
            Some(PresetName::List) | None => PathProfile::default(),
        };
        for profile in [&mut path.up, &mut path.down] {
            self.options.apply(profile);
            let config = &mut profile.config;
            config.delay = self.rtt.map_or(config.delay, |rtt| rtt / 2);
            config.keep_order &= !self.overtake;
        }
        up.apply(&mut path.up);
        down.apply(&mut path.down);
        for profile in [&mut path.up, &mut path.down] {
            profile.trace = profile.trace.take().map(|trace| {
                let trace = if self.trace_once { trace.once() } else { trace };
                if self.trace_lines { trace.interpolated() } else { trace }
            });
        }
        path
    }
}

/// The value of `--preset`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PresetName {
    /// The list of presets.
    List,
    /// A preset.
    Of(&'static Preset),
}

fn preset() -> impl TypedValueParser<Value = PresetName> {
    let presets = presets::all().iter();
    let names = presets.map(|preset| PossibleValue::new(preset.name).help(preset.about));
    let list = PossibleValue::new("list").help("Describe each preset");
    PossibleValuesParser::new(names.chain([list])).try_map(|name| match name.as_str() {
        "list" => Ok(PresetName::List),
        name => presets::find(name).map(PresetName::Of),
    })
}

/// The text that `--preset list` prints.
pub(crate) fn list_presets() -> String {
    let entry = |preset: &Preset| {
        format!("{}\n    {}\n    Source: {}\n", preset.name, preset.about, preset.source)
    };
    presets::all().iter().map(entry).collect()
}

fn timeline(path: &str) -> Result<Timeline, String> {
    file(path)?.parse::<Timeline>().map_err(|error| format!("{path}: {error}"))
}

fn trace(path: &str) -> Result<Trace, String> {
    Trace::parse(&file(path)?).map_err(|error| format!("{path}: {error}"))
}

fn file(path: &str) -> Result<String, String> {
    punctual_units::read_text(path).map_err(|error| {
        let why = error.to_string();
        format!("{path}: {}", punctual_units::without_os_error(&why))
    })
}
