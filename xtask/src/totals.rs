//! The results of test programs, read from the lines that cargo and libtest print.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use punctual_stalls::DISTURBANCE;

/// The results of the test programs.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Totals {
    passed: u64,
    failed: u64,
    skipped: u64,
    failed_tests: Vec<FailedTest>,
    /// The programs that have ended, with the seconds that their tests took.
    programs: Vec<(String, f64)>,
    /// The program that runs.
    program: String,
    /// Whether the last line belongs to libtest's list of the tests that failed.
    in_list: bool,
}

/// A test that failed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct FailedTest {
    /// The name by which its program runs it alone.
    pub(crate) name: String,
    /// The longest stall of the machine while its program ran, once that is known.
    pub(crate) stall: Option<Duration>,
}

impl FailedTest {
    /// The stall of the machine that may be the reason.
    pub(crate) fn disturbance(&self) -> Option<Duration> {
        self.stall.filter(|stall| *stall >= DISTURBANCE)
    }
}

/// A moment in the output, at which the watch for stalls has something to do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Moment {
    /// A test program begins.
    Begins,
    /// A test program has ended, and some of its tests failed.
    Failed,
}

impl Totals {
    /// Tests that were skipped since a program is missing.
    pub(crate) const fn skipped(&self) -> u64 {
        self.skipped
    }

    /// Tests that passed, without the skipped.
    pub(crate) const fn passed(&self) -> u64 {
        self.passed.saturating_sub(self.skipped)
    }

    /// Tests that failed, those without a name included.
    pub(crate) const fn failed(&self) -> u64 {
        self.failed
    }

    /// The tests that failed, by name.
    pub(crate) fn failed_tests(&self) -> &[FailedTest] {
        &self.failed_tests
    }

    /// Adds the results of other programs.
    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.failed_tests.extend(other.failed_tests);
        self.programs.extend(other.programs);
    }

    /// Adds what `line` reports, if it reports anything: cargo's line about the program that it
    /// starts, libtest's result line, or the line that an interop test prints when it skips. Such a
    /// test counts as skipped, not as passed.
    pub(crate) fn count(&mut self, line: &str) -> Option<Moment> {
        if line.starts_with("skipped: ") {
            self.skipped += 1;
        }
        if let Some(program) = program(line) {
            self.program = program;
        }
        match line.strip_prefix("    ") {
            Some(name) if self.in_list => {
                self.failed_tests.push(FailedTest { name: name.to_owned(), stall: None });
            }
            _ => self.in_list = line == "failures:",
        }
        if line.starts_with("running ") && (line.ends_with(" test") || line.ends_with(" tests")) {
            return Some(Moment::Begins);
        }
        let result = line.strip_prefix("test result: ")?;
        self.passed += number_before("passed", result);
        let failed = number_before("failed", result);
        self.failed += failed;
        if let Some(seconds) = seconds(result) {
            self.programs.push((self.program.clone(), seconds));
        }
        (failed > 0).then_some(Moment::Failed)
    }

    /// Notes the longest stall of the machine in the time of the program that has just ended.
    pub(crate) fn stalled(&mut self, stall: Duration) {
        for test in self.failed_tests.iter_mut().filter(|test| test.stall.is_none()) {
            test.stall = Some(stall);
        }
    }

    /// The ten programs whose tests took longest, one a line with its seconds.
    pub(crate) fn slowest_programs(&self) -> String {
        let mut programs: Vec<_> = self.programs.iter().filter(|(_, time)| *time > 0.0).collect();
        programs.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        let lines = programs.iter().take(LISTED);
        lines.map(|(program, seconds)| format!("\n{seconds:8.2} s  {program}")).collect()
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed(), self.failed)?;
        if self.skipped > 0 { write!(f, ", {} skipped", self.skipped) } else { Ok(()) }
    }
}

/// The name of the test program that cargo says it starts.
fn program(line: &str) -> Option<String> {
    let line = line.trim_start();
    if let Some(of) = line.strip_prefix("Doc-tests ") {
        return Some(format!("{of}, documentation"));
    }
    let (source, file) = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once(" (")?;
    let file = Path::new(file).file_stem()?.to_str()?;
    let name = file.rsplit_once('-').map_or(file, |(name, _)| name);
    let kind = if source.starts_with("unittests ") { ", unit tests" } else { "" };
    Some(format!("{name}{kind}"))
}

/// The number before this word in a result line.
fn number_before(what: &str, result: &str) -> u64 {
    let words: Vec<&str> = result.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair[1] == what);
    pair.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

/// The time at the end of a result line.
fn seconds(result: &str) -> Option<f64> {
    result.rsplit_once("finished in ")?.1.trim_end().strip_suffix('s')?.parse().ok()
}

/// The most programs in the list of the slowest.
const LISTED: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_add_up_over_test_programs_and_leave_out_the_skipped() {
        let mut totals = Totals::default();
        assert_eq!(totals.count("running 3 tests"), Some(Moment::Begins));
        assert_eq!(totals.count("skipped: ffmpeg is not installed"), None);
        let failed = "test result: FAILED. 7 passed; 1 failed; 0 ignored; 0 measured; \
                      0 filtered out; finished in 0.00s";
        assert_eq!(totals.count(failed), Some(Moment::Failed));
        let passed = "test result: ok. 5 passed; 0 failed; 2 ignored; 0 measured; 4 filtered out";
        assert_eq!(totals.count(passed), None);
        assert_eq!(totals.to_string(), "11 passed, 1 failed, 1 skipped");
    }

    #[test]
    fn failed_tests_get_the_stall_of_their_own_program() {
        let mut totals = Totals::default();
        let first =
            ["failures:", "", "---- a stdout ----", "    no name", "", "failures:", "    a"];
        for line in first {
            assert_eq!(totals.count(line), None);
        }
        totals.stalled(Duration::from_millis(70));
        for line in ["", "    no name", "failures:", "    b", ""] {
            assert_eq!(totals.count(line), None);
        }
        totals.stalled(Duration::from_millis(3));
        let test = |name: &str, stall| FailedTest {
            name: name.to_owned(),
            stall: Some(Duration::from_millis(stall)),
        };
        assert_eq!(totals.failed_tests(), [test("a", 70), test("b", 3)]);
    }

    #[test]
    fn the_slowest_programs_are_listed_with_their_names() {
        let mut totals = Totals::default();
        for (program, seconds) in [
            ("     Running tests/cli/main.rs (target/debug/deps/cli-0123456789abcdef)", "9.50"),
            ("     Running unittests src/lib.rs (target/debug/deps/punctual_proto-01ef)", "12.25"),
            ("   Doc-tests punctual", "0.00"),
            ("   Doc-tests punctual_proto", "0.10"),
        ] {
            totals.count(program);
            totals.count(&format!("test result: ok. 1 passed; 0 failed; finished in {seconds}s"));
        }
        let lines: Vec<_> = totals.slowest_programs().lines().map(str::to_owned).collect();
        let slowest = "   12.25 s  punctual_proto, unit tests";
        assert_eq!(
            lines,
            ["", slowest, "    9.50 s  cli", "    0.10 s  punctual_proto, documentation"]
        );
    }
}
