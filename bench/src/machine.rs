//! The machine that the figures hold for.

use std::fs;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::Result;
use crate::libsrt::Libsrt;

/// Keeps this process and all that it starts to two cores, which a pair's both ends share. Returns
/// their numbers.
pub(crate) fn keep_to_two_cores() -> Result<Vec<usize>> {
    let this = Pid::from_raw(0);
    let allowed = sched_getaffinity(this)?;
    let cores: Vec<usize> =
        (0..CpuSet::count()).filter(|&core| allowed.is_set(core) == Ok(true)).take(2).collect();
    let mut chosen = CpuSet::new();
    for &core in &cores {
        chosen.set(core)?;
    }
    sched_setaffinity(this, &chosen)?;
    if cores.len() < 2 {
        eprintln!("bench: there is only one core for both ends; the targets are for two");
    }
    Ok(cores)
}

/// The machine's load average of the last minute; figures of a busy machine are rough.
pub(crate) fn load() -> Option<f64> {
    read("/proc/loadavg").split_whitespace().next()?.parse().ok()
}

/// One line: cores, processor, kernel, UDP buffer limit, versions, date.
pub(crate) fn describe(cores: &[usize], libsrt: Option<&Libsrt>) -> String {
    let all = std::thread::available_parallelism().map_or(cores.len(), usize::from);
    let cores = match all.cmp(&cores.len()) {
        std::cmp::Ordering::Greater => format!("{} of {all} cores", cores.len()),
        _ => format!("{} cores", cores.len()),
    };
    let processor = line_value("/proc/cpuinfo", "model name").unwrap_or("unknown".into());
    let libsrt = libsrt.map_or("no libsrt".into(), |libsrt| format!("libsrt {}", libsrt.version));
    format!(
        "{cores} ({processor}), Linux {}, net.core.rmem_max {}, {libsrt}, Punctual {}, {}",
        read("/proc/sys/kernel/osrelease"),
        read("/proc/sys/net/core/rmem_max"),
        env!("CARGO_PKG_VERSION"),
        today(),
    )
}

fn read(path: &str) -> String {
    fs::read_to_string(path).map_or("unknown".into(), |text| text.trim().to_owned())
}

/// The value of the first line `key : value`.
fn line_value(path: &str, key: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(key))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The date in UTC as `date` prints it.
fn today() -> String {
    let date = std::process::Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    date.map_or("unknown date".into(), |output| {
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    })
}
