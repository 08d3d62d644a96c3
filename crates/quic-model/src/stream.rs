//! The stream that is sent.

use std::ops::Range;

use crate::ranges::Ranges;

/// The sending side of a stream of known length: what was sent, lost and acknowledged.
#[derive(Debug, Default)]
pub(crate) struct SendStream {
    length: u64,
    /// Bytes that were never sent begin here.
    next: u64,
    /// Bytes to send again.
    again: Ranges,
    acknowledged: Ranges,
}

impl SendStream {
    /// The application has this many bytes to send.
    pub(crate) fn write(&mut self, length: u64) {
        self.length += length;
    }

    /// Bytes for a packet with room for `room`: lost ones first, then new ones.
    pub(crate) fn take(&mut self, mut room: u64) -> Vec<Range<u64>> {
        let mut parts = Vec::new();
        while room > 0 {
            let Some(part) = self.again.take(room).or_else(|| self.take_new(room)) else { break };
            room -= part.end - part.start;
            parts.push(part);
            // Each further part has a header.
            room = room.saturating_sub(PART_HEADER);
        }
        parts
    }

    fn take_new(&mut self, room: u64) -> Option<Range<u64>> {
        let part = self.next..self.length.min(self.next + room);
        self.next = part.end;
        (!part.is_empty()).then_some(part)
    }

    /// These bytes were lost.
    pub(crate) fn lose(&mut self, parts: &[Range<u64>]) {
        for part in parts.iter().flat_map(|part| self.acknowledged.missing(part)) {
            self.again.insert(part);
        }
    }

    /// These bytes were acknowledged.
    pub(crate) fn acknowledge(&mut self, parts: &[Range<u64>]) {
        for part in parts {
            self.acknowledged.insert(part.clone());
            self.again.remove(part);
        }
    }

    /// Bytes that are to be sent again of these.
    pub(crate) fn missing(&self, parts: &[Range<u64>]) -> Vec<Range<u64>> {
        parts.iter().flat_map(|part| self.acknowledged.missing(part)).collect()
    }

    /// Whether there is anything to send.
    pub(crate) fn is_ready(&self) -> bool {
        self.next < self.length || !self.again.is_empty()
    }

    /// New bytes that wait.
    pub(crate) fn queued(&self) -> u64 {
        self.length - self.next
    }
}

const PART_HEADER: u64 = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_bytes_go_before_new_ones() {
        let mut stream = SendStream::default();
        stream.write(1_000);
        assert_eq!(stream.take(400), [0..400]);
        assert_eq!(stream.take(400), [400..800]);
        stream.lose(&[0..400]);
        assert_eq!(stream.take(300), [0..300]);
        assert_eq!(stream.take(300), [300..400, 800..992]);
        assert_eq!(stream.queued(), 8);
    }

    #[test]
    fn acknowledged_bytes_are_not_sent_again() {
        let mut stream = SendStream::default();
        stream.write(300);
        stream.take(300);
        stream.acknowledge(&[100..200]);
        stream.lose(&[0..300]);
        assert_eq!(stream.missing(&[50..250]), [50..100, 200..250]);
        stream.acknowledge(&[0..100]);
        assert_eq!(stream.take(300), [200..300]);
        assert!(!stream.is_ready());
    }
}
