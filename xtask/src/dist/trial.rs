//! A trial of what was made: lintian, the exposure of the service, and the life of the packages on
//! a copy of this system.

#![expect(clippy::disallowed_methods, reason = "a thread hears what the relay tells systemd")]

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

use super::{copy, write};
use crate::shell::{Outcome, output_of, root, run as run_command, say};

/// Tries everything; each part for which this machine lacks a program is left out with a message.
pub(super) fn run(dist: &Path, packages: &[PathBuf]) -> Outcome {
    service_is_confined()?;
    if packages.is_empty() {
        return Ok(());
    }
    match output_of(Command::new("lintian").arg("--version")) {
        None => say("lintian is not installed, so that no rule of Debian is checked"),
        Some(_) => run_command(Command::new("lintian").args(LINTIAN).args(packages))?,
    }
    match output_of(Command::new("id").arg("-u")).as_deref().map(str::trim) {
        Some("0") => live(dist, packages),
        _ => {
            say("the packages are not installed, which needs root");
            Ok(())
        }
    }
}

/// Checks the exposure of the service to attacks, as systemd rates it from 0 to 10.
fn service_is_confined() -> Outcome {
    let mut tool = Command::new("systemd-analyze");
    tool.args(["security", "--offline=yes", "--no-pager"]);
    let unit = root().join("contrib/punctual-relay.service");
    let Some(table) = output_of(tool.arg(unit)) else {
        say("systemd-analyze is missing or too old, so that the service is not rated");
        return Ok(());
    };
    let rating = exposure(&table).ok_or("systemd-analyze gives no rating")?;
    say(&format!("the exposure of punctual-relay.service is {rating}"));
    match rating <= MOST_EXPOSURE {
        true => Ok(()),
        false => Err(format!("the service may be exposed by {MOST_EXPOSURE} at most")),
    }
}

fn exposure(table: &str) -> Option<f64> {
    let line = table.lines().find(|line| line.contains("Overall exposure level"))?;
    line.rsplit(": ").next()?.split(' ').next()?.parse().ok()
}

/// Lets the packages live, as `try_packages.sh` describes, and checks what the relay tells systemd.
fn live(dist: &Path, packages: &[PathBuf]) -> Outcome {
    let trial = dist.join("trial");
    for package in packages {
        copy(package, &trial.join("packages").join(package.file_name().ok_or("a file")?))?;
    }
    copy(&root().join("assets/clip.ts"), &trial.join("packages/clip.ts"))?;
    let script = trial.join("try_packages.sh");
    write(&script, SCRIPT)?;
    let socket = trial.join("notify/socket");
    write(&trial.join("notify/about"), "The socket of a service manager.\n")?;
    let told = listen(&socket).map_err(|error| format!("{}: {error}", socket.display()))?;
    let mut life = Command::new("unshare");
    life.args(["--mount", "--net", "--pid", "--fork", "--kill-child", "--propagation", "private"]);
    run_command(life.args(["sh", "-eu"]).arg(&script).arg(&trial))?;
    UnixDatagram::unbound()
        .and_then(|end| end.send_to(END.as_bytes(), &socket))
        .map_err(|error| format!("{}: {error}", socket.display()))?;
    let told = told.join().map_err(|_| "the thread of the socket panicked")?;
    match EXPECTED.iter().find(|state| !told.contains(**state)) {
        None => Ok(()),
        Some(state) => Err(format!("the relay did not tell systemd {state}, but {told:?}")),
    }
}

/// Collects what a service tells at `socket`, until it is told [`END`].
fn listen(socket: &Path) -> std::io::Result<JoinHandle<BTreeSet<String>>> {
    let end = UnixDatagram::bind(socket)?;
    // The relay is another user.
    fs::set_permissions(socket, Permissions::from_mode(0o777))?;
    Ok(thread::spawn(move || {
        let mut told = BTreeSet::new();
        let mut room = [0; 4096];
        while let Ok(length) = end.recv(&mut room) {
            let text = String::from_utf8_lossy(&room[..length]).into_owned();
            if text == END {
                break;
            }
            told.extend(text.lines().map(str::to_owned));
        }
        told
    }))
}

/// Warnings count as errors.
const LINTIAN: [&str; 4] = ["--fail-on", "error,warning", "--allow-root", "--tag-display-limit=0"];

/// The greatest rating that the service may have.
const MOST_EXPOSURE: f64 = 2.0;

/// The states of a service that starts, reloads, lives and ends.
const EXPECTED: [&str; 4] = ["READY=1", "RELOADING=1", "WATCHDOG=1", "STOPPING=1"];

/// The last message to the collecting thread.
const END: &str = "end of the trial";

const SCRIPT: &str = include_str!("try_packages.sh");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_confined() {
        service_is_confined().unwrap();
    }

    #[test]
    fn the_rating_of_systemd_is_read() {
        let table = "✗ UMask=  Files  0.1\n\n→ Overall exposure level for a.service: 1.3 OK 🙂\n";
        assert_eq!(exposure(table), Some(1.3));
        assert_eq!(exposure("nothing"), None);
    }
}
