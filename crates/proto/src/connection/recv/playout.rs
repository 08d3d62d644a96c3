use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::buffer::ReceiveBuffer;
use super::timing::Timing;
use crate::statistics::Statistics;

/// Counts the packets of a stream of bytes that cannot be read at their playout point, because they
/// or packets before them have not arrived, and the glitches that they make.
#[derive(Debug, Default)]
pub(super) struct PlayoutCheck {
    late: u64,
    glitches: u64,
    longest: Duration,
    /// Whether the newest readable packet was late.
    is_late: bool,
}

impl PlayoutCheck {
    /// The packets from `first` up to the first missing one can be read from `now` on.
    pub(super) fn became_readable(
        &mut self,
        now: Instant,
        first: SeqNo,
        buffer: &ReceiveBuffer,
        timing: &Timing,
    ) {
        let end = buffer.acknowledged();
        let mut seq = first;
        while seq.is_before(end) {
            let Some(stored) = buffer.get(seq) else { return };
            let late = timing.playout_point(stored.time).map(|point| now.saturating_since(point));
            let late = late.unwrap_or_default();
            if late.is_zero() {
                // Later packets have later playout points.
                self.is_late = false;
                return;
            }
            self.late += 1;
            self.glitches += u64::from(!self.is_late);
            self.is_late = true;
            self.longest = self.longest.max(late);
            seq = seq.next();
        }
    }

    pub(super) const fn fill(&self, statistics: &mut Statistics) {
        statistics.packets_late = self.late;
        statistics.glitches = self.glitches;
        statistics.longest_lateness = self.longest;
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual_wire::{MsgNo, Position, Timestamp};

    use super::super::buffer::{MessagePart, Stored};
    use super::super::tsbpd::Tsbpd;
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    /// A stream with a playout point of 100 ms, of a packet each 10 ms from 1 s on.
    struct Stream {
        check: PlayoutCheck,
        buffer: ReceiveBuffer,
        timing: Timing,
    }

    impl Stream {
        fn new() -> Self {
            let tsbpd = Tsbpd::new(AT(1_000), Timestamp::default());
            Self {
                check: PlayoutCheck::default(),
                buffer: ReceiveBuffer::new(SeqNo::new(0), 100),
                timing: Timing::of_playout(tsbpd, Duration::from_millis(100)),
            }
        }

        fn arrives(&mut self, millis: u64, number: u32) {
            let time =
                self.timing.plausible_time(AT(millis), Timestamp::from_micros(number * 10_000));
            let place = MessagePart::new(MsgNo::FIRST, Position::Solo, false);
            let first = self.buffer.acknowledged();
            self.buffer.insert(SeqNo::new(number), Stored { payload: Bytes::new(), time, place });
            self.check.became_readable(AT(millis), first, &self.buffer, &self.timing);
        }
    }

    #[test]
    fn packets_behind_a_late_one_are_late_with_it_in_one_glitch() {
        let mut stream = Stream::new();
        stream.arrives(1_050, 0);
        (2..20).for_each(|number| stream.arrives(1_050 + 10 * u64::from(number), number));
        assert_eq!((stream.check.late, stream.check.glitches), (0, 0), "nothing can be read");
        // Numbers 1 to 8 were to be read by 1110 to 1180 ms.
        stream.arrives(1_185, 1);
        assert_eq!((stream.check.late, stream.check.glitches), (8, 1));
        assert_eq!(stream.check.longest, Duration::from_millis(75));
        (20..40).for_each(|number| stream.arrives(1_050 + 10 * u64::from(number), number));
        stream.arrives(1_600, 40);
        assert_eq!((stream.check.late, stream.check.glitches), (9, 2), "another glitch");
    }
}
