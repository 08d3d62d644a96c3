//! `cargo xtask test`: every test there is, the slowest programs, and one line of totals.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

use crate::shell::{Outcome, cargo, run_and_read, say};
use crate::totals::{FailedTest, Totals};
use crate::{capi, lanes};

/// The most failed tests that are run again, alone.
const MOST_REPEATED: usize = 4;

/// Runs every test. Without a peer program its interop tests are skipped, or fail if
/// `require_peers`.
///
/// Tests with real sockets and programs share the processors with others, and the machine may
/// stall. So a few failed integration tests are run once more, alone. The chore fails if one of
/// them fails again, or if the machine did not stall while its program ran: a test that passes only
/// sometimes on a quiet machine is a failure. The file of reruns names each, with the stall.
pub(crate) fn run(require_peers: bool) -> Outcome {
    let reruns = reruns_file()?;
    begin_file(&reruns)?;
    let (totals, passed) = lanes::run(|tests| prepare(tests, require_peers))?;
    let passed = passed || passed_alone(&totals, &reruns, require_peers)?;
    say(&format!("the slowest test programs:{}", totals.slowest_programs()));
    let notes = fs::read_to_string(&reruns).unwrap_or_default();
    if !notes.is_empty() {
        say(&format!("failed tests, also in {}:\n{}", reruns.display(), notes.trim_end()));
    }
    say(&totals.to_string());
    if passed { Ok(()) } else { Err("not every test passed".to_owned()) }
}

/// Runs the failed tests again if they are few, and says whether they passed.
fn passed_alone(totals: &Totals, reruns: &Path, require_peers: bool) -> Result<bool, String> {
    let failed = totals.failed_tests();
    let again = if are_few(totals.failed(), failed) {
        Some(run_alone(failed, require_peers)?)
    } else {
        None
    };
    for test in failed {
        note(reruns, &described(test, again.as_ref()))?;
    }
    Ok(again.is_some_and(|again| is_excused(failed, &again)))
}

/// Whether all of these failed tests passed `again`, and a stall may explain why each failed.
fn is_excused(failed: &[FailedTest], again: &Totals) -> bool {
    // A test that is not found passes nowhere.
    let all_passed = again.failed() == 0 && again.passed() >= failed.len() as u64;
    all_passed && failed.iter().all(|test| test.disturbance().is_some())
}

/// Whether these tests, which are all that failed, may be run again.
fn are_few(all: u64, failed: &[FailedTest]) -> bool {
    (1..=MOST_REPEATED).contains(&failed.len()) && all == failed.len() as u64
}

/// The line about a failed test in the file of reruns; `again` has the results of the rerun.
fn described(test: &FailedTest, again: Option<&Totals>) -> String {
    let stall = match test.disturbance() {
        Some(stall) => format!("a stall of {} ms", stall.as_millis()),
        None => "no stall".to_owned(),
    };
    let name = &test.name;
    let result = match again {
        None => "was not repeated",
        Some(again) if again.failed_tests().iter().any(|it| it.name == *name) => {
            "failed again alone"
        }
        Some(_) if test.disturbance().is_none() => "passed alone, so it depends on chance",
        Some(_) => "passed alone",
    };
    format!("{name}: failed with {stall}, and {result}")
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

/// The file that names each test that failed, and whether it passed alone.
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
    if require_peers {
        tests.env("PUNCTUAL_REQUIRE_PEERS", "1");
    }
    Ok(())
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
    fn a_few_failures_with_names_are_repeated() {
        let failures = |count| vec![failed("a", None); count];
        assert!(are_few(4, &failures(4)));
        assert!(!are_few(5, &failures(5)));
        assert!(!are_few(2, &failures(1)), "one has no name");
        assert!(!are_few(0, &[]), "the tests did not run");
    }

    #[test]
    fn the_file_of_reruns_says_what_became_of_each_failure() {
        let mut again = Totals::default();
        for line in ["failures:", "    b"] {
            again.count(line);
        }
        let line = |name, stall, again| described(&failed(name, Some(stall)), again);
        assert_eq!(line("a", 12, None), "a: failed with no stall, and was not repeated");
        let stalled = "failed with a stall of 60 ms, and";
        assert_eq!(line("a", 60, Some(&again)), format!("a: {stalled} passed alone"));
        assert_eq!(line("b", 60, Some(&again)), format!("b: {stalled} failed again alone"));
        let chance = "a: failed with no stall, and passed alone, so it depends on chance";
        assert_eq!(line("a", 49, Some(&again)), chance);
    }

    #[test]
    fn only_a_stall_excuses_a_failed_test_that_passes_alone() {
        let results = |line| {
            let mut again = Totals::default();
            again.count(line);
            again
        };
        let passed = results("test result: ok. 2 passed; 0 failed; finished in 0.50s");
        let one_failed = results("test result: FAILED. 1 passed; 1 failed; finished in 0.50s");
        let stalled = || failed("a", Some(50));
        assert!(is_excused(&[stalled(), failed("b", Some(900))], &passed));
        assert!(!is_excused(&[stalled(), failed("b", Some(900))], &one_failed));
        assert!(!is_excused(&[stalled(), failed("b", Some(49))], &passed), "no stall");
        assert!(!is_excused(&[stalled(), failed("b", None)], &passed), "nobody measured");
        assert!(!is_excused(&[stalled(), stalled(), stalled()], &passed), "one was not found");
    }
}
