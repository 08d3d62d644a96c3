use std::collections::VecDeque;

use punctual_units::Instant;

use super::Endpoint;
use crate::connection::batch::Batch;
use crate::path::PathId;

/// Answers to handshakes that wait at most; more are dropped, their callers ask again.
const REPLIES: usize = 1_024;

/// Datagrams that are too long for their path and wait for the carriage at most.
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

/// The packets that wait to be sent: answers that belong to no connection, and connections that
/// have some.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    replies: VecDeque<(PathId, Vec<u8>)>,
    ready: VecDeque<usize>,
    /// Datagrams that are longer than their path carries, the newest ones.
    oversized: VecDeque<(PathId, Vec<u8>)>,
}

impl Outbox {
    /// Queues a datagram that belongs to no connection; dropped if too many wait.
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
    /// Appends up to `max_segments` datagrams for one address to `buffer`; `None` if nothing is to
    /// be sent now. All have the same size but the last, which may be shorter: what one segmenting
    /// send call takes. They may belong to several connections.
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

    /// Fills a batch with the datagrams of the connections at the head of the queue, as far as
    /// they use one path.
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
            let goes_on = connection.write_datagrams(now, &mut batch, buffer);
            connection.oversized += batch.oversized.len() as u64;
            for datagram in batch.oversized.drain(..) {
                self.outbox.hand_back(id, datagram);
            }
            if !batch.is_empty() {
                path = Some(id);
            }
            if !goes_on {
                break;
            }
            self.rest(now, index);
        }
        let path = path?;
        let Batch { size, segment_size, .. } = batch;
        if buffer.len() > start + size {
            // The last was too long for this batch: it opens the next one.
            self.outbox.replies.push_back((path, buffer.split_off(start + size)));
        }
        Some(Transmit { path, size, segment_size })
    }

    /// The connection at the head of the queue has nothing more to send now.
    fn rest(&mut self, now: Instant, index: usize) {
        self.outbox.ready.pop_front();
        self.connections[index].queued = false;
        self.settle(now, index);
    }
}
