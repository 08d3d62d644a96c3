//! Calls that come in bursts from a thread of the application.

use std::ptr;
use std::time::Duration;

/// Recognises bursts of calls: a thread of the application sends a batch of messages, one by one.
///
/// The first call of a burst would wake the driver. It would send one or two messages, compete with
/// the other calls for the lock of the port, and wake up once more for what they have submitted. So
/// the driver waits for [`BURST`] after the first call, if the calls before its last turn were a
/// burst. After calls of its own thread it need not wait: it has its turn when that thread has made
/// them all.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// The thread of the driver's last turn.
    driver: Option<Thread>,
    /// The number of calls of other threads since that turn.
    calls: u32,
    /// Whether the calls before that turn were a burst.
    expected: bool,
}

impl Bursts {
    /// Takes note of a turn of the driver, which begins on the current thread.
    pub(crate) fn turn_begins(&mut self) {
        self.driver = Some(Thread::current());
        // A turn before which nobody called tells nothing about calls.
        if self.calls > 0 {
            self.expected = self.calls >= LEAST_CALLS;
            self.calls = 0;
        }
    }

    /// Takes note of a call on the current thread that gives the driver work. Returns the time for
    /// which the driver waits for further calls.
    pub(crate) fn note_call(&mut self) -> Duration {
        if self.driver == Some(Thread::current()) {
            return Duration::ZERO;
        }
        self.calls = self.calls.saturating_add(1);
        if self.expected { BURST } else { Duration::ZERO }
    }
}

/// A thread, told from all others that are alive.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Thread(usize);

impl Thread {
    /// The standard library's handle of a thread counts its references at each call.
    fn current() -> Self {
        thread_local! {
            static PLACE: u8 = const { 0 };
        }
        Self(PLACE.with(|place| ptr::from_ref(place).addr()))
    }
}

/// The least number of calls between two turns that are a burst.
const LEAST_CALLS: u32 = 4;
/// The time for which the driver waits. The 47 messages of a millisecond of 500 Mb/s take less.
const BURST: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A turn on a thread other than the test's.
    fn turn(bursts: &mut Bursts) {
        thread::scope(|scope| scope.spawn(|| bursts.turn_begins()).join()).expect("no panic");
    }

    fn calls(bursts: &mut Bursts, count: u32) -> Vec<Duration> {
        (0..count).map(|_| bursts.note_call()).collect()
    }

    #[test]
    fn the_driver_waits_for_the_second_burst_and_the_following() {
        let mut bursts = Bursts::default();
        for burst in 0..5 {
            turn(&mut bursts);
            let wait = if burst == 0 { Duration::ZERO } else { BURST };
            assert_eq!(calls(&mut bursts, LEAST_CALLS), [wait; LEAST_CALLS as usize]);
        }
    }

    #[test]
    fn turns_without_calls_between_two_bursts_change_nothing() {
        let mut bursts = Bursts::default();
        calls(&mut bursts, 20);
        (0..9).for_each(|_| turn(&mut bursts));
        assert_eq!(bursts.note_call(), BURST);
    }

    #[test]
    fn single_messages_do_not_wait() {
        let mut bursts = Bursts::default();
        calls(&mut bursts, 20);
        turn(&mut bursts);
        assert_eq!(calls(&mut bursts, 1), [BURST], "after a burst");
        for _ in 0..9 {
            turn(&mut bursts);
            assert_eq!(calls(&mut bursts, LEAST_CALLS - 1), [Duration::ZERO; 3]);
        }
    }

    #[test]
    fn calls_of_the_drivers_own_thread_do_not_wait() {
        let mut bursts = Bursts::default();
        for _ in 0..9 {
            bursts.turn_begins();
            assert_eq!(calls(&mut bursts, 20), [Duration::ZERO; 20]);
        }
    }
}
