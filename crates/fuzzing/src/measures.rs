//! The inputs of measurements: payloads, transport streams, reports, files of statistics.

use punctual_metrics::rtp::RtpPacket;
use punctual_metrics::{MIN_PAYLOAD, Meter, ReadStampError, Stamp, write_stamp};
use punctual_mpegts::{Checker, Framer, Layout, PACKET_LEN, PcrPacer, SYNC_BYTE};
use punctual_probe::Report;
use punctual_stats::read::StatsTable;
use punctual_units::parse_timepoint;

use crate::input::FuzzInput;

/// The first byte chooses the meaning of the rest.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    match kind % 5 {
        0 => payload(rest),
        1 => arrivals(&mut FuzzInput(rest)),
        2 => transport_stream(kind, rest),
        3 => report(rest),
        _ => table(rest),
    }
}

/// A payload without the stamp of a sender is counted as damaged, and its stamp as lost.
fn payload(payload: &[u8]) {
    let mut meter = Meter::default();
    let read = meter.submit(payload, 1, 1);
    assert_eq!(read, Stamp::read(payload));
    assert_eq!(meter.report().received, 1);
    let mut stamped = payload.to_vec();
    if write_stamp(&mut stamped, 7, -1, i64::MAX).is_ok() {
        let stamp = Stamp { seq: 7, system_time_us: -1, monotonic_us: i64::MAX };
        assert_eq!(Stamp::read(&stamped), Ok(stamp));
    } else {
        assert_eq!(
            read,
            Err(ReadStampError::TooShort { length: payload.len(), least: MIN_PAYLOAD })
        );
    }
}

/// Stamps that say anything, read at any time.
fn arrivals(input: &mut FuzzInput<'_>) {
    let mut meter = Meter::default();
    let mut received = 0;
    while let Some(size) = input.next() {
        // Small steps as a rule, and now and then anything.
        let mut number = || match size & 3 {
            0 => input.u64(),
            1 => u64::from(input.u16()) << 32,
            _ => input.byte().into(),
        };
        let stamp = Stamp {
            seq: number(),
            system_time_us: number().cast_signed(),
            monotonic_us: number().cast_signed(),
        };
        let (system, monotonic) = (number().cast_signed(), number().cast_signed());
        meter.submit_stamp(stamp, system, monotonic);
        received += 1;
        if size & 0x40 != 0 {
            drop(meter.report().csv_row("", 0));
        }
    }
    assert_eq!(meter.report().received, received);
}

/// Bytes in pieces of any size give the same packets as in one; the pacer gives back each of them.
fn transport_stream(piece: u8, bytes: &[u8]) {
    let packets = |framer: &mut Framer| {
        let mut found = Vec::new();
        while let Some(packet) = framer.next_packet() {
            found.push(*packet.bytes());
        }
        found
    };
    let (mut whole, mut pieces, mut checker) =
        (Framer::default(), Framer::default(), Checker::default());
    whole.push(bytes);
    let mut expected = packets(&mut whole);
    whole.finish();
    expected.extend(packets(&mut whole));
    let mut found = Vec::new();
    for part in bytes.chunks(1 + usize::from(piece)) {
        pieces.push(part);
        checker.push(part);
        found.extend(packets(&mut pieces));
    }
    pieces.finish();
    checker.finish();
    found.extend(packets(&mut pieces));
    assert_eq!(found, expected);
    let outside = (bytes.len() - found.len() * PACKET_LEN) as u64;
    assert_eq!(pieces.skipped_bytes() + pieces.removed_bytes(), outside);
    let _ = checker.report().total();
    if let Some(layout) = Layout::find(bytes) {
        assert_eq!(bytes[layout.start + 4 * layout.spacing], SYNC_BYTE);
    }
    if let Some(packet) = RtpPacket::parse(bytes) {
        assert!(packet.payload.start <= packet.payload.end && packet.payload.end <= bytes.len());
    }
    pace(bytes, &found);
}

fn pace(bytes: &[u8], packets: &[[u8; PACKET_LEN]]) {
    let (mut framer, mut pacer) = (Framer::default(), PcrPacer::default());
    framer.push(bytes);
    framer.finish();
    let mut pushed = true;
    while let Some(packet) = framer.next_packet() {
        pushed &= pacer.push(packet).is_ok();
    }
    let finished = pacer.finish();
    let paced: Vec<_> = std::iter::from_fn(|| pacer.pop()).collect();
    assert!(paced.is_sorted_by_key(|(at, _)| *at), "time goes back");
    assert!(paced.iter().zip(packets).all(|((_, a), b)| a == b), "another order");
    match finished {
        Ok(()) => assert!(!pushed || paced.len() == packets.len(), "packets are missing"),
        Err(error) => drop(error.to_string()),
    }
}

/// A report that parses is the same when it is written.
fn report(message: &[u8]) {
    let Some(report) = Report::parse(message) else { return };
    let written = report.to_bytes();
    assert_eq!(Report::parse(&written), Some(report));
}

/// A file of statistics: every column has as many rows as there are times.
fn table(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let _ = parse_timepoint(text);
    let table = match StatsTable::parse(text) {
        Ok(table) => table,
        Err(error) => return drop(error.to_string()),
    };
    let _ = table.start_us();
    for rows in &table.connections {
        let known = ["msRTT", "pktSent", "pktRecv", "mbpsRecvRate", "usLatencyAvg", "usJitter"];
        for name in known {
            if let Some(column) = rows.column(name) {
                assert_eq!(column.len(), rows.seconds.len());
                assert!(rows.points(name).count() <= column.len());
                assert!(rows.sum(name).is_some());
            }
        }
    }
}
