//! The link second by second, and a simulation of a stream over it.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::measurement::Congestion;
use crate::step::{Step, float, median};

/// A second of a step, or less if steps are short.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Second {
    /// Rate of the payloads that were sent.
    pub(crate) rate: Bitrate,
    /// Its duration.
    pub(crate) time: Duration,
    /// Rate of the payloads that arrived.
    pub(crate) delivered: Bitrate,
    /// Median of the one-way delays plus a constant, or of the round trips; µs.
    pub(crate) delay: Option<i64>,
    /// The largest of these delays, µs.
    pub(crate) worst: Option<i64>,
    /// The sign of congestion, if there was one.
    pub(crate) trouble: Option<Congestion>,
    /// Whether it is the first of its step: queues were empty.
    pub(crate) first: bool,
}

/// The seconds of a whole probe.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProbeHistory {
    seconds: Vec<Second>,
    /// The usual delay, µs.
    usual: i64,
}

/// The result of a simulated stream.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Replay {
    /// Seconds in which at least as much was sent as the stream has.
    pub(crate) seconds: f64,
    /// The part of the stream that would have come too late, in seconds.
    pub(crate) late: f64,
    /// Number of separate times at which that would have happened.
    pub(crate) times: u64,
}

impl ProbeHistory {
    pub(crate) fn of<'a>(all: impl Iterator<Item = &'a [Second]>, at_ease: &[&Step]) -> Self {
        let delays: Vec<i64> = at_ease.iter().filter_map(|step| step.delay()).collect();
        Self {
            seconds: all.flatten().copied().collect(),
            usual: median(&delays).unwrap_or_default(),
        }
    }

    /// Simulates a stream of this rate and latency in the seconds in which at least as much was
    /// sent: where the link let through less than the stream, a queue grows, and packets that wait
    /// for longer than the latency are late.
    ///
    /// The delay is no longer than the one that was seen with the higher rate.
    pub(crate) fn replay(&self, rate: Bitrate, latency: Duration) -> Replay {
        let mut replay = Replay::default();
        let wanted = float(rate.as_bits_per_sec());
        let latency = latency.as_secs_f64();
        // Seconds of the stream in the queue, and how long its first packet has waited.
        let (mut waiting, mut delay, mut was_late) = (0.0_f64, 0.0_f64, false);
        for second in &self.seconds {
            if second.first {
                (waiting, delay, was_late) = (0.0, 0.0, false);
            }
            let sent = float(second.rate.as_bits_per_sec());
            if sent < wanted * 0.99 {
                continue;
            }
            let delivered = float(second.delivered.as_bits_per_sec());
            let room = if second.trouble.is_some() { delivered } else { delivered.max(sent) };
            let time = second.time.as_secs_f64();
            waiting = (waiting + (1.0 - room / wanted) * time).max(0.0);
            // If nothing came, the queue has waited for that second more.
            let seen = second.worst.map_or(delay + time, |worst| {
                Duration::from_micros(u64::try_from(worst - self.usual).unwrap_or(0)).as_secs_f64()
            });
            let after = (waiting * wanted / room.max(1.0)).min(seen);
            let late = above(delay.min(after), delay.max(after), latency) * time;
            delay = after;
            replay.seconds += time;
            replay.late += late;
            replay.times += u64::from(late > 0.0 && !was_late);
            was_late = late > 0.0;
        }
        replay
    }
}

/// Whether the link changes from second to second: its delay varies, or its capacity is too small
/// at times.
pub(crate) fn changes(at_ease: &[&Step]) -> bool {
    let varies = |step: &&Step| {
        let mut delays: Vec<i64> = step.history().iter().filter_map(|s| s.delay).collect();
        delays.sort_unstable();
        let tenth = delays.len() / 10;
        match (delays.get(tenth), delays.iter().nth_back(tenth)) {
            (Some(low), Some(high)) => high - low > VARIES_US,
            _ => false,
        }
    };
    // Less may arrive in a sample because a program was not let run: then no queue shows.
    let waited = |second: &Second| match (second.delay, second.worst) {
        (Some(usual), Some(worst)) => worst - usual > QUEUE_US,
        _ => second.time >= LONG_SILENCE,
    };
    let troubled = |second: &Second| match second.trouble {
        Some(Congestion::Queue { .. } | Congestion::Backlog { .. }) => true,
        Some(Congestion::Throughput { .. }) => waited(second),
        Some(Congestion::Loss { .. }) | None => false,
    };
    at_ease.iter().any(varies) || at_ease.iter().flat_map(|step| step.history()).any(troubled)
}

/// The part of the interval from `low` to `high` that lies above `limit`, 0 to 1.
fn above(low: f64, high: f64, limit: f64) -> f64 {
    if high <= limit {
        0.0
    } else if low >= limit {
        1.0
    } else {
        (high - limit) / (high - low)
    }
}

/// On a link that does not change, the median delays of its seconds differ by less.
const VARIES_US: i64 = 8_000;
/// A delay beyond the median by this much shows a queue.
const QUEUE_US: i64 = 60_000;
/// Silence for this long is not an accident of this machine.
const LONG_SILENCE: Duration = Duration::from_millis(500);

#[cfg(test)]
mod tests {
    use super::*;

    const MBPS: fn(u64) -> Bitrate = Bitrate::from_mbps;
    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn second(rate: u64, delivered: u64, worst_ms: Option<i64>) -> Second {
        Second {
            rate: MBPS(rate),
            time: Duration::from_secs(1),
            delivered: MBPS(delivered),
            delay: None,
            worst: worst_ms.map(|ms| ms * 1_000),
            trouble: (delivered < rate)
                .then_some(Congestion::Throughput { delivered: MBPS(delivered) }),
            first: false,
        }
    }

    fn history(seconds: Vec<Second>) -> ProbeHistory {
        ProbeHistory { seconds, usual: 0 }
    }

    #[test]
    fn packets_that_wait_for_longer_than_the_latency_are_late() {
        let slow = second(4, 2, Some(1_000));
        let history = history(vec![second(4, 4, Some(50)), slow, second(4, 8, Some(50))]);
        let replay = |latency| history.replay(MBPS(4), MS(latency));
        assert_eq!((replay(1_200).late, replay(1_200).times), (0.0, 0));
        assert!((0.5..=1.0).contains(&replay(500).late), "{:?}", replay(500));
        assert_eq!((replay(500).times, replay(500).seconds), (1, 3.0));
        assert!(replay(100).late > replay(500).late);
    }

    #[test]
    fn a_lower_rate_fits_where_a_higher_one_queues() {
        let history = history(vec![second(8, 4, Some(2_000)); 5]);
        assert!(history.replay(MBPS(8), MS(100)).late > 3.0);
        assert_eq!(history.replay(MBPS(4), MS(100)).late, 0.0);
        assert_eq!(history.replay(MBPS(9), MS(100)).seconds, 0.0, "nothing is known of this rate");
    }

    #[test]
    fn packets_held_by_an_outage_are_late_by_its_duration_at_most() {
        let history =
            history(vec![second(4, 4, Some(0)), second(4, 0, None), second(4, 8, Some(0))]);
        assert_eq!(history.replay(MBPS(4), MS(1_000)).late, 0.0);
        assert!(history.replay(MBPS(4), MS(600)).late > 0.0);
    }
}
