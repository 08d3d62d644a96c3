use std::collections::VecDeque;
use std::net::SocketAddr;

use punctual_units::Instant;

use super::Endpoint;

/// Most bytes of one [`Transmit`]: what fits a UDP datagram before it is cut, which is what a
/// segmenting send call takes.
const MAX_BYTES: usize = 65_000;
/// Answers to handshakes that wait at most; more are dropped, their callers ask again.
const REPLIES: usize = 1_024;

/// Datagrams to send: the last `size` bytes of the caller's buffer, cut into datagrams of
/// `segment_size` bytes, the last one possibly shorter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transmit {
    /// Where to send them.
    pub remote: SocketAddr,
    /// Bytes of all the datagrams together.
    pub size: usize,
    /// Bytes of each datagram but the last.
    pub segment_size: usize,
}

/// What waits to be sent: answers that belong to no connection, and connections that have
/// something.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    replies: VecDeque<(SocketAddr, Vec<u8>)>,
    ready: VecDeque<usize>,
}

impl Outbox {
    /// Queues a datagram that belongs to no connection; dropped if too many wait.
    pub(crate) fn reply(&mut self, remote: SocketAddr, datagram: Vec<u8>) {
        if self.replies.len() < REPLIES {
            self.replies.push_back((remote, datagram));
        }
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.replies.is_empty() || !self.ready.is_empty()
    }

    pub(crate) fn enqueue(&mut self, index: usize) {
        self.ready.push_back(index);
    }

    pub(crate) fn forget(&mut self, index: usize) {
        self.ready.retain(|&ready| ready != index);
    }
}

impl Endpoint {
    /// Appends up to `max_segments` datagrams for one address to `buffer`; `None` if nothing is to
    /// be sent now. All have the same size but the last, which may be shorter: what one segmenting
    /// send call takes. They may belong to several connections.
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
        let start = buffer.len();
        if let Some((remote, datagram)) = self.outbox.replies.pop_front() {
            buffer.extend_from_slice(&datagram);
            return Some(Transmit { remote, size: datagram.len(), segment_size: datagram.len() });
        }
        let mut batch: Option<Transmit> = None;
        let mut segments = 0;
        while segments < max_segments.max(1) {
            let Some(&index) = self.outbox.ready.front() else { break };
            let connection = &mut self.connections[index].connection;
            if batch.is_some_and(|batch| batch.remote != connection.remote) {
                break;
            }
            let before = buffer.len();
            if !connection.write_datagram(now, buffer) {
                self.rest(now, index);
                continue;
            }
            let length = buffer.len() - before;
            let Some(open) = &mut batch else {
                batch = Some(Transmit {
                    remote: connection.remote,
                    size: length,
                    segment_size: length,
                });
                segments = 1;
                continue;
            };
            if length > open.segment_size || open.size + length > MAX_BYTES {
                // Too long for this batch: it opens the next one.
                self.outbox.replies.push_back((open.remote, buffer.split_off(before)));
                break;
            }
            open.size = buffer.len() - start;
            segments += 1;
            if length < open.segment_size {
                break;
            }
        }
        batch
    }

    /// The connection at the head of the queue has nothing more to send now.
    fn rest(&mut self, now: Instant, index: usize) {
        self.outbox.ready.pop_front();
        self.connections[index].queued = false;
        self.settle(now, index);
    }
}
