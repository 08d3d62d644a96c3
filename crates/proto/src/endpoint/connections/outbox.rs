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
pub(super) struct Outbox {
    replies: VecDeque<(PathId, Vec<u8>)>,
    /// The indices of connections.
    ready: VecDeque<usize>,
    /// The newest datagrams that are too long for their path.
    oversized: VecDeque<(PathId, Vec<u8>)>,
}

impl Outbox {
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
