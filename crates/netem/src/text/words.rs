//! A link in words.

use std::time::Duration;

use punctual_units::{Bitrate, DisplayBytes, DisplayDuration};

use crate::codel::Discipline;
use crate::config::{Jitter, LinkConfig, QueueLimit, Reorder};
use crate::loss::Loss;
use crate::profile::LinkProfile;
use crate::trace::Trace;

/// A link in a line for people.
pub(crate) fn in_words(link: &LinkProfile) -> String {
    let config = &link.config;
    let mut parts = match config.delay {
        Duration::ZERO => vec!["no delay".to_owned()],
        delay => vec![format!("delay {}", DisplayDuration(delay))],
    };
    parts.extend(jitter(config.jitter));
    parts.extend(loss(&config.loss));
    let by_trace = link.trace.as_ref().and_then(Trace::mean_rate);
    parts.extend(rate(config, by_trace));
    if let Some(mtu) = config.mtu {
        parts.push(format!("MTU {mtu} bytes"));
    }
    if let Reorder::Ahead { share, by } | Reorder::Late { share, by } = config.reorder {
        parts.push(format!("{} reordered by {}", percent(share), DisplayDuration(by)));
    }
    if config.duplicate > 0.0 {
        parts.push(format!("{} duplicated", percent(config.duplicate)));
    }
    if config.corrupt > 0.0 {
        parts.push(format!("{} corrupted", percent(config.corrupt)));
    }
    if let Some(trace) = &link.trace {
        let times = if trace.is_once() { "once" } else { "again and again" };
        parts.push(format!("a trace of {} {times}", DisplayDuration(trace.period())));
    }
    match link.timeline.events().len() {
        0 => {}
        1 => parts.push("1 event".to_owned()),
        count => parts.push(format!("{count} events")),
    }
    parts.join(", ")
}

fn jitter(jitter: Jitter) -> Option<String> {
    match jitter {
        Jitter::None => None,
        Jitter::Uniform { spread } => Some(format!("jitter up to {}", DisplayDuration(spread))),
        Jitter::Normal { std_dev } => Some(format!("jitter {}", DisplayDuration(std_dev))),
        Jitter::Pareto { std_dev } => {
            Some(format!("jitter {} with a long tail", DisplayDuration(std_dev)))
        }
    }
}

fn loss(loss: &Loss) -> Option<String> {
    Some(match loss {
        Loss::None => return None,
        Loss::GilbertElliott { .. } => format!("loss {} in bursts", percent(loss.mean())),
        Loss::Periodic { every, burst, .. } => format!("{burst} of each {every} packets lost"),
        Loss::Timed { every, burst } => {
            format!("{burst} packets lost every {}", DisplayDuration(*every))
        }
        Loss::List(_) => "listed packets lost".to_owned(),
        Loss::All | Loss::Random(_) => format!("loss {}", percent(loss.mean())),
    })
}

fn rate(config: &LinkConfig, by_trace: Option<Bitrate>) -> Option<String> {
    let rate = match (by_trace, config.rate) {
        (Some(rate), _) => format!("rate {rate:#} on average"),
        (None, Some(rate)) => format!("rate {rate}"),
        (None, None) => return None,
    };
    let queue = match config.queue {
        QueueLimit::Bytes(bytes) => DisplayBytes(bytes as u64).to_string(),
        QueueLimit::Packets(packets) => format!("{packets} packets"),
        QueueLimit::Time(time) => DisplayDuration(time).to_string(),
        QueueLimit::Unlimited => "unlimited".to_owned(),
    };
    let codel = if config.discipline == Discipline::TailDrop { "" } else { " with CoDel" };
    Some(format!("{rate}, queue {queue}{codel}"))
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1e6).round() / 1e4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Trace};

    #[test]
    fn a_link_is_described_by_what_it_does() {
        let config = LinkConfig::default()
            .with_delay(Duration::from_millis(25))
            .with_rate(Some(Bitrate::from_mbps(20)))
            .with_loss(Loss::bursts(0.02, 8.0))
            .unwrap();
        let words = "delay 25 ms, loss 2 % in bursts, rate 20 Mb/s, queue 1000 packets";
        assert_eq!(LinkProfile::from(config).in_words(), words);
        assert_eq!(LinkProfile::default().in_words(), "no delay");
        let event: Event = "1s: outage 1s".parse().unwrap();
        let profile = LinkProfile::from(
            LinkConfig::default().with_mtu(Some(1_400)).with_discipline(Discipline::CODEL),
        );
        let profile = profile
            .with_timeline([event].into_iter().collect())
            .with_trace(Some(Trace::from_millis(vec![1, 2]).unwrap().once()));
        assert_eq!(
            profile.in_words(),
            "no delay, rate 12 Mb/s on average, queue 1000 packets with CoDel, MTU 1400 bytes, \
             a trace of 2 ms once, 1 event"
        );
    }
}
