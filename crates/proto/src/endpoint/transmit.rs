//! Datagrams to send: batches for segmenting send calls.

use std::collections::VecDeque;

use punctual_units::Instant;

use super::Endpoint;
use crate::connection::batch::Batch;
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
pub(crate) struct Outbox {
    replies: VecDeque<(PathId, Vec<u8>)>,
    ready: VecDeque<usize>,
    /// The newest datagrams that are too long for their path.
    oversized: VecDeque<(PathId, Vec<u8>)>,
}

impl Outbox {
    /// Queues a datagram that belongs to no connection; drops it if too many wait.
    pub(crate) fn reply(&mut self, path: PathId, datagram: Vec<u8>) {
        if self.replies.len() < REPLIES {
            self.replies.push_back((path, datagram));
        }
    }

    /// Hands a datagram back to the carriage.
    fn hand_back(&mut self, path: PathId, datagram: Vec<u8>) {
        if self.oversized.len() == OVERSIZED {
            self.oversized.pop_front();
        }
        self.oversized.push_back((path, datagram));
    }

    pub(crate) fn pop_oversized(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.oversized.pop_front()
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.replies.is_empty() || !self.ready.is_empty()
    }

    pub(crate) fn enqueue(&mut self, index: usize) {
        self.ready.push_back(index);
    }

    pub(crate) fn shrink(&mut self) {
        self.replies.shrink_to_fit();
        self.ready.shrink_to_fit();
    }

    pub(crate) fn forget(&mut self, index: usize) {
        self.ready.retain(|&ready| ready != index);
    }
}

impl Endpoint {
    /// Appends up to `max_segments` datagrams for one path to `buffer`; `None` if there are none to
    /// send now. All have the same size, except the last, which may be shorter, as one segmenting
    /// send call takes them. They may belong to several connections.
    #[inline]
    pub fn poll_transmit(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if !self.outbox.is_waiting() {
            return None;
        }
        self.write_batch(now, max_segments, buffer)
    }

    fn write_batch(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        while let Some((path, datagram)) = self.outbox.replies.pop_front() {
            if !self.paths.get(path).properties.carries(datagram.len()) {
                self.outbox.hand_back(path, datagram);
                continue;
            }
            buffer.extend_from_slice(&datagram);
            return Some(Transmit { path, size: datagram.len(), segment_size: datagram.len() });
        }
        self.write_ready(now, max_segments, buffer)
    }

    /// Fills a batch with the datagrams of the connections at the head of the queue, while they use
    /// the same path.
    fn write_ready(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let start = buffer.len();
        let mut batch = Batch::new(max_segments);
        let mut path = None;
        while let Some(&index) = self.outbox.ready.front() {
            let connection = &mut self.connections[index].connection;
            let id = connection.path.id;
            if path.is_some_and(|path| path != id) {
                break;
            }
            let has_room = connection.write_datagrams(now, &mut batch, buffer);
            connection.oversized += batch.oversized.len() as u64;
            for datagram in batch.oversized.drain(..) {
                self.outbox.hand_back(id, datagram);
            }
            if !batch.is_empty() {
                path = Some(id);
            }
            if !has_room {
                break;
            }
            self.rest(now, index);
        }
        let path = path?;
        let Batch { size, segment_size, .. } = batch;
        if buffer.len() > start + size {
            // The last datagram was too long for this batch: it goes out alone.
            self.outbox.replies.push_back((path, buffer.split_off(start + size)));
        }
        Some(Transmit { path, size, segment_size })
    }

    /// Removes the connection at the head of the queue, which has no more datagrams now.
    fn rest(&mut self, now: Instant, index: usize) {
        self.outbox.ready.pop_front();
        self.connections[index].queued = false;
        self.settle(now, index);
    }
}
