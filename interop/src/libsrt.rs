use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::folder::shared;
use crate::{Folder, Process, SrtLibrary, wait_until_bound};

/// A small C program, compiled once and run on whichever library a test wants.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CProgram {
    /// `bench/libsrt`: sends and receives stamped messages, and counts.
    Bench,
    /// `peers/files.c`: libsrt's functions for files, which its command line tools do not use.
    Files,
    /// `peers/obs_output.c`: what OBS's output calls.
    ObsOutput,
    /// `peers/peer.c`: shows the stream ID that a listener got and the code with which a call was
    /// rejected, which the command line tools do not.
    Peer,
}

impl CProgram {
    /// The command that runs it on this library.
    ///
    /// # Panics
    ///
    /// If it does not compile, or would be run on another library.
    pub fn command(self, library: SrtLibrary) -> Command {
        let program = self.compiled();
        library.assert_linked(program);
        let mut command = Command::new(program);
        library.put_under(&mut command);
        command
    }

    /// Starts it on this library with these words, which the program's own comment explains.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start(self, library: SrtLibrary, words: &[&str], folder: &Folder) -> Process {
        let mut command = self.command(library);
        command.args(words);
        Process::start(&library.to_string(), command, folder)
    }

    fn compiled(self) -> &'static Path {
        static PROGRAMS: [OnceLock<PathBuf>; 4] = [const { OnceLock::new() }; 4];
        PROGRAMS[self as usize].get_or_init(|| compile(self.name(), self.sources()))
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bench => "libsrt-bench",
            Self::Files => "files",
            Self::ObsOutput => "obs_output",
            Self::Peer => "peer",
        }
    }

    fn sources(self) -> &'static [&'static str] {
        match self {
            Self::Bench => &[
                "../bench/libsrt/main.c",
                "../bench/libsrt/send.c",
                "../bench/libsrt/receive.c",
                "../bench/libsrt/messages.c",
            ],
            Self::Files => &["peers/files.c"],
            Self::ObsOutput => &["peers/obs_output.c"],
            Self::Peer => &["peers/peer.c"],
        }
    }
}

/// [`CProgram::Peer`] as its two roles.
#[derive(Debug)]
pub struct LibsrtPeer;

impl LibsrtPeer {
    /// Starts a listener that takes one call, or rejects it with this code of libsrt's API, and
    /// waits until it listens. It prints `stream id: …` and `accepted`.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn listen(library: SrtLibrary, port: u16, reject: Option<u32>, folder: &Folder) -> Process {
        let mut words = vec!["listen".to_owned(), port.to_string()];
        words.extend(reject.map(|code| code.to_string()));
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        let process = CProgram::Peer.start(library, &words, folder);
        wait_until_bound(port);
        process
    }

    /// Starts a caller. It prints `connected` or `rejected: CODE (why)`.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn call(
        library: SrtLibrary,
        port: u16,
        stream_id: &str,
        passphrase: Option<&str>,
        folder: &Folder,
    ) -> Process {
        let port = port.to_string();
        let words: Vec<_> = ["call", &port, stream_id].into_iter().chain(passphrase).collect();
        CProgram::Peer.start(library, &words, folder)
    }
}

/// Compiles the program of this name from these files.
fn compile(name: &str, sources: &[&str]) -> PathBuf {
    let program = shared().join(format!("{name}-{}", std::process::id()));
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "srt"]).output();
    let flags = flags.expect("pkg-config is installed").stdout;
    let flags = String::from_utf8_lossy(&flags);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-O1", "-o"]).arg(&program);
    compiler.args(sources.iter().map(|source| folder.join(source)));
    compiler.args(flags.split_whitespace()).arg("-lpthread");
    let status = compiler.status().expect("cc is installed");
    assert!(status.success(), "{compiler:?} failed");
    program
}
