use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Runs a test that needs a machine with time to spare. If it fails while the machine kept its
/// programs waiting for 50 ms or more, the failure says nothing about the programs, and the test is
/// run again, up to three times in all.
///
/// # Panics
///
/// If the test panics for any other reason, or for the third time.
pub fn retry_if_stalled(test: impl Fn()) {
    for attempt in 1.. {
        let watch = Watch::start();
        let result = catch_unwind(AssertUnwindSafe(&test));
        let stall = watch.stop();
        match result {
            Ok(()) => return,
            Err(_) if stall >= DISTURBANCE && attempt < ATTEMPTS => {
                let current = thread::current();
                let test = current.name().unwrap_or("test");
                let note = format!("repeated: {test}: the machine stalled for {stall:?}");
                // Past the test harness's capture, like the notes of skipped tests.
                let _ = writeln!(io::stdout(), "\n{note}");
            }
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// [`retry_if_stalled`] for a test that waits for sockets; each run has a separate runtime.
///
/// # Panics
///
/// As [`retry_if_stalled`] does.
pub fn retry_if_stalled_async(test: impl AsyncFn()) {
    retry_if_stalled(|| {
        let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
        runtime.block_on(test());
    });
}

/// Notices when a thread that asks for 5 ms of sleep gets far more. There is one on each processor:
/// where the machine is a guest, its host may stop one processor and leave the others.
struct Watch {
    stop: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<Duration>>,
}

impl Watch {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let watch = |place: CpuSet| {
            let stopped = stop.clone();
            thread::spawn(move || {
                // Where it may not stay it watches wherever it is put.
                let _ = sched_setaffinity(None, &place);
                longest_stall(&stopped)
            })
        };
        let threads = processors().into_iter().map(watch).collect();
        Self { stop, threads }
    }

    /// The longest time that any of them had to wait.
    fn stop(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        let waits = self.threads.into_iter().map(thread::JoinHandle::join);
        waits.map(|wait| wait.expect("watching does not panic")).max().unwrap_or_default()
    }
}

/// The processors that this program may use, each alone in a set.
fn processors() -> Vec<CpuSet> {
    let allowed = sched_getaffinity(None).expect("a thread may ask where it may run");
    let alone = |processor| {
        let mut set = CpuSet::new();
        set.set(processor);
        set
    };
    (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)).map(alone).collect()
}

/// Sleeps again and again until it is stopped, and says how much longer a sleep took than it should
/// have.
fn longest_stall(stopped: &AtomicBool) -> Duration {
    let mut longest = Duration::ZERO;
    while !stopped.load(Ordering::Relaxed) {
        let asleep = Instant::now();
        thread::sleep(NAP);
        longest = longest.max(asleep.elapsed().saturating_sub(NAP));
    }
    longest
}

const NAP: Duration = Duration::from_millis(5);
const DISTURBANCE: Duration = Duration::from_millis(50);
const ATTEMPTS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_is_watched() {
        let places = processors();
        let allowed = sched_getaffinity(None).expect("a thread may ask where it may run");
        assert_eq!(u32::try_from(places.len()), Ok(allowed.count()));
        assert!(places.iter().all(|place| place.count() == 1), "{places:?}");
    }

    #[test]
    fn a_watch_sees_how_long_it_waited() {
        let watch = Watch::start();
        thread::sleep(NAP * 4);
        let longest = watch.stop();
        assert!(longest > Duration::ZERO, "no sleep ends to the nanosecond");
        assert!(longest < Duration::from_secs(60), "{longest:?} is not a stall but a mistake");
    }
}
