//! The memory that the process may use, and memory that is free in the allocator's books and still
//! held by the process.

/// Gives the system back the pages that the allocator keeps although nothing on them is in use. It
/// may take a millisecond for each ten megabytes, in which other threads wait for memory. Only
/// glibc's allocator is told: others do it by themselves, or not.
pub fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
}

/// Bytes of memory that the process may use: those of the host, or fewer by the limit of its
/// control group or by its own (`ulimit -v`). `None` where the system does not tell.
pub fn available_memory() -> Option<u64> {
    let host = std::fs::read_to_string("/proc/meminfo").ok()?;
    let host = total_of(&host)?;
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits =
        groups.iter().filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok());
    Some(limits.chain(own_limits()).fold(host, u64::min))
}

#[cfg(unix)]
fn own_limits() -> impl Iterator<Item = u64> {
    use rustix::process::{Resource, getrlimit};

    [Resource::As, Resource::Data].into_iter().filter_map(|kind| getrlimit(kind).current)
}

#[cfg(not(unix))]
fn own_limits() -> impl Iterator<Item = u64> {
    std::iter::empty()
}

/// The first line of `/proc/meminfo` as bytes.
fn total_of(meminfo: &str) -> Option<u64> {
    let (name, rest) = meminfo.lines().next()?.split_once(':')?;
    let kilobytes: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    (name == "MemTotal").then_some(kilobytes * 1_024)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "no safe wrapper for malloc_trim exists")]
fn trim() {
    // SAFETY: it takes no pointer, touches only memory that is free, and may be called from any
    // thread at any time.
    let _ = unsafe { libc::malloc_trim(0) };
}

#[cfg(all(test, target_os = "linux", target_env = "gnu"))]
mod tests {
    use super::*;

    #[test]
    fn the_memory_of_the_host_is_known() {
        assert_eq!(total_of("MemTotal:       1000 kB\nMemFree: 1 kB"), Some(1_024_000));
        assert_eq!(total_of("Other: 5 kB"), None);
        assert!(available_memory().is_some_and(|bytes| bytes > 1 << 20));
    }

    #[test]
    fn a_limit_of_the_process_counts() {
        let program = std::env::current_exe().expect("the test's own path");
        let tests = ["--ignored", "--exact", "memory::tests::under_a_limit"];
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", "ulimit -v 900000 && exec \"$0\" \"$@\""]).arg(program).args(tests);
        let output = shell.output().expect("there is a shell");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }

    #[test]
    #[ignore = "run by the other test"]
    fn under_a_limit() {
        assert_eq!(available_memory(), Some(900_000 << 10));
    }

    fn resident_pages() -> u64 {
        let statistics = std::fs::read_to_string("/proc/self/statm").expect("Linux tells");
        let pages = statistics.split(' ').nth(1).expect("the second is resident memory");
        pages.parse().expect("a number")
    }

    #[test]
    fn unused_memory_is_given_back() {
        let mut pieces: Vec<Vec<u8>> = (0..40_000).map(|_| vec![1; 1_000]).collect();
        let last = pieces.pop();
        let full = resident_pages();
        drop(pieces);
        give_back_memory();
        assert!(full - resident_pages() > 5_000, "20 MB of 40");
        drop(last);
    }
}
