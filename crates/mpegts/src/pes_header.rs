/// The header of a PES packet (ISO/IEC 13818-1 section 2.4.3.6), as far as it stands in the packet
/// that it begins in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PesHeader {
    /// Which kind of stream it is, such as 0xE0 for video.
    pub stream_id: u8,
    /// Bytes of the PES packet that follow the field of its length; `None` if it ends where the
    /// next one begins, as only that of video may.
    pub length: Option<u16>,
    /// When the access unit that begins here is to be shown, in ticks of 90 kHz, 33 bits.
    pub pts: Option<u64>,
    /// When it is to be decoded, where that is another time.
    pub dts: Option<u64>,
    /// The place of the PES packet's payload in the bytes that were read; it may be beyond them.
    pub payload_at: usize,
}

impl PesHeader {
    /// Reads the header at the start of the payload of a packet; `None` if no PES packet begins
    /// there, or the fixed part of its header is not whole.
    pub fn parse(payload: &[u8]) -> Option<Self> {
        let &[0, 0, 1, stream_id, high, low, ..] = payload else { return None };
        let length = u16::from_be_bytes([high, low]);
        let mut header = Self {
            stream_id,
            length: (length != 0).then_some(length),
            pts: None,
            dts: None,
            payload_at: 6,
        };
        if PLAIN.contains(&stream_id) {
            return Some(header);
        }
        let &[_, flags, len] = payload.get(6..9)? else { return None };
        header.payload_at = 9 + usize::from(len);
        if flags & 0x80 != 0 && len >= 5 {
            header.pts = timestamp(payload.get(9..14));
        }
        if flags & 0xC0 == 0xC0 && len >= 10 {
            header.dts = timestamp(payload.get(14..19));
        }
        Some(header)
    }

    /// Ticks of PTS and DTS in a second.
    pub const HZ: u64 = 90_000;
}

fn timestamp(field: Option<&[u8]>) -> Option<u64> {
    let &[a, b, c, d, e] = field? else { return None };
    let high = u64::from(a >> 1 & 7) << 30;
    let middle = u64::from(u16::from_be_bytes([b, c]) >> 1) << 15;
    Some(high | middle | u64::from(u16::from_be_bytes([d, e]) >> 1))
}

/// The identifiers of streams whose PES packets have no further header: program map, padding,
/// private 2, ECM, EMM, DSM-CC, H.222.1 type E, program directory.
const PLAIN: [u8; 8] = [0xBC, 0xBE, 0xBF, 0xF0, 0xF1, 0xF2, 0xF8, 0xFF];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_far_as_they_stand_there() {
        let bytes = [
            0, 0, 1, 0xE0, 0, 0, 0x80, 0xC0, 10, 0x3F, 0xFF, 0xFF, 0xFF, 0xFF, 0x11, 0, 1, 0, 3,
            0xAA,
        ];
        let header = PesHeader::parse(&bytes).unwrap();
        assert_eq!((header.stream_id, header.length, header.payload_at), (0xE0, None, 19));
        assert_eq!((header.pts, header.dts), (Some((1 << 33) - 1), Some(1)));
        let header = PesHeader::parse(&bytes[..16]).unwrap();
        assert_eq!((header.pts.is_some(), header.dts, header.payload_at), (true, None, 19));
        assert_eq!(PesHeader::parse(&bytes[..8]), None);
        assert_eq!(PesHeader::parse(&bytes[1..]), None);
    }
}
