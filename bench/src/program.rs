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
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = Command::new(cargo)
        .args(["build", "--quiet", "--profile", "shipping", "--package", "punctual-cli"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    let program = std::env::current_exe()?.with_file_name("punctual");
    if built.success() && program.exists() {
        return Ok(program);
    }
    Err(format!("{} was not built", program.display()).into())
}

/// The path of srt-live-transmit, which is in Debian's package srt-tools.
pub(crate) fn srt_live_transmit() -> Result<PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join("srt-live-transmit"))
        .find(|program| program.exists())
        .ok_or_else(|| "srt-live-transmit is not installed (Debian: srt-tools)".into())
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
