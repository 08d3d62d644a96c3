use crate::{PACKET_LEN, SYNC_BYTE};

/// The places of the packets in a stream of bytes: recorders and modulators put something between
/// them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Layout {
    /// The place of the first whole packet.
    pub start: usize,
    /// Bytes from the start of a packet to that of the next: 188, [192](Self::STAMPED) or
    /// [204](Self::PROTECTED).
    pub spacing: usize,
}

impl Layout {
    /// Packets with a timestamp of four bytes before each (M2TS of Blu-ray and AVCHD).
    pub const STAMPED: usize = 192;

    /// Packets with 16 bytes of parity after each (the outer code of DVB, EN 300 429).
    pub const PROTECTED: usize = 204;

    /// Bytes of a timestamp.
    pub const STAMP: usize = Self::STAMPED - PACKET_LEN;

    /// Bytes that are enough to [find](Self::find) the packets of a stream that begins anywhere
    /// within a packet.
    pub const EVIDENCE: usize = (ROW + 1) * Self::PROTECTED;

    /// Finds the packets in bytes that may begin within a packet, or with something else; `None`
    /// where there are not five in a row. Other bytes are taken for a transport stream about once
    /// in 10^9 kilobytes.
    pub fn find(bytes: &[u8]) -> Option<Self> {
        let places = bytes.len().saturating_sub((ROW - 1) * PACKET_LEN);
        let at = |start: usize| {
            let spacing = Self::at(&bytes[start..], None, ROW)?;
            let reaches = bytes.len() > start + (ROW - 1) * spacing;
            reaches.then_some(Self { start, spacing })
        };
        (0..places).find_map(at)
    }

    /// Whether the stream is nothing but packets.
    pub fn is_plain(self) -> bool {
        self == Self { start: 0, spacing: PACKET_LEN }
    }

    /// The spacing of `row` packets that begin at the first of `bytes`, as far as these reach; that
    /// of the stream, if it is known already.
    pub(crate) fn at(bytes: &[u8], known: Option<usize>, row: usize) -> Option<usize> {
        let is_spacing = |spacing: &usize| {
            let firsts = bytes.iter().step_by(*spacing).take(row);
            firsts.copied().all(|byte| byte == SYNC_BYTE)
        };
        let all = [PACKET_LEN, Self::STAMPED, Self::PROTECTED];
        all.into_iter().filter(|spacing| known.is_none_or(|it| it == *spacing)).find(is_spacing)
    }
}

/// The number of packets in a row that show a transport stream.
const ROW: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{packet, stream};

    fn spaced(spacing: usize, before: usize) -> Vec<u8> {
        let packets = stream(&(0..8).map(|counter| packet(0x100, counter)).collect::<Vec<_>>());
        let mut bytes = vec![0; before];
        for packet in packets.chunks(PACKET_LEN) {
            bytes.extend(packet);
            bytes.resize(bytes.len() + spacing - PACKET_LEN, 1);
        }
        bytes
    }

    #[test]
    fn packets_are_found_in_each_layout_wherever_they_begin() {
        for spacing in [188, 192, 204] {
            for start in [0, 4, 100, 203] {
                let bytes = &spaced(spacing, start)[..Layout::EVIDENCE];
                assert_eq!(Layout::find(bytes), Some(Layout { start, spacing }));
            }
        }
        assert!(Layout::find(&spaced(188, 0)).unwrap().is_plain());
        assert!(!Layout::find(&spaced(192, 4)).unwrap().is_plain());
    }

    #[test]
    fn other_bytes_are_no_transport_stream() {
        assert_eq!(Layout::find(b""), None);
        assert_eq!(Layout::find(&[0; 10_000]), None);
        assert_eq!(Layout::find(&spaced(188, 0)[..4 * 188]), None, "four are not enough");
        assert_eq!(Layout::find(&spaced(190, 0)), None);
    }
}
