//! The names of a link's parameters.

use punctual_units::parse_bitrate_in_bits;

use crate::change::Change;
use crate::profile::{LinkProfile, PathProfile};
use crate::text::value::{self, milliseconds, share};
use crate::text::{LinkTextError, nearest};
use crate::timeline::Timeline;

/// A parameter of a link as people name it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LinkKey {
    /// The name, which is that of the option of `punctual emulate` without the dashes.
    pub name: &'static str,
    /// How its value is written.
    pub forms: &'static str,
}

/// The parameters that [`Change::parse`] knows.
pub const KEYS: &[LinkKey] = &[
    LinkKey {
        name: "loss",
        forms: "5%, 2%:8, p,r,good,bad, every:100:3, every:10s:50, list:3,7-9",
    },
    LinkKey { name: "burst-loss", forms: "share and mean length 2%:8, or p,r,good,bad" },
    LinkKey { name: "delay", forms: "a time: 20ms; a bare number is in milliseconds" },
    LinkKey { name: "jitter", forms: "4ms (normal), uniform:4ms, pareto:4ms, none" },
    LinkKey { name: "overtake", forms: "on or off" },
    LinkKey { name: "rate", forms: "20Mbps or unlimited; a bare number is in bits a second" },
    LinkKey { name: "queue", forms: "packets 1000, a time 300ms, bytes 64KiB, or unlimited" },
    LinkKey { name: "codel", forms: "target and interval 5ms:100ms, on (the same) or off" },
    LinkKey { name: "mtu", forms: "bytes: 1500, or none" },
    LinkKey { name: "overhead", forms: "bytes a packet: 38 or -28" },
    LinkKey { name: "reorder", forms: "share and time 1%:10ms, ahead:1%:10ms, or none" },
    LinkKey { name: "duplicate", forms: "a share: 1%" },
    LinkKey { name: "corrupt", forms: "a share: 1%" },
];

/// The change of a parameter to a new value, in the forms of [`Change::parse`].
pub(crate) fn change(key: &str, value: &str) -> Result<Change, LinkTextError> {
    let value = value.trim();
    Ok(match key {
        "loss" => Change::Loss(value.parse()?),
        "burst-loss" => Change::Loss(value::burst_loss(value)?),
        "delay" => Change::Delay(milliseconds(value)?),
        "jitter" => Change::Jitter(value.parse()?),
        "overtake" => Change::KeepOrder(!value::switch(value)?),
        "rate" if matches!(value, "unlimited" | "none") => Change::Rate(None),
        "rate" => Change::Rate(Some(parse_bitrate_in_bits(value)?)),
        "queue" => Change::Queue(value.parse()?),
        "codel" => Change::Discipline(value::codel(value)?),
        "mtu" => Change::Mtu(value::mtu(value)?),
        "overhead" => Change::Overhead(value::overhead(value)?),
        "reorder" => Change::Reorder(value.parse()?),
        "duplicate" => Change::Duplicate(share(value)?),
        "corrupt" => Change::Corrupt(share(value)?),
        _ => return Err(unknown(key, KEYS.iter().map(|key| key.name))),
    })
}

/// Gives a parameter of a link a value, as [`LinkProfile::set`] does.
pub(crate) fn set_one_way(
    link: &mut LinkProfile,
    key: &str,
    value: &str,
) -> Result<(), LinkTextError> {
    match key {
        "at" => {
            let events: Timeline = value.parse()?;
            link.timeline.extend(events.events().iter().cloned());
        }
        "rtt" => {
            return Err(LinkTextError::new("`rtt` is of both ways; one way has a `delay`"));
        }
        _ => {
            let names = KEYS.iter().map(|key| key.name).chain(["at"]);
            if names.clone().all(|name| name != key) {
                return Err(unknown(key, names));
            }
            change(key, value)?.apply(&mut link.config);
        }
    }
    Ok(())
}

/// Gives a parameter of both ways a value, as [`PathProfile::set`] does.
pub(crate) fn set_both_ways(
    path: &mut PathProfile,
    key: &str,
    value: &str,
) -> Result<(), LinkTextError> {
    if key == "rtt" {
        let delay = milliseconds(value.trim())? / 2;
        (path.up.config.delay, path.down.config.delay) = (delay, delay);
    } else if let Some(key) = key.strip_suffix("-up") {
        path.up.set(key, value)?;
    } else if let Some(key) = key.strip_suffix("-down") {
        path.down.set(key, value)?;
    } else if key.is_empty() || is_key(key) {
        path.up.set(key, value)?;
        path.down.set(key, value)?;
    } else {
        return Err(unknown(key, KEYS.iter().map(|key| key.name).chain(["at", "rtt"])));
    }
    Ok(())
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
