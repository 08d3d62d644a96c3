//! Memory that is free in the allocator's books and still held by the process.

/// Gives the system back the pages that the allocator keeps although nothing on them is in use. It
/// may take a millisecond for each ten megabytes, in which other threads wait for memory. Only
/// glibc's allocator is told: others do it by themselves, or not.
pub fn give_back_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    trim();
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
