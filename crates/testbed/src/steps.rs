//! Steps in virtual time: what an endpoint does at an instant, until nothing is left to do, and the
//! way to the next instant.

use punctual_proto::{Endpoint, PathId};
use punctual_units::Instant;

/// The way from event to event.
#[derive(Debug, Default)]
pub struct Steps {
    /// Steps in a row at the same instant.
    idle: u32,
}

impl Steps {
    /// Moves `now` to the `next` event, or to `end` if there is none up to then. Returns whether
    /// there was one.
    ///
    /// # Panics
    ///
    /// If time does not go on: timers fire again and again at one instant.
    pub fn advance(&mut self, now: &mut Instant, next: Option<Instant>, end: Instant) -> bool {
        let Some(at) = next.filter(|&at| at <= end) else {
            *now = end;
            return false;
        };
        self.idle = if at > *now { 0 } else { self.idle + 1 };
        assert!(self.idle < MOST_IDLE, "timers fire again and again at {at}");
        *now = at.max(*now);
        true
    }
}

/// Runs the timers of an endpoint that are due. Returns whether there were any.
pub fn run_due(endpoint: &mut Endpoint, now: Instant) -> bool {
    let is_due = endpoint.poll_timeout().is_due(now);
    if is_due {
        endpoint.handle_timeout(now);
    }
    is_due
}

/// Hands each datagram that an endpoint has to send now to `take`, with the path that it takes.
pub fn transmit(endpoint: &mut Endpoint, now: Instant, mut take: impl FnMut(PathId, &[u8])) {
    let mut buffer = Vec::new();
    while let Some(batch) = endpoint.poll_transmit(now, SEGMENTS, &mut buffer) {
        assert_eq!(batch.size, buffer.len());
        buffer.chunks(batch.segment_size).for_each(|datagram| take(batch.path, datagram));
        buffer.clear();
    }
}

/// The datagrams that an endpoint has to send now, each with the path that it takes.
pub fn datagrams(endpoint: &mut Endpoint, now: Instant) -> Vec<(PathId, Vec<u8>)> {
    let mut sent = Vec::new();
    transmit(endpoint, now, |path, datagram| sent.push((path, datagram.to_vec())));
    sent
}

/// Repeats `turn` until it returns `false`, because there was nothing to do.
///
/// # Panics
///
/// If that does not come about.
#[track_caller]
pub fn settle(mut turn: impl FnMut() -> bool) {
    let settled = (0..MOST_TURNS).any(|_| !turn());
    assert!(settled, "it does not come to rest");
}

/// Datagrams of one call of `poll_transmit`.
const SEGMENTS: usize = 16;
const MOST_IDLE: u32 = 1_000;
const MOST_TURNS: u32 = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn time_goes_to_the_next_event_but_not_beyond_the_end() {
        let (mut steps, mut now) = (Steps::default(), MS(10));
        assert!(steps.advance(&mut now, Some(MS(20)), MS(30)));
        assert_eq!(now, MS(20));
        assert!(steps.advance(&mut now, Some(MS(15)), MS(30)), "an event that is overdue");
        assert_eq!(now, MS(20));
        assert!(!steps.advance(&mut now, Some(MS(31)), MS(30)));
        assert_eq!(now, MS(30));
        assert!(!steps.advance(&mut now, None, MS(40)));
        assert_eq!(now, MS(40));
    }

    #[test]
    #[should_panic = "again and again"]
    fn time_that_does_not_go_on_is_a_failure() {
        let (mut steps, mut now) = (Steps::default(), MS(10));
        while steps.advance(&mut now, Some(MS(10)), MS(30)) {}
    }

    #[test]
    fn a_turn_is_repeated_until_there_is_nothing_to_do() {
        let mut left = 5;
        settle(|| {
            left -= 1;
            left > 0
        });
        assert_eq!(left, 0);
    }

    #[test]
    #[should_panic = "come to rest"]
    fn an_end_that_never_rests_is_a_failure() {
        settle(|| true);
    }
}
