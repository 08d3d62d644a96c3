//! Messages that were taken from the connection and not by the application yet.

use std::collections::VecDeque;

use bytes::Buf;
use punctual::Message;

/// The most messages that are taken at once: one lock of the connection serves them all.
pub(super) const AT_ONCE: usize = 64;

/// Messages that are due.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    messages: VecDeque<Message>,
    /// Whether the connection has further messages that are due.
    pub(super) more: bool,
    /// Filled by the connection, and always left empty.
    scratch: Vec<Message>,
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether nothing is due.
    pub(super) fn is_exhausted(&self) -> bool {
        self.messages.is_empty() && !self.more
    }

    /// Takes messages from a connection by `receive`.
    pub(super) fn fill<E>(
        &mut self,
        receive: impl FnOnce(&mut Vec<Message>, usize) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.more = false;
        let more = receive(&mut self.scratch, AT_ONCE);
        self.messages.extend(self.scratch.drain(..));
        self.more = more?;
        Ok(())
    }

    /// Takes the next message.
    pub(super) fn pop(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    /// Copies bytes of a stream into `buffer`, as many as there are. Returns their number.
    pub(super) fn read(&mut self, buffer: &mut [u8]) -> usize {
        let mut read = 0;
        while let Some(front) = self.messages.front_mut()
            && read < buffer.len()
        {
            let len = front.payload.len().min(buffer.len() - read);
            buffer[read..read + len].copy_from_slice(&front.payload[..len]);
            front.payload.advance(len);
            read += len;
            if front.payload.is_empty() {
                self.messages.pop_front();
            }
        }
        read
    }
}
