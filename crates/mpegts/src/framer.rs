use crate::{Layout, PACKET_LEN, Packet, SYNC_BYTE};

/// Finds the packets in a stream of bytes.
///
/// Bytes go in by [`push`](Self::push) in pieces of any size; packets come out by
/// [`next_packet`](Self::next_packet), the same however the bytes were cut. Where the sync byte is
/// missing, the framer searches for the next place from which it stands at three packets in a row,
/// 188 bytes apart, or 192 or 204 as in a stream with timestamps or parity (see [`Layout`]), which
/// are taken off.
#[derive(Clone, Debug, Default)]
pub struct Framer {
    buffer: Vec<u8>,
    /// The number of bytes at the start of `buffer` that are used up.
    start: usize,
    /// Bytes from the start of a packet to that of the next, once it is known.
    spacing: Option<usize>,
    /// Bytes up to the next packet that are taken off.
    gap: usize,
    /// Bytes that were skipped since the last packet.
    searched: usize,
    is_locked: bool,
    is_finished: bool,
    sync_losses: u64,
    skipped_bytes: u64,
    removed_bytes: u64,
}

impl Framer {
    /// A framer for a stream whose packets are this number of bytes apart.
    pub fn with_spacing(spacing: usize) -> Self {
        Self { spacing: Some(spacing), ..Self::default() }
    }

    /// Takes in the next bytes of the stream.
    ///
    /// They are kept until [`next_packet`](Self::next_packet) has used them: call that until it
    /// gives `None` before more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
        self.is_finished = false;
    }

    /// Says that no more bytes follow, so that the last packets come out on less evidence. Bytes
    /// that are pushed later begin a new stream.
    pub fn finish(&mut self) {
        self.is_finished = true;
    }

    /// The next packet, or `None` if more bytes are needed for one.
    pub fn next_packet(&mut self) -> Option<Packet<'_>> {
        self.take_off(self.gap);
        if self.gap == 0 && !self.is_locked {
            self.search();
        } else if self.gap == 0 && self.rest().first().is_some_and(|&byte| byte != SYNC_BYTE) {
            self.is_locked = false;
            self.sync_losses += 1;
            self.search();
        }
        if self.gap > 0 || !self.is_locked || self.rest().len() < PACKET_LEN {
            self.discard_tail();
            return None;
        }
        let at = self.start;
        self.start += PACKET_LEN;
        self.gap = self.spacing.unwrap_or(PACKET_LEN) - PACKET_LEN;
        let bytes = self.buffer[at..].first_chunk().expect("a packet's bytes are there");
        Some(Packet::new(bytes).expect("the sync byte was checked"))
    }

    /// Whether all bytes are used up, and the next one begins a packet of 188 bytes.
    pub(crate) fn is_at_start_of_packet(&self) -> bool {
        let is_plain = self.spacing == Some(PACKET_LEN);
        self.is_locked && is_plain && self.rest().is_empty()
    }

    /// Times that a packet did not follow where the one before ended.
    pub fn sync_losses(&self) -> u64 {
        self.sync_losses
    }

    /// Bytes that belong to no packet.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    /// Bytes of timestamps and parity that were taken off.
    pub fn removed_bytes(&self) -> u64 {
        self.removed_bytes
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.start..]
    }

    /// Skips bytes up to where packets begin, as far as there is evidence.
    fn search(&mut self) {
        let rest = self.rest();
        let needed = if self.is_finished { PACKET_LEN } else { EVIDENCE };
        let places = (rest.len() + 1).saturating_sub(needed);
        let at = |place: usize| {
            let layout = Layout::at(&rest[place..], self.spacing, ROW)?;
            Some((place, layout))
        };
        let Some((place, spacing)) = (0..places).find_map(at) else {
            self.searched = self.searched.saturating_add(places);
            return self.skip(places);
        };
        self.is_locked = true;
        self.spacing = Some(spacing);
        self.skip(place);
        let before = std::mem::take(&mut self.searched).saturating_add(place);
        if spacing == Layout::STAMPED {
            // The timestamp of the first packet is what was skipped last.
            let stamp = before.min(Layout::STAMP) as u64;
            self.skipped_bytes -= stamp;
            self.removed_bytes += stamp;
        }
    }

    /// At the end, drops what is too short for a packet.
    fn discard_tail(&mut self) {
        if self.is_finished {
            self.is_locked = false;
            (self.spacing, self.gap, self.searched) = (None, 0, 0);
            self.skip(self.rest().len());
        }
    }

    /// Takes off up to this number of bytes of the gap before the next packet.
    fn take_off(&mut self, bytes: usize) {
        let bytes = bytes.min(self.rest().len());
        self.start += bytes;
        self.gap -= bytes;
        self.removed_bytes += bytes as u64;
    }

    fn skip(&mut self, bytes: usize) {
        self.start += bytes;
        self.skipped_bytes += bytes as u64;
    }
}

/// The number of packets in a row that must begin with the sync byte: one byte of 256 in a payload
/// is the same.
const ROW: usize = 3;

/// The number of bytes that has the first byte of each packet in a row, in any layout.
const EVIDENCE: usize = (ROW - 1) * Layout::PROTECTED + 1;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{packet, stream};

    /// The counters of the packets in `bytes`, pushed in pieces of `piece` bytes; lost syncs; bytes
    /// skipped.
    fn frame(bytes: &[u8], piece: usize) -> (Vec<u8>, u64, u64) {
        let mut framer = Framer::default();
        let mut counters = Vec::new();
        for piece in bytes.chunks(piece) {
            framer.push(piece);
            while let Some(packet) = framer.next_packet() {
                counters.push(packet.continuity_counter());
            }
        }
        framer.finish();
        while let Some(packet) = framer.next_packet() {
            counters.push(packet.continuity_counter());
        }
        (counters, framer.sync_losses(), framer.skipped_bytes())
    }

    fn packets(count: u8) -> Vec<u8> {
        stream(&(0..count).map(|counter| packet(0x100, counter)).collect::<Vec<_>>())
    }

    #[test]
    fn whole_packets_come_out_one_by_one() {
        assert_eq!(frame(&packets(5), 1316), (vec![0, 1, 2, 3, 4], 0, 0));
        assert_eq!(frame(&packets(1), 188), (vec![0], 0, 0));
        assert_eq!(frame(&[], 1), (vec![], 0, 0));
    }

    #[test]
    fn finds_the_first_packet_of_a_stream_that_is_cut_anywhere() {
        assert_eq!(frame(&packets(5)[100..], 50), (vec![1, 2, 3, 4], 0, 88));
        assert_eq!(frame(&packets(5)[..900], 50), (vec![0, 1, 2, 3], 0, 148));
        assert_eq!(frame(&packets(1)[1..], 50), (vec![], 0, 187));
    }

    #[test]
    fn one_sync_byte_is_not_enough_to_begin_with() {
        let mut bytes = vec![SYNC_BYTE; 100];
        bytes.extend(packets(4));
        assert_eq!(frame(&bytes, 64), (vec![0, 1, 2, 3], 0, 100));
    }

    #[test]
    fn finds_its_way_after_missing_and_foreign_bytes() {
        // Packet 3 is 30 bytes short and takes those of packet 4, whose rest is skipped.
        let mut bytes = packets(8);
        bytes.drain(600..630);
        assert_eq!(frame(&bytes, 64), (vec![0, 1, 2, 3, 5, 6, 7], 1, 158));

        // A sync byte alone, before packet 4, is taken for the start of a packet; packet 4 is lost.
        let mut bytes = packets(8);
        bytes.splice(752..752, [SYNC_BYTE; 50]);
        assert_eq!(frame(&bytes, 64), (vec![0, 1, 2, 3, 7, 5, 6, 7], 1, 50));

        let mut bytes = packets(8);
        bytes[752] = 0;
        assert_eq!(frame(&bytes, 64), (vec![0, 1, 2, 3, 5, 6, 7], 1, 188));
    }

    #[test]
    fn a_second_stream_follows_the_end_of_the_first() {
        let mut framer = Framer::default();
        for _ in 0..2 {
            framer.push(&packets(5)[..900]);
            framer.finish();
            assert_eq!(std::iter::from_fn(|| framer.next_packet().map(|_| ())).count(), 4);
        }
        assert_eq!((framer.sync_losses(), framer.skipped_bytes()), (0, 2 * 148));
    }

    /// `count` packets with these numbers of bytes before and after each.
    fn wrapped(count: u8, before: usize, after: usize) -> Vec<u8> {
        let wrap = |packet: &[u8]| [&vec![9; before][..], packet, &vec![8; after]].concat();
        packets(count).chunks(PACKET_LEN).flat_map(wrap).collect()
    }

    #[test]
    fn timestamps_and_parity_are_taken_off() {
        for (before, after) in [(4, 0), (0, 16)] {
            let mut framer = Framer::default();
            let mut counters = Vec::new();
            let stream = [&[0; 50][..], &wrapped(6, before, after)].concat();
            for piece in stream.chunks(33) {
                framer.push(piece);
                while let Some(packet) = framer.next_packet() {
                    counters.push(packet.continuity_counter());
                }
            }
            framer.finish();
            assert!(framer.next_packet().is_none());
            assert_eq!(counters, [0, 1, 2, 3, 4, 5]);
            assert_eq!((framer.skipped_bytes(), framer.sync_losses()), (50, 0));
            assert_eq!(framer.removed_bytes(), 6 * (before + after) as u64);
        }
    }

    #[test]
    fn a_stream_with_timestamps_finds_its_way_after_a_gap() {
        let mut stream = wrapped(8, 4, 0);
        stream.drain(600..630);
        let (counters, losses, _) = frame(&stream, 64);
        assert_eq!((counters, losses), (vec![0, 1, 2, 3, 5, 6, 7], 1));
    }

    proptest! {
        #[test]
        fn pieces_never_matter(
            junk in proptest::collection::vec(prop_oneof![Just(SYNC_BYTE), any::<u8>()], 0..700),
            at in 0_usize..940,
            piece in 1_usize..1500,
        ) {
            let mut bytes = packets(5);
            bytes.splice(at..at, junk);
            let whole = frame(&bytes, bytes.len());
            let mut framer = Framer::default();
            framer.push(&bytes);
            framer.finish();
            let count = std::iter::from_fn(|| framer.next_packet().map(|_| ())).count() as u64;
            let outside = framer.skipped_bytes() + framer.removed_bytes();
            prop_assert_eq!(count * 188 + outside, bytes.len() as u64);
            prop_assert_eq!(frame(&bytes, piece), whole);
        }
    }
}
