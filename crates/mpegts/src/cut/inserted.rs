use crate::{PACKET_LEN, Packet, SYNC_BYTE};

/// A program clock reference as it stands in a packet.
pub(super) type PcrField = [u8; 6];

/// The field of a packet that has a program clock reference.
pub(super) fn pcr_field(packet: Packet<'_>) -> PcrField {
    *packet.bytes()[PCR_AT..].first_chunk().expect("a packet is longer")
}

/// A packet with an adaptation field alone, which announces that the counter goes on after
/// `counter` and, with `clock`, that the time base changes.
///
/// The clock is that of the packet that follows directly: the announcement has to stand in the
/// packet with the first reference of the new time base (ISO/IEC 13818-1 section 2.4.3.5).
pub(super) fn marker(pid: u16, counter: u8, clock: Option<PcrField>) -> [u8; PACKET_LEN] {
    adaptation(pid, counter, clock, true)
}

/// A packet with the clock of one whose payload does not pass.
pub(super) fn carrier(pid: u16, counter: u8, clock: PcrField, announces: bool) -> [u8; PACKET_LEN] {
    adaptation(pid, counter, Some(clock), announces)
}

fn adaptation(pid: u16, counter: u8, clock: Option<PcrField>, announces: bool) -> [u8; PACKET_LEN] {
    let mut bytes = [0xFF; PACKET_LEN];
    let [high, low] = pid.to_be_bytes();
    let flags = if announces { 0x80 } else { 0 } | if clock.is_some() { 0x10 } else { 0 };
    bytes[..PCR_AT].copy_from_slice(&[SYNC_BYTE, high, low, 0x20 | counter, 183, flags]);
    if let Some(clock) = clock {
        bytes[PCR_AT..PCR_AT + clock.len()].copy_from_slice(&clock);
    }
    bytes
}

const PCR_AT: usize = 6;
