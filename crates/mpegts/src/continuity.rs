use crate::{PACKET_LEN, Packet};

/// Checks the continuity counter of one PID (ISO/IEC 13818-1 section 2.4.3.3).
///
/// The counter goes up by one, modulo 16, with every packet that has a payload, and stands still
/// with one that has none. A packet may be sent twice in a row, the copy alike in all but its PCR.
/// The sender may announce a break by the discontinuity indicator (section 2.4.3.5).
#[derive(Clone, Debug, Default)]
pub(crate) struct Continuity {
    last: Option<Last>,
}

/// The judgement on a packet's continuity counter.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Verdict {
    /// It follows the one before, is the first, or breaks with announcement.
    Continuous,
    /// It is the permitted copy of the one before.
    Duplicate,
    /// It does not follow. At least `missing` packets are missing, or any multiple of 16 more; 0
    /// means the same packet for the third time.
    Broken { missing: u8 },
}

#[derive(Clone, Debug)]
struct Last {
    counter: u8,
    /// The latest packet with a payload, to know its copy.
    packet: [u8; PACKET_LEN],
    was_repeated: bool,
}

impl Continuity {
    /// Judges the next packet of the PID.
    pub(crate) fn check(&mut self, packet: Packet<'_>) -> Verdict {
        let counter = packet.continuity_counter();
        let Some(last) = &mut self.last else {
            self.last = Some(Last::new(packet));
            return Verdict::Continuous;
        };
        if packet.is_discontinuity() {
            *last = Last::new(packet);
            return Verdict::Continuous;
        }
        if !packet.has_payload() {
            let missing = steps(last.counter, counter);
            last.counter = counter;
            return if missing == 0 { Verdict::Continuous } else { Verdict::Broken { missing } };
        }
        if counter == last.counter && packet.repeats(&last.packet) {
            let verdict =
                if last.was_repeated { Verdict::Broken { missing: 0 } } else { Verdict::Duplicate };
            last.was_repeated = true;
            return verdict;
        }
        let missing = steps(last.counter + 1, counter);
        *last = Last::new(packet);
        if missing == 0 { Verdict::Continuous } else { Verdict::Broken { missing } }
    }
}

impl Last {
    fn new(packet: Packet<'_>) -> Self {
        Self { counter: packet.continuity_counter(), packet: *packet.bytes(), was_repeated: false }
    }
}

/// Steps from `expected` up to `counter`, modulo 16.
fn steps(expected: u8, counter: u8) -> u8 {
    counter.wrapping_sub(expected) & 0x0F
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Broken, Continuous, Duplicate};
    use super::*;
    use crate::sample::{Sample, packet};

    fn check(packets: &[Sample]) -> Vec<Verdict> {
        let mut continuity = Continuity::default();
        packets.iter().map(|sample| continuity.check(Packet::new(&sample.bytes).unwrap())).collect()
    }

    fn at(counter: u8) -> Sample {
        packet(0x100, counter).payload(counter)
    }

    #[test]
    fn counts_modulo_16() {
        assert_eq!(check(&[at(14), at(15), at(0), at(1)]), [Continuous; 4]);
        assert_eq!(check(&[at(14), at(1)]), [Continuous, Broken { missing: 2 }]);
        assert_eq!(check(&[at(3), at(5), at(6)])[1..], [Broken { missing: 1 }, Continuous]);
    }

    #[test]
    fn a_copy_is_permitted_once() {
        assert_eq!(
            check(&[at(3), at(3), at(3), at(4), at(4)]),
            [Continuous, Duplicate, Broken { missing: 0 }, Continuous, Duplicate]
        );
        // The clock of a copy is its own.
        assert_eq!(check(&[at(3).pcr(100), at(3).pcr(999)]), [Continuous, Duplicate]);
    }

    #[test]
    fn fifteen_lost_packets_are_no_copy() {
        assert_eq!(check(&[at(3), at(3).payload(99)]), [Continuous, Broken { missing: 15 }]);
    }

    #[test]
    fn the_counter_stays_without_payload() {
        let still = at(3).without_payload();
        assert_eq!(check(&[at(3), still, still, still, at(4)]), [Continuous; 5]);
        assert_eq!(
            check(&[at(3), at(5).without_payload(), at(6)]),
            [Continuous, Broken { missing: 2 }, Continuous]
        );
    }

    #[test]
    fn an_announced_break_is_not_counted() {
        assert_eq!(check(&[at(3), at(9).discontinuity(), at(10)]), [Continuous; 3]);
    }
}
