//! When many connections have gone, and with them what they held.

use std::time::Duration;

/// How many connections there were, to tell when most of many are gone: then it is time to give
/// memory back, which the allocator would keep.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    most: usize,
}

impl Crowd {
    /// There are so many connections now.
    pub(crate) fn grow(&mut self, connections: usize) {
        self.most = self.most.max(connections);
    }

    /// Some have gone, and so many are left: whether most of many have gone since this was last so.
    pub(crate) fn has_gone(&mut self, left: usize) -> bool {
        let gone = self.most >= MANY && left <= self.most / 4;
        if gone {
            self.most = left;
        }
        gone
    }
}

/// Gives memory back when the application has dropped what it had for its connections as well, in
/// a thread of its own.
pub(crate) fn give_back_memory_soon() {
    tokio::spawn(async {
        tokio::time::sleep(PAUSE).await;
        tokio::task::spawn_blocking(punctual_io::give_back_memory);
    });
}

/// Connections whose memory is worth giving back.
const MANY: usize = 256;
/// How long applications have time to drop what they hold.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_of_many_have_gone_a_few_times_only() {
        let mut crowd = Crowd::default();
        (1..=10_000).for_each(|connections| crowd.grow(connections));
        let times: Vec<usize> = (0..10_000).rev().filter(|&left| crowd.has_gone(left)).collect();
        assert_eq!(times, [2_500, 625, 156]);
    }

    #[test]
    fn few_connections_come_and_go_without_notice() {
        let mut crowd = Crowd::default();
        for _ in 0..1_000 {
            crowd.grow(200);
            assert!(!crowd.has_gone(0));
        }
    }
}
