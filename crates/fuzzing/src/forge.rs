//! Packets in the peer's name, with the borders of the number space in their fields.

use punctual_proto::{SeqNo, SocketId};
use punctual_wire::{Control, ControlPacket, Packet};

use crate::input::FuzzInput;

/// The first byte of steps in which a packet in the peer's name arrives.
pub(crate) const FORGED: u8 = 0xF0;

/// Distances from an expected number: near it, at the borders of windows, and half-way round the
/// circles of 31, 32 and 26 bits.
const BORDERS: [u32; 16] = [
    0,
    1,
    64,
    511,
    8_192,
    1 << 16,
    1 << 17,
    1 << 25,
    1 << 26,
    (1 << 29) + 1,
    (1 << 30) - 1,
    1 << 30,
    (1 << 30) + 1,
    1 << 31,
    0x7FFF_FFFF,
    0xFFFF_FFFF,
];

/// A word of a field: 1 byte chooses the distance from `expected`, ahead or back, and sometimes
/// another one is added to it. The topmost bit may be set, which opens a range in a NAK.
fn word(input: &mut FuzzInput<'_>, expected: u32) -> u32 {
    let choice = input.byte();
    let border = BORDERS[usize::from(choice & 15)];
    let word = match choice >> 4 {
        0..=6 => expected.wrapping_add(border),
        7..=9 => expected.wrapping_sub(border),
        10 => border,
        11 => expected.wrapping_add(border).wrapping_add(input.byte().into()),
        12 => return input.u32(),
        _ => return expected.wrapping_add(border) | 1 << 31,
    };
    word & 0x7FFF_FFFF
}

/// A control packet for `dest` with 1 to 16 words, most of them numbers near `expected` or a border
/// away from it.
pub(crate) fn control(input: &mut FuzzInput<'_>, dest: SocketId, expected: SeqNo) -> Vec<u8> {
    const ACK: u8 = 2;
    // Handshake, keepalive, NAK, congestion warning, ACKACK, DROPREQ, PEERERROR. A SHUTDOWN would
    // end the connection before other packets.
    const OTHERS: [u8; 8] = [0, 1, 3, 3, 4, 6, 7, 8];
    let choice = input.byte();
    let kind = if choice & 1 == 0 { ACK } else { OTHERS[usize::from(choice >> 1 & 7)] };
    // The header has the ACK's number, or a code; 0 marks a light ACK, which has one word.
    let head = word(input, u32::from(choice >> 5));
    let words = if kind == ACK && head == 0 { 1 } else { 1 + usize::from(input.byte() % 16) };
    let stamp = word(input, 0);
    let mut packet = Vec::new();
    let first = 0x8000_0000 | u32::from(kind) << 16;
    for word in [first, head, stamp, dest.value()] {
        packet.extend_from_slice(&word.to_be_bytes());
    }
    for _ in 0..words {
        packet.extend_from_slice(&word(input, expected.value()).to_be_bytes());
    }
    packet
}

/// A data packet for `dest` with a number near `expected` or a border away from it.
pub(crate) fn data(input: &mut FuzzInput<'_>, dest: SocketId, expected: SeqNo) -> Vec<u8> {
    let seq = word(input, expected.value()) & 0x7FFF_FFFF;
    let flags = input.u32();
    let message = word(input, 1) & 0x03FF_FFFF;
    let stamp = word(input, 0);
    let mut packet = Vec::new();
    for word in [seq, flags & 0xFC00_0000 | message, stamp, dest.value()] {
        packet.extend_from_slice(&word.to_be_bytes());
    }
    packet.extend_from_slice(&[7; 64][..usize::from(input.byte() % 65)]);
    packet
}

/// The number of the packet after this one, if it is a data packet, or of the first packet, if it
/// is a handshake.
pub(crate) fn next_number(packet: &[u8]) -> Option<SeqNo> {
    match Packet::parse(packet).ok()? {
        Packet::Data(data) => Some(data.header.seq.next()),
        Packet::Control(ControlPacket { control: Control::Handshake(handshake), .. }) => {
            Some(handshake.isn)
        }
        Packet::Control(_) => None,
    }
}
