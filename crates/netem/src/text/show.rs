//! Printing values so that they can be read again.

use std::fmt;
use std::time::Duration;

use punctual_units::{Bitrate, DisplayBytes, DisplayDuration, parse_share};

use crate::change::Change;
use crate::codel::Discipline;
use crate::config::{Jitter, QueueLimit, Reorder};
use crate::loss::Loss;

/// A duration without a space in it: `20ms`.
pub(super) struct Time(pub(super) Duration);

/// A rate without a space in it: `20Mb/s`.
pub(super) struct Rate(pub(super) Bitrate);

/// A share as a percentage if that is short, otherwise as a fraction: it reads as the same number.
struct Percentage(f64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&DisplayDuration(self.0).to_string().replace(' ', ""))
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_string().replace(' ', ""))
    }
}

impl fmt::Display for Percentage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = format!("{}%", (self.0 * 1e10).round() / 1e8);
        if parse_share(&percent) == Ok(self.0) || self.0 >= 1.0 {
            f.write_str(&percent)
        } else {
            write!(f, "{}", self.0)
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => f.write_str("none"),
            Self::All => f.write_str("all"),
            Self::Random(share) => Percentage(share).fmt(f),
            Self::GilbertElliott { p, r, good_loss, bad_loss } => {
                write!(
                    f,
                    "{},{},{},{}",
                    Percentage(p),
                    Percentage(r),
                    Percentage(good_loss),
                    Percentage(bad_loss)
                )
            }
            Self::Periodic { every, burst, first: 0 } => write!(f, "every:{every}:{burst}"),
            Self::Periodic { every, burst, first } => write!(f, "every:{every}:{burst}:{first}"),
            Self::Timed { every, burst } => write!(f, "every:{}:{burst}", Time(every)),
            Self::List(ref list) => {
                f.write_str("list:")?;
                for (place, &(from, to)) in list.ranges().iter().enumerate() {
                    let comma = if place > 0 { "," } else { "" };
                    if from == to {
                        write!(f, "{comma}{from}")?;
                    } else {
                        write!(f, "{comma}{from}-{to}")?;
                    }
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => f.write_str("none"),
            Self::Uniform { spread } => write!(f, "uniform:{}", Time(spread)),
            Self::Normal { std_dev } => Time(std_dev).fmt(f),
            Self::Pareto { std_dev } => write!(f, "pareto:{}", Time(std_dev)),
        }
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Bytes(bytes) => {
                f.write_str(&DisplayBytes(bytes as u64).to_string().replace(' ', ""))
            }
            Self::Packets(packets) => packets.fmt(f),
            Self::Time(time) => Time(time).fmt(f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

impl fmt::Display for Reorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::None => f.write_str("none"),
            Self::Ahead { share, by } => write!(f, "ahead:{}:{}", Percentage(share), Time(by)),
            Self::Late { share, by } => write!(f, "{}:{}", Percentage(share), Time(by)),
        }
    }
}

impl fmt::Display for Change {
    /// Prints `key=value`, as timelines have it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(None) => f.write_str("rate=unlimited"),
            Self::Rate(Some(rate)) => write!(f, "rate={}", Rate(*rate)),
            Self::Queue(queue) => write!(f, "queue={queue}"),
            Self::Discipline(Discipline::TailDrop) => f.write_str("codel=off"),
            Self::Discipline(Discipline::CoDel { target, interval }) => {
                write!(f, "codel={}:{}", Time(*target), Time(*interval))
            }
            Self::Mtu(None) => f.write_str("mtu=none"),
            Self::Mtu(Some(mtu)) => write!(f, "mtu={mtu}"),
            Self::Overhead(bytes) => write!(f, "overhead={bytes}"),
            Self::Delay(delay) => write!(f, "delay={}", Time(*delay)),
            Self::Jitter(jitter) => write!(f, "jitter={jitter}"),
            Self::KeepOrder(keep) => {
                f.write_str(if *keep { "overtake=off" } else { "overtake=on" })
            }
            Self::Loss(loss) => write!(f, "loss={loss}"),
            Self::Reorder(reorder) => write!(f, "reorder={reorder}"),
            Self::Duplicate(share) => write!(f, "duplicate={}", Percentage(*share)),
            Self::Corrupt(share) => write!(f, "corrupt={}", Percentage(*share)),
        }
    }
}

/// Prints a share of packets.
pub(super) fn share(share: f64) -> impl fmt::Display {
    Percentage(share)
}
