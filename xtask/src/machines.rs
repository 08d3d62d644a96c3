//! The same worlds on each kind of machine.

use crate::shell::{Outcome, cargo, root, run_and_read, say};

/// Runs simulated worlds on this machine, on an emulated aarch64 and in WebAssembly, and compares
/// what came of them, byte for byte.
pub(crate) fn same_worlds() -> Outcome {
    let node = format!("node --no-warnings {}", root().join(WASI).display());
    let machines = [
        Machine { target: None, runner: "" },
        Machine { target: Some("aarch64-unknown-linux-musl"), runner: "qemu-aarch64" },
        Machine { target: Some("wasm32-wasip1"), runner: &node },
    ];
    let hashes = machines.iter().map(Machine::hash).collect::<Result<Vec<_>, _>>()?;
    if hashes.iter().all(|hash| *hash == hashes[0]) {
        say(&format!("the same on each machine: {}", hashes[0]));
        return Ok(());
    }
    Err(format!("the worlds differ between machines: {}", hashes.join(", ")))
}

struct Machine<'a> {
    /// `None` for this machine.
    target: Option<&'a str>,
    /// The command that runs a program of this target.
    runner: &'a str,
}

impl Machine<'_> {
    /// The line that the simulator's test prints on this machine.
    fn hash(&self) -> Result<String, String> {
        // Here it is compiled with all tests; elsewhere only what the simulator needs.
        let package = if self.target.is_some() { "--package=punctual-sim" } else { "--workspace" };
        let mut test = cargo(["test", package, "--test", "explore"]);
        if let Some(target) = self.target {
            test.args(["--target", target]);
            let prefix = format!("CARGO_TARGET_{}", target.to_uppercase().replace('-', "_"));
            test.env(format!("{prefix}_RUNNER"), self.runner);
            // It comes with Rust, and needs no other tools of the target.
            test.env(format!("{prefix}_LINKER"), "rust-lld");
        }
        test.args(["--", "--ignored", "--nocapture", "hash_of_worlds"]);
        let name = self.target.unwrap_or("this machine");
        let mut hash = None;
        let passed = run_and_read(&mut test, |line| {
            hash = hash.take().or_else(|| line.split("hash of ").nth(1).map(str::to_owned));
        })?;
        if !passed {
            let needs = self.target.map(|target| {
                format!("; it needs `{}` and: rustup target add {target}", self.runner)
            });
            return Err(format!("the worlds do not run on {name}{}", needs.unwrap_or_default()));
        }
        hash.ok_or_else(|| format!("no hash of worlds on {name}"))
    }
}

/// Runs a WebAssembly program with the interface of WASI.
const WASI: &str = "xtask/src/wasi.mjs";
