use std::collections::VecDeque;
use std::net::SocketAddr;

use punctual_units::Instant;

use super::Endpoint;
use crate::connection::batch::Batch;

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

/// The packets that wait to be sent: answers that belong to no connection, and connections that
/// have some.
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
        let start = buffer.len();
        if let Some((remote, datagram)) = self.outbox.replies.pop_front() {
            buffer.extend_from_slice(&datagram);
            return Some(Transmit { remote, size: datagram.len(), segment_size: datagram.len() });
        }
        let mut batch = Batch::new(max_segments);
        let mut remote = None;
        while let Some(&index) = self.outbox.ready.front() {
            let connection = &mut self.connections[index].connection;
            if remote.is_some_and(|remote| remote != connection.remote) {
                break;
            }
            let goes_on = connection.write_datagrams(now, &mut batch, buffer);
            if !batch.is_empty() {
                remote = Some(connection.remote);
            }
            if !goes_on {
                break;
            }
            self.rest(now, index);
        }
        let Batch { size, segment_size, .. } = batch;
        let remote = remote?;
        if buffer.len() > start + size {
            // The last was too long for this batch: it opens the next one.
            self.outbox.replies.push_back((remote, buffer.split_off(start + size)));
        }
        Some(Transmit { remote, size, segment_size })
    }

    /// The connection at the head of the queue has nothing more to send now.
    fn rest(&mut self, now: Instant, index: usize) {
        self.outbox.ready.pop_front();
        self.connections[index].queued = false;
        self.settle(now, index);
    }
}
