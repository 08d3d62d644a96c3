//! Programs that are started, watched, and ended.

use std::fs::File;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use punctual::now;
use punctual_uri::redacted_words;

use crate::backend::real::{LOOPBACK, since};

/// A program at work. It is killed when it is dropped.
pub(super) struct Process {
    end: &'static str,
    command: String,
    child: Child,
    output: PathBuf,
}

impl Process {
    /// Starts a program whose output goes into a file of `folder`.
    pub(super) fn start(
        end: &'static str,
        words: &[String],
        folder: &Path,
    ) -> Result<Self, String> {
        let (program, arguments) = words.split_first().expect("a command line has a word");
        let output = folder.join(format!("{end}.log"));
        let wrong = |error: std::io::Error| format!("{program}: {error}");
        let log = File::create(&output).map_err(wrong)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(wrong)?)
            .stderr(log)
            .spawn()
            .map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => format!("`{program}` is not installed"),
                _ => wrong(error),
            })?;
        Ok(Self { end, command: words.join(" "), child, output })
    }

    /// Waits until it has bound a UDP port.
    pub(super) async fn until_bound(&mut self, port: u16) -> Result<(), String> {
        let start = now();
        while UdpSocket::bind((LOOPBACK.ip(), port)).is_ok() {
            if let Some(problem) = self.problem() {
                return Err(problem);
            }
            if since(start) > STARTING {
                return Err(self.describe(&format!("has not bound port {port} in 10 s")));
            }
            tokio::time::sleep(GLANCE).await;
        }
        Ok(())
    }

    /// Waits until it ends by itself, but no longer than `most`.
    pub(super) async fn until_end(&mut self, most: Duration) {
        let start = now();
        while since(start) < most && matches!(self.child.try_wait(), Ok(None)) {
            tokio::time::sleep(GLANCE).await;
        }
    }

    /// Its error, if it has ended with a failure.
    pub(super) fn problem(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        (!status.success()).then(|| self.describe(&format!("ended with {status}")))
    }

    fn describe(&self, what: &str) -> String {
        let text = std::fs::read(&self.output).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(LINES)..].join("\n  ");
        format!("the {} {what}: {}\n  {last}", self.end, redacted_words(&self.command))
    }

    /// Asks it to end as Ctrl-C does, and insists after a while.
    pub(super) async fn stop(&mut self) {
        #[cfg(unix)]
        if let Some(id) =
            i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process(id, rustix::process::Signal::INT);
            self.until_end(ENDING).await;
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Lines of output that are shown of a program that failed.
const LINES: usize = 12;

const GLANCE: Duration = Duration::from_millis(20);
const STARTING: Duration = Duration::from_secs(10);
const ENDING: Duration = Duration::from_secs(3);
