//! CPU time and memory of another process, read from outside.

use std::fs;
use std::time::Duration;

use nix::time::ClockId;
use nix::unistd::Pid;

use crate::Result;

/// The resources that a process has used so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// CPU time of all its threads, user and system.
    pub(crate) cpu: Duration,
    /// Resident memory, bytes.
    pub(crate) resident: u64,
}

impl Usage {
    /// The resources that the process `pid` has used so far; an error if it has ended.
    pub(crate) fn of(pid: u32) -> Result<Self> {
        let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(pid)?))?;
        Ok(Self { cpu: clock.now()?.into(), resident: resident(pid)? })
    }
}

fn resident(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|value| value.trim().strip_suffix(" kB"))
        .ok_or_else(|| format!("process {pid} has ended"))?;
    Ok(kibibytes.parse::<u64>()? * 1_024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_of_the_bench_uses_memory_and_time() {
        let before = Usage::of(std::process::id()).unwrap();
        assert!(before.resident > 0);
        let work: u64 = (0..3_000_000_u64).map(std::hint::black_box).sum();
        assert!(work > 0);
        assert!(Usage::of(std::process::id()).unwrap().cpu > before.cpu);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        assert!(Usage::of(i32::MAX.unsigned_abs()).is_err());
    }
}
