//! `cargo xtask bench`, `fuzz`, `relay-soak` and `swarm`: chores that other programs do.

use std::fs;
use std::process::Command;

use crate::shell::{Outcome, cargo, output_of, root, run, say};
use crate::{Extent, Soak};

/// Measures against libsrt, and replaces the tables of `docs/benchmarks.md`.
pub(crate) fn bench(quick: bool) -> Outcome {
    let mut bench = cargo(["run", "--profile", "shipping", "--package", "bench", "--", "all"]);
    bench.args(["--write", "docs/benchmarks.md"]);
    if quick {
        bench.arg("--quick");
    }
    run(&mut bench)
}

/// Runs each fuzz target, or only one, for some minutes, also after one has found something. New
/// inputs are collected beside the corpus, which lies in the repository.
pub(crate) fn fuzz(minutes: u64, only: Option<&str>) -> Outcome {
    let Some(targets) = output_of(&mut cargo_fuzz(["list"])) else {
        return Err(
            "cargo-fuzz on a nightly toolchain is needed: rustup toolchain install nightly \
                    && cargo install --locked cargo-fuzz"
                .to_owned(),
        );
    };
    let wanted = |target: &&str| only.is_none_or(|only| only == *target);
    let wanted: Vec<&str> = targets.lines().filter(wanted).collect();
    if wanted.is_empty() {
        let known = targets.lines().collect::<Vec<_>>().join(", ");
        return Err(format!("no such fuzz target; there are {known}"));
    }
    let mut failed = Vec::new();
    for target in wanted {
        let found = root().join("target/fuzz").join(target);
        fs::create_dir_all(&found).map_err(|error| format!("{}: {error}", found.display()))?;
        // The sanitizer looks for faults that code without `unsafe` cannot have, at half the pace.
        let mut fuzz = cargo_fuzz(["run", "--sanitizer", "none", target]);
        fuzz.arg(found).arg(root().join("fuzz/corpus").join(target));
        // An input that takes seconds is a finding: no packet may cost more than microseconds.
        fuzz.args(["--", &format!("-max_total_time={}", minutes * 60), "-timeout=3"]);
        if let Err(problem) = run(&mut fuzz) {
            say(&format!("xtask: {problem}"));
            failed.push(target);
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(format!("fuzz targets that failed: {}", failed.join(", ")))
}

/// Lets callers come and go at the relay, which is the program of this build, optimised as the
/// callers are. A failure names the seed.
pub(crate) fn relay_soak(soak: Soak) -> Outcome {
    let arguments = ["test", "--release", "--package", "interop", "--test", "relay_soak"];
    let mut test = cargo(arguments);
    test.args(["--", "--ignored", "--exact", "--nocapture", "relay_soak"]);
    test.env("SOAK_MINUTES", soak.minutes.to_string());
    if let Some(seed) = soak.seed {
        test.env("SOAK_SEED", seed.to_string());
    }
    run(&mut test)
}

/// Runs random simulated worlds on all cores, optimised, and prints the seeds that fail.
pub(crate) fn swarm(extent: Extent) -> Outcome {
    let mut test = cargo(["test", "--release", "--package", "punctual-sim", "--test", "explore"]);
    test.args(["--", "--nocapture"]);
    match extent {
        Extent::Seconds(seconds) => {
            test.args(["--ignored", "swarm"]).env("SWARM_SECONDS", seconds.to_string());
        }
        Extent::Seeds(seeds) => {
            test.args(["--ignored", "swarm"]).env("SWARM_SEEDS", seeds.to_string());
        }
        Extent::Seed(seed) => {
            test.arg("random_worlds").env("EXPLORE_SEED", seed.to_string());
        }
    }
    run(&mut test)
}

/// Instrumentation needs the nightly compiler, whichever one runs this program.
fn cargo_fuzz<const N: usize>(arguments: [&str; N]) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo", "fuzz"]).args(arguments).current_dir(root());
    command.env_remove("CARGO").env_remove("RUSTC").env_remove("RUSTDOC");
    command
}
