//! Messages that are too long for a connection.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use punctual::{Outgoing, SendOptions};
use punctual_mpegts::{PACKET_LEN, SYNC_BYTE};

use crate::end::MessageTraffic;
use crate::end::cut::starts_like_transport_stream;

/// Cuts messages that are longer than a connection carries: a transport stream between its packets,
/// which may go on from one message to the next, and a stream of bytes anywhere. A message of
/// another kind is not sent, and counted.
pub(crate) struct Fit {
    /// The most bytes of a message that the connection carries.
    most: usize,
    /// The end of a transport stream so far, which waits for the rest of its packet.
    rest: Bytes,
    /// The parts of messages that are to be sent before all others.
    parts: VecDeque<Outgoing>,
    /// Whether messages come from a stream of bytes, so that their ends mean nothing.
    cuts_anywhere: bool,
    /// Whether all messages must be whole packets of a transport stream, as in RTP.
    wants_packets: bool,
    name: String,
    traffic: Arc<MessageTraffic>,
}

impl Fit {
    /// For the connection with this name, whose limit is not known yet.
    pub(crate) fn new(name: String) -> Self {
        Self {
            most: usize::MAX,
            rest: Bytes::new(),
            parts: VecDeque::new(),
            cuts_anywhere: false,
            wants_packets: false,
            name,
            traffic: Arc::default(),
        }
    }

    /// For messages that must be whole packets of a transport stream, of at most this size.
    pub(crate) fn of_packets(name: String, most: usize) -> Self {
        Self { most, wants_packets: true, ..Self::new(name) }
    }

    /// For another writer to the same connection.
    pub(crate) fn again(&self) -> Self {
        let Self { most, cuts_anywhere, wants_packets, .. } = *self;
        let traffic = Arc::clone(&self.traffic);
        Self { most, cuts_anywhere, wants_packets, traffic, ..Self::new(self.name.clone()) }
    }

    /// Counts what is not sent here from now on.
    pub(crate) fn count_in(&mut self, traffic: &Arc<MessageTraffic>) {
        self.traffic = Arc::clone(traffic);
    }

    /// Messages come from a stream of bytes.
    pub(crate) fn cut_anywhere(&mut self) {
        self.cuts_anywhere = true;
    }

    /// The parts to be sent before any other message.
    pub(crate) fn parts(&mut self) -> &mut VecDeque<Outgoing> {
        &mut self.parts
    }

    /// Whether the next message must be [taken](Self::take), since it may continue a packet.
    pub(crate) fn is_open(&self) -> bool {
        self.wants_packets || !self.rest.is_empty()
    }

    /// The connection carries at most this number of bytes. Parts that are longer are cut again.
    pub(crate) fn limit(&mut self, most: usize) {
        self.most = most;
        for Outgoing { payload, options } in std::mem::take(&mut self.parts) {
            self.cut(payload, options, false);
        }
    }

    /// Takes a message, and adds what can be sent of it to the parts. Whole packets that fill no
    /// message wait for the next one only if there is `more` at once.
    pub(crate) fn take(&mut self, message: Outgoing, more: bool) {
        let Outgoing { payload, options } = message;
        if !payload.is_empty() {
            self.cut(payload, options, more);
        }
    }

    /// The stream has ended: what waits for the rest of its packet is not sent.
    pub(crate) fn finish(&mut self) {
        let torn = std::mem::take(&mut self.rest);
        self.leave_out_torn(torn.len());
    }

    fn cut(&mut self, payload: Bytes, options: SendOptions, more: bool) {
        let rest = std::mem::take(&mut self.rest);
        let most = self.most / PACKET_LEN * PACKET_LEN;
        let joined = join(&rest, &payload);
        if most > 0 && !rest.is_empty() && starts_like_transport_stream(&joined) {
            self.cut_packets(joined, options, most, more);
            return;
        }
        self.leave_out_torn(rest.len());
        match first_packet(&payload) {
            Some(start) if most > 0 && (self.wants_packets || payload.len() > self.most) => {
                self.leave_out_torn(start);
                self.cut_packets(payload.slice(start..), options, most, more);
            }
            _ if self.wants_packets => self.leave_out(payload.len()),
            _ if payload.len() <= self.most => self.parts.push_back(Outgoing { payload, options }),
            _ if self.cuts_anywhere && self.most > 0 => self.cut_bytes(payload, options),
            _ => self.leave_out(payload.len()),
        }
    }

    /// Cuts bytes that begin with a packet into messages of `most` bytes.
    fn cut_packets(&mut self, mut packets: Bytes, options: SendOptions, most: usize, more: bool) {
        while packets.len() >= most {
            self.parts.push_back(Outgoing { payload: packets.split_to(most), options });
        }
        let whole = packets.len() / PACKET_LEN * PACKET_LEN;
        if whole > 0 && !more {
            self.parts.push_back(Outgoing { payload: packets.split_to(whole), options });
        }
        self.rest = packets;
    }

    fn cut_bytes(&mut self, mut bytes: Bytes, options: SendOptions) {
        while !bytes.is_empty() {
            let payload = bytes.split_to(bytes.len().min(self.most));
            self.parts.push_back(Outgoing { payload, options });
        }
    }

    fn leave_out(&self, bytes: usize) {
        let before = self.traffic.count_unsent(1, bytes) + 1;
        // The first one, and later ever more at a time.
        if !before.is_power_of_two() || !before.ilog2().is_multiple_of(4) {
            return;
        }
        let Self { name, most, .. } = self;
        if self.wants_packets {
            tracing::warn!(
                "{name}: {before} messages so far were not sent, because they are no MPEG-TS (the \
                 last one has {bytes} bytes): RTP carries transport stream only; `udp://` carries \
                 any datagrams"
            );
            return;
        }
        tracing::warn!(
            "{name}: {before} messages so far were not sent, because this connection carries at \
             most {most} bytes (the last one has {bytes}): transport stream is cut to fit; of \
             other datagrams let the source send smaller ones (FFmpeg: `pkt_size={most}`), or \
             send a stream of bytes by `transtype=stream`"
        );
    }

    /// Counts bytes of a transport packet whose other bytes are missing.
    fn leave_out_torn(&self, bytes: usize) {
        if bytes > 0 {
            self.traffic.count_unsent(0, bytes);
            tracing::debug!("{}: {bytes} bytes of a torn transport packet are not sent", self.name);
        }
    }
}

fn join(rest: &Bytes, payload: &Bytes) -> Bytes {
    if rest.is_empty() {
        return payload.clone();
    }
    let mut joined = BytesMut::with_capacity(rest.len() + payload.len());
    joined.extend_from_slice(rest);
    joined.extend_from_slice(payload);
    joined.freeze()
}

/// The place of the first packet in a datagram of a transport stream; `None` for other bytes.
/// Unless it is the first byte, [`ROW`] packets must begin there.
fn first_packet(bytes: &[u8]) -> Option<usize> {
    let is_start = |place: usize| {
        let syncs = bytes[place..].iter().step_by(PACKET_LEN);
        let enough = place == 0 || bytes.len() > place + (ROW - 1) * PACKET_LEN;
        enough && syncs.clone().all(|&byte| byte == SYNC_BYTE)
    };
    (0..PACKET_LEN.min(bytes.len())).find(|&place| is_start(place))
}

/// The least number of packets that show where packets begin.
const ROW: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(count: u8) -> Vec<u8> {
        let packet = |number: u8| {
            (0..PACKET_LEN).map(move |place| if place == 0 { SYNC_BYTE } else { number })
        };
        (1..=count).flat_map(packet).collect()
    }

    fn fit(most: usize) -> Fit {
        let mut fit = Fit::new("srt://peer".to_owned());
        fit.limit(most);
        fit
    }

    /// The sizes of the parts, and their bytes.
    fn parts(fit: &mut Fit) -> (Vec<usize>, Vec<u8>) {
        let parts: Vec<Bytes> = fit.parts().drain(..).map(|part| part.payload).collect();
        (parts.iter().map(Bytes::len).collect(), parts.concat())
    }

    fn take(fit: &mut Fit, bytes: &[u8]) {
        fit.take(Outgoing::from(Bytes::copy_from_slice(bytes)), false);
    }

    #[test]
    fn a_transport_stream_in_datagrams_of_any_size_is_cut_between_its_packets() {
        for (datagram, most) in [(1_472, 1_456), (1_472, 400), (9_000, 1_456), (1_316, 1_146)] {
            let (mut fit, stream) = (fit(most), packets(63));
            let mut sent = Vec::new();
            for datagram in stream.chunks(datagram) {
                take(&mut fit, datagram);
                let (sizes, bytes) = parts(&mut fit);
                assert!(sizes.iter().all(|size| size % PACKET_LEN == 0 && *size <= most));
                sent.extend(bytes);
            }
            fit.finish();
            assert!(sent == stream, "{datagram}, {most}");
            assert_eq!(fit.traffic.unsent(), (0, 0));
        }
    }

    #[test]
    fn packets_fill_messages_while_more_datagrams_are_there() {
        let (mut fit, stream) = (fit(1_456), packets(63));
        for datagram in stream.chunks(1_472) {
            fit.take(Outgoing::from(Bytes::copy_from_slice(datagram)), true);
        }
        let (sizes, _) = parts(&mut fit);
        assert!(sizes.iter().all(|size| *size == 1_316), "{sizes:?}");
        assert_eq!(sizes.len(), 9);
    }

    #[test]
    fn a_lost_datagram_costs_no_more_than_the_packets_that_it_tore() {
        let (mut fit, stream) = (fit(1_456), packets(63));
        let datagrams: Vec<_> = stream.chunks(1_472).collect();
        let mut sent = Vec::new();
        for datagram in [&datagrams[..3], &datagrams[4..]].concat() {
            take(&mut fit, datagram);
            sent.extend(parts(&mut fit).1);
        }
        let (first, last) = (3 * 1_472 / PACKET_LEN, (4 * 1_472_usize).div_ceil(PACKET_LEN));
        let expected = [&stream[..first * PACKET_LEN], &stream[last * PACKET_LEN..]].concat();
        assert!(sent == expected, "{} of {}", sent.len(), expected.len());
        let torn = (stream.len() - 1_472 - expected.len()) as u64;
        assert_eq!(fit.traffic.unsent(), (0, torn));
    }

    #[test]
    fn bytes_without_boundaries_are_cut_to_fit_and_other_messages_counted() {
        let mut bytes = fit(300);
        bytes.cut_anywhere();
        take(&mut bytes, &[7; 1_316]);
        assert_eq!(parts(&mut bytes).0, [300, 300, 300, 300, 116]);

        let mut datagrams = fit(300);
        take(&mut datagrams, &[7; 1_316]);
        take(&mut datagrams, &[7; 300]);
        assert_eq!(parts(&mut datagrams).0, [300]);
        assert_eq!(datagrams.traffic.unsent(), (1, 1_316));
    }

    #[test]
    fn parts_that_became_too_long_are_cut_again() {
        let mut fit = fit(1_456);
        take(&mut fit, &packets(7));
        fit.limit(600);
        assert_eq!(parts(&mut fit).0, [564, 564, 188]);
    }

    #[test]
    fn where_only_packets_are_wanted_no_other_message_is_sent() {
        let mut fit = Fit::of_packets("rtp://peer".to_owned(), 1_316);
        assert!(fit.is_open());
        take(&mut fit, &packets(7));
        take(&mut fit, &packets(3));
        take(&mut fit, b"text");
        assert_eq!(parts(&mut fit).0, [1_316, 564]);
        assert_eq!(fit.traffic.unsent(), (1, 4));
        take(&mut fit, &packets(2)[..300]);
        fit.finish();
        assert_eq!(fit.traffic.unsent(), (1, 4 + 112));
    }
}
