//! Calls that come in bursts from a thread of the application.

use std::ptr;
use std::time::Duration;

use punctual_units::Instant;

/// Tells single calls from bursts of calls: a thread of the application sends a batch of messages,
/// one by one.
///
/// Two calls less than [`PAUSE`] apart belong to the same burst. A burst is recognised at its
/// [fourth call](LEAST_CALLS); if the calls before a pause were a burst, so are those after it.
#[derive(Debug, Default)]
pub(crate) struct Bursts {
    /// The thread of the driver's last turn.
    driver: Option<Thread>,
    /// When a thread other than the driver's called last.
    last: Instant,
    /// The number of such calls since the last pause.
    calls: u32,
    /// The number of such calls between the last two pauses.
    before: u32,
}

/// A call that gives something to send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Call {
    /// A call on the driver's own thread. That thread runs the driver when it has made all calls.
    OwnThread,
    /// A single call of another thread.
    Single,
    /// One of a burst of another thread.
    InBurst,
    /// One of a burst of several [batches](BATCH), the last of its batch.
    EndsBatch,
}

impl Bursts {
    /// Takes note of a turn of the driver, which begins on the current thread.
    pub(crate) fn turn_begins(&mut self) {
        self.driver = Some(Thread::current());
    }

    /// Takes note of a call on the current thread that gives something to send.
    pub(crate) fn note_call(&mut self, now: Instant) -> Call {
        // Before its first turn, the driver is woken as if the call came from its own thread.
        if self.driver.is_none_or(|driver| driver == Thread::current()) {
            return Call::OwnThread;
        }
        if now.saturating_since(self.last) >= PAUSE {
            self.before = self.calls;
            self.calls = 0;
        }
        self.last = now;
        self.calls = self.calls.saturating_add(1);
        let length = self.before.max(self.calls);
        if length < LEAST_CALLS {
            Call::Single
        } else if length >= 2 * BATCH && self.calls.is_multiple_of(BATCH) {
            Call::EndsBatch
        } else {
            Call::InBurst
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
/// The least time between two bursts.
const PAUSE: Duration = Duration::from_micros(50);
/// The number of messages of a batch: with payloads of 1316 bytes, as many as one system call sends
/// ([`UdpSocket::max_segments`](punctual_io::UdpSocket::max_segments)).
const BATCH: u32 = 44;

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
    fn calls(bursts: &mut Bursts, millis: u64, count: u64) -> Vec<Call> {
        let start = Instant::from_millis(1_000 + millis);
        (0..count).map(|at| bursts.note_call(start + Duration::from_micros(at))).collect()
    }

    #[test]
    fn fewer_than_four_calls_are_single_calls() {
        let mut bursts = bursts();
        for millis in 0..9 {
            assert_eq!(calls(&mut bursts, millis, 3), [Call::Single; 3]);
        }
    }

    #[test]
    fn a_burst_is_recognised_at_its_fourth_call_and_then_expected() {
        let mut bursts = bursts();
        let [single, burst] = [Call::Single, Call::InBurst];
        assert_eq!(calls(&mut bursts, 0, 5), [single, single, single, burst, burst]);
        for millis in 1..9 {
            assert_eq!(calls(&mut bursts, millis, 4), [burst; 4]);
        }
        assert_eq!(calls(&mut bursts, 9, 1), [burst]);
        assert_eq!(calls(&mut bursts, 10, 1), [single]);
    }

    #[test]
    fn calls_without_a_pause_are_one_burst() {
        let mut bursts = bursts();
        let mut now = Instant::from_millis(1_000);
        let mut call = || {
            now += PAUSE - Duration::from_micros(1);
            bursts.note_call(now)
        };
        (0..3).for_each(|_| assert_eq!(call(), Call::Single));
        (3..BATCH).for_each(|_| assert_eq!(call(), Call::InBurst));
        (0..3).for_each(|_| assert_ne!(call(), Call::Single));
    }

    #[test]
    fn a_burst_of_several_batches_is_divided() {
        let mut bursts = bursts();
        calls(&mut bursts, 0, 87);
        assert!(!calls(&mut bursts, 1, 87).contains(&Call::EndsBatch), "less than two batches");
        calls(&mut bursts, 2, 88);
        for millis in 3..9 {
            let made = calls(&mut bursts, millis, 100);
            let ends = (1..).zip(&made).filter(|(_, call)| **call == Call::EndsBatch);
            assert_eq!(ends.map(|(number, _)| number).collect::<Vec<_>>(), [44, 88]);
            assert!(!made.contains(&Call::Single));
        }
    }

    #[test]
    fn calls_of_the_drivers_own_thread_are_no_burst() {
        let mut bursts = Bursts::default();
        for millis in 0..9 {
            assert_eq!(calls(&mut bursts, millis, 20), [Call::OwnThread; 20]);
            bursts.turn_begins();
        }
    }
}
