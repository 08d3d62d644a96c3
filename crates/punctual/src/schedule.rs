//! When a driver has its next turn.

use std::time::Duration;

use punctual_units::Instant;

/// Decides when the driver of a port wakes up: when something is due, but not more than ten
/// thousand times a second for long. Under load what falls due within 100 µs is done in one turn,
/// so that load makes batches larger, and the cost of a packet smaller, instead of turns more
/// frequent.
///
/// Turns that are not crowded happen at their exact time: a driver may save up a few.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// The next turn that nobody else causes; `None` for never.
    next: Option<Instant>,
    /// What the alarm is set to.
    alarm: Option<Instant>,
    /// The earliest time of a turn that may wait.
    ready: Instant,
    /// Whether the UDP socket takes no more datagrams for now.
    blocked: bool,
}

/// What must be done for the driver to have its next turn.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum Action {
    /// Nothing.
    None,
    /// Set the alarm.
    SetAlarm(Instant),
    /// Wake the driver.
    Wake,
}

impl Schedule {
    /// A turn begins.
    pub(crate) fn begin(&mut self, now: Instant) {
        let saved = now - SAVED_TURNS * GRAIN;
        self.ready = (self.ready.max(saved) + GRAIN).min(now + GRAIN);
    }

    /// A turn ends, and the next is `due`.
    pub(crate) fn end(&mut self, now: Instant, due: Option<Instant>, blocked: bool) -> Action {
        self.blocked = blocked;
        // While the socket takes nothing, what waits to be sent is always due.
        let least = if blocked { now + BLOCKED_GRAIN } else { self.ready };
        self.next = due.map(|due| due.max(least));
        match self.next {
            None => Action::None,
            Some(next) => self.wake_at(now, next),
        }
    }

    /// Something happened between turns, and now a turn is `due`.
    pub(crate) fn advance(&mut self, now: Instant, due: Instant) -> Action {
        let due = due.max(self.ready);
        if self.blocked || self.next.is_some_and(|next| next <= due) {
            return Action::None;
        }
        self.next = Some(due);
        self.wake_at(now, due)
    }

    /// Something happened between turns that must not wait.
    pub(crate) fn hurry(&mut self, now: Instant) -> Action {
        if self.next.is_some_and(|next| next <= now) {
            return Action::None;
        }
        self.next = Some(now);
        Action::Wake
    }

    fn wake_at(&mut self, now: Instant, next: Instant) -> Action {
        if next <= now {
            Action::Wake
        } else if self.alarm.is_some_and(|alarm| now < alarm && alarm <= next) {
            // It will go off in time. Too early costs one turn, once; setting it anew costs a
            // system call in each turn that puts off something far away, such as a keepalive.
            Action::None
        } else {
            self.alarm = Some(next);
            Action::SetAlarm(next)
        }
    }
}

/// Mean time between turns under load, and so the most that one is put off: half of what a packet
/// may be late.
const GRAIN: Duration = Duration::from_micros(100);
/// Turns that may follow each other without waiting after a calm time.
const SAVED_TURNS: u32 = 4;
/// Time between attempts to go on when the system does not say that the socket can be written to.
const BLOCKED_GRAIN: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Instant {
        Instant::from_micros(1_000_000 + micros)
    }

    fn end(schedule: &mut Schedule, now: Instant, due: Instant) -> Action {
        schedule.begin(now);
        schedule.end(now, Some(due), false)
    }

    #[test]
    fn a_calm_driver_is_on_time() {
        let mut schedule = Schedule::default();
        for ms in 0..100 {
            let due = micros(1_000 * ms + 10);
            assert_eq!(end(&mut schedule, micros(1_000 * ms), due), Action::SetAlarm(due));
            let due = micros(1_000 * ms + 20);
            assert_eq!(end(&mut schedule, micros(1_000 * ms + 10), due), Action::SetAlarm(due));
        }
    }

    #[test]
    fn what_is_put_off_does_not_set_the_alarm_anew() {
        let mut schedule = Schedule::default();
        let keepalive = |ms| micros(1_000 * ms + 1_000_000);
        assert_eq!(end(&mut schedule, micros(0), keepalive(0)), Action::SetAlarm(keepalive(0)));
        for ms in 1..1_000 {
            assert_eq!(end(&mut schedule, micros(1_000 * ms), keepalive(ms)), Action::None);
        }
        let late = keepalive(0);
        assert_eq!(end(&mut schedule, late, keepalive(999)), Action::SetAlarm(keepalive(999)));
    }

    #[test]
    fn a_busy_driver_has_a_turn_every_grain() {
        let mut schedule = Schedule::default();
        let (mut now, mut turns) = (micros(0), 0);
        while now < micros(100_000) {
            turns += 1;
            // Something is due two microseconds after every turn.
            now = match end(&mut schedule, now, now + Duration::from_micros(2)) {
                Action::SetAlarm(at) => at,
                other => panic!("{other:?} at {now}"),
            };
        }
        assert!((1_000..=1_000 + SAVED_TURNS).contains(&turns), "{turns} turns in 100 ms");
    }

    #[test]
    fn no_turn_is_put_off_by_more_than_a_grain() {
        let mut schedule = Schedule::default();
        // Datagrams cause turns far more often than the schedule would.
        for us in 0..1_000 {
            schedule.begin(micros(us));
        }
        let due = micros(1_001);
        assert_eq!(
            schedule.end(micros(999), Some(due), false),
            Action::SetAlarm(micros(999) + GRAIN)
        );
    }

    #[test]
    fn a_call_wakes_a_sleeping_driver_once() {
        let mut schedule = Schedule::default();
        assert_eq!(end(&mut schedule, micros(0), micros(50_000)), Action::SetAlarm(micros(50_000)));
        assert_eq!(schedule.advance(micros(10_000), micros(60_000)), Action::None);
        assert_eq!(
            schedule.advance(micros(10_000), micros(20_000)),
            Action::SetAlarm(micros(20_000))
        );
        assert_eq!(schedule.advance(micros(10_001), micros(9_000)), Action::Wake);
        assert_eq!(schedule.advance(micros(10_002), micros(9_000)), Action::None);
        assert_eq!(schedule.hurry(micros(10_003)), Action::None);
    }

    #[test]
    fn calls_between_crowded_turns_set_the_alarm_once() {
        let mut schedule = Schedule::default();
        for us in 0..10 {
            schedule.begin(micros(us));
        }
        assert_eq!(schedule.end(micros(9), None, false), Action::None);
        let ready = micros(9) + GRAIN;
        assert_eq!(schedule.advance(micros(10), micros(10)), Action::SetAlarm(ready));
        assert_eq!(schedule.advance(micros(11), micros(11)), Action::None);
        assert_eq!(schedule.hurry(micros(12)), Action::Wake);
    }

    #[test]
    fn a_blocked_driver_does_not_spin() {
        let mut schedule = Schedule::default();
        schedule.begin(micros(0));
        let retry = micros(0) + BLOCKED_GRAIN;
        assert_eq!(schedule.end(micros(0), Some(micros(0)), true), Action::SetAlarm(retry));
        assert_eq!(schedule.advance(micros(1), micros(1)), Action::None);
    }
}
