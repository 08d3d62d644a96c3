use std::ops::Range;

/// The fields of a packet's header that a relay uses.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RtpHeader {
    /// The kind of the payload, 0 to 127: [`MPEG_TS`], or a number that both ends agreed on.
    pub payload_type: u8,
    /// The number of the packet, which wraps.
    pub sequence: u16,
    /// The time of the payload's first byte, for a transport stream in 1/90,000 s.
    pub timestamp: u32,
    /// The synchronization source (SSRC): another one is another stream.
    pub source: u32,
}

/// A view of an RTP packet (RFC 3550 section 5.1).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RtpPacket {
    /// Its header.
    pub header: RtpHeader,
    /// The place of the payload, without the header's extensions and the padding.
    pub payload: Range<usize>,
}

impl RtpPacket {
    /// Reads a packet from a datagram; `None` for other bytes, and for packets of RTCP at the same
    /// port (RFC 5761 section 4).
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let fixed: &[u8; RTP_HEADER_LEN] = datagram.first_chunk()?;
        let is_control = (192..=223).contains(&fixed[1]);
        if fixed[0] >> 6 != VERSION || is_control {
            return None;
        }
        let mut start = RTP_HEADER_LEN + 4 * usize::from(fixed[0] & 0x0F);
        if fixed[0] & 0x10 != 0 {
            let extension: &[u8; 4] = datagram.get(start..)?.first_chunk()?;
            let words = u16::from_be_bytes([extension[2], extension[3]]);
            start += 4 + 4 * usize::from(words);
        }
        let padding = match fixed[0] & 0x20 {
            0 => 0,
            _ => usize::from(*datagram.last()?),
        };
        let payload = start..datagram.len().checked_sub(padding)?;
        let word = |at: usize| {
            u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        let header = RtpHeader {
            payload_type: fixed[1] & 0x7F,
            sequence: u16::from_be_bytes([fixed[2], fixed[3]]),
            timestamp: word(4),
            source: word(8),
        };
        (payload.start <= payload.end).then_some(Self { header, payload })
    }
}

/// The bytes of a header without extensions, marker and padding.
pub fn rtp_header(header: RtpHeader) -> [u8; RTP_HEADER_LEN] {
    let mut bytes = [0; RTP_HEADER_LEN];
    bytes[0] = VERSION << 6;
    bytes[1] = header.payload_type & 0x7F;
    bytes[2..4].copy_from_slice(&header.sequence.to_be_bytes());
    bytes[4..8].copy_from_slice(&header.timestamp.to_be_bytes());
    bytes[8..].copy_from_slice(&header.source.to_be_bytes());
    bytes
}

/// The payload type of MPEG-TS (RFC 3551 section 6).
pub const MPEG_TS: u8 = 33;

/// Bytes of a header without extensions.
pub const RTP_HEADER_LEN: usize = 12;

const VERSION: u8 = 2;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const HEADER: RtpHeader =
        RtpHeader { payload_type: MPEG_TS, sequence: 0xABCD, timestamp: 0x0102_0304, source: 99 };

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let datagram = [&rtp_header(HEADER)[..], b"payload"].concat();
        let packet = RtpPacket::parse(&datagram).unwrap();
        assert_eq!((packet.header, &datagram[packet.payload]), (HEADER, &b"payload"[..]));
    }

    #[test]
    fn sources_extension_and_padding_are_no_payload() {
        let mut datagram = rtp_header(HEADER).to_vec();
        datagram[0] |= 0x20 | 0x10 | 2;
        datagram.extend([7; 8]);
        datagram.extend([0xBE, 0xDE, 0, 1, 1, 2, 3, 4]);
        datagram.extend(b"payload");
        datagram.extend([0, 0, 3]);
        let packet = RtpPacket::parse(&datagram).unwrap();
        assert_eq!(&datagram[packet.payload], b"payload");
    }

    #[test]
    fn other_bytes_are_no_packet() {
        let mut datagram = rtp_header(HEADER).to_vec();
        assert!(RtpPacket::parse(&datagram[..11]).is_none());
        datagram[1] = 200;
        assert!(RtpPacket::parse(&datagram).is_none(), "a report of RTCP");
        assert!(RtpPacket::parse(&[0x47; 1_316]).is_none());
        datagram = rtp_header(HEADER).to_vec();
        datagram[0] |= 0x20;
        datagram[11] = 13;
        assert!(RtpPacket::parse(&datagram).is_none(), "more padding than bytes");
        datagram[0] = 0x9F;
        assert!(RtpPacket::parse(&datagram).is_none(), "more sources than bytes");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            if let Some(packet) = RtpPacket::parse(&bytes) {
                prop_assert!(packet.payload.end <= bytes.len());
            }
        }
    }
}
