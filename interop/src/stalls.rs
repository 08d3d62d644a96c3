use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::Duration;

use punctual_stalls::{DISTURBANCE, Watch, note};

/// Runs a test that needs a machine with time to spare. If it fails while the machine kept its
/// programs waiting for 50 ms or more, the failure says nothing about the programs, and the test is
/// run again, up to three times in all. A note in the file of reruns names each time.
///
/// # Panics
///
/// If the test panics for any other reason, or for the third time.
pub fn retry_if_stalled(test: impl Fn()) {
    let attempt = || {
        let watch = Watch::start();
        let result = catch_unwind(AssertUnwindSafe(&test));
        (result, watch.longest())
    };
    retry(attempt, |stall| {
        let current = thread::current();
        let test = current.name().unwrap_or("test");
        let stall = stall.as_millis();
        let line =
            format!("{test}: failed while the machine stalled for {stall} ms, and was repeated");
        // Past the test harness's capture, like the notes of skipped tests.
        let _ = writeln!(io::stdout(), "\n{line}");
        if let Err(error) = note(&line) {
            let _ = writeln!(io::stdout(), "the file of reruns: {error}");
        }
    });
}

/// Repeats `attempt`, which returns its result and the longest stall meanwhile, as long as stalls
/// may be the reason of its failures. `report` gets the stall before each repetition.
fn retry(mut attempt: impl FnMut() -> (thread::Result<()>, Duration), report: impl Fn(Duration)) {
    for number in 1.. {
        match attempt() {
            (Ok(()), _) => return,
            (Err(_), stall) if stall >= DISTURBANCE && number < ATTEMPTS => report(stall),
            (Err(panic), _) => resume_unwind(panic),
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The number of attempts, that of reports, and whether the last attempt passed. Each attempt
    /// passes or fails beside a stall of some milliseconds.
    fn outcome(attempts: &[(bool, u64)]) -> (usize, usize, bool) {
        let (made, reports) = (Cell::new(0), Cell::new(0));
        let attempt = || {
            let (passes, stall) = attempts[made.get()];
            made.set(made.get() + 1);
            let result: thread::Result<()> = if passes { Ok(()) } else { Err(Box::new("failed")) };
            (result, Duration::from_millis(stall))
        };
        let report = |_| reports.set(reports.get() + 1);
        let passed = catch_unwind(AssertUnwindSafe(|| retry(attempt, report))).is_ok();
        (made.get(), reports.get(), passed)
    }

    #[test]
    fn only_a_stall_lets_a_failed_test_run_again() {
        assert_eq!(outcome(&[(true, 900)]), (1, 0, true));
        assert_eq!(outcome(&[(false, 49), (true, 0)]), (1, 0, false));
        assert_eq!(outcome(&[(false, 50), (true, 0)]), (2, 1, true));
        assert_eq!(outcome(&[(false, 50), (false, 10), (true, 0)]), (2, 1, false));
    }

    #[test]
    fn a_test_runs_three_times_at_most() {
        assert_eq!(outcome(&[(false, 90), (false, 90), (false, 90), (true, 0)]), (3, 2, false));
    }
}
