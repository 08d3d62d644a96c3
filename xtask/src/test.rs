//! `cargo xtask test`: every test there is, the slowest programs, and one line of totals.

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use punctual_stalls::{DISTURBANCE, Watch};

use crate::capi;
use crate::shell::{Outcome, cargo, run_and_read, say};
use crate::totals::{FailedTest, Moment, Totals};

/// The most failed tests that are run again, alone.
const MOST_REPEATED: usize = 4;

/// Runs every test. Without a peer program its interop tests are skipped, or fail if
/// `require_peers`.
///
/// Tests with real sockets and real programs fail where the machine stalls. So a few failed
/// integration tests are run once more, alone, if the machine stalled while their program ran. A
/// test that failed without a stall, or fails alone, fails the chore. The file of reruns names
/// each.
pub(crate) fn run(require_peers: bool) -> Outcome {
    let reruns = reruns_file()?;
    begin_file(&reruns)?;
    let mut totals = Totals::default();
    let mut tests = cargo(["test", "--workspace", "--no-fail-fast"]);
    prepare(&mut tests, require_peers)?;
    let watch = Watch::start();
    let passed = run_and_read(&mut tests, |line| match totals.count(line) {
        Some(Moment::Begins) => watch.forget(),
        Some(Moment::Failed) => totals.stalled(watch.longest()),
        None => {}
    })?;
    drop(watch);
    let passed = passed || passed_after_stalls(&totals, &reruns, require_peers)?;
    say(&format!("the slowest test programs:{}", totals.slowest_programs()));
    let notes = fs::read_to_string(&reruns).unwrap_or_default();
    if !notes.is_empty() {
        say(&format!("failed tests, also in {}:\n{}", reruns.display(), notes.trim_end()));
    }
    say(&totals.to_string());
    if passed { Ok(()) } else { Err("not every test passed".to_owned()) }
}

/// Runs the failed tests again if only stalls can be the reason, and says whether they passed.
fn passed_after_stalls(
    totals: &Totals,
    reruns: &Path,
    require_peers: bool,
) -> Result<bool, String> {
    let failed = totals.failed_tests();
    let again = if are_excused(totals.failed(), failed) {
        Some(run_alone(failed, require_peers)?)
    } else {
        None
    };
    for test in failed {
        note(reruns, &described(test, again.as_ref()))?;
    }
    // A test that is not found passes nowhere.
    Ok(again.is_some_and(|again| again.failed() == 0 && again.passed() >= totals.failed()))
}

/// Whether these tests, which are all that failed, may be run again: they are few, and the machine
/// stalled while the program of each ran.
fn are_excused(all: u64, failed: &[FailedTest]) -> bool {
    let are_few = !failed.is_empty() && failed.len() <= MOST_REPEATED;
    are_few && all == failed.len() as u64 && failed.iter().all(is_excused)
}

fn is_excused(test: &FailedTest) -> bool {
    test.stall.is_some_and(|stall| stall >= DISTURBANCE)
}

/// The line about a failed test in the file of reruns; `again` has the results of the rerun.
fn described(test: &FailedTest, again: Option<&Totals>) -> String {
    let stall = test.stall.unwrap_or_default().as_millis();
    let name = &test.name;
    match again {
        None if is_excused(test) => {
            format!("{name}: failed while the machine stalled for {stall} ms, and was not repeated")
        }
        None => format!("{name}: failed; the machine stalled for at most {stall} ms"),
        Some(again) => {
            let result = match again.failed_tests().iter().any(|it| it.name == *name) {
                true => "failed again alone",
                false => "passed alone",
            };
            format!("{name}: failed while the machine stalled for {stall} ms, and {result}")
        }
    }
}

/// The results of these integration tests when nothing else runs.
fn run_alone(failed: &[FailedTest], require_peers: bool) -> Result<Totals, String> {
    let mut totals = Totals::default();
    let mut tests = cargo(["test", "--workspace", "--no-fail-fast", "--test", "*"]);
    prepare(&mut tests, require_peers)?;
    tests.args(["--", "--test-threads=1", "--exact"]);
    tests.args(failed.iter().map(|test| &test.name));
    run_and_read(&mut tests, |line| {
        totals.count(line);
    })?;
    Ok(totals)
}

/// The file that names each test that was run again or failed without a stall.
pub(crate) fn reruns_file() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("reruns.txt"))
}

/// Removes the file of an earlier run.
fn begin_file(file: &Path) -> Outcome {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(format!("{}: {error}", file.display()))
        }
        _ => Ok(()),
    }
}

fn note(file: &Path, line: &str) -> Outcome {
    punctual_stalls::note_in(file, line).map_err(|error| format!("{}: {error}", file.display()))
}

fn prepare(tests: &mut Command, require_peers: bool) -> Outcome {
    tests.env("PUNCTUAL_BIN", program()?).env(punctual_stalls::FILE, reruns_file()?);
    if cfg!(target_os = "linux") {
        tests.env("PUNCTUAL_C_LIBRARY", c_library()?);
    }
    run_more_at_a_time(tests);
    if require_peers {
        tests.env("PUNCTUAL_REQUIRE_PEERS", "1");
    }
    Ok(())
}

/// Runs twice as many tests at a time as there are processors, unless the user has said how many:
/// many of them wait for programs and timers most of the time.
pub(crate) fn run_more_at_a_time(tests: &mut Command) {
    if env::var_os("RUST_TEST_THREADS").is_none() {
        let processors = std::thread::available_parallelism().map_or(1, NonZero::get);
        tests.env("RUST_TEST_THREADS", (2 * processors).to_string());
    }
}

/// The punctual program, which cargo builds for its own tests. The interop tests take this one
/// instead of building another, whose dependencies would have fewer features and be built again.
pub(crate) fn program() -> Result<PathBuf, String> {
    Ok(target_folder()?.join("debug").join("punctual"))
}

/// The target folder that contains this program.
pub(crate) fn target_folder() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("who am I? {error}"))?;
    let target = own.ancestors().nth(2).ok_or("xtask does not run from a target folder")?;
    Ok(target.to_owned())
}

/// A folder with the C library under libsrt's names, for the programs that interop tests run on it.
/// The names lead to the library that cargo builds for its own tests, before any of them runs.
fn c_library() -> Result<PathBuf, String> {
    let target = target_folder()?;
    let folder = target.join("c-library");
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for name in ["libsrt.so.1.5", "libsrt-gnutls.so.1.5"] {
        capi::link(target.join("debug/deps/libpunctual_srt.so"), &folder.join(name))?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn failed(name: &str, stall: Option<u64>) -> FailedTest {
        FailedTest { name: name.to_owned(), stall: stall.map(Duration::from_millis) }
    }

    #[test]
    fn only_stalls_of_50_ms_excuse_a_failure() {
        assert!(are_excused(2, &[failed("a", Some(50)), failed("b", Some(900))]));
        assert!(!are_excused(2, &[failed("a", Some(49)), failed("b", Some(900))]));
        assert!(!are_excused(1, &[failed("a", None)]));
        assert!(!are_excused(0, &[]), "the tests did not run");
    }

    #[test]
    fn many_failures_and_failures_without_a_name_are_not_excused() {
        let stalled = |count| vec![failed("a", Some(100)); count];
        assert!(are_excused(4, &stalled(4)));
        assert!(!are_excused(5, &stalled(5)));
        assert!(!are_excused(2, &stalled(1)));
    }

    #[test]
    fn the_file_of_reruns_says_what_became_of_each_failure() {
        let mut again = Totals::default();
        for line in ["failures:", "    b"] {
            again.count(line);
        }
        let line = |name, stall, again| described(&failed(name, Some(stall)), again);
        assert_eq!(line("a", 12, None), "a: failed; the machine stalled for at most 12 ms");
        let while_stalled = "failed while the machine stalled for 60 ms, and";
        assert_eq!(line("a", 60, None), format!("a: {while_stalled} was not repeated"));
        assert_eq!(line("a", 60, Some(&again)), format!("a: {while_stalled} passed alone"));
        assert_eq!(line("b", 60, Some(&again)), format!("b: {while_stalled} failed again alone"));
    }
}
