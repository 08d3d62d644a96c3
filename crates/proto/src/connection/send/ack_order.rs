use punctual_units::Instant;
use punctual_wire::AckNo;

/// The largest reordering distance of ACKs. A number further back is not that of an older ACK.
const OVERTAKEN: u32 = 1_024;
/// The number of ACKs that may arrive at once, or be lost one after the other, in addition to two
/// for each millisecond since the last one: a receiver sends one in 10 ms, and more while it frees
/// room.
const AT_ONCE: u64 = 16;
const A_MILLISECOND: u64 = 2;

/// The order of the peer's ACKs by their numbers.
///
/// A number far ahead counts only when the next ACK continues from there: after a forged number all
/// later ACKs would seem old.
#[derive(Debug)]
pub(super) struct AckOrder {
    newest: Option<AckNo>,
    at: Instant,
    leap: Option<AckNo>,
}

/// The place of an ACK in the order of their numbers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Order {
    /// The newest one, with the distance from the one before; 0 if the distance is unknown.
    Newest(u32),
    /// A later one has arrived before.
    Overtaken,
    /// Too far ahead to count now.
    Leap,
}

impl AckOrder {
    pub(super) const fn new(now: Instant) -> Self {
        Self { newest: None, at: now, leap: None }
    }

    /// An ACK with this number arrived.
    pub(super) fn note(&mut self, now: Instant, number: AckNo) -> Order {
        let ahead = |of: AckNo| number.value().wrapping_sub(of.value()) & MASK;
        let newest = self.newest.unwrap_or_default();
        let behind = newest.value().wrapping_sub(number.value()) & MASK;
        if (1..OVERTAKEN).contains(&behind) {
            return Order::Overtaken;
        }
        let steps = ahead(newest);
        let millis = u64::try_from(now.saturating_since(self.at).as_millis()).unwrap_or(u64::MAX);
        let expected = millis.saturating_mul(A_MILLISECOND).saturating_add(AT_ONCE);
        let goes_on = self.leap.is_some_and(|leap| (1..=MASK / 2).contains(&ahead(leap)));
        if self.newest.is_some() && u64::from(steps) > expected && !goes_on {
            self.leap = Some(number);
            return Order::Leap;
        }
        (self.newest, self.at, self.leap) = (Some(number), now, None);
        // No loss explains a number farther ahead: the peer counts in another way.
        Order::Newest(if steps < OVERTAKEN { steps } else { 0 })
    }
}

/// ACK numbers have 31 bits.
const MASK: u32 = 0x7FFF_FFFF;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    #[test]
    fn a_single_number_far_ahead_makes_no_other_one_old() {
        for ahead in [900, 1_023, 1 << 30] {
            let mut order = AckOrder::new(MS(0));
            for i in 1..10 {
                assert_eq!(order.note(MS(u64::from(i) * 10), AckNo::new(i)), Order::Newest(1));
            }
            assert_eq!(order.note(MS(95), AckNo::new(9 + ahead)), Order::Leap);
            assert_eq!(order.note(MS(100), AckNo::new(10)), Order::Newest(1));
            assert_eq!(order.note(MS(110), AckNo::new(9)), Order::Overtaken);
        }
    }

    #[test]
    fn numbers_that_go_on_far_ahead_are_believed() {
        let mut order = AckOrder::new(MS(0));
        order.note(MS(0), AckNo::new(1));
        assert_eq!(order.note(MS(10), AckNo::new(5_000)), Order::Leap);
        assert_eq!(order.note(MS(20), AckNo::new(5_001)), Order::Newest(0));
        assert_eq!(order.note(MS(30), AckNo::new(5_002)), Order::Newest(1));
        assert_eq!(order.note(MS(400), AckNo::new(5_039)), Order::Newest(37), "an outage");
    }
}
