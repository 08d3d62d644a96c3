//! Messages that were taken from the connection and not by the application yet.

use std::collections::VecDeque;

use bytes::Buf;
use bytes::buf::UninitSlice;
use punctual::Message;

use crate::readiness::Mark;

/// The most messages that are taken at once: one lock of the connection serves them all.
const AT_ONCE: usize = 64;

/// Messages that are due.
#[derive(Debug, Default)]
pub struct MessageInbox {
    messages: VecDeque<Message>,
    /// When the connection was found to have nothing more that is due; `None` if it has.
    drained: Option<Mark>,
}

impl MessageInbox {
    /// Whether no message is here.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether the connection had nothing more that was due at `mark`, and nothing was raised
    /// since: then it need not be asked again.
    pub fn is_drained(&self, mark: Mark) -> bool {
        self.drained == Some(mark)
    }

    /// Whether the connection had nothing more that was due when it was asked.
    pub const fn was_drained(&self) -> bool {
        self.drained.is_some()
    }

    /// Events were raised up to `mark` for the messages of the inbox. If the connection had nothing
    /// more that was due, that is still so.
    pub const fn remain_drained(&mut self, mark: Mark) {
        if self.drained.is_some() {
            self.drained = Some(mark);
        }
    }

    /// Takes messages from a connection by `receive`, after `mark`, into the empty inbox. `receive`
    /// gets the most messages that it may append, and returns whether more are due.
    ///
    /// # Errors
    ///
    /// That of `receive`. Messages that came before it are kept.
    pub fn fill<E>(
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
    pub fn pop(&mut self) -> Option<Message> {
        self.messages.pop_front()
    }

    /// Copies bytes of a stream into `buffer`, as many as there are. Returns their number.
    pub fn read(&mut self, buffer: &mut UninitSlice) -> usize {
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual::{Instant, MsgNo};

    use super::*;
    use crate::readiness::Readiness;

    fn message(payload: &'static [u8]) -> Message {
        Message {
            payload: Bytes::from_static(payload),
            origin: Instant::ORIGIN,
            due: Instant::ORIGIN,
            seq: punctual::SeqNo::new(1),
            msgno: MsgNo::new(1),
            lost_before: 0,
        }
    }

    /// An inbox that was filled now, and the present point in time.
    fn filled(payloads: &[&'static [u8]], more: bool) -> (MessageInbox, Mark) {
        let mark = Readiness::<()>::default().mark();
        let mut inbox = MessageInbox::default();
        let fill = inbox.fill::<()>(mark, |messages: &mut Vec<Message>, limit| {
            assert!(payloads.len() <= limit);
            messages.extend(payloads.iter().map(|payload| message(payload)));
            Ok(more)
        });
        fill.unwrap();
        (inbox, mark)
    }

    #[test]
    fn bytes_of_a_stream_are_read_in_any_pieces() {
        let (mut inbox, _) = filled(&[b"abc", b"de"], false);
        let mut buffer = [0; 4];
        assert_eq!(inbox.read(UninitSlice::new(&mut buffer)), 4);
        assert_eq!(&buffer, b"abcd");
        assert_eq!(inbox.read(UninitSlice::new(&mut buffer)), 1);
        assert_eq!((buffer[0], inbox.is_empty()), (b'e', true));
        assert_eq!(inbox.read(UninitSlice::new(&mut buffer)), 0);
    }

    #[test]
    fn a_connection_that_had_nothing_is_asked_again_after_an_event() {
        let (mut inbox, mark) = filled(&[b"abc"], true);
        assert_eq!(inbox.len(), 1);
        assert_eq!(inbox.pop().unwrap().payload, "abc");
        assert!(inbox.is_empty() && !inbox.was_drained() && !inbox.is_drained(mark));
        let (inbox, mark) = filled(&[], false);
        assert!(inbox.was_drained() && inbox.is_drained(mark));
        let readiness = Readiness::<()>::default();
        readiness.raise(1, crate::Events::IN);
        assert!(!inbox.is_drained(readiness.mark()));
    }

    #[test]
    fn messages_that_came_before_an_error_are_kept() {
        let mut inbox = MessageInbox::default();
        let mark = Readiness::<()>::default().mark();
        let filled = inbox.fill(mark, |messages: &mut Vec<Message>, _| {
            messages.push(message(b"abc"));
            Err("the end")
        });
        assert_eq!((filled, inbox.len()), (Err("the end"), 1));
    }
}
