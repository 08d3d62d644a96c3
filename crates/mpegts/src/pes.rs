use crate::continuity::{Continuity, Verdict};
use crate::{Packet, PesHeader};

/// Joins the packets of one PID to PES packets (ISO/IEC 13818-1 section 2.4.3.6).
///
/// A PES packet of stated length ends with its last byte. Video states none: its packet ends where
/// the next begins, which is a picture later. A multiplexer fills up the last transport stream
/// packet of each picture, so after some pictures that all ended like this, the reader
/// takes a filled packet for the end and need not wait; the first that proves it wrong ends
/// this for good.
///
/// A reader holds at most [`LONGEST`](Self::LONGEST) bytes, for any input.
#[derive(Clone, Debug, Default)]
pub struct PesReader {
    continuity: Continuity,
    open: Option<Open>,
    end: EndSign,
}

/// A PES packet that has begun.
#[derive(Clone, Debug, Default)]
struct Open {
    bytes: Vec<u8>,
    is_random_access: bool,
    is_damaged: bool,
}

/// Whether stuffing shows the end of a packet of unknown length on this PID.
#[derive(Clone, Copy, Debug)]
struct EndSign {
    /// Packets in a row that ended with stuffing; `None` after a packet that went on behind it.
    confirmed: Option<u8>,
    was_stuffed: bool,
}

impl Default for EndSign {
    fn default() -> Self {
        Self { confirmed: Some(0), was_stuffed: false }
    }
}

/// A PES packet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PesPacket {
    /// The kind of stream, such as 0xE0 for video.
    pub stream_id: u8,
    /// The presentation time in ticks of 90 kHz, 33 bits.
    pub pts: Option<u64>,
    /// The decoding time, where it differs from the presentation time.
    pub dts: Option<u64>,
    /// Whether the sender says that a decoder may start here.
    pub is_random_access: bool,
    /// Whether bytes are missing, before or within this packet.
    pub is_damaged: bool,
    /// The bytes of the elementary stream.
    pub payload: Vec<u8>,
}

impl PesReader {
    /// The most bytes of a PES packet: a picture of 4K at 400 Mb/s and one key frame a second
    /// has less. One that is longer is cut off and counts as damaged.
    pub const LONGEST: usize = 8 << 20;

    /// Takes in the next packet of the PID. It can end one PES packet by its begin and another by
    /// its end.
    pub fn push(&mut self, packet: Packet<'_>) -> [Option<PesPacket>; 2] {
        let payload = packet.payload();
        if packet.has_transport_error() || (packet.has_payload() && payload.is_empty()) {
            self.mark_damaged();
            return [None, None];
        }
        match self.continuity.check(packet) {
            Verdict::Duplicate => return [None, None],
            Verdict::Broken { .. } => self.mark_damaged(),
            // The sender left something out, and says so.
            Verdict::Continuous if packet.is_discontinuity() && !packet.starts_payload_unit() => {
                self.mark_damaged();
            }
            Verdict::Continuous => {}
        }
        if payload.is_empty() {
            return [None, None];
        }
        if packet.is_scrambled() {
            self.mark_damaged();
            return [None, None];
        }
        let ended = if packet.starts_payload_unit() { self.begin(packet) } else { self.go_on() };
        if let Some(open) = &mut self.open {
            open.append(payload);
        }
        self.end.was_stuffed = is_stuffed(packet);
        [ended, self.end_early()]
    }

    /// Says that the stream has ended, or that the next packet belongs to another one.
    pub fn finish(&mut self) -> Option<PesPacket> {
        let last = self.open.take().and_then(Open::close);
        *self = Self { end: self.end, ..Self::default() };
        last
    }

    fn mark_damaged(&mut self) {
        self.open.get_or_insert_default().is_damaged = true;
    }

    /// Begins a PES packet, and ends the one before.
    fn begin(&mut self, packet: Packet<'_>) -> Option<PesPacket> {
        if let (Some(confirmed), true) = (&mut self.end.confirmed, self.end.was_stuffed) {
            *confirmed = confirmed.saturating_add(1);
        }
        let next = Open { is_random_access: packet.is_random_access(), ..Open::default() };
        self.open.replace(next).and_then(Open::close)
    }

    /// Notes that a PES packet goes on; one that was taken for ended is damaged.
    fn go_on(&mut self) -> Option<PesPacket> {
        if self.end.was_stuffed {
            let was_trusted = self.end.is_trusted();
            self.end.confirmed = None;
            if was_trusted {
                self.mark_damaged();
            }
        }
        None
    }

    /// The PES packet that has begun, if it shows its end.
    fn end_early(&mut self) -> Option<PesPacket> {
        let is_trusted = self.end.is_trusted() && self.end.was_stuffed;
        let open = self.open.as_ref()?;
        let is_whole = match open.stated_length() {
            Some(Some(length)) => open.bytes.len() >= length,
            Some(None) => is_trusted,
            None => false,
        };
        if is_whole && !open.is_damaged { self.open.take().and_then(Open::close) } else { None }
    }
}

impl EndSign {
    fn is_trusted(self) -> bool {
        self.confirmed.is_some_and(|confirmed| confirmed >= TRUSTED)
    }
}

impl Open {
    fn append(&mut self, payload: &[u8]) {
        let room = PesReader::LONGEST - self.bytes.len();
        self.is_damaged |= payload.len() > room;
        self.bytes.extend_from_slice(&payload[..payload.len().min(room)]);
    }

    /// The length with the header, `Some(None)` if the packet states none; `None` while the header
    /// is not there.
    fn stated_length(&self) -> Option<Option<usize>> {
        let length = self.bytes.get(4..6)?;
        let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
        Some((length > 0).then_some(length + 6))
    }

    /// The packet as far as it came; `None` for what is no PES packet with times.
    fn close(mut self) -> Option<PesPacket> {
        let lost = PesPacket {
            stream_id: self.bytes.get(3).copied().unwrap_or(0),
            pts: None,
            dts: None,
            is_random_access: false,
            is_damaged: true,
            payload: Vec::new(),
        };
        let header = PesHeader::parse(&self.bytes);
        let Some(header) = header.filter(|header| header.payload_at <= self.bytes.len()) else {
            return self.is_damaged.then_some(lost);
        };
        if let Some(Some(length)) = self.stated_length() {
            self.is_damaged |= self.bytes.len() < length;
            self.bytes.truncate(length.max(header.payload_at));
        }
        self.bytes.drain(..header.payload_at);
        Some(PesPacket {
            pts: header.pts,
            dts: header.dts,
            is_random_access: self.is_random_access,
            is_damaged: self.is_damaged,
            payload: self.bytes,
            ..lost
        })
    }
}

/// The time of 90 kHz near `reference` whose lowest 33 bits are `timestamp`.
pub fn unwrap_timestamp(timestamp: u64, reference: i64) -> i64 {
    const MODULUS: i64 = 1 << 33;
    // Both fit: the remainder is below 2^33.
    let step = (timestamp.cast_signed() - reference).rem_euclid(MODULUS);
    reference.saturating_add(if step < MODULUS / 2 { step } else { step - MODULUS })
}

/// Whether the adaptation field is longer than its content.
fn is_stuffed(packet: Packet<'_>) -> bool {
    if !packet.has_adaptation_field() {
        return false;
    }
    let bytes = packet.bytes();
    let length = usize::from(bytes[4]);
    if length == 0 {
        return true;
    }
    let flags = bytes[5];
    let mut content = 1;
    for (flag, size) in [(0x10, 6), (0x08, 6), (0x04, 1)] {
        content += if flags & flag != 0 { size } else { 0 };
    }
    for flag in [0x02, 0x01] {
        let counted = bytes.get(5 + content).filter(|_| flags & flag != 0);
        content += counted.map_or(0, |&counted| 1 + usize::from(counted));
    }
    content < length
}

/// Packets in a row that must have ended with stuffing.
const TRUSTED: u8 = 16;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::PACKET_LEN;

    /// The transport stream packets of a PES packet, the last one filled up by stuffing.
    fn packets(pes: &[u8], counter: &mut u8) -> Vec<[u8; PACKET_LEN]> {
        let mut packets = Vec::new();
        for (index, piece) in pes.chunks(184).enumerate() {
            let mut bytes = [0xFF; PACKET_LEN];
            let start = if index == 0 { 0x41 } else { 0x01 };
            let stuffing = 184 - piece.len();
            let control = if stuffing > 0 { 0x30 } else { 0x10 };
            bytes[..4].copy_from_slice(&[0x47, start, 0x00, control | *counter]);
            if stuffing > 0 {
                bytes[4] = u8::try_from(stuffing - 1).unwrap();
            }
            if stuffing > 1 {
                bytes[5] = 0;
            }
            bytes[4 + stuffing..].copy_from_slice(piece);
            *counter = (*counter + 1) & 15;
            packets.push(bytes);
        }
        packets
    }

    /// A PES packet with these times and a payload of this length.
    fn pes(id: u8, pts: u64, dts: Option<u64>, length: usize, is_bounded: bool) -> Vec<u8> {
        let stamp = |prefix: u8, ticks: u64| {
            let field = |shift: u32| u8::try_from(ticks >> shift & 0xFF).unwrap();
            [
                prefix << 4 | (field(29) & 0x0E) | 1,
                field(22),
                field(14) | 1,
                field(7),
                field(0) << 1 | 1,
            ]
        };
        let mut rest = stamp(if dts.is_some() { 3 } else { 2 }, pts).to_vec();
        rest.extend(dts.into_iter().flat_map(|dts| stamp(1, dts)));
        let total = if is_bounded { 3 + rest.len() + length } else { 0 };
        let flags = if dts.is_some() { 0xC0 } else { 0x80 };
        let mut pes = vec![0, 0, 1, id];
        pes.extend(u16::try_from(total).unwrap().to_be_bytes());
        pes.extend([0x80, flags, u8::try_from(rest.len()).unwrap()]);
        pes.extend(rest);
        pes.extend((0..length).map(|at| u8::try_from(at % 251).unwrap()));
        pes
    }

    fn push(reader: &mut PesReader, packets: &[[u8; PACKET_LEN]]) -> Vec<PesPacket> {
        let read = |bytes| reader.push(Packet::new(bytes).unwrap());
        packets.iter().flat_map(read).flatten().collect()
    }

    #[test]
    fn a_packet_of_stated_length_ends_with_its_last_byte() {
        let (mut reader, mut counter) = (PesReader::default(), 0);
        let wrap = (1 << 33) - 1;
        let bytes = pes(0xC0, wrap, None, 500, true);
        let read = push(&mut reader, &packets(&bytes, &mut counter));
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].pts, read[0].dts, read[0].is_damaged), (Some(wrap), None, false));
        assert_eq!(read[0].payload, bytes[14..]);
    }

    #[test]
    fn a_packet_without_length_ends_at_the_next_until_stuffing_is_trusted() {
        let (mut reader, mut counter) = (PesReader::default(), 0);
        let mut picture = |at: u64| packets(&pes(0xE0, at + 9, Some(at), 500, false), &mut counter);
        assert!(push(&mut reader, &picture(0)).is_empty());
        for at in 1..u64::from(TRUSTED) {
            let read = push(&mut reader, &picture(at));
            assert_eq!(read[0].dts, Some(at - 1));
            assert_eq!((read.len(), read[0].payload.len()), (1, 500));
        }
        let read = push(&mut reader, &picture(100));
        assert_eq!(read.iter().map(|pes| pes.dts.unwrap()).collect::<Vec<_>>(), [15, 100]);
        let read = push(&mut reader, &picture(101));
        assert_eq!(read.iter().map(|pes| pes.dts.unwrap()).collect::<Vec<_>>(), [101]);
    }

    #[test]
    fn a_packet_that_goes_on_after_stuffing_is_damaged_once() {
        let (mut reader, mut counter) = (PesReader::default(), 0);
        for at in 0..20 {
            push(&mut reader, &packets(&pes(0xE0, at, None, 100, false), &mut counter));
        }
        let mut halves = packets(&pes(0xE0, 90, None, 100, false), &mut counter);
        let mut second = packets(&[7; 100], &mut counter);
        second[0][1] &= !0x40;
        halves.extend(&second);
        halves.extend(packets(&pes(0xE0, 91, None, 100, false), &mut counter));
        halves.extend(packets(&pes(0xE0, 92, None, 100, false), &mut counter));
        let read = push(&mut reader, &halves);
        let seen: Vec<_> = read.iter().map(|pes| (pes.pts, pes.is_damaged)).collect();
        assert_eq!(seen, [(Some(90), false), (None, true), (Some(91), false)]);
    }

    #[test]
    fn a_missing_packet_damages_one_pes_packet() {
        let (mut reader, mut counter) = (PesReader::default(), 0);
        let mut all = packets(&pes(0xE0, 1, None, 500, false), &mut counter);
        all.remove(1);
        all.extend(packets(&pes(0xE0, 2, None, 500, false), &mut counter));
        all.extend(packets(&pes(0xE0, 3, None, 500, false), &mut counter));
        let mut read = push(&mut reader, &all);
        read.extend(reader.finish());
        let seen: Vec<_> = read.iter().map(|pes| (pes.pts, pes.is_damaged)).collect();
        assert_eq!(seen, [(Some(1), true), (Some(2), false), (Some(3), false)]);
    }

    #[test]
    fn a_begin_that_is_missing_is_told() {
        let (mut reader, mut counter) = (PesReader::default(), 0);
        let mut all = packets(&pes(0xE0, 1, None, 100, true), &mut counter);
        all.extend(&packets(&pes(0xE0, 2, None, 500, true), &mut counter)[1..]);
        all.extend(packets(&pes(0xE0, 3, None, 100, true), &mut counter));
        let seen: Vec<_> =
            push(&mut reader, &all).iter().map(|pes| (pes.pts, pes.is_damaged)).collect();
        assert_eq!(seen, [(Some(1), false), (None, true), (Some(3), false)]);
    }

    #[test]
    fn timestamps_go_on_after_33_bits() {
        let wrap = 1_i64 << 33;
        assert_eq!(unwrap_timestamp(5, 0), 5);
        assert_eq!(unwrap_timestamp(5, wrap - 5), wrap + 5);
        assert_eq!(unwrap_timestamp((1 << 33) - 5, wrap + 5), wrap - 5);
        assert_eq!(unwrap_timestamp((1 << 33) - 5, 5), -5);
    }

    proptest! {
        #[test]
        fn any_packets_are_read_within_bounds(
            headers in proptest::collection::vec(any::<[u8; 24]>(), 0..60),
        ) {
            let mut reader = PesReader::default();
            for header in headers {
                let mut bytes = [0xFF; PACKET_LEN];
                bytes[..24].copy_from_slice(&header);
                bytes[0] = 0x47;
                for pes in reader.push(Packet::new(&bytes).unwrap()).into_iter().flatten() {
                    prop_assert!(pes.payload.len() <= PesReader::LONGEST);
                    prop_assert!(pes.pts.is_none_or(|pts| pts < 1 << 33));
                }
            }
        }
    }
}
