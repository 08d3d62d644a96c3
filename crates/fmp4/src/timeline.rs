use punctual_mpegts::unwrap_timestamp;

/// Puts the times of a program's streams on one line that goes on where the program's clock jumps,
/// as it does after 26.5 hours, at another publisher or in a file that is sent in a loop.
///
/// One stream leads; the others are placed beside it, so that picture and sound stay together. All
/// times are in ticks of 90 kHz.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    /// The latest time of the leading stream by the program's clock.
    leader: Option<i64>,
    /// From the program's clock to this line.
    shift: i64,
}

impl Timeline {
    /// Ticks in a second.
    pub(crate) const HZ: u32 = 90_000;

    /// The place of the next time of the leading stream. After a jump it is `next`, the end of what
    /// was before.
    pub(crate) fn lead(&mut self, timestamp: u64, next: Option<i64>) -> Led {
        let reference = self.leader.unwrap_or(timestamp.cast_signed());
        let time = unwrap_timestamp(timestamp, reference);
        let step = time - reference;
        let has_jumped = !(-BACK..=AHEAD).contains(&step);
        if let (true, Some(next)) = (has_jumped, next) {
            self.shift = next - time;
        }
        self.leader = Some(time);
        Led { time: time + self.shift, has_jumped }
    }

    /// The place of a time of another stream; `None` if that stands too far away to belong beside
    /// the leading stream, as between the jumps of both.
    pub(crate) fn place(&self, timestamp: u64) -> Option<i64> {
        let leader = self.leader?;
        let time = unwrap_timestamp(timestamp, leader);
        (-AHEAD..=AHEAD).contains(&(time - leader)).then_some(time + self.shift)
    }
}

/// The place of a time of the leading stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Led {
    pub(crate) time: i64,
    /// Whether the program's clock jumped before it.
    pub(crate) has_jumped: bool,
}

/// Ten seconds: a longer gap is a jump.
const AHEAD: i64 = 10 * 90_000;

/// A tenth of a second: careless encoders step back so far.
const BACK: i64 = 9_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_goes_on_at_the_wrap_and_at_a_jump() {
        let wrap = 1_u64 << 33;
        let mut line = Timeline::default();
        assert_eq!(line.lead(wrap - 100, None).time, 8_589_934_492);
        let led = line.lead(100, Some(8_589_934_692));
        assert_eq!(led, Led { time: 8_589_934_692, has_jumped: false });
        assert_eq!(line.place(wrap - 50), Some(8_589_934_542));

        let led = line.lead(5_000_000, Some(8_589_938_292));
        assert_eq!(led, Led { time: 8_589_938_292, has_jumped: true });
        assert_eq!(line.place(5_000_100), Some(8_589_938_392));
        assert_eq!(line.place(100), None);
        assert!(!line.lead(5_000_000 - 9_000, Some(0)).has_jumped);
        assert!(line.lead(5_000_000 - 90_000, Some(0)).has_jumped);
    }
}
