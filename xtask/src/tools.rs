//! `cargo xtask bench`, `fuzz` and `swarm`: chores that other programs do.

use std::process::Command;

use crate::Extent;
use crate::shell::{Outcome, cargo, output_of, root, run, say};

/// Measures against libsrt and writes the table to `docs/benchmarks.md`.
pub(crate) fn bench(quick: bool) -> Outcome {
    let mut bench = cargo(["run", "--release", "--package", "bench", "--", "all"]);
    bench.args(["--write", "docs/benchmarks.md"]);
    if quick {
        bench.arg("--quick");
    }
    run(&mut bench)
}

/// Runs each fuzz target for `seconds`, also after one has found something.
pub(crate) fn fuzz(seconds: u32) -> Outcome {
    let Some(targets) = output_of(&mut cargo_fuzz(["list"])) else {
        return Err(
            "cargo-fuzz on a nightly toolchain is needed: rustup toolchain install nightly \
                    && cargo install --locked cargo-fuzz"
                .to_owned(),
        );
    };
    let mut failed = Vec::new();
    for target in targets.lines() {
        let limit = format!("-max_total_time={seconds}");
        if let Err(problem) = run(&mut cargo_fuzz(["run", target, "--", &limit])) {
            say(&format!("xtask: {problem}"));
            failed.push(target);
        }
    }
    match failed[..] {
        [] if targets.is_empty() => Err("there is no fuzz target in fuzz/".to_owned()),
        [] => Ok(()),
        _ => Err(format!("fuzz targets that failed: {}", failed.join(", "))),
    }
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
            test.arg("whatever_happens").env("EXPLORE_SEED", seed.to_string());
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
