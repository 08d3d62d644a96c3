//! A spool in memory.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::spool::{Kept, Spool, SpoolError};

/// Keeps messages in memory, up to a limit.
#[derive(Debug)]
pub struct MemorySpool {
    /// Messages by the offset of their first byte. The first message may begin before `kept.first`.
    messages: VecDeque<(u64, Bytes)>,
    kept: Kept,
    limit: u64,
    has_begun: bool,
}

impl MemorySpool {
    /// A spool for at most `limit` bytes of messages. One message is kept, however long it is.
    pub fn new(limit: u64) -> Self {
        Self::at(0, limit)
    }

    /// The same for a stream of which the bytes before `first` are released already.
    pub fn at(first: u64, limit: u64) -> Self {
        Self {
            messages: VecDeque::new(),
            kept: Kept { first, end: first },
            limit,
            has_begun: false,
        }
    }

    /// Releases the oldest messages until `message` fits, and keeps it.
    pub fn push_newest(&mut self, message: Bytes) {
        while !self.has_room_for(&message)
            && let Some((start, oldest)) = self.messages.pop_front()
        {
            self.kept.first = start + oldest.len() as u64;
        }
        self.keep(message);
    }

    fn has_room_for(&self, message: &Bytes) -> bool {
        self.kept.is_empty() || self.kept.len() + message.len() as u64 <= self.limit
    }

    fn keep(&mut self, message: Bytes) {
        let start = self.kept.end;
        self.kept.end += message.len() as u64;
        self.messages.push_back((start, message));
    }
}

impl Spool for MemorySpool {
    fn kept(&self) -> Kept {
        self.kept
    }

    fn push(&mut self, message: Bytes) -> Result<(), SpoolError> {
        if !self.has_room_for(&message) {
            return Err(SpoolError::Full);
        }
        self.keep(message);
        Ok(())
    }

    fn read(&mut self, offset: u64) -> Result<Option<Bytes>, SpoolError> {
        let after = self.messages.partition_point(|(start, _)| *start <= offset);
        let found = after.checked_sub(1).and_then(|place| self.messages.get(place));
        Ok(found.and_then(|(start, message)| {
            let skipped = usize::try_from(offset - start).ok()?;
            (skipped < message.len()).then(|| message.slice(skipped..))
        }))
    }

    fn release(&mut self, offset: u64) -> Result<(), SpoolError> {
        self.kept.first = offset.clamp(self.kept.first, self.kept.end);
        while let Some((start, message)) = self.messages.front()
            && start + message.len() as u64 <= self.kept.first
        {
            self.messages.pop_front();
        }
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn begin(&mut self) -> Result<(), SpoolError> {
        self.has_begun = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spool(limit: u64) -> MemorySpool {
        let mut spool = MemorySpool::new(limit);
        for message in ["one", "two", "three"] {
            spool.push(message.into()).unwrap();
        }
        spool
    }

    fn read(spool: &mut MemorySpool, offset: u64) -> Option<Bytes> {
        spool.read(offset).unwrap()
    }

    #[test]
    fn a_message_is_read_from_any_of_its_bytes_on() {
        let mut spool = spool(100);
        assert_eq!(read(&mut spool, 0).as_deref(), Some(&b"one"[..]));
        assert_eq!(read(&mut spool, 3).as_deref(), Some(&b"two"[..]));
        assert_eq!(read(&mut spool, 8).as_deref(), Some(&b"ree"[..]));
        assert_eq!(read(&mut spool, 11), None);
    }

    #[test]
    fn released_messages_make_room() {
        let mut spool = spool(11);
        assert!(matches!(spool.push("x".into()), Err(SpoolError::Full)));
        spool.release(4).unwrap();
        assert_eq!(spool.kept(), Kept { first: 4, end: 11 });
        assert_eq!(read(&mut spool, 4).as_deref(), Some(&b"wo"[..]), "a message is kept whole");
        spool.push("four".into()).unwrap();
        assert_eq!(read(&mut spool, 11).as_deref(), Some(&b"four"[..]));
    }

    #[test]
    fn offsets_outside_are_taken_for_the_nearest_kept() {
        let mut spool = spool(100);
        spool.release(7).unwrap();
        spool.release(2).unwrap();
        assert_eq!(spool.kept().first, 7);
        spool.release(1_000).unwrap();
        assert!(spool.kept().is_empty());
        assert_eq!(read(&mut spool, 3), None);
    }

    #[test]
    fn one_message_longer_than_the_limit_is_kept() {
        let mut spool = MemorySpool::new(2);
        spool.push("three".into()).unwrap();
        assert!(spool.push("x".into()).is_err());
        spool.release(5).unwrap();
        spool.push("four".into()).unwrap();
    }

    #[test]
    fn the_newest_messages_take_the_place_of_the_oldest() {
        let mut spool = MemorySpool::new(8);
        for message in ["one", "two", "three"] {
            spool.push_newest(message.into());
        }
        assert_eq!(spool.kept(), Kept { first: 3, end: 11 });
        assert_eq!(read(&mut spool, 0), None);
        assert_eq!(read(&mut spool, 3).as_deref(), Some(&b"two"[..]));
    }
}
