//! Commands in a side's namespace.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;

use nix::sched::{CloneFlags, unshare};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::sync::oneshot;

use crate::tun::Side;
use crate::tun::namespace::Namespace;

/// The program that commands run under: one that calls [`init`](crate::init) when it is started
/// with these arguments and further ones.
#[derive(Clone, Debug)]
pub struct Helper {
    /// The program's file.
    pub program: PathBuf,
    /// The arguments before those of [`init`](crate::init).
    pub arguments: Vec<OsString>,
}

/// A command for a side, with its input and output.
#[derive(Debug)]
pub struct SideCommand {
    helper: Helper,
    command: Option<OsString>,
    stdin: Stdio,
    stdout: Stdio,
    stderr: Stdio,
}

impl SideCommand {
    /// A command for `/bin/sh -c`. It inherits standard input, output and error. Its environment
    /// has, beside the emulator's, the addresses:
    ///
    /// | | |
    /// |---|---|
    /// | `PUNCTUAL_SIDE` | `left` or `right` |
    /// | `PUNCTUAL_LEFT`, `PUNCTUAL_RIGHT`, `PUNCTUAL_PEER` | IPv4 addresses |
    /// | `PUNCTUAL_LEFT6`, `PUNCTUAL_RIGHT6`, `PUNCTUAL_PEER6` | IPv6 addresses |
    pub fn new(helper: Helper, command: impl Into<OsString>) -> Self {
        Self { command: Some(command.into()), ..Self::idle(helper) }
    }

    /// No command: a process that only waits, for others to enter its namespaces.
    pub fn idle(helper: Helper) -> Self {
        let (stdin, stdout, stderr) = (Stdio::inherit(), Stdio::inherit(), Stdio::inherit());
        Self { helper, command: None, stdin, stdout, stderr }
    }

    /// Gives it another standard input.
    #[must_use]
    pub fn stdin(self, stdin: impl Into<Stdio>) -> Self {
        Self { stdin: stdin.into(), ..self }
    }

    /// Gives it another standard output.
    #[must_use]
    pub fn stdout(self, stdout: impl Into<Stdio>) -> Self {
        Self { stdout: stdout.into(), ..self }
    }

    /// Gives it another standard error.
    #[must_use]
    pub fn stderr(self, stderr: impl Into<Stdio>) -> Self {
        Self { stderr: stderr.into(), ..self }
    }

    /// Starts it from a separate thread, which has to enter the namespace, and to live as long as
    /// the helper, which dies with the thread that started it.
    pub(super) fn spawn(self, side: Side, namespace: &Namespace) -> io::Result<Running> {
        let (started, start) = std::sync::mpsc::sync_channel(1);
        let (ending, ended) = oneshot::channel();
        let entrance = namespace.entrance()?;
        thread::Builder::new().name(format!("command-{side}")).spawn(move || {
            let child = entrance.enter().and_then(|()| {
                unshare(CloneFlags::CLONE_NEWPID)?;
                let mut child = self.helper(side).spawn()?;
                let handle = handle_of(&child).inspect_err(|_| drop(child.kill()))?;
                Ok((child, handle))
            });
            match child {
                Ok((mut child, handle)) => {
                    // A receiver that is gone does not need the result.
                    let _ = started.send(Ok((child.id(), handle)));
                    let _ = ending.send(child.wait());
                }
                Err(error) => drop(started.send(Err(error))),
            }
        })?;
        let (id, handle) = start.recv().map_err(io::Error::other)??;
        Ok(Running { id, handle, ended: CommandEnd::Later(ended) })
    }

    fn helper(self, side: Side) -> Command {
        let mut helper = Command::new(&self.helper.program);
        helper.args(self.helper.arguments).arg(std::process::id().to_string()).args(self.command);
        helper.stdin(self.stdin).stdout(self.stdout).stderr(self.stderr);
        helper.env("PUNCTUAL_SIDE", side.to_string());
        for (name, of) in [("LEFT", Side::Left), ("RIGHT", Side::Right), ("PEER", side.other())] {
            helper.env(format!("PUNCTUAL_{name}"), of.ipv4().to_string());
            helper.env(format!("PUNCTUAL_{name}6"), of.ipv6().to_string());
        }
        helper
    }
}

/// A handle of a process that no later process of the same number can be mistaken for.
fn handle_of(child: &Child) -> io::Result<OwnedFd> {
    let process = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let process = process.ok_or(io::ErrorKind::NotFound)?;
    Ok(pidfd_open(process, PidfdFlags::empty())?)
}

/// A command that runs on a side. It is killed, with all that it has started, when this is dropped.
#[derive(Debug)]
pub struct Running {
    id: u32,
    handle: OwnedFd,
    ended: CommandEnd,
}

#[derive(Debug)]
enum CommandEnd {
    Later(oneshot::Receiver<io::Result<ExitStatus>>),
    With(ExitStatus),
}

impl Running {
    /// The process ID of the command's helper, as seen from outside. Whoever enters the namespaces
    /// of that process (`nsenter -t ID -n -m -p`) is on that side.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Asks the command, and all that it has started, to end (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends the command, and all that it has started, at once (SIGKILL).
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Waits until the command has ended, and gives its exit status; the code is 128 and the number
    /// of the signal if one ended it. When it has ended, all that it has started has, too. Cancel
    /// safe.
    ///
    /// # Errors
    ///
    /// The system cannot tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = match &mut self.ended {
            CommandEnd::Later(ended) => ended.await.map_err(io::Error::other)??,
            CommandEnd::With(status) => *status,
        };
        self.ended = CommandEnd::With(status);
        Ok(status)
    }

    fn signal(&self, signal: Signal) {
        // That it has ended is no error.
        let _ = pidfd_send_signal(&self.handle, signal);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}
