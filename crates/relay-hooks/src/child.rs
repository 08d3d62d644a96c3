//! A program that a hook runs, with its whole process group.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{ChildStderr, ChildStdout};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::output::log_lines;
use crate::variables::Variables;

/// The end of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ChildEnd {
    /// It ended by itself, with this status.
    Exited(ExitStatus),
    /// It was ended, because its state had ended.
    Ended,
    /// It was ended, because it ran too long.
    TimedOut,
}

/// Runs a program in a process group of its own until it ends, or `end` is there, or the time is
/// over. Then the whole group gets SIGINT, and SIGKILL once the program has ended, or five seconds
/// later. Its output goes to the log, under `title`.
///
/// A future that is dropped kills the group.
pub(crate) async fn run(
    words: &[String],
    variables: &Variables,
    title: &str,
    limit: Option<Duration>,
    end: impl Future<Output = ()>,
) -> io::Result<ChildEnd> {
    // Before the program is there, so that its end is not missed.
    let mut children = signal(SignalKind::child())?;
    let mut group = Group::start(words, variables, title)?;
    let over = async {
        match limit {
            Some(limit) => sleep(limit).await,
            None => std::future::pending().await,
        }
    };
    let stopped = tokio::select! {
        exited = group.exited(&mut children) => return Ok(ChildEnd::Exited(exited?)),
        () = end => ChildEnd::Ended,
        () = over => ChildEnd::TimedOut,
    };
    for (number, time) in [(Signal::INT, GRACE), (Signal::KILL, LAST_WAIT)] {
        group.signal(number);
        if let Ok(exited) = timeout(time, group.exited(&mut children)).await {
            exited?;
            break;
        }
    }
    Ok(stopped)
}

/// A program and its process group.
struct Group {
    child: Child,
    pid: Pid,
    /// Whether the program was waited for: then the ID of its group may be another's.
    is_reaped: bool,
    output: [Option<JoinHandle<()>>; 2],
}

impl Group {
    fn start(words: &[String], variables: &Variables, title: &str) -> io::Result<Self> {
        let [program, arguments @ ..] = words else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let mut command = Command::new(program);
        command.args(variables.fill_words(arguments).map_err(io::Error::other)?);
        for (name, _) in std::env::vars_os() {
            if name.to_str().is_none_or(is_of_the_relay) {
                command.env_remove(name);
            }
        }
        command.envs(variables.iter());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).spawn()?;
        let pid = Pid::from_child(&child);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        // From here on the group is killed if anything fails.
        let mut group = Self { child, pid, is_reaped: false, output: [None, None] };
        if let (Some(stdout), Some(stderr)) = (stdout, stderr) {
            let stdout = ChildStdout::from_std(stdout)?;
            let stderr = ChildStderr::from_std(stderr)?;
            group.output = [
                Some(tokio::spawn(log_lines(title.to_owned(), stdout))),
                Some(tokio::spawn(log_lines(title.to_owned(), stderr))),
            ];
        }
        Ok(group)
    }

    /// Waits until the program has ended, and kills what is left of its group.
    async fn exited(
        &mut self,
        children: &mut tokio::signal::unix::Signal,
    ) -> io::Result<ExitStatus> {
        // The program stays a zombie until it is reaped. For as long nobody else can have the ID of
        // its group.
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(self.pid), look)?.is_none() {
            children.recv().await;
        }
        self.signal(Signal::KILL);
        self.is_reaped = true;
        let status = self.child.wait()?;
        for output in self.output.iter_mut().filter_map(Option::take) {
            // A process that left the group may still have the pipe.
            let abort = output.abort_handle();
            if timeout(LAST_OUTPUT, output).await.is_err() {
                abort.abort();
            }
        }
        Ok(status)
    }

    fn signal(&self, signal: Signal) {
        if !self.is_reaped {
            let _ = kill_process_group(self.pid, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        // A program that the kernel holds up is not waited for.
        let _ = self.child.try_wait();
        self.output.iter().flatten().for_each(JoinHandle::abort);
    }
}

/// Whether a variable of the relay's own environment is kept from commands: its settings, which may
/// have secrets, and variables by which systemd talks to the relay alone.
fn is_of_the_relay(name: &str) -> bool {
    ["PUNCTUAL_", "MTX_", "LISTEN_", "WATCHDOG_"].iter().any(|start| name.starts_with(start))
        || ["NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY", "MAINPID"].contains(&name)
}

/// The time between SIGINT and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// The time after SIGKILL for which a program is waited for.
const LAST_WAIT: Duration = Duration::from_secs(2);
/// The time for the last lines of a program that has ended.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_does_not_get_the_settings_of_the_relay() {
        for name in
            ["PUNCTUAL_RELAY_AUTH_KEY", "MTX_PATH", "NOTIFY_SOCKET", "CREDENTIALS_DIRECTORY"]
        {
            assert!(is_of_the_relay(name), "{name}");
        }
        for name in ["PATH", "HOME", "LANG", "TZ"] {
            assert!(!is_of_the_relay(name), "{name}");
        }
    }
}
