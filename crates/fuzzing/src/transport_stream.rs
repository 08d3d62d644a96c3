//! Transport streams: their packets in messages, their inspection, and their cut for a receiver.

use std::time::Duration;

use bytes::Bytes;
use punctual_mpegts::{Aligner, Checker, Cut, Inspector, PACKET_LEN, Packet, RandomAccess};

use crate::input::FuzzInput;

/// The first byte chooses the meaning of the rest.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    match kind % 3 {
        0 => align(rest),
        1 => inspect(&mut FuzzInput(rest)),
        _ => cut(&mut FuzzInput(rest)),
    }
}

/// Messages of any size: no byte comes twice, and a transport stream leaves as whole packets.
fn align(input: &[u8]) {
    let Some((&size, stream)) = input.split_first() else { return };
    let mut aligner = Aligner::default();
    let (mut came, mut left) = (0, 0);
    for message in stream.chunks(1 + usize::from(size) * 3) {
        came += message.len();
        let mut passed = Vec::new();
        aligner.push(Bytes::copy_from_slice(message), |part| passed.push(part));
        left += passed.iter().map(Bytes::len).sum::<usize>();
        assert!(left <= came, "more has left than came");
        if aligner.is_transport_stream() == Some(true) {
            for part in passed {
                assert!(part.as_chunks::<PACKET_LEN>().0.iter().all(|it| it[0] == 0x47));
                assert_eq!(part.len() % PACKET_LEN, 0);
            }
        }
    }
    aligner.finish(|part| left += part.len());
    assert!(left <= came && aligner.is_transport_stream().is_some());
}

/// A random access point lies in the past; what is known of the stream is bounded.
fn inspect(input: &mut FuzzInput<'_>) {
    let mut inspector = Inspector::default();
    let mut checker = Checker::default();
    let mut now = Duration::ZERO;
    let mut count = 0;
    while let Some(bytes) = packet(input) {
        now += Duration::from_millis(u64::from(input.byte()) >> 2);
        let access = inspector.push(view(&bytes), now);
        checker.push(&bytes);
        count += 1;
        assert!(access.is_none_or(|it| it.packet < count));
    }
    checker.finish();
    inspector.check(now);
    assert_eq!(inspector.packets(), count);
    assert!(inspector.programs().len() <= 64);
    assert_eq!(inspector.tables().len() % PACKET_LEN, 0);
    for stream in inspector.programs().iter().flat_map(|it| &it.streams) {
        let _ = (inspector.video(stream.pid), inspector.audio(stream.pid));
        let _ = (inspector.bit_rate(stream.pid, now), inspector.clock(stream.pid));
    }
    // Both count with the same checks. The checker searches packets only where they are few.
    if count >= 5 {
        assert_eq!(inspector.report().pids, checker.report().pids);
    }
}

/// Whole packets leave, at most two for each that came, and none while the receiver is out.
fn cut(input: &mut FuzzInput<'_>) {
    let (mut cut, mut inspector) = (Cut::default(), Inspector::default());
    let mut last = None;
    while let Some(bytes) = packet(input) {
        let access = inspector.push(view(&bytes), Duration::ZERO);
        last = access.or(last);
        let choice = input.byte();
        if choice & 0x0F == 1 {
            cut.leave();
        }
        if choice & 0x0F == 2 {
            let pts = (choice & 0x10 != 0).then_some(u64::from(choice) << 10);
            let access = last.unwrap_or(RandomAccess { packet: 0, pid: 0x100, pts });
            let tables = inspector.tables();
            let sent = cut.enter(&tables, access);
            assert!(is_whole(&sent) && sent.len() <= 2 * tables.len());
            assert!(!cut.is_out());
        }
        let was_out = cut.is_out();
        let sent = cut.pass(&Bytes::copy_from_slice(&bytes));
        assert!(is_whole(&sent) && sent.len() <= 2 * PACKET_LEN);
        assert!(!was_out || sent.is_empty());
    }
    cut.leave();
}

fn is_whole(sent: &[u8]) -> bool {
    let (packets, rest) = sent.as_chunks::<PACKET_LEN>();
    rest.is_empty() && packets.iter().all(|it| it[0] == 0x47)
}

fn view(bytes: &[u8; PACKET_LEN]) -> Packet<'_> {
    Packet::new(bytes).expect("it has the sync byte")
}

/// The next packet: its PID, its header's flags, its adaptation field and the start of its payload.
fn packet(input: &mut FuzzInput<'_>) -> Option<[u8; PACKET_LEN]> {
    let choice = input.next()?;
    let pids = [0_u16, 1, 0x11, 0x1000, 0x100, 0x101, 0x1001, 0x1FFF];
    let [high, low] = pids[usize::from(choice & 7)].to_be_bytes();
    let start = if choice & 8 != 0 { 0x40 } else { 0 };
    let error = if choice & 0xE0 == 0xE0 { 0x80 } else { 0 };
    let mut bytes = [0xFF; PACKET_LEN];
    bytes[..4].copy_from_slice(&[0x47, high | start | error, low, input.byte()]);
    let mut at = 4;
    if bytes[3] & 0x20 != 0 {
        let field = input.bytes();
        let len = field.len().min(PACKET_LEN - at);
        bytes[at..at + len].copy_from_slice(&field[..len]);
        at = PACKET_LEN.min(5 + usize::from(bytes[4]));
    }
    let payload = input.bytes();
    let len = payload.len().min(PACKET_LEN - at);
    bytes[at..at + len].copy_from_slice(&payload[..len]);
    // Nobody guesses a checksum.
    if choice & 0x10 != 0 && start != 0 && at + 4 < PACKET_LEN {
        mend_checksum(&mut bytes[at + 1..]);
    }
    Some(bytes)
}

/// Gives the section at the start its checksum, if it ends within the packet.
fn mend_checksum(section: &mut [u8]) {
    let end = 3 + (usize::from(section[1] & 0x0F) << 8 | usize::from(section[2]));
    let Some(start) = end.checked_sub(4).filter(|_| end <= section.len()) else { return };
    let mut register = u32::MAX;
    for byte in &section[..start] {
        register ^= u32::from(*byte) << 24;
        for _ in 0..8 {
            let carry = register & 0x8000_0000 != 0;
            register = register << 1 ^ if carry { 0x04C1_1DB7 } else { 0 };
        }
    }
    section[start..end].copy_from_slice(&register.to_be_bytes());
}
