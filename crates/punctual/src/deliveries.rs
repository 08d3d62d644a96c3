//! Delivery of several messages in one turn of the driver.

use std::time::Duration;

use punctual_units::Instant;

use crate::turn_size::TurnSize;

/// Decides which messages are delivered in one turn of the driver.
///
/// A message is delivered at its time. But if messages follow each other so fast that a wake-up for
/// each would cost more than all other work, the messages that are due within [`GROUP`] are
/// delivered together in the middle of it, so that none is early or late by more than half of it.
/// Under a high load that time is [shorter](TurnSize). With `coalesce`, the same holds for that
/// time instead of [`GROUP`].
#[derive(Debug)]
pub(crate) struct Deliveries {
    /// The time within which messages are delivered together.
    group: Duration,
    /// Whether messages are always delivered together: the port has `coalesce`.
    always: bool,
    /// Whether messages are delivered together at present.
    together: bool,
    /// The time at which the next group is delivered.
    held_until: Instant,
}

impl Deliveries {
    /// The deliveries of a port with this `coalesce` time.
    pub(crate) fn new(coalesce: Duration) -> Self {
        let always = !coalesce.is_zero();
        Self {
            group: if always { coalesce } else { GROUP },
            always,
            together: always,
            held_until: Instant::ORIGIN,
        }
    }

    /// Plans the next delivery. A turn ends at `now`, and the next message is `due`; the driver's
    /// next turn is not before `ready`.
    pub(crate) fn plan(&mut self, now: Instant, due: Instant, ready: Instant, size: &TurnSize) {
        if self.always {
            return;
        }
        self.group = size.shorten(GROUP);
        let group_ends = now + self.group;
        if self.together {
            self.together = due < group_ends;
            self.held_until = if self.together { group_ends } else { Instant::ORIGIN };
        } else {
            self.together = due < ready;
        }
    }

    /// The time before which no message is delivered.
    pub(crate) const fn held_until(&self) -> Instant {
        self.held_until
    }

    /// How long before its time a message may be delivered together with others.
    pub(crate) fn early(&self) -> Duration {
        match self.together {
            true if self.always => self.group / 2,
            true => self.group / 2 + WAKE_UP,
            false => Duration::ZERO,
        }
    }
}

/// The duration of a wake-up: it shifts the group, so that messages are as much early as late.
const WAKE_UP: Duration = Duration::from_micros(30);

/// Messages that are due within this time are delivered together, if they follow each other fast.
pub(crate) const GROUP: Duration = Duration::from_micros(800);

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Instant {
        Instant::from_micros(1_000_000 + micros)
    }

    /// Delivers one message per `interval` (µs) for a second, as a driver does whose turns are at
    /// least 400 µs apart. Returns the number of turns, and the largest distance of a message from
    /// its time in the second half.
    fn delivered(interval: u64, mut deliveries: Deliveries) -> (u32, Duration) {
        let (mut now, mut next, mut turns, mut worst) = (micros(0), 0, 0, Duration::ZERO);
        let due = |message| micros(interval * message);
        while next * interval < 1_000_000 {
            turns += 1;
            while due(next) <= now + deliveries.early() {
                if next * interval > 500_000 {
                    worst = worst.max(due(next).abs_diff(now));
                }
                next += 1;
            }
            let ready = now + Duration::from_micros(400);
            deliveries.plan(now, due(next), ready, &TurnSize::default());
            now = due(next).max(ready).max(deliveries.held_until());
        }
        (turns, worst)
    }

    #[test]
    fn messages_far_apart_are_delivered_at_their_time() {
        assert_eq!(delivered(1_050, Deliveries::new(Duration::ZERO)), (953, Duration::ZERO));
    }

    #[test]
    fn fast_messages_are_delivered_together_within_half_a_group() {
        let (turns, worst) = delivered(210, Deliveries::new(Duration::ZERO));
        assert!((1_240..1_270).contains(&turns), "{turns}");
        assert!(worst <= GROUP / 2 + WAKE_UP, "{worst:?}");
    }

    #[test]
    fn with_coalesce_messages_are_at_most_half_of_it_early() {
        let deliveries = Deliveries::new(Duration::from_millis(5));
        assert_eq!(deliveries.early(), Duration::from_micros(2_500));
        assert_eq!(deliveries.held_until(), Instant::ORIGIN);
    }
}
