/// Tells packets that arrive for the first time from duplicates.
///
/// It remembers the last [`REMEMBERED`] numbers. Links hold packets back for far less; a packet
/// with an older number counts as a duplicate.
#[derive(Debug)]
pub(super) struct Firsts {
    /// One more than the highest number that arrived.
    next: u64,
    /// Which of the numbers before `next` arrived; a number has the place of its remainder.
    arrived: Box<[bool; REMEMBERED]>,
}

impl Default for Firsts {
    fn default() -> Self {
        Self { next: 0, arrived: Box::new([false; REMEMBERED]) }
    }
}

impl Firsts {
    /// Whether the packet with this number, which arrives, did not arrive before.
    pub(super) fn is_first(&mut self, number: u64) -> bool {
        if number + (REMEMBERED as u64) < self.next {
            return false;
        }
        // The numbers that enter the window have not arrived; after a long gap they fill it.
        let from = self.next.max(number.saturating_sub(REMEMBERED as u64 - 1));
        for passed in from..=number {
            self.arrived[place(passed)] = false;
        }
        self.next = self.next.max(number + 1);
        !std::mem::replace(&mut self.arrived[place(number)], true)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder of less than `REMEMBERED`")]
fn place(number: u64) -> usize {
    (number % REMEMBERED as u64) as usize
}

/// Packets: at 100 Mb/s the last half second.
const REMEMBERED: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_packet_counts_once_and_a_copy_does_not() {
        let mut firsts = Firsts::default();
        let answers = [0, 1, 3, 3, 2, 2, 9000, 9000, 8999, 0].map(|number| firsts.is_first(number));
        let expected = [true, true, true, false, true, false, true, false, true, false];
        assert_eq!(answers, expected);
    }

    #[test]
    fn numbers_whose_places_were_used_before_are_first() {
        let mut firsts = Firsts::default();
        let remembered = REMEMBERED as u64;
        assert!((0..3 * remembered).step_by(2).all(|number| firsts.is_first(number)));
        assert!((2 * remembered..3 * remembered).step_by(2).all(|number| !firsts.is_first(number)));
        assert!((2 * remembered + 1..3 * remembered).step_by(2).all(|it| firsts.is_first(it)));
    }
}
