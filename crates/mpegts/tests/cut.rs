//! The demo clip, cut for a receiver at random places.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use punctual_mpegts::{
    Checker, Cut, Inspector, NULL_PID, PACKET_LEN, Packet, PesHeader, RandomAccess,
};

/// The clip, and its random access points with the tables to send before each.
struct Clip {
    bytes: Bytes,
    entries: Vec<(RandomAccess, Bytes)>,
    /// Each PID's PES packets.
    units: BTreeMap<u16, BTreeSet<Vec<u8>>>,
}

static CLIP: LazyLock<Clip> = LazyLock::new(|| {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/clip.ts");
    let bytes = Bytes::from(std::fs::read(path).expect("the clip is part of the repository"));
    let mut inspector = Inspector::default();
    let mut entries = Vec::new();
    for packet in packets(&bytes) {
        if let Some(access) = inspector.push(packet, Duration::ZERO) {
            entries.push((access, inspector.tables()));
        }
    }
    let units = units(&bytes).into_iter().map(|(pid, all)| (pid, all.into_iter().collect()));
    Clip { units: units.collect(), bytes, entries }
});

fn packets(bytes: &[u8]) -> impl Iterator<Item = Packet<'_>> {
    let view = |bytes| Packet::new(bytes).expect("the clip has only packets");
    bytes.as_chunks::<PACKET_LEN>().0.iter().map(view)
}

/// The PES packets of each PID, from the first start on.
fn units(bytes: &[u8]) -> BTreeMap<u16, Vec<Vec<u8>>> {
    let mut units: BTreeMap<u16, Vec<Vec<u8>>> = BTreeMap::new();
    for packet in packets(bytes).filter(|it| matches!(it.pid(), 0x100 | 0x101)) {
        let all = units.entry(packet.pid()).or_default();
        if packet.starts_payload_unit() {
            all.push(Vec::new());
        }
        match all.last_mut() {
            Some(unit) => unit.extend_from_slice(packet.payload()),
            None => assert!(packet.payload().is_empty(), "a unit begins in its middle"),
        }
    }
    units
}

/// One stay of the receiver: which of the next entries it takes, and for how many packets.
type Stay = (usize, usize);

/// The stream that a receiver gets with these stays, in messages of this number of packets.
fn receive(stays: &[Stay], message: usize) -> Vec<u8> {
    let (mut cut, mut sent, mut place) = (Cut::default(), Vec::new(), 0);
    for (skipped, packets) in stays {
        let mut later = CLIP.entries.iter().filter(|it| it.0.packet >= place);
        let Some((access, tables)) = later.nth(*skipped) else { break };
        sent.extend(cut.enter(tables, *access));
        let start = usize::try_from(access.packet).expect("the clip is short");
        let rest = CLIP.bytes.slice(start * PACKET_LEN..);
        let mut passed = 0;
        let mut feed = |cut: &mut Cut, most: usize| {
            let end = ((passed + most) * PACKET_LEN).min(rest.len());
            let part = rest.slice((passed * PACKET_LEN).min(end)..end);
            sent.extend(cut.pass(&part));
            passed += part.len() / PACKET_LEN;
            !part.is_empty()
        };
        for _ in 0..packets / message {
            feed(&mut cut, message);
        }
        feed(&mut cut, packets % message);
        cut.leave();
        while !cut.is_out() && feed(&mut cut, message) {}
        place = access.packet + passed as u64;
    }
    sent
}

fn stays() -> impl Strategy<Value = Vec<Stay>> {
    proptest::collection::vec((0_usize..2, 1_usize..2_500), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_receiver_sees_no_fault_and_whole_units_only(stays in stays(), message in 1_usize..9) {
        let sent = receive(&stays, message);
        let mut checker = Checker::default();
        checker.push(&sent);
        checker.finish();
        let report = checker.report();
        let total = report.total();
        prop_assert_eq!(report.bytes, report.packets * PACKET_LEN as u64);
        prop_assert_eq!((total.continuity_errors, total.duplicates), (0, 0));
        prop_assert_eq!(total.pcr_discontinuities, 0);

        // The end of the clip may cut the last unit of each PID.
        for (pid, mut received) in units(&sent) {
            received.pop();
            let all = &CLIP.units[&pid];
            prop_assert!(received.iter().all(|unit| all.contains(unit)), "PID {pid:#x}");
        }
    }

    #[test]
    fn pictures_begin_with_one_that_needs_no_other(stays in stays()) {
        let sent = receive(&stays, 7);
        let mut inspector = Inspector::default();
        let mut first = None;
        for (number, packet) in packets(&sent).enumerate() {
            let found = inspector.push(packet, Duration::ZERO);
            if packet.pid() == 0x100 && packet.starts_payload_unit() && first.is_none() {
                first = Some(number);
                prop_assert!(found.is_some(), "packet {number}");
            }
        }
    }
}

#[test]
fn a_message_without_a_cut_is_neither_changed_nor_copied() {
    let (access, tables) = &CLIP.entries[0];
    let mut cut = Cut::default();
    assert_eq!(cut.pass(&CLIP.bytes), Bytes::new(), "nothing before the first entry");
    assert_eq!(cut.enter(tables, *access), tables);
    let start = usize::try_from(access.packet).unwrap() * PACKET_LEN;
    // The sound begins in the middle of a unit.
    let settled = start + 200 * PACKET_LEN;
    cut.pass(&CLIP.bytes.slice(start..settled));
    let rest = CLIP.bytes.slice(settled..);
    let passed = cut.pass(&rest);
    assert_eq!((passed.as_ptr(), passed.len()), (rest.as_ptr(), rest.len()));
}

#[test]
fn packets_that_no_table_names_pass_although_no_unit_of_theirs_begins() {
    let (access, tables) = &CLIP.entries[0];
    let start = usize::try_from(access.packet).unwrap() * PACKET_LEN;
    let mut cut = Cut::default();
    cut.enter(tables, *access);
    cut.pass(&CLIP.bytes.slice(start..start + 20 * PACKET_LEN));
    let mut unknown = [0xAA; PACKET_LEN];
    unknown[..4].copy_from_slice(&[0x47, 0x1A, 0xBC, 0x15]);
    assert_eq!(cut.pass(&unknown.to_vec().into()), unknown[..]);
    cut.leave();
    unknown[3] = 0x16;
    assert_eq!(cut.pass(&unknown.to_vec().into()), Bytes::new(), "nothing after it left");
}

#[test]
fn an_entry_announces_each_pid_whatever_its_counter_is() {
    let (access, tables) = &CLIP.entries[0];
    let start = usize::try_from(access.packet).expect("the clip is short") * PACKET_LEN;
    // After some of these lengths a counter goes on by chance.
    for length in 400..500 {
        let part = CLIP.bytes.slice(start..start + length * PACKET_LEN);
        let mut cut = Cut::default();
        cut.enter(tables, *access);
        cut.pass(&part);
        cut.leave();
        let mut sent = cut.enter(tables, *access).to_vec();
        sent.extend(cut.pass(&part));
        let mut first: BTreeMap<u16, bool> = BTreeMap::new();
        for packet in packets(&sent).filter(|packet| packet.pid() != NULL_PID) {
            first.entry(packet.pid()).or_insert(packet.is_discontinuity());
        }
        let expected = [0, 0x100, 0x101, 0x1000].map(|pid| (pid, true));
        assert_eq!(first, BTreeMap::from(expected), "{length} packets");
    }
}

#[test]
fn a_receiver_is_out_soon_after_it_leaves() {
    let (access, tables) = &CLIP.entries[1];
    let start = usize::try_from(access.packet).unwrap();
    let mut cut = Cut::default();
    assert!(cut.is_out());
    cut.enter(tables, *access);
    cut.pass(&CLIP.bytes.slice(start * PACKET_LEN..(start + 500) * PACKET_LEN));
    cut.leave();
    let later = CLIP.bytes.slice((start + 500) * PACKET_LEN..);
    let finishing = cut.pass(&later.slice(..200 * PACKET_LEN));
    assert!(cut.is_out());
    // Less than a picture and a PES packet of sound.
    assert!(finishing.len() <= 60 * PACKET_LEN, "{}", finishing.len());
    assert!(packets(&finishing).all(|it| PesHeader::parse(it.payload()).is_none()));
    assert_eq!(cut.pass(&later.slice(200 * PACKET_LEN..)), Bytes::new());
}
