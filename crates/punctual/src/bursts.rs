//! Calls that come in bursts from a thread of the application.

use std::ptr;
use std::time::Duration;

use punctual_units::Instant;

/// Decides who sends what a call has made due.
///
/// A single message is sent by the thread that calls: to wake the driver for it would take longer
/// than to send it.
///
/// A thread that has a batch of messages sends them one by one, in a burst of calls. These messages
/// are sent by the driver, with few system calls. It waits for [`BURST`] after the first call, if
/// the calls before were a burst too: woken at once, it would send one or two messages, compete
/// with the other calls for the lock of the port, and wake up once more for what they have
/// submitted.
///
/// After calls of its own thread the driver does not wait: it has its turn when that thread has
/// made them all.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// The thread of the driver's last turn.
    driver: Option<Thread>,
    /// When another thread called last.
    last: Instant,
    /// The number of calls up to that one, each less than [`BURST`] after the one before.
    calls: u32,
    /// Whether the calls before these were a burst.
    expected: bool,
}

/// The sender of the packets that a call has made due.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Sender {
    /// The calling thread, at once.
    Caller,
    /// The driver, after this time.
    Driver(Duration),
}

impl Bursts {
    /// Takes note of a turn of the driver, which begins on the current thread.
    pub(crate) fn turn_begins(&mut self) {
        self.driver = Some(Thread::current());
    }

    /// Takes note of a call on the current thread that gives something to send, and returns who
    /// sends it.
    pub(crate) fn note_call(&mut self, now: Instant) -> Sender {
        // Before its first turn, the driver is woken as if the call came from its own thread.
        if self.driver.is_none_or(|driver| driver == Thread::current()) {
            return Sender::Driver(Duration::ZERO);
        }
        if now.saturating_since(self.last) >= BURST {
            self.expected = self.calls >= LEAST_CALLS;
            self.calls = 0;
        }
        self.last = now;
        self.calls = self.calls.saturating_add(1);
        match self.expected || self.calls >= LEAST_CALLS {
            true => Sender::Driver(BURST),
            false => Sender::Caller,
        }
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

/// The least number of calls that are a burst.
const LEAST_CALLS: u32 = 4;
/// The time for which the driver waits, and the least time between two bursts. The 47 messages of a
/// millisecond of 500 Mb/s take less.
const BURST: Duration = Duration::from_micros(50);

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Bursts at a port whose driver has a thread of its own.
    fn bursts() -> Bursts {
        let mut bursts = Bursts::default();
        thread::scope(|scope| scope.spawn(|| bursts.turn_begins()).join()).expect("no panic");
        bursts
    }

    /// `count` calls a microsecond apart, the first at this millisecond.
    fn calls(bursts: &mut Bursts, millis: u64, count: u64) -> Vec<Sender> {
        let start = Instant::from_millis(1_000 + millis);
        (0..count).map(|at| bursts.note_call(start + Duration::from_micros(at))).collect()
    }

    const WAITS: Sender = Sender::Driver(BURST);

    #[test]
    fn single_messages_are_sent_by_their_threads() {
        let mut bursts = bursts();
        for millis in 0..9 {
            assert_eq!(calls(&mut bursts, millis, 3), [Sender::Caller; 3]);
        }
    }

    #[test]
    fn a_burst_is_noticed_at_its_fourth_call_and_then_expected() {
        let mut bursts = bursts();
        assert_eq!(calls(&mut bursts, 0, 3), [Sender::Caller; 3]);
        assert_eq!(bursts.note_call(Instant::from_millis(1_000)), WAITS);
        for millis in 1..9 {
            assert_eq!(calls(&mut bursts, millis, 4), [WAITS; 4]);
        }
    }

    #[test]
    fn a_single_message_ends_the_expectation_of_bursts() {
        let mut bursts = bursts();
        calls(&mut bursts, 0, 20);
        assert_eq!(calls(&mut bursts, 1, 1), [WAITS]);
        assert_eq!(calls(&mut bursts, 2, 1), [Sender::Caller]);
    }

    #[test]
    fn calls_without_a_pause_are_one_burst() {
        let mut bursts = bursts();
        let mut now = Instant::from_millis(1_000);
        let mut call = || {
            now += BURST - Duration::from_micros(1);
            bursts.note_call(now)
        };
        (0..3).for_each(|_| assert_eq!(call(), Sender::Caller));
        (0..99).for_each(|_| assert_eq!(call(), WAITS));
    }

    #[test]
    fn what_calls_of_the_drivers_own_thread_submit_does_not_wait() {
        let mut bursts = Bursts::default();
        for millis in 0..9 {
            assert_eq!(calls(&mut bursts, millis, 20), [Sender::Driver(Duration::ZERO); 20]);
            bursts.turn_begins();
        }
    }
}
