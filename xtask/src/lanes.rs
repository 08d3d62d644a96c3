//! The test programs in two lanes that run at the same time.
//!
//! Tests with sockets, programs and real time wait most of their time; tests in virtual time
//! compute. One after another they would leave half of the machine idle.

use std::process::Command;
use std::thread;

use punctual_stalls::Watch;

use crate::shell::{
    Outcome, cargo, cargo_that_gives_way, output_of, processors, read, run as run_command,
    run_at_a_time, say, threads_in_real_time,
};
use crate::totals::{Moment, Totals};

/// Test programs that run one after another.
struct Lane {
    selection: Vec<String>,
    /// The number of tests that run at a time.
    threads: usize,
    /// Whether the other lane gets the processors first.
    gives_way: bool,
}

/// Runs all tests, with what `prepare` adds to the commands. Returns their results, and whether all
/// passed.
pub(crate) fn run(prepare: impl Fn(&mut Command) -> Outcome) -> Result<(Totals, bool), String> {
    // Cargo compiles for both lanes here, and examples, which no lane selects.
    let mut build = cargo(["test", "--workspace", "--no-run"]);
    prepare(&mut build)?;
    run_command(&mut build)?;
    let mut commands = Vec::new();
    for lane in lanes(&integration_tests()?) {
        let arguments = ["test", "--workspace", "--no-fail-fast"];
        let mut tests =
            if lane.gives_way { cargo_that_gives_way(arguments) } else { cargo(arguments) };
        tests.args(&lane.selection);
        prepare(&mut tests)?;
        run_at_a_time(&mut tests, lane.threads);
        commands.push(tests);
    }
    let results = thread::scope(|scope| {
        let lanes: Vec<_> =
            commands.iter_mut().map(|tests| scope.spawn(|| run_lane(tests))).collect();
        lanes.into_iter().map(|lane| lane.join().expect("a lane panicked")).collect::<Vec<_>>()
    });
    let mut documentation = cargo(["test", "--workspace", "--no-fail-fast", "--doc"]);
    prepare(&mut documentation)?;
    let (mut totals, mut passed) = run_lane(&mut documentation)?;
    for result in results {
        let (of_lane, lane_passed) = result?;
        totals.add(of_lane);
        passed &= lane_passed;
    }
    Ok((totals, passed))
}

/// Runs the programs of one lane, and prints the output of each when it ends.
fn run_lane(tests: &mut Command) -> Result<(Totals, bool), String> {
    let mut totals = Totals::default();
    let mut output = String::new();
    let watch = Watch::start();
    let passed = read(tests, |line| {
        output.push_str(line);
        output.push('\n');
        match totals.count(line) {
            Some(Moment::Begins) => watch.forget(),
            Some(Moment::Failed) => totals.stalled(watch.longest()),
            None => {}
        }
        if line.starts_with("test result: ") {
            say(&std::mem::take(&mut output));
        }
    });
    say(&output);
    Ok((totals, passed?))
}

/// Tests in real time, and tests that compute with the time that the others leave.
fn lanes(tests: &[(String, String)]) -> [Lane; 2] {
    let select = |in_real_time: bool| {
        let tests = tests.iter().filter(|(folder, _)| is_in_real_time(folder) == in_real_time);
        tests.map(|(_, name)| format!("--test={name}")).collect::<Vec<_>>()
    };
    let real = Lane { selection: select(true), threads: threads_in_real_time(), gives_way: false };
    let mut computing = Lane { selection: select(false), threads: processors(), gives_way: true };
    computing.selection.extend(["--lib", "--bins"].map(str::to_owned));
    [real, computing]
}

/// Whether the tests of the package in this folder wait for sockets, programs or clocks.
fn is_in_real_time(folder: &str) -> bool {
    IN_REAL_TIME.contains(&folder)
}

/// The integration tests of the workspace: the folder of each one's package, and its name.
pub(crate) fn integration_tests() -> Result<Vec<(String, String)>, String> {
    let metadata = output_of(&mut cargo(["metadata", "--no-deps", "--format-version=1"]))
        .ok_or("cargo metadata fails")?;
    let metadata: serde_json::Value =
        serde_json::from_str(&metadata).map_err(|error| format!("cargo metadata: {error}"))?;
    let mut tests = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let manifest = package["manifest_path"].as_str().unwrap_or_default();
        let folder = manifest.rsplit('/').nth(1).unwrap_or_default();
        for target in package["targets"].as_array().into_iter().flatten() {
            if target["kind"] == serde_json::json!(["test"])
                && let Some(name) = target["name"].as_str()
            {
                tests.push((folder.to_owned(), name.to_owned()));
            }
        }
    }
    Ok(tests)
}

/// The folders of these packages.
const IN_REAL_TIME: [&str; 9] =
    ["capi", "cli", "emulator", "ends", "interop", "io", "lab-cli", "punctual", "sockets"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_integration_test_is_in_one_lane() {
        let tests = integration_tests().unwrap();
        let [real, computing] = lanes(&tests);
        for (name, lane, other) in
            [("--test=streams", &real, &computing), ("--test=world", &computing, &real)]
        {
            assert!(lane.selection.iter().any(|it| it == name), "{name}");
            assert!(!other.selection.iter().any(|it| it == name), "{name}");
        }
        assert_eq!(real.selection.len() + computing.selection.len(), tests.len() + 2);
    }

    #[test]
    fn no_test_of_one_lane_has_the_name_of_one_in_the_other() {
        let [real, computing] = lanes(&integration_tests().unwrap());
        let both: Vec<_> =
            real.selection.iter().filter(|name| computing.selection.contains(name)).collect();
        assert!(both.is_empty(), "they would run twice: {both:?}");
    }
}
