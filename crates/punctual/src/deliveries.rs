//! When messages are delivered together.

use std::time::Duration;

use punctual_units::Instant;

/// Decides which messages are delivered in one turn of the driver.
///
/// A message is delivered at its time. But where messages follow each other so fast that a wake-up
/// for each would cost more than everything else, those that fall due within [`GROUP`] are
/// delivered together in the middle of it, so that none is early or late by more than half of that.
/// Where work may gather, it is the same for the time that it may.
#[derive(Debug)]
pub(crate) struct Deliveries {
    /// The time within which messages are delivered together.
    group: Duration,
    /// Whether they are, however far apart.
    always: bool,
    /// Whether they are for now.
    together: bool,
    /// The next group is delivered then.
    held_until: Instant,
}

impl Deliveries {
    /// Of a port that lets work gather for `coalesce`.
    pub(crate) fn new(coalesce: Duration) -> Self {
        let always = !coalesce.is_zero();
        Self {
            group: if always { coalesce } else { GROUP },
            always,
            together: always,
            held_until: Instant::ORIGIN,
        }
    }

    /// A turn ends at `now`, and the next message is `due`. Turns that follow each other too often
    /// are put off until `ready`.
    pub(crate) fn plan(&mut self, now: Instant, due: Instant, ready: Instant) {
        if self.always {
            return;
        }
        let group_ends = now + self.group;
        if self.together {
            self.together = due < group_ends;
            self.held_until = if self.together { group_ends } else { Instant::ORIGIN };
        } else {
            self.together = due < ready;
        }
    }

    /// No message is delivered before.
    pub(crate) const fn held_until(&self) -> Instant {
        self.held_until
    }

    /// How long before its time a message is delivered together with others.
    pub(crate) fn early(&self) -> Duration {
        match self.together {
            true if self.always => self.group / 2,
            true => self.group / 2 + WAKE_UP,
            false => Duration::ZERO,
        }
    }
}

/// The time of a wake-up, so that messages are as much too early as too late.
const WAKE_UP: Duration = Duration::from_micros(30);

/// Messages that fall due within this time are delivered together, where they follow each other
/// fast.
const GROUP: Duration = Duration::from_micros(800);

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Instant {
        Instant::from_micros(1_000_000 + micros)
    }

    /// Delivers messages that are due each `interval` for a second, as a driver does whose turns
    /// are put off by 400 us at most. Gives the number of turns, and by how much the messages of the
    /// second half were delivered too early or too late at most.
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
            deliveries.plan(now, due(next), ready);
            now = due(next).max(ready).max(deliveries.held_until());
        }
        (turns, worst)
    }

    #[test]
    fn messages_that_are_not_close_are_delivered_at_their_time() {
        assert_eq!(delivered(1_050, Deliveries::new(Duration::ZERO)), (953, Duration::ZERO));
    }

    #[test]
    fn close_messages_are_delivered_together_within_half_a_group() {
        let (turns, worst) = delivered(210, Deliveries::new(Duration::ZERO));
        assert!((1_240..1_270).contains(&turns), "{turns}");
        assert!(worst <= GROUP / 2 + WAKE_UP, "{worst:?}");
    }

    #[test]
    fn where_work_gathers_messages_are_half_of_that_time_early() {
        let deliveries = Deliveries::new(Duration::from_millis(5));
        assert_eq!(deliveries.early(), Duration::from_micros(2_500));
        assert_eq!(deliveries.held_until(), Instant::ORIGIN);
    }
}
