//! `cargo xtask test`: every test there is, and one line of totals at the end.

use std::path::PathBuf;
use std::{env, fmt};

use crate::shell::{Outcome, cargo, run_and_read, say};

/// Runs every test. Without a peer program its interop tests are skipped, or fail if
/// `require_peers`.
pub(crate) fn run(require_peers: bool) -> Outcome {
    let mut totals = Totals::default();
    let mut tests = cargo(["test", "--workspace", "--no-fail-fast"]);
    tests.env("PUNCTUAL_BIN", program()?);
    if require_peers {
        tests.env("PUNCTUAL_REQUIRE_PEERS", "1");
    }
    let passed = run_and_read(&mut tests, |line| totals.count(line))?;
    say(&totals.to_string());
    if passed { Ok(()) } else { Err("not every test passed".to_owned()) }
}

/// The punctual program, which cargo builds for its own tests. The interop tests take this one
/// instead of building another, whose dependencies would have fewer features and be built again.
pub(crate) fn program() -> Result<PathBuf, String> {
    let own = env::current_exe().map_err(|error| format!("who am I? {error}"))?;
    let target = own.ancestors().nth(2).ok_or("xtask does not run from a target folder")?;
    Ok(target.join("debug").join("punctual"))
}

/// What the test programs reported.
#[derive(Debug, Default, Eq, PartialEq)]
pub(crate) struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
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
        totals.count("test result: ok. 5 passed; 0 failed; 2 ignored; 0 measured; 4 filtered out");
        assert_eq!(totals.to_string(), "11 passed, 1 failed, 1 skipped");
    }
}
