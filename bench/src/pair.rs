//! One run: a receiving and a sending process of the same implementation.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{Instant, sleep, timeout};

use crate::Result;
use crate::libsrt::Tuning;
use crate::probe::Usage;
use crate::traffic::{ReceiveReport, SendReport, Traffic};

/// The implementation that is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Implementation {
    /// The reference.
    Libsrt,
    /// Ours.
    Punctual,
    /// Ours behind libsrt's interface, with the C program that drives libsrt.
    CLibrary,
}

impl Implementation {
    /// The reference and the library for Rust.
    pub(crate) const TWO: &'static [Self] = &[Self::Libsrt, Self::Punctual];
    /// All.
    pub(crate) const ALL: &'static [Self] = &[Self::Libsrt, Self::Punctual, Self::CLibrary];
}

impl fmt::Display for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Libsrt => "libsrt",
            Self::Punctual => "Punctual",
            Self::CLibrary => "C library",
        })
    }
}

/// The programs of all implementations.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    libsrt: Option<PathBuf>,
    /// The folder with the C library that takes libsrt's place in libsrt's program.
    c_library: Option<PathBuf>,
    punctual: PathBuf,
    next_port: u16,
}

impl Pairs {
    /// Pairs of libsrt's program, if there is one, with libsrt and with the C library in the folder
    /// `c_library`, and of this program itself.
    pub(crate) fn new(libsrt: Option<PathBuf>, c_library: Option<PathBuf>) -> Result<Self> {
        let c_library = c_library.filter(|_| libsrt.is_some());
        Ok(Self { libsrt, c_library, punctual: std::env::current_exe()?, next_port: FIRST_PORT })
    }

    /// Whether this implementation can be measured here.
    pub(crate) const fn has(&self, implementation: Implementation) -> bool {
        match implementation {
            Implementation::Libsrt => self.libsrt.is_some(),
            Implementation::Punctual => true,
            Implementation::CLibrary => self.c_library.is_some(),
        }
    }

    /// This program, whose hidden commands are its ends of a run.
    pub(crate) const fn own(&self) -> &PathBuf {
        &self.punctual
    }

    /// A port that was not used lately, with some free ones after it for callers.
    pub(crate) fn port(&mut self) -> u16 {
        let port = self.next_port;
        self.next_port = if port + 16 < LAST_PORT { port + 16 } else { FIRST_PORT };
        port
    }

    /// Starts the program of an implementation.
    pub(crate) fn start(
        &self,
        implementation: Implementation,
        role: &str,
        flags: &[String],
    ) -> Result<Process> {
        let library = match implementation {
            Implementation::Punctual => return Process::start(&self.punctual, role, flags),
            Implementation::Libsrt => None,
            Implementation::CLibrary => self.c_library.as_deref(),
        };
        let program = self.libsrt.as_ref().ok_or("libsrt is missing")?;
        Process::start_with(program, library, role, flags)
    }

    /// Runs a pair with this traffic; `tuning` is for libsrt's program alone.
    pub(crate) async fn run(
        &self,
        implementation: Implementation,
        traffic: &Traffic,
        tuning: Tuning,
    ) -> Result<Outcome> {
        let mut flags = traffic.flags();
        if implementation != Implementation::Punctual {
            flags.extend(tuning.flags());
        }
        let mut receiver = self.start(implementation, "receive", &flags)?;
        receiver.expect("ready").await?;
        let mut sender = self.start(implementation, "send", &flags)?;
        sender.expect("started").await?;

        let (settle, length) = (traffic.duration().mul_f64(0.2), traffic.duration().mul_f64(0.7));
        sleep(settle).await;
        let start = Instant::now();
        let before = [sender.usage()?, receiver.usage()?];
        sleep(length).await;
        let after = [sender.usage()?, receiver.usage()?];
        let window = start.elapsed();
        let cores =
            |end: usize| (after[end].cpu - before[end].cpu).as_secs_f64() / window.as_secs_f64();

        Ok(Outcome {
            send: sender.report().await?,
            receive: receiver.report().await?,
            expected: traffic.messages(),
            latency: Duration::from_millis(traffic.latency_ms),
            cores: cores(0) + cores(1),
            receiver_cores: cores(1),
            resident: after[0].resident + after[1].resident,
        })
    }
}

/// The results of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outcome {
    pub(crate) send: SendReport,
    pub(crate) receive: ReceiveReport,
    /// Messages that the traffic consists of.
    expected: u64,
    latency: Duration,
    /// Cores that both processes kept busy in the middle of the run.
    pub(crate) cores: f64,
    /// The receiver's part of them.
    pub(crate) receiver_cores: f64,
    /// Resident memory of both processes towards the end of the run, bytes.
    pub(crate) resident: u64,
}

impl Outcome {
    /// Whether all was sent in time and delivered, and the last messages were not late: a
    /// connection that falls further behind each second does not sustain its load, though it has
    /// lost nothing yet. The reason if not.
    pub(crate) fn held(&self) -> std::result::Result<(), String> {
        let late = Duration::from_micros(self.receive.delay_last_us);
        if self.send.sent < self.expected - self.expected / 200 {
            Err(format!("{} of {} messages could be sent", self.send.sent, self.expected))
        } else if self.send.dropped > 0 {
            Err(format!("{} messages dropped by the sender", self.send.dropped))
        } else if self.receive.received != self.send.sent {
            let lost = self.send.sent.saturating_sub(self.receive.received);
            Err(format!("{lost} messages dropped by the receiver"))
        } else if self.receive.out_of_order > 0 {
            Err(format!("{} messages out of order", self.receive.out_of_order))
        } else if late > 2 * self.latency {
            Err(format!("falling behind: {late:?} from sending to delivery at the end"))
        } else {
            Ok(())
        }
    }
}

/// A child process that speaks in lines.
pub(crate) struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    name: String,
}

impl Process {
    pub(crate) fn start(program: &Path, role: &str, flags: &[String]) -> Result<Self> {
        Self::start_with(program, None, role, flags)
    }

    /// Starts a program that finds its libraries in the folder `libraries` first.
    fn start_with(
        program: &Path,
        libraries: Option<&Path>,
        role: &str,
        flags: &[String],
    ) -> Result<Self> {
        let name = format!("{} {role}", program.display());
        let mut child = Command::new(program)
            .envs(libraries.map(|folder| ("LD_LIBRARY_PATH", folder)))
            .arg(role)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{name} does not start: {error}"))?;
        let stdout = child.stdout.take().ok_or("standard output was asked to be a pipe")?;
        Ok(Self { child, lines: BufReader::new(stdout).lines(), name })
    }

    async fn line(&mut self) -> Result<String> {
        match timeout(PATIENCE, self.lines.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(Ok(None)) => Err(format!("{} ended early", self.name).into()),
            Ok(Err(error)) => Err(format!("{}: {error}", self.name).into()),
            Err(_) => Err(format!("{} said nothing for {PATIENCE:?}", self.name).into()),
        }
    }

    pub(crate) async fn expect(&mut self, word: &str) -> Result<()> {
        match self.line().await? {
            line if line == word => Ok(()),
            line => Err(format!("{} said {line:?} instead of {word:?}", self.name).into()),
        }
    }

    /// The report at the end, when the process has closed its connections too.
    pub(crate) async fn report<T: DeserializeOwned>(&mut self) -> Result<T> {
        let report = serde_json::from_str(&self.line().await?)?;
        timeout(PATIENCE, self.child.wait())
            .await
            .map_err(|_| format!("{} does not end", self.name))??;
        Ok(report)
    }

    pub(crate) fn usage(&self) -> Result<Usage> {
        let pid = self.child.id().ok_or_else(|| format!("{} ended early", self.name))?;
        Usage::of(pid)
    }
}

/// Longer than any silence of a healthy process.
const PATIENCE: Duration = Duration::from_secs(15);
/// Below the ports that systems give to sockets without one.
const FIRST_PORT: u16 = 20_000;
const LAST_PORT: u16 = 30_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome() -> Outcome {
        Outcome {
            send: SendReport { sent: 1_000, seconds: 1.0, dropped: 0, retransmitted: 3, rtt_us: 0 },
            receive: ReceiveReport {
                received: 1_000,
                out_of_order: 0,
                delay_max_us: 400_000,
                delay_last_us: 121_000,
            },
            expected: 1_000,
            latency: Duration::from_millis(120),
            cores: 0.5,
            receiver_cores: 0.25,
            resident: 1 << 20,
        }
    }

    #[test]
    fn a_load_holds_only_if_nothing_is_missing_or_late() {
        assert_eq!(outcome().held(), Ok(()));
        let mut slow = outcome();
        slow.send.sent = 990;
        let mut send_drop = outcome();
        send_drop.send.dropped = 1;
        let mut lost = outcome();
        lost.receive.received = 999;
        let mut mixed_up = outcome();
        mixed_up.receive.out_of_order = 2;
        let mut behind = outcome();
        behind.receive.delay_last_us = 250_000;
        for (outcome, reason) in [
            (slow, "990 of 1000 messages could be sent"),
            (send_drop, "1 messages dropped by the sender"),
            (lost, "1 messages dropped by the receiver"),
            (mixed_up, "2 messages out of order"),
            (behind, "falling behind: 250ms from sending to delivery at the end"),
        ] {
            assert_eq!(outcome.held().unwrap_err(), reason);
        }
    }
}
