//! Datagrams to send: those of no connection, and the order in which connections write theirs.

use std::collections::VecDeque;

use super::paths::Paths;
use crate::path::PathId;

/// Most answers to handshakes that wait. More are dropped; their callers repeat their requests.
const REPLIES: usize = 1_024;

/// Most datagrams that are too long for their path and wait for the carriage.
const OVERSIZED: usize = 64;

/// Datagrams to send: the last `size` bytes of the caller's buffer, cut into datagrams of
/// `segment_size` bytes, the last one possibly shorter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transmit {
    /// The path that takes them.
    pub path: PathId,
    /// Bytes of all the datagrams together.
    pub size: usize,
    /// Bytes of each datagram but the last.
    pub segment_size: usize,
}

/// Datagrams that belong to no connection, and the queue of connections that have some to send.
#[derive(Debug, Default)]
pub(super) struct TransmitQueue {
    replies: VecDeque<(PathId, Vec<u8>)>,
    /// The indices of connections.
    ready: VecDeque<usize>,
    /// The newest datagrams that are too long for their path.
    oversized: VecDeque<(PathId, Vec<u8>)>,
}

impl TransmitQueue {
    /// Queues a datagram that belongs to no connection; drops it if too many wait.
    pub(super) fn reply(&mut self, path: PathId, datagram: Vec<u8>) {
        if self.replies.len() < REPLIES {
            self.replies.push_back((path, datagram));
        }
    }

    /// Queues the end of a batch, which was too long for it and goes out alone.
    pub(super) fn carry_over(&mut self, path: PathId, datagram: Vec<u8>) {
        self.replies.push_back((path, datagram));
    }

    /// The next datagram that belongs to no connection and fits its path. Longer ones are handed
    /// back to the carriage.
    pub(super) fn pop_reply(&mut self, paths: &Paths) -> Option<(PathId, Vec<u8>)> {
        while let Some((path, datagram)) = self.replies.pop_front() {
            if paths.get(path).properties.carries(datagram.len()) {
                return Some((path, datagram));
            }
            self.hand_back(path, datagram);
        }
        None
    }

    /// Hands a datagram back to the carriage.
    pub(super) fn hand_back(&mut self, path: PathId, datagram: Vec<u8>) {
        if self.oversized.len() == OVERSIZED {
            self.oversized.pop_front();
        }
        self.oversized.push_back((path, datagram));
    }

    /// The next datagram that was handed back.
    pub(super) fn pop_oversized(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.oversized.pop_front()
    }

    /// Whether anything is to be sent.
    pub(super) fn is_waiting(&self) -> bool {
        !self.replies.is_empty() || !self.ready.is_empty()
    }

    /// Queues a connection, which must not be in the queue.
    pub(super) fn enqueue(&mut self, index: usize) {
        self.ready.push_back(index);
    }

    /// The connection at the head of the queue.
    pub(super) fn first_ready(&self) -> Option<usize> {
        self.ready.front().copied()
    }

    /// Removes the connection at the head of the queue.
    pub(super) fn pop_ready(&mut self) {
        self.ready.pop_front();
    }

    /// Removes a connection from the queue.
    pub(super) fn forget(&mut self, index: usize) {
        self.ready.retain(|&ready| ready != index);
    }

    pub(super) fn shrink(&mut self) {
        self.replies.shrink_to_fit();
        self.ready.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathProperties;

    const PATH: PathId = PathId::numbered(1);

    #[test]
    fn replies_beyond_the_limit_are_dropped() {
        let mut outbox = TransmitQueue::default();
        for _ in 0..2 * REPLIES {
            outbox.reply(PATH, vec![1]);
        }
        let sent = std::iter::from_fn(|| outbox.pop_reply(&Paths::default())).count();
        assert_eq!(sent, REPLIES);
        assert!(!outbox.is_waiting());
    }

    #[test]
    fn a_reply_that_is_too_long_for_its_path_is_handed_back() {
        let (mut outbox, mut paths) = (TransmitQueue::default(), Paths::default());
        let short = PathProperties { largest_datagram: Some(100), ..PATH.usual_properties() };
        paths.insert(PATH, short);
        outbox.reply(PATH, vec![1; 101]);
        outbox.reply(PATH, vec![2; 100]);
        assert_eq!(outbox.pop_reply(&paths), Some((PATH, vec![2; 100])));
        assert_eq!(outbox.pop_oversized(), Some((PATH, vec![1; 101])));
    }

    #[test]
    fn of_datagrams_that_were_handed_back_the_newest_are_kept() {
        let mut outbox = TransmitQueue::default();
        for number in 0..=OVERSIZED {
            outbox.hand_back(PATH, number.to_be_bytes().to_vec());
        }
        let first = outbox.pop_oversized().map(|(_, datagram)| datagram);
        assert_eq!(first, Some(1_usize.to_be_bytes().to_vec()));
        assert_eq!(std::iter::from_fn(|| outbox.pop_oversized()).count(), OVERSIZED - 1);
    }

    #[test]
    fn connections_write_in_turn_and_a_forgotten_one_does_not() {
        let mut outbox = TransmitQueue::default();
        [3, 1, 2].into_iter().for_each(|index| outbox.enqueue(index));
        outbox.forget(1);
        let turns = std::iter::from_fn(|| {
            let first = outbox.first_ready();
            outbox.pop_ready();
            first
        });
        assert_eq!(turns.collect::<Vec<_>>(), [3, 2]);
        assert!(!outbox.is_waiting());
    }
}
