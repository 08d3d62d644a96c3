use crate::Pcr;

/// A view of one transport stream packet, with the fields of its header (ISO/IEC 13818-1 sections
/// 2.4.3.2 to 2.4.3.5).
///
/// The packet begins with the sync byte. Nothing else is certain: fields are given as they stand,
/// and an adaptation field of an impossible length is taken for none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Packet<'a>(&'a [u8; PACKET_LEN]);

impl<'a> Packet<'a> {
    /// A view of `bytes`.
    ///
    /// # Errors
    ///
    /// The first byte is not the sync byte.
    pub fn new(bytes: &'a [u8; PACKET_LEN]) -> Result<Self, NotAPacket> {
        if bytes[0] == SYNC_BYTE { Ok(Self(bytes)) } else { Err(NotAPacket { first: bytes[0] }) }
    }

    /// The packet's bytes.
    pub fn bytes(self) -> &'a [u8; PACKET_LEN] {
        self.0
    }

    /// Whether someone on the way found bit errors that could not be corrected
    /// (transport_error_indicator): no field can be trusted then.
    pub fn has_transport_error(self) -> bool {
        self.0[1] & 0x80 != 0
    }

    /// Whether a PES packet or a section begins in this packet (payload_unit_start_indicator).
    pub fn starts_payload_unit(self) -> bool {
        self.0[1] & 0x40 != 0
    }

    /// Packet identifier, 13 bits: which of the multiplexed streams the packet belongs to.
    pub fn pid(self) -> u16 {
        u16::from_be_bytes([self.0[1] & 0x1F, self.0[2]])
    }

    /// Whether the payload is scrambled (transport_scrambling_control is not 00).
    pub fn is_scrambled(self) -> bool {
        self.0[3] & 0xC0 != 0
    }

    /// Whether the packet has an adaptation field.
    pub fn has_adaptation_field(self) -> bool {
        self.0[3] & 0x20 != 0
    }

    /// Whether the packet has a payload. One with neither payload nor adaptation field is reserved
    /// and to be discarded.
    pub fn has_payload(self) -> bool {
        self.0[3] & 0x10 != 0
    }

    /// Continuity counter, 0 to 15: one more for each packet of a PID that has a payload.
    pub fn continuity_counter(self) -> u8 {
        self.0[3] & 0x0F
    }

    /// Whether the sender announces a break of the continuity counter or, on a PCR PID, of the
    /// clock (discontinuity_indicator).
    pub fn is_discontinuity(self) -> bool {
        self.adaptation_flags() & 0x80 != 0
    }

    /// Whether a decoder may start here (random_access_indicator).
    pub fn is_random_access(self) -> bool {
        self.adaptation_flags() & 0x40 != 0
    }

    /// The program clock reference, if the packet has one.
    pub fn pcr(self) -> Option<Pcr> {
        if self.adaptation_flags() & 0x10 == 0 || self.0[4] < 7 {
            return None;
        }
        let field = u64::from_be_bytes([
            0, 0, self.0[6], self.0[7], self.0[8], self.0[9], self.0[10], self.0[11],
        ]);
        let (base, extension) = (field >> 15, field & 0x1FF);
        Some(Pcr::from_ticks(base * 300 + extension))
    }

    /// The payload: the bytes after the header and the adaptation field. Empty where there is none,
    /// and where the adaptation field has an impossible length.
    pub fn payload(self) -> &'a [u8] {
        if !self.has_payload() {
            return &[];
        }
        let field = if self.has_adaptation_field() { 1 + usize::from(self.0[4]) } else { 0 };
        self.0.get(4 + field..).unwrap_or_default()
    }

    /// Whether this packet repeats `original`: the same in all but its PCR (section 2.4.3.3).
    pub(crate) fn repeats(self, original: &[u8; PACKET_LEN]) -> bool {
        let clock = if self.pcr().is_some() { PCR_AT..PCR_AT + 6 } else { 0..0 };
        self.0[..clock.start] == original[..clock.start]
            && self.0[clock.end..] == original[clock.end..]
    }

    /// The flags of the adaptation field; none set without one.
    fn adaptation_flags(self) -> u8 {
        let longest = if self.has_payload() { 182 } else { 183 };
        let has_flags = self.has_adaptation_field() && (1..=longest).contains(&self.0[4]);
        if has_flags { self.0[5] } else { 0 }
    }
}

/// Bytes that are not a transport stream packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a transport stream packet begins with byte 0x47, not 0x{first:02x}")]
pub struct NotAPacket {
    /// The byte in place of the sync byte.
    pub first: u8,
}

/// Bytes in a packet (section 2.4.3.2).
pub const PACKET_LEN: usize = 188;

/// The first byte of every packet.
pub const SYNC_BYTE: u8 = 0x47;

/// The PID of packets that only fill the stream.
pub const NULL_PID: u16 = 0x1FFF;

const PCR_AT: usize = 6;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reads_a_header_with_pcr() {
        let mut bytes = [0xFF; PACKET_LEN];
        // PID 0x100, payload unit start, adaptation field and payload, counter 5; an adaptation
        // field of 7 bytes with random access and PCR: base 0x1_2345_6789, extension 0x12A.
        bytes[..12].copy_from_slice(&[
            0x47, 0x41, 0x00, 0x35, 7, 0x50, 0x91, 0xA2, 0xB3, 0xC4, 0xFF, 0x2A,
        ]);
        let packet = Packet::new(&bytes).unwrap();
        assert_eq!(packet.pid(), 0x100);
        assert_eq!(packet.continuity_counter(), 5);
        assert!(packet.starts_payload_unit() && packet.has_payload());
        assert!(packet.has_adaptation_field() && packet.is_random_access());
        assert!(!packet.has_transport_error() && !packet.is_scrambled());
        assert!(!packet.is_discontinuity());
        assert_eq!(packet.payload(), &bytes[12..]);
        assert_eq!(packet.pcr(), Some(Pcr::from_ticks(0x1_2345_6789 * 300 + 0x12A)));
    }

    #[test]
    fn an_adaptation_field_too_short_or_too_long_has_no_pcr() {
        let mut bytes = [0; PACKET_LEN];
        bytes[..6].copy_from_slice(&[0x47, 0, 0, 0x30, 7, 0x90]);
        for (length, discontinuity, pcr) in [
            (0, false, false),
            (1, true, false),
            (6, true, false),
            (7, true, true),
            (182, true, true),
            (183, false, false),
        ] {
            bytes[4] = length;
            let packet = Packet::new(&bytes).unwrap();
            assert_eq!(packet.is_discontinuity(), discontinuity, "length {length}");
            assert_eq!(packet.pcr().is_some(), pcr, "length {length}");
        }
        // Without a payload the field fills the packet.
        bytes[3..5].copy_from_slice(&[0x20, 183]);
        assert!(Packet::new(&bytes).unwrap().pcr().is_some());
    }

    #[test]
    fn the_error_has_the_byte_in_place_of_the_sync_byte() {
        let error = Packet::new(&[0xB8; PACKET_LEN]).unwrap_err();
        assert_eq!(error.to_string(), "a transport stream packet begins with byte 0x47, not 0xb8");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(mut bytes in any::<[[u8; 4]; PACKET_LEN / 4]>()) {
            bytes[0][0] = SYNC_BYTE;
            let bytes: [u8; PACKET_LEN] = bytes.as_flattened().try_into().unwrap();
            let packet = Packet::new(&bytes).unwrap();
            prop_assert!(packet.pid() <= NULL_PID);
            prop_assert!(packet.pcr().is_none_or(|pcr| pcr.ticks() < Pcr::MODULUS));
            prop_assert!(packet.payload().len() <= PACKET_LEN - 4);
            prop_assert!(packet.repeats(&bytes));
        }
    }
}
