//! A watch for the stalls of a machine, and the file that names the tests that were run again.
//!
//! A test in real time fails if the machine keeps its programs waiting, and then the failure says
//! nothing about the programs. [`Watch`] measures such stalls, of which those of [`DISTURBANCE`] or
//! more count. [`note`] writes each rerun to a file that the continuous integration prints.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "a stall is measured on the system's clock")]

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A stall that may make a test in real time fail.
pub const DISTURBANCE: Duration = Duration::from_millis(50);

/// The environment variable with the path of the file for [`note`].
pub const FILE: &str = "PUNCTUAL_RERUNS";

/// Notices when a thread that sleeps 5 ms again and again wakes up far later. There is one on each
/// processor: where the machine is a guest, its host may stop one processor and leave the others.
///
/// A stall is measured from one waking to the next, so that none is measured too short; the sleep
/// adds up to 5 ms. Threads that compute may wait longer: the system prefers one that wakes up.
#[derive(Debug)]
pub struct Watch {
    is_over: Arc<AtomicBool>,
    watchers: Vec<ProcessorWatcher>,
}

impl Watch {
    /// Starts the threads.
    ///
    /// # Panics
    ///
    /// If the system gives no threads.
    pub fn start() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let watchers =
            processors().into_iter().map(|place| ProcessorWatcher::start(place, &is_over));
        Self { watchers: watchers.collect(), is_over }
    }

    /// Begins anew: forgets the stalls so far.
    pub fn forget(&self) {
        for watcher in &self.watchers {
            watcher.seen.longest.store(0, Ordering::Relaxed);
        }
    }

    /// The longest stall since the start, or since [`forget`](Self::forget); without any, the 5 ms
    /// of sleep. Waits until each thread has woken up, so that a stall that goes on now counts.
    pub fn longest(&self) -> Duration {
        for watcher in &self.watchers {
            let before = watcher.seen.naps.load(Ordering::Relaxed);
            while watcher.seen.naps.load(Ordering::Relaxed) == before {
                thread::sleep(NAP);
            }
        }
        let longest = self.watchers.iter().map(|it| it.seen.longest.load(Ordering::Relaxed)).max();
        Duration::from_nanos(longest.unwrap_or(0))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for watcher in self.watchers.drain(..) {
            let _ = watcher.thread.join();
        }
    }
}

/// The thread of one processor.
#[derive(Debug)]
struct ProcessorWatcher {
    seen: Arc<ProcessorStalls>,
    thread: thread::JoinHandle<()>,
}

impl ProcessorWatcher {
    fn start(place: Processor, is_over: &Arc<AtomicBool>) -> Self {
        let seen = Arc::new(ProcessorStalls::default());
        let (own, is_over) = (seen.clone(), is_over.clone());
        let thread = thread::spawn(move || {
            place.stay();
            let mut awake = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                awake = own.nap(awake);
            }
        });
        Self { seen, thread }
    }
}

/// The measurements of a processor's thread.
#[derive(Debug, Default)]
struct ProcessorStalls {
    /// Nanoseconds of the longest stall.
    longest: AtomicU64,
    naps: AtomicU64,
}

impl ProcessorStalls {
    /// Sleeps once, keeps the time since the last waking, and returns the time of this one.
    fn nap(&self, last: Instant) -> Instant {
        thread::sleep(NAP);
        let awake = Instant::now();
        let stall = u64::try_from((awake - last).as_nanos()).unwrap_or(u64::MAX);
        self.longest.fetch_max(stall, Ordering::Relaxed);
        self.naps.fetch_add(1, Ordering::Relaxed);
        awake
    }
}

/// The processors that this program may use.
#[cfg(target_os = "linux")]
fn processors() -> Vec<Processor> {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else {
        return vec![Processor(rustix::thread::CpuSet::new())];
    };
    let alone = |processor| {
        let mut set = rustix::thread::CpuSet::new();
        set.set(processor);
        Processor(set)
    };
    let all = 0..rustix::thread::CpuSet::MAX_CPU;
    all.filter(|&processor| allowed.is_set(processor)).map(alone).collect()
}

#[cfg(not(target_os = "linux"))]
fn processors() -> Vec<Processor> {
    let count = thread::available_parallelism().map_or(1, usize::from);
    std::iter::repeat_with(|| Processor).take(count).collect()
}

/// A processor, on which a thread may stay.
#[cfg(target_os = "linux")]
struct Processor(rustix::thread::CpuSet);

#[cfg(target_os = "linux")]
impl Processor {
    /// Keeps this thread on the processor. Where that is forbidden it watches wherever it runs.
    fn stay(&self) {
        let _ = rustix::thread::sched_setaffinity(None, &self.0);
    }
}

#[cfg(not(target_os = "linux"))]
struct Processor;

#[cfg(not(target_os = "linux"))]
impl Processor {
    fn stay(&self) {}
}

/// Adds a line about a rerun to the file that the environment names, if it names one.
///
/// # Errors
///
/// If the file cannot be written.
pub fn note(line: &str) -> io::Result<()> {
    std::env::var_os(FILE).map_or(Ok(()), |file| note_in(Path::new(&file), line))
}

/// Adds a line to this file.
///
/// # Errors
///
/// If the file cannot be written.
pub fn note_in(file: &Path, line: &str) -> io::Result<()> {
    // One call of the system for the line: tests of several processes write to the file.
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)?
        .write_all(format!("{line}\n").as_bytes())
}

const NAP: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn each_processor_is_watched() {
        let places = processors();
        let allowed = rustix::thread::sched_getaffinity(None).unwrap();
        assert_eq!(u32::try_from(places.len()), Ok(allowed.count()));
        assert!(places.iter().all(|Processor(place)| place.count() == 1));
    }

    #[test]
    fn a_watch_keeps_the_longest_stall_until_it_forgets() {
        let watch = Watch::start();
        watch.watchers[0].seen.longest.store(u64::MAX / 2, Ordering::Relaxed);
        assert_eq!(watch.longest(), Duration::from_nanos(u64::MAX / 2));
        watch.forget();
        let longest = watch.longest();
        assert!(longest >= NAP, "no sleep ends early");
        assert!(longest < Duration::from_secs(60), "{longest:?} is not a stall but a mistake");
    }

    /// Stops this process, which another one lets go on.
    #[cfg(unix)]
    fn stop_for(time: Duration) {
        let (own, seconds) = (std::process::id(), time.as_secs_f64());
        let script = format!("kill -STOP {own}; sleep {seconds}; kill -CONT {own}");
        let status = std::process::Command::new("sh").args(["-c", &script]).status().unwrap();
        assert!(status.success());
    }

    #[cfg(unix)]
    #[test]
    fn a_stall_is_never_measured_too_short() {
        let watch = Watch::start();
        for stall in [DISTURBANCE, DISTURBANCE, DISTURBANCE, 2 * DISTURBANCE] {
            watch.forget();
            stop_for(stall);
            let longest = watch.longest();
            assert!(longest >= stall, "{longest:?} of {stall:?}");
        }
    }

    #[test]
    fn lines_are_added_to_the_file() {
        let file = std::env::temp_dir().join(format!("reruns-{}.txt", std::process::id()));
        note_in(&file, "one").unwrap();
        note_in(&file, "two").unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert_eq!(text, "one\ntwo\n");
    }
}
