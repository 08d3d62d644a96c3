//! `cargo xtask check`: everything that is checked without running the product.

use crate::shell::{Outcome, cargo, output_of, run, say};

/// Runs every check, also after one has failed, and names the failed ones.
pub(crate) fn run_all() -> Outcome {
    let checks: [(&str, Check); 6] = [
        ("formatting", formatting),
        ("clippy", clippy),
        ("documentation", documentation),
        ("wasm", wasm),
        ("pure Rust", pure_rust),
        ("dependencies", dependencies),
    ];
    let mut failed = Vec::new();
    for (name, check) in checks {
        if let Err(problem) = check() {
            say(&format!("xtask: {problem}"));
            failed.push(name);
        }
    }
    if failed.is_empty() {
        say("every check passed");
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

type Check = fn() -> Outcome;

fn formatting() -> Outcome {
    run(&mut cargo(["fmt", "--all", "--check"]))
}

fn clippy() -> Outcome {
    run(&mut cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))
}

fn documentation() -> Outcome {
    run(cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Checks the core for a target without clock, socket, thread or randomness. `machines` compiles
/// and runs it.
fn wasm() -> Outcome {
    let mut check = cargo(["check", "--target", WASM]);
    for package in CORE {
        check.args(["--package", package]);
    }
    run(&mut check).map_err(|problem| {
        format!("{problem}; the target is installed by: rustup target add {WASM}")
    })
}

/// Checks the programs without QUIC, which need no C compiler then.
fn pure_rust() -> Outcome {
    let programs =
        ["--package=punctual-cli", "--package=punctual-lab-cli", "--no-default-features"];
    run(cargo(["clippy"]).args(programs).args(["--", "-D", "warnings"]))?;
    let tree = output_of(cargo(["tree", "--edges", "normal,build"]).args(programs));
    let tree = tree.ok_or("cargo tree fails")?;
    // The crates `cc` and `cmake` run a C compiler.
    match tree.lines().find(|line| [" cc v", " cmake v"].iter().any(|c| line.contains(c))) {
        Some(line) => Err(format!("without QUIC the programs still build C code: {line}")),
        None => Ok(()),
    }
}

fn dependencies() -> Outcome {
    if output_of(&mut cargo(["deny", "--version"])).is_none() {
        return Err(
            "cargo-deny is not installed; it comes with: cargo install --locked cargo-deny"
                .to_owned(),
        );
    }
    let check = ["deny", "check", "--hide-inclusion-graph", "licenses", "bans", "sources"];
    run(&mut cargo(check))
}

/// The crates that know neither clock nor socket.
const CORE: [&str; 14] = [
    "punctual-units",
    "punctual-rates",
    "punctual-rtt",
    "punctual-wire",
    "punctual-crypto",
    "punctual-proto",
    "punctual-netem",
    "punctual-metrics",
    "punctual-mpegts",
    "punctual-fmp4",
    "punctual-sim",
    "punctual-probe",
    "punctual-quic-model",
    "punctual-resume",
];

const WASM: &str = "wasm32-unknown-unknown";
