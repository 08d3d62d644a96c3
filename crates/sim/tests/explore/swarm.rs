//! Many seeds on all cores, for as long as one likes: what `cargo xtask swarm` runs.

#![expect(clippy::disallowed_methods, reason = "a long run has an end by the clock")]

use std::panic::catch_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::run::explore;

/// Seeds from `SWARM_FROM` on, until `SWARM_SEEDS` are done or `SWARM_SECONDS` are over.
#[test]
#[ignore = "it is as long as one likes: cargo xtask swarm"]
fn swarm() {
    let from = number("SWARM_FROM").unwrap_or(1_000);
    let end = number("SWARM_SEEDS").map_or(u64::MAX, |count| from.saturating_add(count));
    let seconds = number("SWARM_SECONDS").unwrap_or(if end == u64::MAX { 60 } else { u64::MAX });
    let start = Instant::now();
    let (next, failed) = (AtomicU64::new(from), AtomicU64::new(0));
    let finished = AtomicBool::new(false);
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| {
                scope.spawn(|| {
                    while start.elapsed() < Duration::from_secs(seconds) {
                        let seed = next.fetch_add(1, Ordering::Relaxed);
                        if seed >= end {
                            break;
                        }
                        if catch_unwind(|| explore(seed)).is_err() {
                            failed.fetch_add(1, Ordering::Relaxed);
                            println!("failed: seed {seed}");
                        }
                    }
                })
            })
            .collect();
        scope.spawn(|| {
            while !finished.load(Ordering::Relaxed) {
                thread::sleep(PROGRESS.min(Duration::from_millis(200)));
                let elapsed = start.elapsed();
                if elapsed.as_millis() % PROGRESS.as_millis() < 200 {
                    let done = next.load(Ordering::Relaxed).min(end) - from;
                    println!("{} s: {done} seeds from {from} on", elapsed.as_secs());
                }
            }
        });
        for worker in workers {
            worker.join().expect("a worker catches what its worlds do");
        }
        finished.store(true, Ordering::Relaxed);
    });
    let (done, failed) = (next.load(Ordering::Relaxed).min(end) - from, failed.into_inner());
    println!("{done} seeds from {from} on in {} s: {failed} failed", start.elapsed().as_secs());
    assert_eq!(failed, 0, "seeds failed");
}

/// The period of progress messages.
const PROGRESS: Duration = Duration::from_secs(5);

/// A number from the environment.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
