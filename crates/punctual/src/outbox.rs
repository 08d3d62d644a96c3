//! The queue of outgoing datagrams, sent in batches.

use std::collections::VecDeque;
use std::net::SocketAddr;

/// Datagrams for one peer, cut from the bytes of an outbox.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Batch {
    pub(crate) remote: SocketAddr,
    /// Bytes of all the datagrams together.
    pub(crate) size: usize,
    /// Bytes of each datagram but the last.
    pub(crate) segment_size: usize,
}

/// Datagrams that the protocol produced and the socket has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// The bytes of all datagrams, in the order of `batches`.
    pub(crate) bytes: Vec<u8>,
    /// The batches whose bytes begin at `start`.
    batches: VecDeque<Batch>,
    start: usize,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether there are enough datagrams for one round of sending.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Adds `batch`, whose bytes the caller has appended to `bytes`.
    pub(crate) fn push(&mut self, batch: Batch) {
        self.batches.push_back(batch);
    }

    /// Sends as much as the socket takes. Returns whether that was everything.
    ///
    /// `send` gets an address, datagrams for it and their size. It returns the number of bytes that
    /// it sent or gave up; `None` if the socket takes nothing at the moment.
    pub(crate) fn flush(
        &mut self,
        mut send: impl FnMut(SocketAddr, &[u8], usize) -> Option<usize>,
    ) -> bool {
        while let Some(batch) = self.batches.front_mut() {
            while batch.size > 0 {
                let datagrams = &self.bytes[self.start..][..batch.size];
                let Some(sent) = send(batch.remote, datagrams, batch.segment_size) else {
                    return false;
                };
                self.start += sent;
                batch.size -= sent;
            }
            self.batches.pop_front();
        }
        self.bytes.clear();
        self.start = 0;
        true
    }
}

/// The number of bytes after which sending starts: a few full system calls, so that the lock is
/// held only briefly.
const FULL: usize = 4 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 10_000 + n))
    }

    #[test]
    fn a_blocked_outbox_continues_where_it_stopped() {
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for n in 0..5_u8 {
            // Three datagrams of ten bytes and one of four.
            outbox.bytes.extend([n; 34]);
            outbox.push(Batch { remote: peer(n.into()), size: 34, segment_size: 10 });
            expected.extend([10, 10, 10, 4].map(|len| (peer(n.into()), vec![n; len])));
        }
        let (mut sent, mut calls) = (Vec::new(), 0);
        loop {
            let all = outbox.flush(|remote, datagrams, segment_size| {
                calls += 1;
                // Every third call is refused, every other one takes two datagrams.
                if calls % 3 == 0 {
                    return None;
                }
                let taken = &datagrams[..datagrams.len().min(2 * segment_size)];
                sent.extend(taken.chunks(segment_size).map(|it| (remote, it.to_vec())));
                Some(taken.len())
            });
            if all {
                break;
            }
            assert!(!outbox.is_empty());
        }
        assert!(outbox.is_empty() && outbox.bytes.is_empty());
        assert_eq!(sent, expected);
    }
}
