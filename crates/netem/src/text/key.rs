//! The names of a link's parameters.

use punctual_units::{Bitrate, parse_bitrate_in};

use crate::change::Change;
use crate::profile::{LinkProfile, PathProfile};
use crate::text::value::{self, milliseconds, share};
use crate::text::{LinkTextError, nearest};
use crate::timeline::Timeline;

/// A parameter of a link as people name it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Key {
    /// The name, which is that of the option of `punctual emulate` without the dashes.
    pub name: &'static str,
    /// How its value is written.
    pub forms: &'static str,
}

/// The parameters that [`Change::parse`] knows.
pub const KEYS: &[Key] = &[
    Key { name: "loss", forms: "5%, 2%:8, p,r,good,bad, every:100:3, every:10s:50, list:3,7-9" },
    Key { name: "burst-loss", forms: "share and mean length 2%:8, or p,r,good,bad" },
    Key { name: "delay", forms: "a time: 20ms; a bare number is in milliseconds" },
    Key { name: "jitter", forms: "4ms (normal), uniform:4ms, pareto:4ms, none" },
    Key { name: "overtake", forms: "on or off" },
    Key { name: "rate", forms: "20Mbps or unlimited; a bare number is in bits a second" },
    Key { name: "queue", forms: "packets 1000, a time 300ms, bytes 64KiB, or unlimited" },
    Key { name: "codel", forms: "target and interval 5ms:100ms, on (the same) or off" },
    Key { name: "mtu", forms: "bytes: 1500, or none" },
    Key { name: "overhead", forms: "bytes a packet: 38 or -28" },
    Key { name: "reorder", forms: "share and time 1%:10ms, ahead:1%:10ms, or none" },
    Key { name: "duplicate", forms: "a share: 1%" },
    Key { name: "corrupt", forms: "a share: 1%" },
];

impl Change {
    /// Reads a parameter's new value.
    ///
    /// | key | value |
    /// |---|---|
    /// | `loss` | `5%`, `2%:8`, `p,r,good,bad`, `every:100:3:7`, `every:10s:50`, `list:3,7-9`... |
    /// | `burst-loss` | `2%:8`, `0.5%,10%,0.1%,40%`: of these the ones with bursts by chance |
    /// | `delay` | `20ms`; bare numbers are milliseconds |
    /// | `jitter` | `4ms`, `uniform:4ms`, `pareto:4ms`, `none` |
    /// | `overtake` | `on`, `off`: the contrary of [`keep_order`](crate::LinkConfig::keep_order) |
    /// | `rate` | `20Mbps`, `unlimited`; bare numbers are bits a second |
    /// | `queue` | `1000`, `300ms`, `64KiB`, `unlimited` |
    /// | `codel` | `5ms:100ms`, `on`, `off` |
    /// | `mtu` | `1500`, `none`: bytes |
    /// | `overhead` | `38`, `-28`: bytes a packet |
    /// | `reorder` | `1%` (by 10 ms), `1%:10ms`, `ahead:1%:10ms`, `none` |
    /// | `duplicate`, `corrupt` | `1%` |
    ///
    /// More is said with [`Loss`](crate::Loss), [`Jitter`](crate::Jitter),
    /// [`QueueLimit`](crate::QueueLimit), [`Discipline`](crate::Discipline) and
    /// [`Reorder`](crate::Reorder).
    pub fn parse(key: &str, value: &str) -> Result<Self, LinkTextError> {
        let value = value.trim();
        Ok(match key {
            "loss" => Self::Loss(value.parse()?),
            "burst-loss" => Self::Loss(value::burst_loss(value)?),
            "delay" => Self::Delay(milliseconds(value)?),
            "jitter" => Self::Jitter(value.parse()?),
            "overtake" => Self::KeepOrder(!value::switch(value)?),
            "rate" if matches!(value, "unlimited" | "none") => Self::Rate(None),
            "rate" => Self::Rate(Some(parse_bitrate_in(value, Bitrate::from_bits_per_sec(1))?)),
            "queue" => Self::Queue(value.parse()?),
            "codel" => Self::Discipline(value::codel(value)?),
            "mtu" => Self::Mtu(value::mtu(value)?),
            "overhead" => Self::Overhead(value::overhead(value)?),
            "reorder" => Self::Reorder(value.parse()?),
            "duplicate" => Self::Duplicate(share(value)?),
            "corrupt" => Self::Corrupt(share(value)?),
            _ => return Err(unknown(key, KEYS.iter().map(|key| key.name))),
        })
    }
}

impl LinkProfile {
    /// Gives a parameter a value: each key of [`Change::parse`], and `at` for
    /// [events](crate::Event) that are added to the timeline.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LinkTextError> {
        match key {
            "at" => {
                let events: Timeline = value.parse()?;
                self.timeline.extend(events.events().iter().cloned());
            }
            "rtt" => {
                return Err(LinkTextError::new("`rtt` is of both ways; one way has a `delay`"));
            }
            _ => {
                let names = KEYS.iter().map(|key| key.name).chain(["at"]);
                if names.clone().all(|name| name != key) {
                    return Err(unknown(key, names));
                }
                Change::parse(key, value)?.apply(&mut self.config);
            }
        }
        Ok(())
    }
}

impl PathProfile {
    /// Gives a parameter a value both ways: each key of [`LinkProfile::set`], and `rtt`, half of
    /// which becomes the delay of each way; with `-up` or `-down` behind it, one way only.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LinkTextError> {
        if key == "rtt" {
            let delay = milliseconds(value.trim())? / 2;
            (self.up.config.delay, self.down.config.delay) = (delay, delay);
        } else if let Some(key) = key.strip_suffix("-up") {
            self.up.set(key, value)?;
        } else if let Some(key) = key.strip_suffix("-down") {
            self.down.set(key, value)?;
        } else if key.is_empty() || is_key(key) {
            self.up.set(key, value)?;
            self.down.set(key, value)?;
        } else {
            return Err(unknown(key, KEYS.iter().map(|key| key.name).chain(["at", "rtt"])));
        }
        Ok(())
    }
}

fn is_key(key: &str) -> bool {
    key == "at" || KEYS.iter().any(|known| known.name == key)
}

/// The error for a name that is not among those known.
pub(super) fn unknown<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> LinkTextError {
    let meant = match nearest(name, known.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are {}", known.collect::<Vec<_>>().join(", ")),
    };
    LinkTextError::new(format!("`{name}` is no parameter of a link; {meant}"))
}
