//! Sender and receiver together: all packets that the code can rebuild are rebuilt exactly, and no
//! other ones.

#![expect(clippy::cast_possible_truncation, reason = "the numbers of a test are small")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use punctual_wire::{DataPacket, KeyFlag, MsgNo, Packet, Position, SocketId, Timestamp};

use super::receive::FecReceiver;
use super::*;

/// A matrix, as text and as numbers.
#[derive(Clone, Copy, Debug)]
struct Matrix {
    cols: usize,
    rows: i32,
    staircase: bool,
}

impl Matrix {
    fn fec(&self) -> Fec {
        let layout = if self.staircase { "staircase" } else { "even" };
        let text = format!("fec,cols:{},rows:{},layout:{layout}", self.cols, self.rows);
        FilterConfig::merge(None, &text).expect("a legal text").1
    }

    /// The groups of a stream of `count` packets, by an independent construction. They are sorted
    /// by their last packet, after which their parity packet is sent; columns come first.
    fn groups(&self, count: usize) -> Vec<Vec<usize>> {
        let high = self.rows.unsigned_abs() as usize;
        let mut groups = Vec::new();
        if high > 1 {
            for col in 0..self.cols {
                let stair = if self.staircase { col % high } else { 0 };
                let mut begin = col + stair * self.cols;
                while begin + (high - 1) * self.cols < count {
                    groups.push((0..high).map(|i| begin + i * self.cols).collect());
                    begin += high * self.cols;
                }
            }
        }
        if self.rows > 0 {
            groups.extend(
                (0..count / self.cols)
                    .map(|row| (0..self.cols).map(|i| row * self.cols + i).collect::<Vec<_>>()),
            );
        }
        groups.sort_by_key(|group| group[group.len() - 1]);
        groups
    }
}

fn matrices() -> impl Strategy<Value = Matrix> {
    (2usize..12, prop_oneof![1i32..8, -8i32..-1], any::<bool>())
        .prop_map(|(cols, rows, staircase)| Matrix { cols, rows, staircase })
}

/// A datagram: its header and payload.
type Datagram = (DataHeader, Bytes);

/// A stream through a sender: the originals, and for each the parity packets after it.
fn sent(matrix: Matrix, isn: SeqNo, count: usize, seed: u32) -> Vec<(Datagram, Vec<Datagram>)> {
    let mut sender = matrix.fec().sender(isn);
    (0..count as u32)
        .map(|i| {
            let random = (i + 1).wrapping_mul(seed | 1).rotate_left(i % 31);
            let header = DataHeader {
                seq: isn.plus(i),
                position: Position::Solo,
                in_order: seed.is_multiple_of(2),
                key: [KeyFlag::Clear, KeyFlag::Even, KeyFlag::Odd][random as usize % 3],
                retransmitted: false,
                msgno: MsgNo::new((MsgNo::MAX.value() - 9 + i) % MsgNo::MAX.value() + 1),
                timestamp: Timestamp::from_micros(random),
                dest: SocketId::new(77),
            };
            let length = 1 + random as usize % 100;
            let payload: Bytes = (0..length).map(|at| (random >> (at % 24)) as u8).collect();
            sender.feed(&header, &payload);
            let mut parities = Vec::new();
            let mut out = Vec::new();
            while sender.write(&mut out) {
                parities.push(parsed(&out));
                out.clear();
            }
            assert!(!sender.has_parity_due());
            ((header, payload), parities)
        })
        .collect()
}

fn parsed(datagram: &[u8]) -> Datagram {
    match Packet::parse(datagram).expect("what is written can be read") {
        Packet::Data(DataPacket { header, payload }) => (header, Bytes::copy_from_slice(payload)),
        Packet::Control(_) => panic!("parity packets are data packets"),
    }
}

/// All packets that the parity packets can rebuild, in repeated passes over the groups.
fn solvable(groups: &[Vec<usize>], mut known: BTreeSet<usize>, parity: &[bool]) -> BTreeSet<usize> {
    loop {
        let before = known.len();
        for (group, _) in groups.iter().zip(parity).filter(|(_, here)| **here) {
            let missing: Vec<_> = group.iter().filter(|at| !known.contains(at)).collect();
            if let [only] = missing[..] {
                known.insert(*only);
            }
        }
        if known.len() == before {
            return known;
        }
    }
}

/// As [`solvable`], with a memory of two matrices: after each packet, only the groups within the
/// last two matrices count. The receiver must rebuild at least these packets.
fn surely_solvable(
    matrix: Matrix,
    count: usize,
    known: &BTreeSet<usize>,
    parity: &[bool],
) -> BTreeSet<usize> {
    let memory = 2 * matrix.cols * matrix.rows.unsigned_abs() as usize;
    let groups = matrix.groups(count);
    let mut had = BTreeSet::new();
    for (at, last) in groups.iter().map(|group| group[group.len() - 1]).enumerate() {
        had.extend(known.iter().copied().filter(|index| *index <= last));
        let oldest = groups[..=at].partition_point(|group| group[group.len() - 1] + memory < last);
        let recent = oldest..=at;
        let within: Vec<_> = groups[recent.clone()]
            .iter()
            .filter(|group| group[0] + memory > last)
            .cloned()
            .collect();
        let here: Vec<_> =
            recent.filter(|at| groups[*at][0] + memory > last).map(|at| parity[at]).collect();
        had = solvable(&within, had, &here);
    }
    had.extend(known);
    had
}

proptest! {
    /// Parity packets come at the positions of the reference, columns before rows, and name the
    /// group that they cover.
    #[test]
    fn parity_packets_cover_the_groups_of_the_matrix(matrix in matrices(), isn in 0u32..=0x7FFF_FFFF) {
        let isn = SeqNo::new(isn);
        let stream = sent(matrix, isn, 200, 5);
        let mut expected = matrix.groups(200).into_iter();
        for (index, ((header, _), parities)) in stream.iter().enumerate() {
            for (parity, payload) in parities {
                let group = expected.next().expect("no more than in the reference");
                prop_assert_eq!(group[group.len() - 1], index);
                prop_assert_eq!((parity.seq, parity.msgno), (header.seq, MsgNo::CONTROL));
                prop_assert_eq!((parity.key, parity.dest), (header.key, header.dest));
                let is_row = group[1] == group[0] + 1;
                let covers = if is_row { 0xFF } else { (group[0] % matrix.cols) as u8 };
                prop_assert_eq!(payload[0], covers);
                let members = || group.iter().map(|at| &stream[*at].0);
                let timestamps = members().fold(0, |sum, (h, _)| sum ^ h.timestamp.as_micros());
                prop_assert_eq!(parity.timestamp.as_micros(), timestamps);
                let longest = members().map(|(_, payload)| payload.len()).max();
                prop_assert_eq!(Some(payload.len() - 4), longest);
            }
        }
        prop_assert_eq!(expected.next(), None, "every group has its packet");
    }

    /// For any losses of packets and parity packets: all packets that the code can rebuild are
    /// rebuilt exactly as they were sent; the others are reported, once; packets that arrived are
    /// never reported.
    #[test]
    fn all_packets_that_the_code_covers_are_rebuilt_exactly(
        matrix in matrices(),
        isn in prop_oneof![0u32..=0x7FFF_FFFF, 0x7FFF_FF00u32..=0x7FFF_FFFF],
        lost in prop::collection::vec(prop::bool::weighted(0.15), 300),
        parity_lost in prop::collection::vec(prop::bool::weighted(0.1), 300),
        seed in any::<u32>(),
    ) {
        let isn = SeqNo::new(isn);
        let high = matrix.rows.unsigned_abs() as usize;
        // Every group ends in the part without losses.
        let count = 300 + (2 * high + 3) * matrix.cols;
        let stream = sent(matrix, isn, count, seed);
        let mut receiver = matrix.fec().receiver(isn);
        let mut findings = Findings::default();
        let mut known = BTreeSet::new();
        let mut parity = Vec::new();
        for (index, ((header, payload), parities)) in stream.iter().enumerate() {
            if index >= 300 || !lost[index] {
                known.insert(index);
                receiver.handle(header, payload, &mut findings);
            }
            for (header, payload) in parities {
                let here = parity_lost.get(parity.len()).is_none_or(|lost| !lost);
                parity.push(here);
                if here {
                    receiver.handle(header, payload, &mut findings);
                }
            }
        }
        prop_assert!(!findings.is_invalid);
        let solvable = solvable(&matrix.groups(count), known.clone(), &parity);
        let mut rebuilt = BTreeMap::new();
        for (header, payload) in &findings.rebuilt {
            let index = header.seq.distance_from(isn) as usize;
            let (original, content) = &stream[index].0;
            prop_assert_eq!(header, &DataHeader { retransmitted: true, ..*original });
            prop_assert_eq!(payload, content);
            prop_assert!(!known.contains(&index), "it was not missing");
            prop_assert!(rebuilt.insert(index, ()).is_none(), "rebuilt twice");
        }
        // Chains over more than two matrices are rare, and longer than the receiver's memory.
        let here: BTreeSet<_> = rebuilt.keys().chain(&known).copied().collect();
        prop_assert!(here.is_subset(&solvable));
        let sure = surely_solvable(matrix, count, &known, &parity);
        prop_assert!(sure.is_subset(&here), "not rebuilt: {:?}", sure.difference(&here));
        let mut reported = BTreeSet::new();
        for (first, last) in &findings.lost {
            for i in 0..=last.distance_from(*first) {
                let index = first.distance_from(isn) as usize + i as usize;
                prop_assert!(reported.insert(index), "{index} is reported twice");
            }
        }
        // A packet whose groups have ended may still be rebuilt, by way of later packets.
        let unsolvable: BTreeSet<_> = (0..count).filter(|at| !here.contains(at)).collect();
        prop_assert!(reported.is_superset(&unsolvable), "{unsolvable:?} lost, {reported:?} reported");
        prop_assert!(reported.is_disjoint(&known));
        let exact = matrix.rows < 2;
        prop_assert!(!exact || reported == unsolvable);
    }

    /// Reordering and duplicates do not change which packets are rebuilt, as long as packets come
    /// within the window.
    #[test]
    fn reordering_and_duplicates_do_not_matter(
        matrix in matrices(),
        delays in prop::collection::vec(0usize..6, 240),
        doubled in prop::collection::vec(prop::bool::weighted(0.1), 240),
        lost in prop::collection::vec(prop::bool::weighted(0.1), 240),
    ) {
        let isn = SeqNo::new(0x7FFF_FFF0);
        let stream = sent(matrix, isn, 240, 11);
        let mut arrivals = Vec::new();
        let mut known = BTreeSet::new();
        for (index, (original, parities)) in stream.iter().enumerate() {
            if !lost[index] {
                known.insert(index);
                arrivals.push((index + delays[index], original));
                if doubled[index] {
                    arrivals.push((index + 7, original));
                }
            }
            arrivals.extend(parities.iter().map(|parity| (index + delays[index] / 2, parity)));
        }
        arrivals.sort_by_key(|(at, _)| *at);
        let mut receiver = matrix.fec().receiver(isn);
        let mut findings = Findings::default();
        for (_, (header, payload)) in arrivals {
            receiver.handle(header, payload, &mut findings);
        }
        let all = vec![true; 1_000];
        let solvable = solvable(&matrix.groups(240), known.clone(), &all);
        let index = |(header, _): &Datagram| header.seq.distance_from(isn) as usize;
        let rebuilt: BTreeSet<_> = findings.rebuilt.iter().map(index).collect();
        for (header, payload) in &findings.rebuilt {
            let (original, content) = &stream[index(&(*header, Bytes::new()))].0;
            prop_assert_eq!((header.seq, header.timestamp), (original.seq, original.timestamp));
            prop_assert_eq!(payload, content);
        }
        let missing: BTreeSet<_> = solvable.difference(&known).copied().collect();
        prop_assert!(missing.is_subset(&rebuilt), "{missing:?} of {rebuilt:?}");
    }

    /// Arbitrary packets neither make the receiver panic, nor keep more than its window.
    #[test]
    fn arbitrary_packets_neither_panic_nor_exceed_the_memory(
        matrix in matrices(),
        packets in prop::collection::vec(
            (prop_oneof![0u32..400, any::<u32>()], any::<bool>(), 0u8..14,
             prop::collection::vec(any::<u8>(), 0..12)),
            1..400,
        ),
    ) {
        let mut receiver = FecReceiver::new(matrix.fec().grid(), SeqNo::new(0x7FFF_FF80));
        let mut findings = Findings::default();
        let template = sent(matrix, SeqNo::new(0), 1, 3)[0].0.0;
        for (ahead, parity, first, mut payload) in packets {
            let seq = SeqNo::new(0x7FFF_FF80).plus(ahead);
            let msgno = if parity { MsgNo::CONTROL } else { template.msgno };
            if let Some(byte) = payload.first_mut() {
                *byte = if first == 13 { 0xFF } else { first };
            }
            let header = DataHeader { seq, msgno, ..template };
            receiver.handle(&header, &Bytes::from(payload), &mut findings);
            let kept = matrix.cols * (2 * matrix.rows.unsigned_abs() as usize + 7) + 16;
            prop_assert!(receiver.kept() <= 3 * kept);
        }
    }
}

#[test]
fn a_burst_of_as_many_packets_as_columns_is_rebuilt() {
    let matrix = Matrix { cols: 10, rows: 5, staircase: true };
    let stream = sent(matrix, SeqNo::new(0), 300, 7);
    for begin in 60..160 {
        let mut receiver = matrix.fec().receiver(SeqNo::new(0));
        let mut findings = Findings::default();
        for (index, ((header, payload), parities)) in stream.iter().enumerate() {
            if !(begin..begin + 10).contains(&index) {
                receiver.handle(header, payload, &mut findings);
            }
            for (header, payload) in parities {
                receiver.handle(header, payload, &mut findings);
            }
        }
        let mut rebuilt: Vec<_> = findings.rebuilt.iter().map(|(h, _)| h.seq.value()).collect();
        rebuilt.sort_unstable();
        assert_eq!(rebuilt, (begin as u32..begin as u32 + 10).collect::<Vec<_>>(), "from {begin}");
        assert_eq!(findings.lost, [], "from {begin}");
    }
}

/// After an outage longer than the window, the filter continues at the sender's position, in the
/// same groups, and reports the gap as one run.
#[test]
fn an_outage_longer_than_the_window_is_skipped() {
    for matrix in [
        Matrix { cols: 5, rows: 1, staircase: true },
        Matrix { cols: 5, rows: 4, staircase: true },
        Matrix { cols: 5, rows: -4, staircase: false },
    ] {
        let isn = SeqNo::new(0x7FFF_FE00);
        let stream = sent(matrix, isn, 2_000, 9);
        let mut receiver = matrix.fec().receiver(isn);
        let mut findings = Findings::default();
        for (index, ((header, payload), parities)) in stream.iter().enumerate() {
            if (203..1_003).contains(&index) || index == 1_500 {
                continue;
            }
            receiver.handle(header, payload, &mut findings);
            for (header, payload) in parities {
                receiver.handle(header, payload, &mut findings);
            }
        }
        let rebuilt: Vec<_> = findings.rebuilt.iter().map(|(h, _)| h.seq).collect();
        assert!(rebuilt.contains(&isn.plus(1_500)), "{matrix:?}");
        assert!(!findings.is_invalid);
        let reported: i32 = findings.lost.iter().map(|(a, b)| b.distance_from(*a) + 1).sum();
        assert_eq!(reported as usize + rebuilt.len(), 801, "{matrix:?}: {:?}", findings.lost);
    }
}

#[test]
fn a_single_packet_far_ahead_is_ignored() {
    let matrix = Matrix { cols: 4, rows: 3, staircase: false };
    let stream = sent(matrix, SeqNo::new(0), 60, 9);
    let mut receiver = matrix.fec().receiver(SeqNo::new(0));
    let mut findings = Findings::default();
    for (index, ((header, payload), parities)) in stream.iter().enumerate() {
        if index == 30 {
            let far = DataHeader { seq: header.seq.plus(100_000), ..*header };
            receiver.handle(&far, payload, &mut findings);
            continue;
        }
        receiver.handle(header, payload, &mut findings);
        for (header, payload) in parities {
            receiver.handle(header, payload, &mut findings);
        }
    }
    assert_eq!(findings.rebuilt.len(), 1);
    assert_eq!(findings.lost, []);
}

/// When a sender starts its groups over at another position, the receiver follows after three
/// parity packets.
#[test]
fn groups_that_start_over_at_another_position_are_found() {
    for matrix in [
        Matrix { cols: 6, rows: 1, staircase: true },
        Matrix { cols: 6, rows: 3, staircase: true },
        Matrix { cols: 6, rows: -3, staircase: false },
    ] {
        let mut receiver = matrix.fec().receiver(SeqNo::new(0));
        let mut findings = Findings::default();
        let (begin, mut missing) = (40, Vec::new());
        let before = sent(matrix, SeqNo::new(0), begin as usize, 9);
        let after = sent(matrix, SeqNo::new(begin), 200, 13);
        for (index, ((header, payload), parities)) in before.iter().chain(&after).enumerate() {
            if index % 50 == 49 && index > 100 {
                missing.push(header.seq);
            } else {
                receiver.handle(header, payload, &mut findings);
            }
            for (header, payload) in parities {
                receiver.handle(header, payload, &mut findings);
            }
        }
        let rebuilt: Vec<_> = findings.rebuilt.iter().map(|(h, _)| h.seq).collect();
        assert!(findings.is_invalid);
        assert_eq!(rebuilt, missing, "{matrix:?}");
    }
}

/// A message that was given up before it was sent leaves only its own groups without parity.
#[test]
fn a_number_that_was_never_sent_affects_only_its_groups() {
    let matrix = Matrix { cols: 5, rows: 2, staircase: false };
    let mut sender = matrix.fec().sender(SeqNo::new(0));
    let stream = sent(matrix, SeqNo::new(0), 40, 3);
    let mut parities = Vec::new();
    for (index, ((header, payload), _)) in stream.iter().enumerate() {
        if index == 12 {
            continue;
        }
        sender.feed(header, payload);
        let mut out = Vec::new();
        while sender.write(&mut out) {
            let (header, payload) = parsed(&out);
            parities.push((header.seq.value(), payload[0]));
            out.clear();
        }
    }
    let mut expected: Vec<(u32, u8)> = Vec::new();
    for at in 0..40u32 {
        if at / 5 % 2 == 1 && at != 17 {
            expected.push((at, (at % 5) as u8));
        }
        if at % 5 == 4 && at != 14 {
            expected.push((at, 0xFF));
        }
    }
    assert_eq!(parities, expected);
}

#[test]
fn a_pause_reports_each_missing_packet_once() {
    let matrix = Matrix { cols: 5, rows: 2, staircase: true };
    let stream = sent(matrix, SeqNo::new(0), 60, 9);
    let mut receiver = matrix.fec().receiver(SeqNo::new(0));
    let mut findings = Findings::default();
    for (index, ((header, payload), parities)) in stream.iter().enumerate() {
        if index == 14 {
            receiver.pause(&mut findings);
            receiver.pause(&mut findings);
            let lost = [(11, 11), (13, 13)].map(|(a, b)| (SeqNo::new(a), SeqNo::new(b)));
            assert_eq!(findings.lost, lost[..1], "13 is behind the newest");
        }
        if index == 11 || index == 13 {
            continue;
        }
        receiver.handle(header, payload, &mut findings);
        if index > 20 {
            for (header, payload) in parities {
                receiver.handle(header, payload, &mut findings);
            }
        }
    }
    let lost = [(11, 11), (13, 13)].map(|(a, b)| (SeqNo::new(a), SeqNo::new(b)));
    assert_eq!(findings.lost, lost, "the second one when its groups have ended");
}
