use std::collections::BTreeMap;

use crate::pid_check::{PidCheck, PidReport};
use crate::{Framer, NULL_PID, Packet};

/// Checks a transport stream: what was lost, repeated or damaged on its way, by its own counters
/// and clocks.
///
/// Bytes go in by [`push`](Self::push) in pieces of any size, such as the messages of a socket or
/// the blocks of a file; the report does not depend on how they are cut. Null packets and packets
/// with a transport error are counted, and nothing is concluded from them.
#[derive(Clone, Debug, Default)]
pub struct Checker {
    bytes: u64,
    framer: Framer,
    tally: Tally,
}

impl Checker {
    /// Takes in the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.framer.push(bytes);
        self.check_packets();
    }

    /// Says that the stream has ended, so that its last packets are counted and what is too short
    /// for one is skipped.
    pub fn finish(&mut self) {
        self.framer.finish();
        self.check_packets();
    }

    /// The totals so far.
    pub fn report(&self) -> StreamReport {
        StreamReport {
            bytes: self.bytes,
            packets: self.tally.packets,
            null_packets: self.tally.null_packets,
            transport_errors: self.tally.transport_errors,
            sync_losses: self.framer.sync_losses(),
            skipped_bytes: self.framer.skipped_bytes(),
            removed_bytes: self.framer.removed_bytes(),
            pids: self.tally.pids.iter().map(|(&pid, check)| (pid, check.report())).collect(),
        }
    }

    fn check_packets(&mut self) {
        while let Some(packet) = self.framer.next_packet() {
            self.tally.count(packet);
        }
    }
}

/// The totals that a [`Checker`] found in a stream.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct StreamReport {
    /// All bytes, those outside packets too.
    pub bytes: u64,
    /// Packets, null packets and those with a transport error too.
    pub packets: u64,
    /// Packets that only fill the stream (PID 0x1FFF).
    pub null_packets: u64,
    /// Packets with the transport error indicator set. They count for no PID.
    pub transport_errors: u64,
    /// Times that a packet did not follow where the one before ended.
    pub sync_losses: u64,
    /// Bytes that belong to no packet.
    pub skipped_bytes: u64,
    /// Bytes of timestamps and parity between packets.
    pub removed_bytes: u64,
    /// The totals of each PID but that of null packets.
    pub pids: BTreeMap<u16, PidReport>,
}

impl StreamReport {
    /// All PIDs together: sums, and the longest PCR interval of any.
    pub fn total(&self) -> PidReport {
        self.pids.values().fold(PidReport::default(), |sum, pid| PidReport {
            packets: sum.packets + pid.packets,
            continuity_errors: sum.continuity_errors + pid.continuity_errors,
            missing_packets: sum.missing_packets + pid.missing_packets,
            duplicates: sum.duplicates + pid.duplicates,
            scrambled: sum.scrambled + pid.scrambled,
            pcrs: sum.pcrs + pid.pcrs,
            pcr_discontinuities: sum.pcr_discontinuities + pid.pcr_discontinuities,
            pcr_interval_max: sum.pcr_interval_max.max(pid.pcr_interval_max),
        })
    }
}

#[derive(Clone, Debug, Default)]
struct Tally {
    packets: u64,
    null_packets: u64,
    transport_errors: u64,
    /// At most 8,191 PIDs can occur.
    pids: BTreeMap<u16, PidCheck>,
}

impl Tally {
    fn count(&mut self, packet: Packet<'_>) {
        self.packets += 1;
        if packet.has_transport_error() {
            self.transport_errors += 1;
        } else if packet.pid() == NULL_PID {
            self.null_packets += 1;
        } else {
            self.pids.entry(packet.pid()).or_default().count(packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::Pcr;
    use crate::sample::{Sample, packet, stream};

    fn check(packets: &[Sample]) -> StreamReport {
        check_pieces(&stream(packets), usize::MAX)
    }

    fn check_pieces(bytes: &[u8], piece: usize) -> StreamReport {
        let mut checker = Checker::default();
        bytes.chunks(piece).for_each(|piece| checker.push(piece));
        checker.finish();
        checker.report()
    }

    #[test]
    fn pids_have_counters_of_their_own() {
        let report = check(&[
            packet(0x100, 7),
            packet(0x101, 0),
            packet(NULL_PID, 0),
            packet(0x100, 8),
            packet(NULL_PID, 0),
            packet(0x101, 4),
            packet(0x100, 9),
            packet(0x100, 9),
        ]);
        assert_eq!(report.bytes, 8 * 188);
        assert_eq!((report.packets, report.null_packets), (8, 2));
        assert_eq!(report.pids.keys().copied().collect::<Vec<_>>(), [0x100, 0x101]);
        assert_eq!(
            report.pids[&0x100],
            PidReport { packets: 4, duplicates: 1, ..PidReport::default() }
        );
        let total = report.total();
        assert_eq!((total.packets, total.duplicates), (6, 1));
        assert_eq!((total.continuity_errors, total.missing_packets), (1, 3));
    }

    #[test]
    fn nothing_is_concluded_from_packets_with_errors() {
        let mut damaged = packet(0x100, 9);
        damaged.bytes[1] |= 0x80;
        let mut scrambled = packet(0x100, 1);
        scrambled.bytes[3] |= 0x80;
        let mut reserved = packet(0x100, 5);
        reserved.bytes[3] &= 0x0F;
        let report = check(&[packet(0x100, 0), damaged, scrambled, reserved, packet(0x100, 2)]);
        assert_eq!((report.packets, report.transport_errors), (5, 1));
        let total = report.total();
        assert_eq!((total.packets, total.scrambled, total.continuity_errors), (4, 1, 0));
    }

    #[test]
    fn clocks_have_a_longest_interval() {
        let at = |counter: u8, ms: u64| packet(0x100, counter).pcr(ms * 27_000);
        let report = check(&[at(0, 1_000), at(1, 1_020), at(2, 1_060), at(3, 1_080)]).total();
        assert_eq!(report.pcrs, 4);
        assert_eq!(report.pcr_interval_max, Some(Duration::from_millis(40)));
        assert_eq!(report.pcr_discontinuities, 0);

        let wrap = Pcr::MODULUS / 27_000;
        let report = check(&[at(0, wrap - 10), at(1, wrap + 10)]).total();
        assert_eq!(report.pcr_discontinuities, 0);
        assert!(report.pcr_interval_max.unwrap() <= Duration::from_millis(20));
    }

    #[test]
    fn an_unannounced_step_of_the_clock_is_a_discontinuity() {
        let at = |counter: u8, ms: u64| packet(0x100, counter).pcr(ms * 27_000);
        let report = check(&[at(0, 1_000), at(1, 1_101), at(2, 1_001)]).total();
        assert_eq!(report.pcr_discontinuities, 2);
        assert_eq!(report.pcr_interval_max, Some(Duration::from_millis(101)));

        // An announcement holds until the next reference, even from a packet without one.
        let announced = [at(0, 1_000), packet(0x100, 9).discontinuity(), at(10, 500_000)];
        let report = check(&announced).total();
        assert_eq!((report.pcr_discontinuities, report.continuity_errors), (0, 0));
        assert_eq!(report.pcr_interval_max, None);
    }

    #[test]
    fn bytes_outside_packets_are_counted() {
        let mut bytes = vec![0; 10];
        bytes.extend(stream(&[packet(0x100, 0), packet(0x100, 1), packet(0x100, 2)]));
        bytes.extend([1; 20]);
        let report = check_pieces(&bytes, 100);
        assert_eq!((report.packets, report.sync_losses, report.skipped_bytes), (3, 1, 30));
        assert_eq!(report.bytes, bytes.len() as u64);
        assert_eq!(report.total().continuity_errors, 0);
    }

    proptest! {
        #[test]
        fn pieces_never_change_the_report(
            packets in proptest::collection::vec((0x100_u16..0x103, 0_u8..16, any::<bool>()), 0..40),
            junk in proptest::collection::vec(any::<u8>(), 0..300),
            at in any::<proptest::sample::Index>(),
            pieces in proptest::collection::vec(1_usize..500, 1..20),
        ) {
            let samples: Vec<Sample> = packets
                .iter()
                .map(|&(pid, counter, clock)| {
                    let sample = packet(pid, counter);
                    if clock { sample.pcr(u64::from(counter) * 1_000_000) } else { sample }
                })
                .collect();
            let mut bytes = stream(&samples);
            let at = at.index(bytes.len() + 1);
            bytes.splice(at..at, junk);

            let mut checker = Checker::default();
            let mut rest = &bytes[..];
            for piece in pieces.iter().cycle() {
                let (head, tail) = rest.split_at((*piece).min(rest.len()));
                checker.push(head);
                rest = tail;
                if rest.is_empty() {
                    break;
                }
            }
            checker.finish();
            prop_assert_eq!(checker.report(), check_pieces(&bytes, usize::MAX));
        }

        #[test]
        fn any_bytes_are_accounted_for(
            bytes in proptest::collection::vec(prop_oneof![Just(0x47), any::<u8>()], 0..3_000),
        ) {
            let report = check_pieces(&bytes, 100);
            let outside = report.skipped_bytes + report.removed_bytes;
            prop_assert_eq!(report.packets * 188 + outside, bytes.len() as u64);
        }
    }
}
