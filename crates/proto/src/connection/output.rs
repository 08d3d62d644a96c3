//! The output of a connection: packets in datagrams, and their timestamps.

use punctual_units::Instant;
use punctual_wire::{Control, ControlPacket, SocketId, Timestamp};

use super::batch::Batch;

/// The output of one call: the time of its packets, and the buffer that takes their datagrams.
#[derive(Debug)]
pub(super) struct Output<'a> {
    pub(super) now: Instant,
    /// The start of the connection, from which timestamps count.
    pub(super) start: Instant,
    pub(super) batch: &'a mut Batch,
    pub(super) buffer: &'a mut Vec<u8>,
}

impl Output<'_> {
    /// Appends a control packet with the timestamp of `at` to the buffer.
    pub(super) fn emit(&mut self, at: Instant, dest: SocketId, control: Control<'_>) {
        let timestamp = timestamp(self.start, at);
        ControlPacket { timestamp, dest, control }.emit(self.buffer);
    }
}

/// Microseconds from the connection's start to `at`, wrapped as on the wire.
pub(crate) fn timestamp(start: Instant, at: Instant) -> Timestamp {
    #[expect(clippy::cast_possible_truncation, reason = "timestamps wrap at 2^32 µs")]
    let micros = match at.checked_since(start) {
        Some(since) => since.as_micros() as u32,
        // A message may have originated before the connection.
        None => ((start - at).as_micros() as u32).wrapping_neg(),
    };
    Timestamp::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn timestamps_wrap_and_count_back_before_the_start() {
        let start = Instant::from_millis(10_000);
        let micros = |at| timestamp(start, at).as_micros();
        assert_eq!(micros(start + Duration::from_micros(7)), 7);
        assert_eq!(micros(start - Duration::from_micros(7)), u32::MAX - 6);
        assert_eq!(micros(start + Duration::from_micros((1 << 32) + 3)), 3);
    }
}
