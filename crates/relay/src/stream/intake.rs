//! What comes from the active publisher: whole packets, read once.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use punctual_mpegts::{Aligner, Inspector, PACKET_LEN, Packet, RandomAccess};
use punctual_units::Instant;

use crate::stream::ring::{EntryPoint, Held, Message, Ring};

/// Brings the messages of one source after the other into the ring.
#[derive(Debug, Default)]
pub(super) struct Intake {
    /// The number of the present source.
    source: u64,
    aligner: Aligner,
    inspector: Inspector,
    /// The number of the first packet of each of the latest messages, and the message's.
    starts: VecDeque<(u64, u64)>,
    has_begun: bool,
}

impl Intake {
    /// The next message is the first of another source.
    pub(super) fn begin_source(&mut self) {
        *self = Self { source: self.source + 1, ..Self::default() };
    }

    /// The number of the present source.
    pub(super) const fn source(&self) -> u64 {
        self.source
    }

    /// Whether the present source has sent a message.
    pub(super) const fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Whether the source sends a transport stream; `None` while too little has come.
    pub(super) fn is_transport_stream(&self) -> Option<bool> {
        self.aligner.is_transport_stream()
    }

    pub(super) const fn inspector(&self) -> &Inspector {
        &self.inspector
    }

    /// Takes in a message.
    pub(super) fn push(&mut self, ring: &mut Ring, now: Instant, origin: Instant, payload: Bytes) {
        self.has_begun = true;
        let mut whole = Vec::new();
        self.aligner.push(payload, |payload| whole.push(payload));
        let is_transport_stream = self.is_transport_stream() == Some(true);
        for payload in whole {
            if is_transport_stream {
                self.read(ring, now, &payload);
            }
            let message = Message { payload, origin, is_break: false };
            ring.push(Held { message, source: self.source });
        }
    }

    /// Reads the packets of the message that the ring gets next.
    fn read(&mut self, ring: &mut Ring, now: Instant, payload: &Bytes) {
        let arrival = Duration::from_nanos(now.as_nanos());
        self.starts.push_back((self.inspector.packets(), ring.end()));
        if self.starts.len() > STARTS {
            self.starts.pop_front();
        }
        for packet in payload.as_chunks::<PACKET_LEN>().0 {
            let Ok(packet) = Packet::new(packet) else { continue };
            if let Some(access) = self.inspector.push(packet, arrival) {
                self.note(ring, access);
            }
        }
    }

    /// Notes a place to start, in this message or an earlier one.
    fn note(&self, ring: &mut Ring, access: RandomAccess) {
        let starts = self.starts.iter().rev();
        let Some((first, message)) = starts.copied().find(|(first, _)| *first <= access.packet)
        else {
            return;
        };
        let packet = usize::try_from(access.packet - first).unwrap_or(usize::MAX);
        let tables = self.inspector.tables();
        ring.note_point(EntryPoint { message, packet, tables, access });
    }
}

/// The messages of which the first packet is remembered: a random access point is known a few
/// packets after it begins.
const STARTS: usize = 64;
