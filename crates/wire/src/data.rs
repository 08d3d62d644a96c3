use crate::words::{HEADER_LEN, header_bytes};
use crate::{MsgNo, ParseError, SeqNo, SocketId, Timestamp};

/// A data packet that was checked (draft section 3.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataPacket<'a> {
    /// The 16 bytes in front.
    pub header: DataHeader,
    /// Everything behind the header; may be empty.
    pub payload: &'a [u8],
}

impl<'a> DataPacket<'a> {
    #[inline]
    pub(crate) fn from_words(header: [u32; 4], payload: &'a [u8]) -> Result<Self, ParseError> {
        let [seq, flags, timestamp, dest] = header;
        if flags & BOTH_KEYS == BOTH_KEYS {
            return Err(ParseError::BothKeys);
        }
        let header = DataHeader {
            seq: SeqNo::new(seq),
            position: Position::from_bits(flags >> POSITION_SHIFT),
            in_order: flags >> IN_ORDER_SHIFT & 1 != 0,
            key: KeyFlag::from_bits(flags >> KEY_SHIFT),
            retransmitted: flags >> RETRANSMITTED_SHIFT & 1 != 0,
            msgno: MsgNo::new(flags),
            timestamp: Timestamp::from_micros(timestamp),
            dest: SocketId::new(dest),
        };
        Ok(Self { header, payload })
    }
}

/// The header of a data packet (draft section 3.1).
///
/// The message number is read as 26 bits, as all peers since version 1.2 write it: they announce
/// [`HsFlags::RETRANSMIT_FLAG`](crate::HsFlags::RETRANSMIT_FLAG).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DataHeader {
    /// Number of the packet.
    pub seq: SeqNo,
    /// The packet's position in its message.
    pub position: Position,
    /// The message must be delivered in order. In live mode, delivery time rules instead.
    pub in_order: bool,
    /// The key that the payload is encrypted with.
    pub key: KeyFlag,
    /// The packet was sent before.
    pub retransmitted: bool,
    /// Number of the message; [`MsgNo::CONTROL`] marks a packet of the packet filter.
    pub msgno: MsgNo,
    /// Origin time of the message, unchanged by retransmission.
    pub timestamp: Timestamp,
    /// The peer's socket ID.
    pub dest: SocketId,
}

impl DataHeader {
    /// Bytes of a header.
    pub const LEN: usize = HEADER_LEN;

    /// The header as it goes in front of the payload.
    #[inline]
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let flags = (self.position as u32) << POSITION_SHIFT
            | u32::from(self.in_order) << IN_ORDER_SHIFT
            | (self.key as u32) << KEY_SHIFT
            | u32::from(self.retransmitted) << RETRANSMITTED_SHIFT
            | self.msgno.value();
        header_bytes([self.seq.value(), flags, self.timestamp.as_micros(), self.dest.value()])
    }
}

/// The position of a packet in its message: the PP bits. The discriminant is the wire value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Position {
    /// The first of several packets.
    First = 0b10,
    /// Neither first nor last.
    Middle = 0b00,
    /// The last of several packets.
    Last = 0b01,
    /// The whole message in one packet; in live mode, every packet.
    Solo = 0b11,
}

impl Position {
    /// Whether a message begins with the packet.
    pub const fn begins(self) -> bool {
        matches!(self, Self::First | Self::Solo)
    }

    /// Whether a message ends with the packet.
    pub const fn ends(self) -> bool {
        matches!(self, Self::Last | Self::Solo)
    }

    /// The position in the low two bits.
    const fn from_bits(bits: u32) -> Self {
        match bits & 0b11 {
            0b00 => Self::Middle,
            0b01 => Self::Last,
            0b10 => Self::First,
            _ => Self::Solo,
        }
    }
}

/// The key that a payload is encrypted with: the KK bits. The discriminant is the wire value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum KeyFlag {
    /// Not encrypted.
    Clear = 0b00,
    /// The even key.
    Even = 0b01,
    /// The odd key.
    Odd = 0b10,
}

impl KeyFlag {
    /// The key in the low two bits, which do not name both.
    const fn from_bits(bits: u32) -> Self {
        match bits & 0b11 {
            0b00 => Self::Clear,
            0b01 => Self::Even,
            _ => Self::Odd,
        }
    }
}

// Places of the fields in the second word: PP:2, O:1, KK:2, R:1, message number:26.
const POSITION_SHIFT: u32 = 30;
const IN_ORDER_SHIFT: u32 = 29;
const KEY_SHIFT: u32 = 27;
const RETRANSMITTED_SHIFT: u32 = 26;

const BOTH_KEYS: u32 = 0b11 << KEY_SHIFT;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Packet;

    const HEADER: DataHeader = DataHeader {
        seq: SeqNo::new(0x0102_0304),
        position: Position::Solo,
        in_order: false,
        key: KeyFlag::Even,
        retransmitted: true,
        msgno: MsgNo::new(0x5),
        timestamp: Timestamp::from_micros(0x1122_3344),
        dest: SocketId::new(0x5566_7788),
    };
    const BYTES: [u8; 16] = [
        0x01, 0x02, 0x03, 0x04, // sequence number
        0xCC, 0x00, 0x00, 0x05, // solo, even key, retransmitted, message 5
        0x11, 0x22, 0x33, 0x44, // timestamp
        0x55, 0x66, 0x77, 0x88, // destination
    ];

    #[test]
    fn header_is_laid_out_as_in_the_draft() {
        assert_eq!(HEADER.to_bytes(), BYTES);
        let first = DataHeader {
            position: Position::First,
            in_order: true,
            key: KeyFlag::Odd,
            retransmitted: false,
            msgno: MsgNo::MAX,
            ..HEADER
        };
        assert_eq!(first.to_bytes()[4..8], [0xB3, 0xFF, 0xFF, 0xFF]);
    }

    #[test]
    fn payload_is_the_rest_and_may_be_empty() {
        let mut datagram = BYTES.to_vec();
        let packet = |payload| Ok(Packet::Data(DataPacket { header: HEADER, payload }));
        assert_eq!(Packet::parse(&datagram), packet(&[]));
        datagram.extend_from_slice(b"abc");
        assert_eq!(Packet::parse(&datagram), packet(b"abc"));
    }

    #[test]
    fn both_keys_are_refused() {
        let mut datagram = BYTES;
        datagram[4] |= 0x18;
        assert_eq!(Packet::parse(&datagram), Err(ParseError::BothKeys));
    }
}
