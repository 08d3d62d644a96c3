use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::folder::shared;
use crate::{Folder, Process, wait_until_bound};

/// The small C program of `peers/peer.c` on libsrt: it shows the stream ID that a listener got and
/// the code with which a call was rejected, which the command line tools do not.
#[derive(Debug)]
pub struct LibsrtPeer;

impl LibsrtPeer {
    /// Starts a listener that takes one call, or rejects it with this code of libsrt's API, and
    /// waits until it listens. It prints `stream id: …` and `accepted`.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn listen(port: u16, reject: Option<u32>, folder: &Folder) -> Process {
        let mut command = Command::new(program());
        command.arg("listen").arg(port.to_string()).args(reject.map(|code| code.to_string()));
        let process = Process::start("libsrt", command, folder);
        wait_until_bound(port);
        process
    }

    /// Starts a caller. It prints `connected` or `rejected: CODE (why)`.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn call(port: u16, stream_id: &str, passphrase: Option<&str>, folder: &Folder) -> Process {
        let mut command = Command::new(program());
        command.arg("call").arg(port.to_string()).arg(stream_id).args(passphrase);
        Process::start("libsrt", command, folder)
    }
}

/// The small C program of `peers/files.c`: libsrt's functions for files, which its command line
/// tools do not use.
#[derive(Debug)]
pub struct LibsrtFiles;

impl LibsrtFiles {
    /// Starts it with these words, which the program's own comment explains.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(words: &[&str], folder: &Folder) -> Process {
        static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
        let mut command = Command::new(PROGRAM.get_or_init(|| compile("files")));
        command.args(words);
        Process::start("libsrt", command, folder)
    }
}

fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| compile("peer"))
}

/// Compiles the program of this name in `peers/`.
fn compile(name: &str) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("peers/{name}.c"));
    let program = shared().join(format!("{name}-{}", std::process::id()));
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "srt"]).output();
    let flags = flags.expect("pkg-config is installed").stdout;
    let flags = String::from_utf8_lossy(&flags);
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Wextra", "-O1", "-o"]).arg(&program).arg(source);
    compiler.args(flags.split_whitespace());
    let status = compiler.status().expect("cc is installed");
    assert!(status.success(), "{compiler:?} failed");
    program
}
