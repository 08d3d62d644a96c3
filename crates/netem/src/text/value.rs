//! Reading the values of parameters.

use std::str::FromStr;
use std::time::Duration;

use punctual_units::{
    ParseUnitError, parse_bytes, parse_bytes_in, parse_count, parse_duration, parse_duration_in,
    parse_share,
};

use crate::codel::Discipline;
use crate::config::{Jitter, QueueLimit, Reorder};
use crate::loss::{Loss, PacketList};
use crate::text::{LinkTextError, nearest};

impl FromStr for Loss {
    type Err = LinkTextError;

    fn from_str(text: &str) -> Result<Self, LinkTextError> {
        let (word, rest) = text.split_once(':').unwrap_or((text, ""));
        match word {
            "none" if word == text => Ok(Self::None),
            "all" if word == text => Ok(Self::All),
            "every" => every(text, rest),
            "list" => list(text, rest).map(Self::List),
            _ if word.starts_with(|c: char| c.is_alphabetic()) => {
                let known = ["none", "all", "every", "list"];
                Err(LinkTextError::new(match nearest(word, known) {
                    Some(meant) => format!("`{word}`: did you mean `{meant}`?"),
                    None => format!(
                        "`{text}` must be a share (5%), share and length of bursts (2%:8), \
                         p,r,good,bad, every:100:3, every:10s:50, list:3,7-9, all or none"
                    ),
                }))
            }
            _ if text.contains([':', ',']) => burst_loss(text),
            _ => Ok(Self::Random(share(text)?)),
        }
    }
}

impl FromStr for Jitter {
    type Err = LinkTextError;

    fn from_str(text: &str) -> Result<Self, LinkTextError> {
        let Some((kind, time)) = text.split_once(':') else {
            return match text {
                "none" => Ok(Self::None),
                _ => Ok(match milliseconds(text)? {
                    Duration::ZERO => Self::None,
                    std_dev => Self::Normal { std_dev },
                }),
            };
        };
        match kind {
            "uniform" => Ok(Self::Uniform { spread: milliseconds(time)? }),
            "pareto" => Ok(Self::Pareto { std_dev: milliseconds(time)? }),
            "normal" => Ok(match milliseconds(time)? {
                Duration::ZERO => Self::None,
                std_dev => Self::Normal { std_dev },
            }),
            _ => Err(LinkTextError::new(match nearest(kind, ["uniform", "normal", "pareto"]) {
                Some(meant) => format!("`{kind}`: did you mean `{meant}`?"),
                None => format!("`{kind}` must be uniform, normal or pareto"),
            })),
        }
    }
}

impl FromStr for QueueLimit {
    type Err = LinkTextError;

    fn from_str(text: &str) -> Result<Self, LinkTextError> {
        let unreadable = || {
            LinkTextError::new(format!(
                "`{text}` must be a number of packets (1000), a time (300ms), bytes (64KiB) or \
                 unlimited"
            ))
        };
        let size = |count: u64| usize::try_from(count).map_err(|_| unreadable());
        Ok(if text == "unlimited" {
            Self::Unlimited
        } else if let Ok(packets) = text.parse() {
            Self::Packets(packets)
        } else if let Ok(time) = parse_duration(text) {
            Self::Time(time)
        } else if let Ok(bytes) = parse_bytes(text) {
            Self::Bytes(size(bytes)?)
        } else {
            Self::Packets(size(parse_count(text).map_err(|_| unreadable())?)?)
        })
    }
}

impl FromStr for Reorder {
    type Err = LinkTextError;

    fn from_str(text: &str) -> Result<Self, LinkTextError> {
        if text == "none" {
            return Ok(Self::None);
        }
        let (ahead, rest) = match (text.strip_prefix("ahead:"), text.strip_prefix("late:")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => (false, text),
        };
        let (share, by) = rest.split_once(':').unwrap_or((rest, "10ms"));
        let (share, by) = (self::share(share)?, milliseconds(by)?);
        Ok(if ahead { Self::Ahead { share, by } } else { Self::Late { share, by } })
    }
}

/// Loss in bursts by chance: share and mean length, or the model's four probabilities.
pub(super) fn burst_loss(text: &str) -> Result<Loss, LinkTextError> {
    if let Some((lost, length)) = text.split_once(':') {
        let lost = share(lost)?;
        let length = length.parse::<f64>().ok().filter(|length| *length >= 1.0);
        let length = length.filter(|length| length.is_finite()).ok_or_else(|| {
            LinkTextError::new(format!(
                "`{text}`: the mean length of a burst must be a number from 1 up"
            ))
        })?;
        if lost > length / (length + 1.0) {
            let problem = format!("`{text}`: bursts so short cannot make such a share");
            return Err(LinkTextError::new(problem));
        }
        return Ok(Loss::bursts(lost, length));
    }
    let shares: Vec<f64> = text.split(',').map(share).collect::<Result<_, _>>()?;
    match shares[..] {
        [p, r, good_loss, bad_loss] => Ok(Loss::GilbertElliott { p, r, good_loss, bad_loss }),
        _ => Err(LinkTextError::new(format!(
            "`{text}`: write share and length (2%:8) or p,r,good,bad"
        ))),
    }
}

/// The text after `every:`: a period in packets or in time, and the number of lost packets.
fn every(text: &str, rest: &str) -> Result<Loss, LinkTextError> {
    let parts: Vec<_> = rest.split(':').collect();
    let problem = |what: String| LinkTextError::new(format!("`{text}`: {what}"));
    let count = |part: &str| parse_count(part).map_err(|error| problem(error.to_string()));
    let (period, burst, first) = match parts[..] {
        [period] => (period, 1, 0),
        [period, burst] => (period, count(burst)?, 0),
        [period, burst, first] => (period, count(burst)?, count(first)?),
        _ => return Err(problem("write period, packets in a row and first packet".to_owned())),
    };
    if let Ok(every @ 1..) = parse_count(period) {
        return if burst <= every {
            Ok(Loss::Periodic { every, burst, first })
        } else {
            Err(problem(format!("of {every} packets, {burst} cannot be lost")))
        };
    }
    match parse_duration(period) {
        Ok(every) if !every.is_zero() && parts.len() <= 2 => Ok(Loss::Timed { every, burst }),
        Ok(every) if !every.is_zero() => {
            Err(problem("the first packet can be told only where packets are counted".to_owned()))
        }
        _ => Err(problem(format!("`{period}` must be a number of packets (100) or a time (10s)"))),
    }
}

/// The text after `list:`.
fn list(text: &str, rest: &str) -> Result<PacketList, LinkTextError> {
    let number = |part: &str| {
        part.trim().parse::<u64>().map_err(|_| {
            LinkTextError::new(format!(
                "`{text}`: `{part}` must be a packet's number, counted from 0, or a range like 7-9"
            ))
        })
    };
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            let problem = format!("`{text}`: {part} goes backwards; write {to}-{from}");
            return Err(LinkTextError::new(problem));
        }
        Ok((from, to))
    };
    Ok(PacketList::new(rest.split(',').map(range).collect::<Result<Vec<_>, _>>()?))
}

pub(super) fn codel(text: &str) -> Result<Discipline, LinkTextError> {
    if let Ok(on) = switch(text) {
        return Ok(if on { Discipline::CODEL } else { Discipline::TailDrop });
    }
    let (target, interval) = text.split_once(':').ok_or_else(|| {
        LinkTextError::new(format!("`{text}` must be target and interval (5ms:100ms), on or off"))
    })?;
    Ok(Discipline::CoDel { target: milliseconds(target)?, interval: milliseconds(interval)? })
}

pub(super) fn mtu(text: &str) -> Result<Option<usize>, LinkTextError> {
    if matches!(text, "none" | "off" | "unlimited") {
        return Ok(None);
    }
    Ok(usize::try_from(parse_bytes_in(text, 1)?).ok())
}

pub(super) fn overhead(text: &str) -> Result<i32, LinkTextError> {
    let bytes = text.parse::<i32>().ok().filter(|bytes| bytes.abs() <= MOST_OVERHEAD);
    bytes.ok_or_else(|| {
        LinkTextError::new(format!(
            "`{text}` must be a whole number of bytes, -{MOST_OVERHEAD} to {MOST_OVERHEAD}"
        ))
    })
}

/// Whether something is on.
pub(super) fn switch(text: &str) -> Result<bool, LinkTextError> {
    match text {
        "on" | "yes" | "true" | "" => Ok(true),
        "off" | "no" | "false" => Ok(false),
        _ => Err(LinkTextError::new(format!("`{text}` must be on or off"))),
    }
}

/// A duration whose bare numbers are milliseconds.
pub(super) fn milliseconds(text: &str) -> Result<Duration, ParseUnitError> {
    parse_duration_in(text, Duration::from_millis(1))
}

pub(super) fn share(text: &str) -> Result<f64, ParseUnitError> {
    parse_share(text)
}

/// More than any framing.
const MOST_OVERHEAD: i32 = 1_000;
