use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Runs a test that needs a machine with time to spare. If it fails while the machine kept its
/// programs waiting for 50 ms or more, the failure says nothing about the programs, and the test is
/// run again, up to three times in all.
///
/// # Panics
///
/// If the test panics for any other reason, or for the third time.
pub fn undisturbed(test: impl Fn()) {
    for attempt in 1.. {
        let watch = Watch::start();
        let result = catch_unwind(AssertUnwindSafe(&test));
        let stall = watch.stop();
        match result {
            Ok(()) => return,
            Err(_) if stall >= DISTURBANCE && attempt < ATTEMPTS => {
                let current = thread::current();
                let test = current.name().unwrap_or("test");
                let note = format!("repeated: {test}: the machine stood still for {stall:?}");
                // Past the test harness's capture, like what is skipped.
                let _ = writeln!(io::stdout(), "\n{note}");
            }
            Err(panic) => resume_unwind(panic),
        }
    }
}

/// Notices when a thread that asks for 5 ms of sleep gets far more.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Duration>,
}

impl Watch {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let mut longest = Duration::ZERO;
            while !stopped.load(Ordering::Relaxed) {
                let asleep = Instant::now();
                thread::sleep(NAP);
                longest = longest.max(asleep.elapsed().saturating_sub(NAP));
            }
            longest
        });
        Self { stop, thread }
    }

    /// The longest time that it had to wait.
    fn stop(self) -> Duration {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("watching does not panic")
    }
}

const NAP: Duration = Duration::from_millis(5);
const DISTURBANCE: Duration = Duration::from_millis(50);
const ATTEMPTS: u32 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_sees_how_long_it_waited() {
        let watch = Watch::start();
        thread::sleep(NAP * 4);
        let longest = watch.stop();
        assert!(longest > Duration::ZERO, "no sleep ends to the nanosecond");
        assert!(longest < Duration::from_secs(60), "{longest:?} is not a stall but a mistake");
    }
}
