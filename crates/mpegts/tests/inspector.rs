//! The demo clip, inspected as it passes.

use std::time::Duration;

use punctual_mpegts::{Fault, Inspector, PACKET_LEN, Packet, RandomAccess, StreamKind};

fn clip() -> Vec<[u8; PACKET_LEN]> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/clip.ts");
    let bytes = std::fs::read(path).expect("the clip is part of the repository");
    bytes.as_chunks().0.to_vec()
}

/// The arrival of a packet at the clip's constant rate of 2 Mb/s.
fn at(number: usize) -> Duration {
    Duration::from_micros(752) * u32::try_from(number).expect("the clip is short")
}

fn view(bytes: &[u8; PACKET_LEN]) -> Packet<'_> {
    Packet::new(bytes).expect("the clip has only packets")
}

fn inspect(packets: &[[u8; PACKET_LEN]]) -> (Inspector, Vec<RandomAccess>) {
    let mut inspector = Inspector::default();
    let found = packets
        .iter()
        .enumerate()
        .filter_map(|(number, bytes)| inspector.push(view(bytes), at(number)))
        .collect();
    (inspector, found)
}

#[test]
fn the_clip_has_one_program_with_picture_and_sound() {
    let packets = clip();
    let (inspector, _) = inspect(&packets);
    let [program] = inspector.programs() else { panic!("one program") };
    assert_eq!((program.number, program.pmt_pid, program.pcr_pid), (1, 0x1000, 0x100));
    assert_eq!(program.name.as_deref(), Some("Punctual demo"));
    let kinds: Vec<_> = program.streams.iter().map(|it| (it.pid, it.kind)).collect();
    assert_eq!(kinds, [(0x100, StreamKind::H264), (0x101, StreamKind::AacAdts)]);
    let video = inspector.video(0x100).unwrap();
    assert_eq!((video.width, video.height), (640, 360));
    assert_eq!((video.profile, video.frame_rate), ("Constrained Baseline", Some((25, 1))));
    let audio = inspector.audio(0x101).unwrap();
    assert_eq!((audio.profile, audio.sample_rate, audio.channels), ("LC", 48_000, 2));

    let end = at(packets.len());
    assert_eq!(inspector.units_per_second(0x100, end), Some(25));
    assert!((120_000..150_000).contains(&inspector.bit_rate(0x101, end)));
    assert!(inspector.total_bit_rate(end).abs_diff(2_000_000) <= 1_504);
    assert_eq!(inspector.bit_rate(0x101, end + Duration::from_secs(2)), 0);
    let tables = inspector.tables();
    let pids: Vec<_> =
        tables.as_chunks::<PACKET_LEN>().0.iter().map(|it| it[1..3].to_vec()).collect();
    assert_eq!(pids, [[0x40, 0], [0x50, 0]]);
    assert_eq!(inspector.report().packets, packets.len() as u64);
}

#[test]
fn each_second_has_a_random_access_point_with_or_without_its_indicator() {
    let mut packets = clip();
    let (inspector, found) = inspect(&packets);
    assert_eq!(found.len(), 12);
    assert!(found.iter().all(|it| it.pid == 0x100));
    assert_eq!(inspector.random_access_interval(), Some(Duration::from_secs(1)));
    for access in &found {
        let packet = packets[usize::try_from(access.packet).unwrap()];
        assert!(view(&packet).starts_payload_unit());
    }
    for bytes in &mut packets {
        if bytes[3] & 0x20 != 0 && bytes[4] > 0 {
            bytes[5] &= !0x40;
        }
    }
    assert_eq!(inspect(&packets).1, found);
}

#[test]
fn an_indicator_on_each_picture_is_not_believed() {
    let mut packets = clip();
    let (_, honest) = inspect(&packets);
    for bytes in &mut packets {
        let packet = view(bytes);
        if packet.pid() == 0x100 && packet.starts_payload_unit() && bytes[3] & 0x20 != 0 {
            bytes[5] |= 0x40;
        }
    }
    let (_, found) = inspect(&packets);
    let wrong = found.iter().filter(|it| !honest.contains(it)).count();
    assert!(honest.iter().all(|it| found.contains(it)));
    assert!(wrong <= 2, "{wrong} wrong ones of 300 pictures");
}

#[test]
fn the_clip_has_no_fault_and_a_constant_rate() {
    let packets = clip();
    let (inspector, _) = inspect(&packets);
    assert_eq!(inspector.health().faults().collect::<Vec<_>>(), []);
    let clock = inspector.clock(0x100).unwrap();
    assert!(clock.deviation.unwrap() < Duration::from_nanos(500));
    assert!(clock.jitter < Duration::from_micros(1));
    assert!(clock.drift.unwrap().abs() < 1.0);
}

/// The faults of the clip after a change of its packets, each with the bytes of a packet, its
/// number and its arrival; packets without bytes are lost.
fn faults(change: impl Fn(usize, &mut [u8; PACKET_LEN]) -> Option<Duration>) -> Vec<(Fault, u64)> {
    let mut inspector = Inspector::default();
    for (number, mut bytes) in clip().into_iter().enumerate() {
        if let Some(arrival) = change(number, &mut bytes) {
            inspector.push(view(&bytes), arrival);
        }
    }
    inspector.health().faults().map(|(fault, it)| (fault, it.count)).collect()
}

fn pid(bytes: &[u8; PACKET_LEN]) -> u16 {
    view(bytes).pid()
}

fn is_video_start(bytes: &[u8; PACKET_LEN]) -> bool {
    let packet = view(bytes);
    packet.pid() == 0x100 && packet.starts_payload_unit()
}

#[test]
fn each_fault_is_counted_where_it_is() {
    // Packets 2,000 to 3,999 pass within 1.504 s.
    let within = |number: usize| (2_000..4_000).contains(&number);
    let lost = |lost: u16| {
        faults(|number, bytes| (!within(number) || pid(bytes) != lost).then(|| at(number)))
    };
    assert_eq!(lost(0)[0], (Fault::Pat, 3));
    assert!(lost(0x1000).contains(&(Fault::Pmt, 3)));
    assert!(lost(0x101).contains(&(Fault::Pts, 2)));

    let damaged = faults(|number, bytes| {
        if pid(bytes) == 0x1000 && within(number) {
            bytes[20] ^= 1;
        }
        Some(at(number))
    });
    assert!(damaged.iter().any(|it| it.0 == Fault::Crc && it.1 >= 10), "{damaged:?}");

    let erroneous = faults(|number, bytes| {
        bytes[1] |= if number == 5_000 { 0x80 } else { 0 };
        Some(at(number))
    });
    assert!(erroneous.contains(&(Fault::Transport, 1)));

    let silent =
        faults(|number, bytes| (number < 2_000 || pid(bytes) != 0x101).then(|| at(number)));
    assert!(silent.contains(&(Fault::Pid, 2)), "{silent:?}");

    let scrambled = faults(|number, bytes| {
        bytes[3] |= if pid(bytes) == 0x101 { 0x80 } else { 0 };
        Some(at(number))
    });
    assert_eq!(scrambled, [(Fault::Cat, 1)]);
}

#[test]
fn faults_of_the_clock_are_told_apart() {
    let shift = |bytes: &mut [u8; PACKET_LEN], ticks: u64| {
        let Some(pcr) = view(bytes).pcr() else { return };
        let ticks = pcr.ticks() + ticks;
        let field = (ticks / 300) << 15 | 0x3F << 9 | (ticks % 300);
        bytes[6..12].copy_from_slice(&field.to_be_bytes()[2..]);
    };
    let has_clock = |bytes: &[u8; PACKET_LEN]| view(bytes).pcr().is_some();
    // A jump by an hour: not a word about repetition, which is a matter of time.
    let jump = faults(|number, bytes| {
        shift(bytes, if number >= 8_000 { 3_600 * 27_000_000 } else { 0 });
        Some(at(number))
    });
    assert_eq!(jump, [(Fault::PcrDiscontinuity, 1)]);
    // No clock for 400 packets, 300 ms.
    let gap = faults(|number, bytes| {
        if (8_000..8_400).contains(&number) && has_clock(bytes) {
            bytes[5] &= !0x10;
        }
        Some(at(number))
    });
    let expected =
        [(Fault::PcrRepetition, 1), (Fault::PcrDiscontinuity, 1), (Fault::PcrInterval, 1)];
    assert_eq!(gap, expected);
    // 800 ns, there and back.
    let inaccurate = faults(|number, bytes| {
        shift(bytes, if (8_000..8_010).contains(&number) || !has_clock(bytes) { 0 } else { 22 });
        Some(at(number))
    });
    assert_eq!(inaccurate.len(), 1);
    assert_eq!(inaccurate[0].0, Fault::PcrAccuracy);
    // The network holds everything for 300 ms: jitter, and no fault of the encoder's clock.
    let mut inspector = Inspector::default();
    for (number, bytes) in clip().iter().enumerate() {
        let stall = if (8_000..8_400).contains(&number) { 8_400 } else { number };
        inspector.push(view(bytes), at(stall));
    }
    let faults: Vec<_> = inspector.health().faults().collect();
    assert_eq!(faults, []);
    assert!(is_video_start(&clip()[29]));
}
