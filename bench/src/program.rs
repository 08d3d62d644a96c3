//! Programs as a user starts them: `punctual` itself, and srt-live-transmit beside it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Child;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::Result;
use crate::probe::Usage;

/// Builds the program `punctual` next to this one, so that it is measured as the sources are.
pub(crate) fn build() -> Result<PathBuf> {
    build_of("punctual-cli", "punctual")
}

/// Builds the program `punctual-relay` in the same way.
pub(crate) fn build_relay() -> Result<PathBuf> {
    build_of("punctual-relay-server", "punctual-relay")
}

fn build_of(package: &str, program: &str) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--profile", "shipping", "--package", package])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    let program = std::env::current_exe()?.with_file_name(program);
    if built.success() && program.exists() {
        return Ok(program);
    }
    Err(format!("{} was not built", program.display()).into())
}

/// The path of srt-live-transmit, which is in Debian's package srt-tools.
pub(crate) fn srt_live_transmit() -> Result<PathBuf> {
    installed("srt-live-transmit")
        .ok_or_else(|| "srt-live-transmit is not installed (Debian: srt-tools)".into())
}

/// The path of a program in one of the folders of `PATH`.
pub(crate) fn installed(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(name)).find(|program| program.exists())
}

/// A folder for the files of a run, until it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new folder, with this in its name.
    pub(crate) fn new(name: &str) -> Result<Self> {
        let name = format!("punctual-bench-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The system empties its temporary folder as well.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A program that runs.
pub(crate) struct Running {
    child: Child,
    /// Collects what it writes to its standard error.
    log: JoinHandle<Vec<String>>,
    name: String,
}

impl Running {
    /// Starts `program`.
    pub(crate) fn start(program: &Path, arguments: &[String]) -> Result<Self> {
        let name = program.file_name().unwrap_or_default().display().to_string();
        let mut child = tokio::process::Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{name} does not start: {error}"))?;
        let stderr = child.stderr.take().ok_or("standard error was asked to be a pipe")?;
        let log = tokio::spawn(async move {
            let mut lines = BufReader::new(stderr).lines();
            let mut log = Vec::new();
            while let Ok(Some(line)) = lines.next_line().await {
                log.push(line);
            }
            log
        });
        Ok(Self { child, log, name })
    }

    /// The CPU time and memory that it has used so far.
    pub(crate) fn usage(&self) -> Result<Usage> {
        Usage::of(self.pid()?)
    }

    /// Waits until it ends by itself; gives its log.
    pub(crate) async fn ended(mut self, limit: Duration) -> Result<Vec<String>> {
        let status = timeout(limit, self.child.wait())
            .await
            .map_err(|_| format!("{} did not end within {limit:?}", self.name))??;
        let log = self.log.await?;
        if status.success() {
            return Ok(log);
        }
        let last = log.last().map_or("", String::as_str);
        Err(format!("{} ended with {status}: {last}", self.name).into())
    }

    fn pid(&self) -> Result<u32> {
        self.child.id().ok_or_else(|| format!("{} ended early", self.name).into())
    }
}
