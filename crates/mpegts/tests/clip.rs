//! The demo clip is a clean transport stream, and its pace is that of its clock.

use std::time::Duration;

use punctual_mpegts::{Checker, Framer, PcrPacer};

const PICTURE_PID: u16 = 0x100;
const SOUND_PID: u16 = 0x101;

fn clip() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/clip.ts");
    std::fs::read(path).expect("the clip is part of the repository")
}

#[test]
fn the_clip_is_clean() {
    let clip = clip();
    let mut checker = Checker::default();
    clip.chunks(1316).for_each(|message| checker.push(message));
    checker.finish();

    let report = checker.report();
    assert_eq!(report.bytes, clip.len() as u64);
    assert_eq!(report.packets * 188, report.bytes);
    assert_eq!((report.sync_losses, report.skipped_bytes, report.transport_errors), (0, 0, 0));
    assert!(report.pids[&PICTURE_PID].packets > 10_000);
    assert!(report.pids[&SOUND_PID].packets > 600);

    let total = report.total();
    assert_eq!((total.continuity_errors, total.missing_packets, total.duplicates), (0, 0, 0));
    assert_eq!((total.scrambled, total.pcr_discontinuities), (0, 0));
    assert_eq!(total.pcrs, report.pids[&PICTURE_PID].pcrs);
    assert!(total.pcr_interval_max.unwrap() <= Duration::from_millis(22));
}

#[test]
fn a_lost_message_is_found() {
    let clip = clip();
    let mut checker = Checker::default();
    for (number, message) in clip.chunks(1316).enumerate() {
        if number != 1_000 {
            checker.push(message);
        }
    }
    checker.finish();
    let total = checker.report().total();
    assert!(total.continuity_errors >= 1);
    assert!((1..=7).contains(&total.missing_packets), "{total:?}");
}

#[test]
fn the_clip_is_sent_at_its_constant_rate() {
    let clip = clip();
    let mut framer = Framer::default();
    let mut pacer = PcrPacer::default();
    framer.push(&clip);
    while let Some(packet) = framer.next_packet() {
        pacer.push(packet).unwrap();
    }
    pacer.finish().unwrap();

    // 188 bytes at 2 Mb/s.
    let spacing = Duration::from_micros(752);
    let mut sent = Vec::new();
    while let Some((at, packet)) = pacer.pop() {
        let packets = u32::try_from(sent.len() / 188).unwrap();
        assert!(at.abs_diff(spacing * packets) < Duration::from_micros(10), "{at:?}");
        sent.extend_from_slice(&packet);
    }
    assert_eq!(sent, clip);
}
