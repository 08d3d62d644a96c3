//! The common part of the tests: where the library and the headers are, and how to run a compiler.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that contains `srt/srt.h`.
pub(crate) fn include() -> PathBuf {
    crate_folder().join("include")
}

/// The folder of this crate.
pub(crate) fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The shared library: the one of this build, or the one that `PUNCTUAL_SRT_LIBRARY` names, such as
/// a real libsrt.
pub(crate) fn library() -> PathBuf {
    if let Some(other) = env::var_os("PUNCTUAL_SRT_LIBRARY") {
        return other.into();
    }
    let test = env::current_exe().expect("a running program has a path");
    // target/debug/deps/headers-0123456789abcdef
    let library = test.with_file_name("libpunctual_srt.so");
    assert!(library.exists(), "cargo builds {} before the tests", library.display());
    library
}

/// Runs `command` and returns its standard output.
///
/// # Panics
///
/// If it cannot be run or fails; the message contains its standard error.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("the program prints UTF-8")
}
