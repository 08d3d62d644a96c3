//! The process that a side's command runs under: the first of a process namespace, so that the
//! kernel ends the command and all its offspring with it.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Signal, WaitOptions, set_parent_process_death_signal, wait};
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};

/// The work of the helper that [`TunEmulator::spawn`](crate::TunEmulator::spawn) starts: to be
/// called, before anything else, by the program that a [`Helper`](crate::Helper) names, with the
/// arguments that come behind the helper's own. Gives the exit code to end with: the command's, or
/// 128 and the number of the signal that ended it.
///
/// It must be the first process of a process namespace. It dies when the thread that started it
/// ends, at the very latest with the emulator's process, and then the kernel kills whatever runs
/// in the namespace. On SIGTERM it hands that on to all of them.
///
/// # Errors
///
/// The arguments are not those of an emulator, or the command cannot be started.
pub fn init(arguments: impl IntoIterator<Item = OsString>) -> io::Result<u8> {
    let mut arguments = arguments.into_iter();
    let parent = arguments.next();
    die_with(parent.as_deref())?;
    if let Err(error) = mount_own_views() {
        tracing::debug!("/proc and /sys show the outside: {error}");
    }
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(watch(arguments.next()))
}

/// Sees to it that this process ends with its parent, of which the process ID is given, even if
/// that should just have ended.
fn die_with(parent: Option<&OsStr>) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // getppid gives 0, as the parent is in another process namespace; but /proc, not yet mounted
    // anew, is that of the parent.
    let status = fs::read_to_string("/proc/self/status")?;
    let actual = status.lines().find_map(|line| line.strip_prefix("PPid:")).map(str::trim);
    let alone = || io::Error::other("this is for the emulator, which starts it itself");
    if actual.is_some() && actual == parent.and_then(OsStr::to_str) { Ok(()) } else { Err(alone()) }
}

/// Gives programs a view of the processes and the network devices of their own namespaces.
fn mount_own_views() -> io::Result<()> {
    unshare(CloneFlags::CLONE_NEWNS)?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private)?;
    let safe = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "/proc", "proc", safe, None)?;
    mount("sysfs", "/sys", "sysfs", safe, None)?;
    Ok(())
}

/// Runs the command, or waits without one, until it ends. All processes that lose their parent
/// become children of this one, and are waited for, too.
async fn watch(command: Option<OsString>) -> io::Result<u8> {
    let mut ended = signal(SignalKind::child())?;
    let mut terminated = signal(SignalKind::terminate())?;
    // Ctrl-C at a terminal reaches the command and the emulator as well, and they know what to do.
    let mut _interrupted = signal(SignalKind::interrupt())?;
    let command = match command {
        Some(command) => Some(start(&command)?),
        None => None,
    };
    loop {
        tokio::select! {
            _ = terminated.recv() => {
                // To everyone but this process. That nobody is there is no error.
                let _ = kill(Pid::from_raw(-1), nix::sys::signal::Signal::SIGTERM);
                if command.is_none() {
                    return Ok(0);
                }
            }
            _ = ended.recv() => {
                while let Ok(Some((process, status))) = wait(WaitOptions::NOHANG) {
                    if command == Some(process.as_raw_nonzero().get().cast_unsigned()) {
                        return Ok(exit_code(ExitStatus::from_raw(status.as_raw())));
                    }
                }
            }
        }
    }
}

/// Starts a command by the shell; gives its process ID.
fn start(command: &OsStr) -> io::Result<u32> {
    Ok(Command::new("/bin/sh").arg("-c").arg(command).spawn()?.id())
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
