//! The memory of a listener: the most that received packets take, and giving memory back to the
//! system after many connections have ended.

use std::time::Duration;

/// The peak number of connections. Once most of many connections have ended, memory is given back
/// to the system, which the allocator would keep otherwise.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPeak {
    peak: usize,
}

impl ConnectionPeak {
    /// Records that there are this many connections now.
    pub(crate) fn grow(&mut self, connections: usize) {
        self.peak = self.peak.max(connections);
    }

    /// Records that `left` connections are left after some have ended. Returns whether that is at
    /// most a quarter of a large peak; then the peak starts from there again.
    pub(crate) fn has_fallen(&mut self, left: usize) -> bool {
        let fallen = self.peak >= MANY && left <= self.peak / 4;
        if fallen {
            self.peak = left;
        }
        fallen
    }
}

/// Bytes that received packets may take at each of `shards` until the application reads them: a
/// quarter of the memory that the process may use, for all shards together.
pub(crate) fn share_of_received(shards: usize) -> u64 {
    let bytes = punctual_io::available_memory().map_or(u64::MAX, |bytes| bytes / RECEIVED);
    bytes / (shards as u64).max(1)
}

/// Gives memory back to the system after a pause, in which the application can drop its own data of
/// the ended connections. Runs in a thread for blocking work.
pub(crate) fn give_back_memory_soon() {
    tokio::spawn(async {
        tokio::time::sleep(PAUSE).await;
        tokio::task::spawn_blocking(punctual_io::give_back_memory);
    });
}

/// The fraction of the memory that received packets may take.
const RECEIVED: u64 = 4;
/// The smallest peak of connections after which giving memory back is worthwhile.
const MANY: usize = 256;
/// The pause in which applications can drop their own data.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_many_connections_is_reported_a_few_times_only() {
        let mut peak = ConnectionPeak::default();
        (1..=10_000).for_each(|connections| peak.grow(connections));
        let times: Vec<usize> = (0..10_000).rev().filter(|&left| peak.has_fallen(left)).collect();
        assert_eq!(times, [2_500, 625, 156]);
    }

    #[test]
    fn the_end_of_few_connections_is_not_reported() {
        let mut peak = ConnectionPeak::default();
        for _ in 0..1_000 {
            peak.grow(200);
            assert!(!peak.has_fallen(0));
        }
    }
}
