//! The options of an emulated link: for both directions, for one, for the other.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::ValueEnum;
use punctual_netem::{Jitter, LinkConfig, LinkConfigError, Loss, QueueLimit, Reorder, presets};
use punctual_units::{Bitrate, parse_bytes, parse_count, parse_duration, parse_share};
use thiserror::Error;

use crate::args::value;

/// Options of a link cannot be had together, or a probability is none.
#[derive(Debug, Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Probability(#[from] LinkConfigError),
}

/// The help of an option: in full where it holds both ways, else by reference to that.
macro_rules! help {
    ("", $name:literal, $text:literal) => {
        $text
    };
    ($suffix:literal, $name:literal, $text:literal) => {
        concat!("As --", $name, ", this way only")
    };
}

macro_rules! link_options {
    ($name:ident, $suffix:tt, $heading:literal) => {
        /// The options of a link, as typed.
        #[derive(Clone, Debug, clap::Args)]
        #[command(next_help_heading = $heading)]
        pub(crate) struct $name {
            #[arg(id = concat!("loss", $suffix), long = concat!("loss", $suffix),
                                          value_name = "SHARE", value_parser = value::share,
                                          conflicts_with = concat!("burst-loss", $suffix),
                                          help = help!($suffix, "loss", "\
                      Share of packets lost, each by chance: 5%"))]
            loss: Option<f64>,
            #[arg(id = concat!("burst-loss", $suffix), long = concat!("burst-loss", $suffix),
                                          value_name = "SHARE:LENGTH",
                                          help = help!($suffix, "burst-loss", "\
                      Loss in bursts (Gilbert–Elliott): share lost and mean \
                      length of a burst (2%:8), or the model's p,r,good,bad \
                      (0.5%,10%,0.1%,40%)"))]
            burst_loss: Option<BurstLoss>,
            #[arg(id = concat!("delay", $suffix), long = concat!("delay", $suffix),
                                          value_name = "TIME", value_parser = value::milliseconds,
                                          help = help!($suffix, "delay", "\
                      Delay one way"))]
            delay: Option<Duration>,
            #[arg(id = concat!("jitter", $suffix), long = concat!("jitter", $suffix),
                                          value_name = "TIME",
                                          help = help!($suffix, "jitter", "\
                      Variation of the delay: standard deviation of a normal \
                      distribution (4ms), or uniform:4ms for up to 4 ms up and \
                      down"))]
            jitter: Option<JitterValue>,
            #[arg(id = concat!("rate", $suffix), long = concat!("rate", $suffix),
                                          value_name = "RATE", value_parser = value::rate,
                                          help = help!($suffix, "rate", "\
                      Bit rate; IP and UDP headers count"))]
            rate: Option<Bitrate>,
            #[arg(id = concat!("queue", $suffix), long = concat!("queue", $suffix),
                                          value_name = "LIMIT",
                                          help = help!($suffix, "queue", "\
                      What may wait for transmission: packets (1000), time \
                      (300ms), bytes (64KiB) or unlimited"))]
            queue: Option<Queue>,
            #[arg(id = concat!("reorder", $suffix), long = concat!("reorder", $suffix),
                                          value_name = "SHARE[:TIME]",
                                          help = help!($suffix, "reorder", "\
                      Share of packets held back, and how long: 1%:10ms"))]
            reorder: Option<Late>,
            #[arg(id = concat!("duplicate", $suffix), long = concat!("duplicate", $suffix),
                                          value_name = "SHARE", value_parser = value::share,
                                          help = help!($suffix, "duplicate", "\
                      Share of packets sent twice"))]
            duplicate: Option<f64>,
            #[arg(id = concat!("corrupt", $suffix), long = concat!("corrupt", $suffix),
                                          value_name = "SHARE", value_parser = value::share,
                                          help = help!($suffix, "corrupt", "\
                      Share of packets with a flipped bit"))]
            corrupt: Option<f64>,
        }

        impl $name {
            /// `config` with what was typed changed in it.
            pub(crate) fn apply(&self, mut config: LinkConfig) -> Result<LinkConfig, LinkError> {
                if let Some(share) = self.loss {
                    config = config.with_loss(Loss::Random(share))?;
                }
                if let Some(BurstLoss(loss)) = &self.burst_loss {
                    config = config.with_loss(loss.clone())?;
                }
                if let Some(Late { share, by }) = self.reorder {
                    config = config.with_reorder(Reorder::Late { share, by })?;
                }
                if let Some(share) = self.duplicate {
                    config = config.with_duplicate(share)?;
                }
                if let Some(share) = self.corrupt {
                    config = config.with_corrupt(share)?;
                }
                config.delay = self.delay.unwrap_or(config.delay);
                config.jitter = self.jitter.map_or(config.jitter, |jitter| jitter.0);
                config.queue = self.queue.map_or(config.queue, |queue| queue.0);
                config.rate = self.rate.or(config.rate);
                Ok(config)
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
    /// A link that people meet, to start from
    #[arg(long, value_name = "NAME")]
    preset: Option<Preset>,
    /// Round-trip time: half of it is the delay of each way
    #[arg(long, value_name = "TIME", value_parser = value::milliseconds, conflicts_with = "delay")]
    rtt: Option<Duration>,
    /// Let packets overtake others when jitter would have it so, instead of keeping their order
    #[arg(long)]
    overtake: bool,
    #[command(flatten)]
    options: Options,
}

impl BothWays {
    /// The link of each direction before what is typed for one of them.
    pub(crate) fn config(&self) -> Result<LinkConfig, LinkError> {
        let preset = match self.preset {
            Some(Preset::Mobile) => presets::mobile(),
            None => LinkConfig::default(),
        };
        let mut config = self.options.apply(preset)?;
        config.delay = self.rtt.map_or(config.delay, |rtt| rtt / 2);
        config.keep_order &= !self.overtake;
        Ok(config)
    }
}

/// A link that people meet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Preset {
    /// A 4G modem: 20 Mb/s, 30 ms each way, jitter, 2 % of loss in bursts
    Mobile,
}

/// Loss in bursts.
#[derive(Clone, Debug, PartialEq)]
struct BurstLoss(Loss);

impl FromStr for BurstLoss {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = |text: &str| parse_share(text).map_err(|error| error.to_string());
        if let Some((lost, length)) = text.split_once(':') {
            let lost = share(lost)?;
            let length = length.parse::<f64>().ok().filter(|length| *length >= 1.0);
            let length = length.ok_or_else(|| {
                format!("`{text}`: the mean length of a burst must be a number from 1 up")
            })?;
            if lost > length / (length + 1.0) {
                return Err(format!("`{text}`: bursts so short cannot make such a share"));
            }
            return Ok(Self(Loss::bursts(lost, length)));
        }
        let shares: Vec<f64> = text.split(',').map(share).collect::<Result<_, _>>()?;
        match shares[..] {
            [p, r, good_loss, bad_loss] => {
                Ok(Self(Loss::GilbertElliott { p, r, good_loss, bad_loss }))
            }
            _ => Err(format!("`{text}`: write share and length (2%:8) or p,r,good,bad")),
        }
    }
}

/// Variation of the delay.
#[derive(Clone, Copy, Debug, PartialEq)]
struct JitterValue(Jitter);

impl FromStr for JitterValue {
    type Err = punctual_units::ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(match text.strip_prefix("uniform:") {
            Some(spread) => Jitter::Uniform { spread: value::milliseconds(spread)? },
            None => match value::milliseconds(text.strip_prefix("normal:").unwrap_or(text))? {
                Duration::ZERO => Jitter::None,
                std_dev => Jitter::Normal { std_dev },
            },
        }))
    }
}

/// What may wait for transmission.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Queue(QueueLimit);

impl FromStr for Queue {
    type Err = Unreadable;

    fn from_str(text: &str) -> Result<Self, Unreadable> {
        let unreadable = || Unreadable {
            text: text.to_owned(),
            forms: "a number of packets (1000), a time (300ms), bytes (64KiB) or unlimited",
        };
        let size = |count: u64| usize::try_from(count).map_err(|_| unreadable());
        Ok(Self(if text == "unlimited" {
            QueueLimit::Unlimited
        } else if let Ok(packets) = text.parse() {
            QueueLimit::Packets(packets)
        } else if let Ok(time) = parse_duration(text) {
            QueueLimit::Time(time)
        } else if let Ok(bytes) = parse_bytes(text) {
            QueueLimit::Bytes(size(bytes)?)
        } else {
            QueueLimit::Packets(size(parse_count(text).map_err(|_| unreadable())?)?)
        }))
    }
}

/// Packets that are held back.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Late {
    share: f64,
    by: Duration,
}

impl FromStr for Late {
    type Err = punctual_units::ParseUnitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (share, by) = text.split_once(':').unwrap_or((text, "10ms"));
        Ok(Self { share: parse_share(share)?, by: value::milliseconds(by)? })
    }
}

/// A value in none of its forms.
#[derive(Debug)]
struct Unreadable {
    text: String,
    forms: &'static str,
}

impl std::error::Error for Unreadable {}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` must be {}", self.text, self.forms)
    }
}
