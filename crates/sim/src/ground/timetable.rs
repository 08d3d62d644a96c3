//! The world's time, and what happens when.

use punctual_units::Instant;

use crate::agenda::{Agenda, Source};

/// The world's time, which goes from one event to the next.
#[derive(Debug)]
pub(crate) struct Timetable {
    now: Instant,
    agenda: Agenda,
    /// Events since time last went on.
    idle: u32,
}

impl Timetable {
    /// The time of a new world, in which nothing is going to happen.
    pub(crate) fn new() -> Self {
        Self { now: Instant::ORIGIN, agenda: Agenda::default(), idle: 0 }
    }

    /// The world's time.
    pub(crate) fn now(&self) -> Instant {
        self.now
    }

    /// Sets or clears the next instant of `source`.
    pub(crate) fn set(&mut self, source: Source, at: Option<Instant>) {
        self.agenda.set(source, at);
    }

    /// Goes on to the next event, which is due up to `end`; goes on to `end` and returns `None` if
    /// there is none.
    pub(crate) fn next_until(&mut self, end: Instant) -> Option<Source> {
        let Some((at, source)) = self.agenda.next().filter(|&(at, _)| at <= end) else {
            self.now = end;
            self.idle = 0;
            return None;
        };
        self.idle = if at > self.now { 0 } else { self.idle + 1 };
        assert!(self.idle < MAX_IDLE, "the world does not come to rest at {at}");
        self.now = self.now.max(at);
        Some(source)
    }
}

/// Things that may happen one after the other at the same instant. A world in which packets need no
/// time has many; one with more has a defect.
const MAX_IDLE: u32 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_to_each_event_and_then_to_the_end() {
        let at = Instant::from_nanos;
        let mut time = Timetable::new();
        time.set(Source::Host(0), Some(at(5)));
        time.set(Source::Link(0), Some(at(20)));
        assert_eq!((time.next_until(at(10)), time.now()), (Some(Source::Host(0)), at(5)));
        time.set(Source::Host(0), None);
        assert_eq!((time.next_until(at(10)), time.now()), (None, at(10)));
        // An event that was due already happens now.
        time.set(Source::Host(0), Some(at(7)));
        assert_eq!((time.next_until(at(30)), time.now()), (Some(Source::Host(0)), at(10)));
    }

    #[test]
    #[should_panic(expected = "does not come to rest")]
    fn a_source_that_is_always_due_is_found() {
        let mut time = Timetable::new();
        time.set(Source::Host(0), Some(Instant::ORIGIN));
        while time.next_until(Instant::ORIGIN).is_some() {}
    }
}
