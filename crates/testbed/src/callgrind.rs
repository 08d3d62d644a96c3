//! Counts of instructions by callgrind, on which the load of the machine has no influence.

use std::fs::{self, File};
use std::io::Write as _;
use std::process::Command;

/// Runs the ignored test `under_callgrind` of this test program under callgrind with these options
/// and environment. Returns the counts as callgrind wrote them; `None`, with a line about it, if
/// valgrind is not installed and may be missing.
pub fn callgrind(options: &[&str], environment: &[(&str, &str)]) -> Option<File> {
    let name = format!("punctual-callgrind-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .args(options)
        .arg(format!("--callgrind-out-file={}", path.display()))
        .arg(std::env::current_exe().expect("the test's own path"))
        .args(["--ignored", "--exact", "under_callgrind"])
        .envs(environment.iter().copied())
        .output();
    let output = match run {
        Ok(output) => output,
        Err(error) => {
            let problem =
                format!("valgrind does not start: {error} (Debian: apt install valgrind)");
            assert!(std::env::var("PUNCTUAL_REQUIRE_PEERS").as_deref() != Ok("1"), "{problem}");
            // Directly to the standard output, since the harness hides the output of tests that
            // pass.
            let _ = writeln!(std::io::stdout(), "\nskipped: {problem}");
            return None;
        }
    };
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "valgrind failed: {log}");
    let counts = File::open(&path).expect("callgrind has written its counts");
    fs::remove_file(&path).expect("the counts are there");
    Some(counts)
}
