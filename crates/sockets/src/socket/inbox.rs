//! Messages that were taken from the connection and not by the application yet.

use std::collections::VecDeque;

use bytes::Buf;
use punctual::Message;

use crate::readiness::Mark;

/// The most messages that are taken at once: one lock of the connection serves them all.
pub(super) const AT_ONCE: usize = 64;

/// Messages that are due.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    messages: VecDeque<Message>,
    /// When the connection was found to have nothing more that is due; `None` if it has.
    drained: Option<Mark>,
}

impl Inbox {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether the connection had nothing more that was due at `mark`, and nothing was raised since:
    /// then it need not be asked again.
    pub(super) fn is_drained(&self, mark: Mark) -> bool {
        self.drained == Some(mark)
    }

    /// Whether the connection had nothing more that was due when it was asked.
    pub(super) const fn was_drained(&self) -> bool {
        self.drained.is_some()
    }

    /// Takes messages from a connection by `receive`, after `mark`, into the empty inbox.
    pub(super) fn fill<E>(
        &mut self,
        mark: Mark,
        receive: impl FnOnce(&mut Vec<Message>, usize) -> Result<bool, E>,
    ) -> Result<(), E> {
        self.drained = None;
        // Neither conversion copies anything.
        let mut messages = Vec::from(std::mem::take(&mut self.messages));
        let more = receive(&mut messages, AT_ONCE);
        self.messages = VecDeque::from(messages);
        self.drained = (!more?).then_some(mark);
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
