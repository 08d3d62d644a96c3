//! The way in of the active publisher's messages: whole packets, read once.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use punctual_mpegts::{Aligner, Inspector, PACKET_LEN, Packet, RandomAccess};
use punctual_units::Instant;

use crate::stream::ring::{EntryPoint, HeldMessage, Message, Ring};

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
    /// The losses of synchronisation and the wrong sync bytes that the health has.
    sync_faults: (u64, u64),
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
        self.count_sync_faults(now);
        for payload in whole {
            if is_transport_stream {
                self.read(ring, now, &payload);
            }
            let message = Message { payload, origin, is_break: false };
            ring.push(HeldMessage { message, arrival: now, source: self.source });
        }
    }

    /// Hands faults of the alignment on to the health of the stream.
    fn count_sync_faults(&mut self, now: Instant) {
        let found = (self.aligner.sync_losses(), self.aligner.sync_byte_errors());
        let (losses, bytes) = (found.0 - self.sync_faults.0, found.1 - self.sync_faults.1);
        if losses + bytes > 0 {
            let arrival = Duration::from_nanos(now.as_nanos());
            self.inspector.count_sync_faults(losses, bytes, arrival);
        }
        self.sync_faults = found;
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
