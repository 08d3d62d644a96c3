use std::time::Duration;

use punctual_units::Instant;

/// Empties the queue from time to time, so that the least round trip can be measured.
///
/// A sender that joins others measures its first round trips with their queue, and would take a
/// larger share than they do. So each of them leaves the queue for a moment when the round trip has
/// not been at its least for ten seconds (BBR, draft-cardwell-iccrg-bbr-congestion-control-00
/// section 4.3.5: ProbeRTT). All that share the queue see it become empty at the same instant, and
/// so do it together the next time.
///
/// While a link is full, a path that becomes shorter only fills its queue, and the round trip stays
/// as it was. A drain shows it, and goes on until it finds no shorter round trip.
#[derive(Debug, Default)]
pub(super) struct Drain {
    /// When the round trip was last at its least.
    low_at: Option<Instant>,
    round: Option<DrainUnderWay>,
}

/// A drain that is under way.
#[derive(Clone, Copy, Debug)]
struct DrainUnderWay {
    until: Instant,
    /// The least round trip before.
    base: Duration,
}

/// The time without a least round trip after which the queue is drained.
const PERIOD: Duration = Duration::from_secs(10);
/// The duration beyond a round trip, in which some round trips are reported.
const DURATION: Duration = Duration::from_millis(60);
/// The queue counts as empty up to this queueing delay.
const NONE: Duration = Duration::from_micros(500);
/// A round trip is shorter by at least this.
const SHORTER: Duration = Duration::from_millis(2);
/// The share of the packets that the path holds without a queue that is left during a drain.
const LEFT: f64 = 0.9;

impl Drain {
    /// Follows a report with this least round trip and queueing delay. Returns whether a drain has
    /// found a shorter round trip, and goes on.
    pub(super) fn follow(&mut self, now: Instant, base: Duration, queue: Duration) -> bool {
        let low_at = *self.low_at.get_or_insert(now);
        let next = DrainUnderWay { until: now + base + queue + DURATION, base };
        let Some(round) = self.round else {
            if queue <= NONE {
                self.low_at = Some(now);
            } else if now >= low_at + PERIOD {
                self.round = Some(next);
            }
            return false;
        };
        let is_shorter = base + SHORTER < round.base;
        let ends =
            if is_shorter { now >= round.until } else { queue <= NONE || now >= round.until };
        if ends {
            self.low_at = Some(now);
            self.round = is_shorter.then_some(next);
        }
        ends && is_shorter
    }

    /// The share of the window that applies, if the queue is drained.
    pub(super) fn share(&self, base: Duration, queue: Duration) -> Option<f64> {
        self.round?;
        let rtt = (base + queue).as_secs_f64();
        Some(LEFT * base.as_secs_f64() / rtt.max(1e-3))
    }

    /// Whether the queue is drained.
    pub(super) const fn is_under_way(&self) -> bool {
        self.round.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const AT: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn a_queue_is_drained_after_ten_seconds() {
        let mut drain = Drain::default();
        for ms in (0..10_000).step_by(10) {
            drain.follow(AT(ms), MS(100), MS(10));
            assert!(!drain.is_under_way());
        }
        drain.follow(AT(10_000), MS(100), MS(10));
        assert!(drain.share(MS(100), MS(10)).is_some_and(|share| (share - 0.818).abs() < 0.001));
        drain.follow(AT(10_100), MS(100), MS(4));
        assert!(drain.is_under_way());
        drain.follow(AT(10_110), MS(100), MS(0));
        assert!(!drain.is_under_way(), "the queue is empty");
    }

    #[test]
    fn a_drain_in_vain_ends_after_a_round_trip() {
        let mut drain = Drain::default();
        drain.follow(AT(0), MS(100), MS(10));
        drain.follow(AT(10_000), MS(100), MS(10));
        drain.follow(AT(10_160), MS(100), MS(10));
        assert!(drain.is_under_way());
        drain.follow(AT(10_170), MS(100), MS(10));
        assert!(!drain.is_under_way());
        drain.follow(AT(20_160), MS(100), MS(10));
        assert!(!drain.is_under_way(), "the next one is ten seconds later");
    }

    #[test]
    fn a_path_without_a_queue_is_never_drained() {
        let mut drain = Drain::default();
        for ms in (0..60_000).step_by(10) {
            drain.follow(AT(ms), MS(100), if ms % 1_000 == 0 { MS(0) } else { MS(9) });
            assert!(!drain.is_under_way());
        }
    }

    #[test]
    fn a_drain_goes_on_while_it_finds_a_shorter_round_trip() {
        let mut drain = Drain::default();
        drain.follow(AT(0), MS(200), MS(10));
        drain.follow(AT(10_000), MS(200), MS(10));
        // The path has become shorter: the round trip falls with the window.
        assert!(!drain.follow(AT(10_100), MS(190), MS(0)) && drain.is_under_way());
        assert!(drain.follow(AT(10_270), MS(180), MS(0)), "a round is over");
        assert!(drain.is_under_way());
        assert!(!drain.follow(AT(10_510), MS(180), MS(0)));
        assert!(!drain.is_under_way(), "no shorter one in this round");
    }
}
