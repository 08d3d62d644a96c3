//! `cargo xtask test`: every test there is, and one line of totals at the end.

use std::num::NonZero;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fmt, fs};

use crate::capi;
use crate::shell::{Outcome, cargo, run_and_read, say};

/// As many failed tests as are run again, alone.
const MOST_REPEATED: usize = 4;

/// Runs every test. Without a peer program its interop tests are skipped, or fail if
/// `require_peers`.
///
/// A few failed integration tests are run once more, alone: those with real sockets and real
/// programs share the processors with others, and a busy machine can make one late. The last line
/// names them, and the chore fails if one of them fails again.
pub(crate) fn run(require_peers: bool) -> Outcome {
    let mut totals = Totals::default();
    let mut tests = cargo(["test", "--workspace", "--no-fail-fast"]);
    prepare(&mut tests, require_peers)?;
    let passed = run_and_read(&mut tests, |line| totals.count(line))?;
    let failed = totals.failed_tests.clone();
    let repeatable = totals.failed == failed.len() as u64 && failed.len() <= MOST_REPEATED;
    let passed =
        passed || (repeatable && !failed.is_empty() && pass_alone(&failed, require_peers)?);
    say(&totals.to_string());
    if passed && !failed.is_empty() {
        say(&format!("failed beside others and passed alone: {}", failed.join(", ")));
    }
    if passed { Ok(()) } else { Err("not every test passed".to_owned()) }
}

/// Whether each of these integration tests passes when nothing else runs.
fn pass_alone(failed: &[String], require_peers: bool) -> Result<bool, String> {
    let mut totals = Totals::default();
    let mut tests = cargo(["test", "--workspace", "--no-fail-fast", "--test", "*"]);
    prepare(&mut tests, require_peers)?;
    tests.args(["--", "--test-threads=1", "--exact"]).args(failed);
    let passed = run_and_read(&mut tests, |line| totals.count(line))?;
    Ok(passed && totals.passed >= failed.len() as u64)
}

fn prepare(tests: &mut Command, require_peers: bool) -> Outcome {
    tests.env("PUNCTUAL_BIN", program()?);
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

/// The results of the test programs.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
    failed_tests: Vec<String>,
    /// Whether the last line belongs to libtest's list of the tests that failed.
    in_list: bool,
}

impl Totals {
    /// Tests that were skipped since a program is missing.
    pub(crate) const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Adds what `line` reports, if it reports anything: libtest's result line, or the line that an
    /// interop test prints when it skips. Such a test counts as skipped, not as passed.
    pub(crate) fn count(&mut self, line: &str) {
        if line.starts_with("skipped: ") {
            self.skipped += 1;
        }
        match line.strip_prefix("    ") {
            Some(name) if self.in_list => self.failed_tests.push(name.to_owned()),
            _ => self.in_list = line == "failures:",
        }
        let Some(result) = line.strip_prefix("test result: ") else { return };
        let of = |what: &str| {
            let mut words = result.split([' ', ';', '.']).filter(|word| !word.is_empty());
            let mut count = 0;
            while let Some(word) = words.next() {
                match word.parse() {
                    Ok(number) if words.next() == Some(what) => count = number,
                    _ => {}
                }
            }
            count
        };
        self.passed += of("passed");
        self.failed += of("failed");
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = self.passed.saturating_sub(self.skipped);
        write!(f, "{passed} passed, {} failed", self.failed)?;
        if self.skipped > 0 { write!(f, ", {} skipped", self.skipped) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_up_over_test_programs_and_leave_out_the_skipped() {
        let mut totals = Totals::default();
        totals.count("running 3 tests");
        totals.count("skipped: ffmpeg is not installed");
        totals.count(
            "test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; \
             finished in 0.00s",
        );
        for line in ["failures:", "", "---- a stdout ----", "    no name", "", "failures:", "    a"]
        {
            totals.count(line);
        }
        totals.count("");
        totals.count("    no name");
        assert_eq!(totals.failed_tests, ["a"]);
        totals.count("test result: ok. 5 passed; 0 failed; 2 ignored; 0 measured; 4 filtered out");
        assert_eq!(totals.to_string(), "11 passed, 1 failed, 1 skipped");
    }
}
