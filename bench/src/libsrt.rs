//! The C program that drives libsrt, compiled from `libsrt/` when the bench starts, the C library
//! that takes libsrt's place in it, and how libsrt is set up in each scenario.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;

/// The compiled program.
#[derive(Debug)]
pub(crate) struct Libsrt {
    /// The path of the program.
    pub(crate) program: PathBuf,
    /// The version of the library that it runs with.
    pub(crate) version: String,
}

/// Settings that only libsrt has or needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// UDP ports that the callers share; 0 for one each.
    pub(crate) local_ports: u32,
    /// Receiving threads with epoll; 0 for one blocking thread a stream.
    pub(crate) threads: u32,
    /// SRTO_FC, packets; 0 for the default.
    pub(crate) flow_window: u32,
    /// SRTO_SNDBUF and SRTO_RCVBUF, packets; 0 for the default.
    pub(crate) buffer: u32,
}

impl Tuning {
    /// libsrt's own windows and buffers.
    pub(crate) const DEFAULT: Self = Self { local_ports: 1, threads: 0, flow_window: 0, buffer: 0 };

    /// The flags of libsrt-bench that say this.
    pub(crate) fn flags(self) -> [String; 4] {
        [
            format!("--local-ports={}", self.local_ports),
            format!("--threads={}", self.threads),
            format!("--flow-window={}", self.flow_window),
            format!("--buffer={}", self.buffer),
        ]
    }
}

/// Compiles the program next to this one; the error says what is missing.
pub(crate) fn build() -> Result<Libsrt> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("libsrt");
    let program = std::env::current_exe()?.with_file_name("libsrt-bench");
    let flags = output(Command::new("pkg-config").args(["--cflags", "--libs", "srt"]))
        .map_err(|_| "pkg-config does not find libsrt (Debian: libsrt-gnutls-dev, pkg-config)")?;
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-o"]).arg(&program);
    cc.args(SOURCES.iter().map(|name| sources.join(name)));
    cc.args(flags.split_whitespace()).arg("-lpthread");
    output(&mut cc).map_err(|error| format!("libsrt-bench does not compile: {error}"))?;
    let version = output(Command::new(&program).arg("version"))?;
    Ok(Libsrt { program, version })
}

/// Builds Punctual's C library next to this program; the folder of its shared libraries.
pub(crate) fn build_c_library() -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let prefix = std::env::current_exe()?.with_file_name("c-library");
    let mut capi = Command::new(cargo);
    capi.args(["run", "--quiet", "--package", "xtask", "--", "capi"]).arg(&prefix);
    output(capi.current_dir(env!("CARGO_MANIFEST_DIR")))?;
    Ok(prefix.join("lib"))
}

/// A command's standard output without surrounding space; its standard error if it fails.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("{name} does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{name}: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

const SOURCES: [&str; 4] = ["main.c", "send.c", "receive.c", "messages.c"];
