//! `cargo xtask test --without-peers`: the tests that call other programs, on a system without
//! them.

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::lanes;
use crate::shell::{Outcome, cargo, root, run_and_read, run_at_a_time, say, threads_in_real_time};
use crate::test::{program, reruns_file};
use crate::totals::Totals;

/// Runs the tests that call other programs with a `PATH` that holds the toolchain and the C
/// compiler alone, as on a fresh machine: they must pass, and some be skipped.
pub(crate) fn run() -> Outcome {
    let path = make_path()?;
    let mut totals = Totals::default();
    let mut passed = true;
    for selection in [integration_tests()?, unit_tests()] {
        let mut tests = cargo(["test", "--workspace", "--no-fail-fast"]);
        tests.args(selection).env("PUNCTUAL_BIN", program()?).env("PATH", &path);
        tests.env(punctual_stalls::FILE, reruns_file()?);
        tests.env_remove("PUNCTUAL_REQUIRE_PEERS").env_remove("PUNCTUAL_C_LIBRARY");
        run_at_a_time(&mut tests, threads_in_real_time());
        // A runner such as sudo is another program, too.
        let runners = env::vars_os().filter(|(name, _)| {
            let name = name.to_string_lossy();
            name.starts_with("CARGO_TARGET_") && name.ends_with("_RUNNER")
        });
        runners.for_each(|(name, _)| {
            tests.env_remove(name);
        });
        passed &= run_and_read(&mut tests, |line| {
            totals.count(line);
        })?;
    }
    say(&totals.to_string());
    match (passed, totals.skipped()) {
        (false, _) => Err("not every test passed without other programs".to_owned()),
        (true, 0) => Err("no test was skipped: were the other programs hidden?".to_owned()),
        (true, _) => Ok(()),
    }
}

/// A folder with links to the toolchain and the C compiler, and to nothing else.
fn make_path() -> Result<PathBuf, String> {
    let folder = root().join("target").join("bare-path");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(failed)?;
    }
    fs::create_dir_all(&folder).map_err(failed)?;
    let cargo = env::var_os("CARGO").map(PathBuf::from);
    let toolchain = cargo.as_deref().and_then(Path::parent).map(Path::to_path_buf);
    let folders: Vec<PathBuf> = toolchain
        .into_iter()
        .chain(env::split_paths(&env::var_os("PATH").unwrap_or_default()))
        .collect();
    for name in PROGRAMS {
        let found = folders.iter().map(|folder| folder.join(name)).find(|program| program.exists());
        match found {
            Some(program) => symlink(&program, folder.join(name)).map_err(failed)?,
            None if NEEDED.contains(&name) => return Err(format!("{name} is not installed")),
            None => {}
        }
    }
    Ok(folder)
}

/// The tests of `interop` that call other programs, those of the program, of the emulator and of
/// the C library's headers and examples, and those which count instructions.
fn integration_tests() -> Result<Vec<String>, String> {
    let all = lanes::integration_tests()?;
    let calls_others = |(folder, name): &(String, String)| folder == "interop" && name != OWN;
    let interop = all.into_iter().filter(calls_others).map(|(_, name)| name);
    let others = ["cli", "costs", "examples", "headers", "tun"].map(str::to_owned);
    Ok(interop.chain(others).map(|name| format!("--test={name}")).collect())
}

/// Those of the lab's runs with other programs, and of the common part of `interop`.
fn unit_tests() -> Vec<String> {
    ["--lib", "--", "external::", "process::"].map(str::to_owned).to_vec()
}

/// The test of `interop` that starts programs of this repository only.
const OWN: &str = "relay_soak";

/// The programs that compile and link.
const PROGRAMS: [&str; 9] = ["cargo", "rustc", "rustdoc", "cc", "gcc", "ld", "as", "ar", "ranlib"];
/// Without these nothing can be built.
const NEEDED: [&str; 3] = ["cargo", "rustc", "cc"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_that_call_other_programs_are_found_by_their_names() {
        let tests = integration_tests().unwrap();
        // That of `encryption` is a folder.
        for name in ["cli", "costs", "tun", "dissection", "encryption", "files"] {
            let test = format!("--test={name}");
            assert!(tests.contains(&test), "{test} of {tests:?}");
        }
    }

    #[test]
    fn the_bare_path_holds_the_toolchain_and_nothing_else() {
        let folder = make_path().unwrap();
        let names: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
        assert!(names.len() >= NEEDED.len());
        for name in names {
            let name = name.file_name();
            assert!(PROGRAMS.iter().any(|program| name == *program), "{}", name.display());
        }
    }
}
