//! Datagrams that wait for their connection to send them.

use std::collections::VecDeque;

use bytes::Bytes;
use quinn_proto::SendDatagramError;

/// The datagrams of a connection that quinn has not taken yet. quinn gets no more than a few at a
/// time, because it drops datagrams from its queue without a word.
#[derive(Debug)]
pub(crate) struct DatagramQueue {
    waiting: VecDeque<Bytes>,
    bytes: usize,
    limit: usize,
    dropped: u64,
    /// Datagrams that quinn has taken.
    handed_over: u64,
}

impl DatagramQueue {
    /// An empty queue for `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { waiting: VecDeque::new(), bytes: 0, limit, dropped: 0, handed_over: 0 }
    }

    /// Adds a datagram. The oldest ones are dropped if there is no room.
    pub(crate) fn push(&mut self, datagram: Bytes) {
        self.bytes += datagram.len();
        self.waiting.push_back(datagram);
        while self.bytes > self.limit
            && self.waiting.len() > 1
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.bytes -= oldest.len();
            self.dropped += 1;
        }
    }

    /// Hands datagrams over to quinn until its queue is full.
    pub(crate) fn hand_over(&mut self, connection: &mut quinn_proto::Connection) {
        let mut datagrams = connection.datagrams();
        while let Some(next) = self.waiting.pop_front() {
            let length = next.len();
            match datagrams.send(next, false) {
                Ok(()) => self.handed_over += 1,
                Err(SendDatagramError::Blocked(next)) => {
                    self.waiting.push_front(next);
                    break;
                }
                Err(_) => self.dropped += 1,
            }
            self.bytes -= length;
        }
    }

    /// Takes out the datagrams that are longer than `largest` bytes.
    pub(crate) fn take_oversized(&mut self, largest: usize) -> Vec<Bytes> {
        let (oversized, fitting): (Vec<_>, Vec<_>) =
            self.waiting.drain(..).partition(|datagram| datagram.len() > largest);
        self.waiting = fitting.into();
        self.bytes = self.waiting.iter().map(Bytes::len).sum();
        oversized
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Datagrams that were dropped before they were sent, where quinn has sent `sent` and its queue
    /// is empty.
    pub(crate) const fn dropped(&self, sent: u64) -> u64 {
        self.dropped + self.handed_over.saturating_sub(sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(length: usize) -> Bytes {
        vec![0; length].into()
    }

    #[test]
    fn the_oldest_datagrams_are_dropped_and_counted() {
        let mut queue = DatagramQueue::new(1_000);
        (0..5).for_each(|_| queue.push(datagram(400)));
        assert_eq!((queue.waiting.len(), queue.bytes, queue.dropped(0)), (2, 800, 3));
        queue.push(datagram(5_000));
        assert_eq!((queue.waiting.len(), queue.dropped(0)), (1, 5));
    }

    #[test]
    fn datagrams_that_became_too_long_are_taken_out() {
        let mut queue = DatagramQueue::new(10_000);
        [100, 1_332, 200, 1_332].into_iter().for_each(|length| queue.push(datagram(length)));
        let oversized = queue.take_oversized(1_162);
        assert_eq!(oversized.iter().map(Bytes::len).collect::<Vec<_>>(), [1_332, 1_332]);
        assert_eq!((queue.waiting.len(), queue.bytes), (2, 300));
    }
}
