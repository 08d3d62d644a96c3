//! The way out: the stream as viewers get it.

use std::time::Duration;

use punctual_mpegts::{Inspector, PACKET_LEN, Packet};
use punctual_units::Instant;

use crate::StreamRules;
use crate::stream::ring::{Message, Ring};
use crate::stream::viewer::{Viewer, ViewerPlace};

/// Reads, once for all viewers, what a viewer gets that is never too slow: over all sources, with
/// the cuts and the tables at each change of them.
#[derive(Debug)]
pub(super) struct WayOut {
    place: ViewerPlace,
    inspector: Inspector,
}

impl WayOut {
    /// The way out of a stream without messages.
    pub(super) fn new(rules: &StreamRules) -> Self {
        let viewer = Viewer { is_internal: true, ..Viewer::default() };
        let place = ViewerPlace::new(viewer, &Ring::default(), 0, rules);
        Self { place, inspector: Inspector::default() }
    }

    /// Reads what has come into the ring; after a skip an entry as old as `buffer` will do.
    pub(super) fn follow(&mut self, now: Instant, ring: &Ring, buffer: Duration) {
        let (inspector, at) = (&mut self.inspector, Duration::from_nanos(now.as_nanos()));
        self.place.feed(now, ring, buffer, |message: &Message| {
            for packet in message.payload.as_chunks::<PACKET_LEN>().0 {
                if let Ok(packet) = Packet::new(packet) {
                    inspector.push(packet, at);
                }
            }
            true
        });
    }

    pub(super) const fn inspector(&self) -> &Inspector {
        &self.inspector
    }
}
