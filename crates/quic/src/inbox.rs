//! Messages from streams that wait for the application.

use std::collections::VecDeque;

use bytes::Bytes;

/// The messages that have arrived whole. While there are too many bytes of them, no more are read,
/// so that QUIC's flow control holds the peer back.
#[derive(Debug)]
pub(crate) struct QuicInbox {
    messages: VecDeque<Bytes>,
    bytes: usize,
    limit: usize,
}

impl QuicInbox {
    /// An empty inbox that is full from `limit` bytes on.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { messages: VecDeque::new(), bytes: 0, limit }
    }

    pub(crate) fn push(&mut self, message: Bytes) {
        self.bytes += message.len() + EACH;
        self.messages.push_back(message);
    }

    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len() + EACH;
        Some(message)
    }

    /// Whether no more messages are to be read.
    pub(crate) const fn is_full(&self) -> bool {
        self.bytes >= self.limit
    }
}

/// Bytes that a message takes beside its content.
const EACH: usize = size_of::<Bytes>();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_messages_fill_an_inbox_too() {
        let mut inbox = QuicInbox::new(1_000);
        let mut count = 0;
        while !inbox.is_full() {
            inbox.push(Bytes::new());
            count += 1;
        }
        assert!(count <= 1_000);
        inbox.pop();
        assert!(!inbox.is_full());
        while inbox.pop().is_some() {}
        assert_eq!(inbox.bytes, 0);
    }
}
