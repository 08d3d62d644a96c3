//! Transport stream in datagrams, without timestamps and parity.

use bytes::{Bytes, BytesMut};
use punctual_mpegts::{Framer, Layout};

use crate::end::cut::starts_like_transport_stream;
use crate::end::packets::{READ_SIZE, tell_layout};

/// Takes the timestamps or the parity off the packets of a transport stream that has them, in
/// datagrams that may be cut anywhere. Any other datagram stays as it is.
pub(crate) struct PlainPackets {
    name: String,
    /// The packets of a stream that has timestamps or parity.
    framer: Option<Framer>,
    /// The end of the datagrams that have not shown yet what they are.
    start: BytesMut,
    /// Bytes in which packets are still looked for; with a framer, bytes without a packet after
    /// which it is given up.
    left: usize,
}

impl PlainPackets {
    /// For the source of this name.
    pub(crate) fn new(name: String) -> Self {
        Self { name, framer: None, start: BytesMut::new(), left: READ_SIZE }
    }

    /// The whole packets that a datagram ends, or the datagram itself if the stream has no
    /// timestamps and no parity. `None` if it ends no packet.
    pub(crate) fn take(&mut self, datagram: Bytes) -> Option<Bytes> {
        if self.framer.is_none() && !self.finds_layout(&datagram) {
            return Some(datagram);
        }
        let framer = self.framer.as_mut()?;
        framer.push(&datagram);
        let mut packets = BytesMut::with_capacity(datagram.len());
        while let Some(packet) = framer.next_packet() {
            packets.extend_from_slice(packet.bytes());
        }
        if !packets.is_empty() {
            self.left = READ_SIZE;
            return Some(packets.freeze());
        }
        self.left = self.left.saturating_sub(datagram.len());
        if self.left > 0 && !starts_like_transport_stream(&datagram) {
            return None;
        }
        // Another stream has begun.
        *self = Self::new(std::mem::take(&mut self.name));
        Some(datagram)
    }

    /// Whether the stream has timestamps or parity, as far as its datagrams show it.
    fn finds_layout(&mut self, datagram: &[u8]) -> bool {
        let is_plain = starts_like_transport_stream(datagram);
        if is_plain || self.left == 0 {
            return false;
        }
        self.left = self.left.saturating_sub(datagram.len());
        self.start.extend_from_slice(datagram);
        let layout = Layout::find(&self.start);
        match layout {
            None => {
                let old = self.start.len().saturating_sub(Layout::EVIDENCE);
                let _ = self.start.split_to(old);
            }
            Some(_) => {
                self.start.clear();
                self.left = READ_SIZE;
            }
        }
        let spacing = layout.map(|layout| layout.spacing);
        let wrapped = spacing.filter(|it| [Layout::STAMPED, Layout::PROTECTED].contains(it));
        self.framer = wrapped.map(Framer::with_spacing);
        if let Some(spacing) = wrapped {
            tell_layout(&self.name, spacing);
        }
        wrapped.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clip() -> &'static [u8] {
        &include_bytes!("../../../../assets/clip.ts")[..188 * 7 * 20]
    }

    /// The clip with these numbers of bytes before and after each packet.
    fn wrapped(before: usize, after: usize) -> Vec<u8> {
        let wrap = |packet: &[u8]| [&vec![9; before][..], packet, &vec![8; after]].concat();
        clip().chunks(188).flat_map(wrap).collect()
    }

    fn taken<'a>(datagrams: impl IntoIterator<Item = &'a [u8]>) -> Vec<Bytes> {
        let mut packets = PlainPackets::new("udp://:5000".to_owned());
        let take = |datagram: &[u8]| packets.take(Bytes::copy_from_slice(datagram));
        datagrams.into_iter().filter_map(take).collect()
    }

    #[test]
    fn timestamps_and_parity_are_taken_off_in_datagrams_of_any_size() {
        for (before, after) in [(4, 0), (0, 16)] {
            let stream = wrapped(before, after);
            for size in [7 * (188 + before + after), 1_316, 1_472, 1_000] {
                let datagrams = taken(stream.chunks(size));
                assert!(datagrams.concat() == clip(), "{size} bytes of {before} and {after}");
                assert!(datagrams.iter().all(|datagram| datagram.len() % 188 == 0));
            }
        }
    }

    #[test]
    fn few_packets_a_datagram_show_the_stream_together() {
        for count in [1, 4] {
            let stream = wrapped(0, 16);
            let datagrams = taken(stream.chunks(204 * count));
            let all = datagrams.concat();
            assert!(all.ends_with(&clip()[188 * 20..]), "{count}");
            // The last ones are as they should be.
            assert_eq!(datagrams.last().unwrap().len(), 188 * count);
        }
    }

    #[test]
    fn a_lost_datagram_costs_no_more_than_its_packets() {
        let stream = wrapped(4, 0);
        let mut datagrams: Vec<_> = stream.chunks(7 * 192).collect();
        datagrams.remove(3);
        let expected = [&clip()[..3 * 1_316], &clip()[4 * 1_316..]].concat();
        assert!(taken(datagrams).concat() == expected);
    }

    #[test]
    fn other_datagrams_stay_as_they_are() {
        let plain: Vec<&[u8]> = clip().chunks(1_316).collect();
        assert!(taken(plain.clone()) == plain);
        let torn: Vec<&[u8]> = clip().chunks(1_472).collect();
        assert!(taken(torn.clone()) == torn);
        let other: Vec<&[u8]> = [7; 200_000].chunks(1_000).collect();
        assert!(taken(other.clone()) == other);
    }

    #[test]
    fn a_plain_stream_may_follow_one_with_parity() {
        let stream = wrapped(0, 16);
        let both = taken(stream.chunks(7 * 204).chain(clip().chunks(1_316))).concat();
        assert!(both.starts_with(clip()) && both.ends_with(&clip()[1_316..]));
    }
}
