use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use punctual_stalls::{DISTURBANCE, Watch, note};

/// Runs a test that needs a machine with time to spare. If it fails while the machine kept its
/// programs waiting for 50 ms or more, the failure says nothing about the programs, and the test is
/// run again, up to three times in all. A note in the file of reruns names each time.
///
/// # Panics
///
/// If the test panics for any other reason, or for the third time.
pub fn retry_if_stalled(test: impl Fn()) {
    for attempt in 1.. {
        let watch = Watch::start();
        let result = catch_unwind(AssertUnwindSafe(&test));
        let stall = watch.longest();
        match result {
            Ok(()) => return,
            Err(_) if stall >= DISTURBANCE && attempt < ATTEMPTS => {
                let current = thread::current();
                let test = current.name().unwrap_or("test");
                let line = format!(
                    "{test}: failed while the machine stalled for {} ms, and was repeated",
                    stall.as_millis()
                );
                // Past the test harness's capture, like the notes of skipped tests.
                let _ = writeln!(io::stdout(), "\n{line}");
                if let Err(error) = note(&line) {
                    let _ = writeln!(io::stdout(), "the file of reruns: {error}");
                }
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

const ATTEMPTS: u32 = 3;
