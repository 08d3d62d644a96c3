//! The room in packets, and in messages of several packets.

use crate::config::Config;
use crate::handshake::Negotiated;
use crate::path::Path;

/// The room in a packet on the present path.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketRoom {
    /// Bytes of the largest payload.
    pub(super) payload: usize,
    /// Words of the longest loss list.
    pub(super) loss_list: usize,
}

impl PacketRoom {
    /// The room on this path.
    pub(super) fn new(negotiated: &Negotiated, config: &Config, path: &Path) -> Self {
        Self {
            payload: negotiated.max_payload(config, path),
            loss_list: path.packet_room(negotiated.fixed.mss) / 4,
        }
    }

    /// Bytes of the largest message, of which no end can have more than `packets` packets.
    pub(super) fn message(self, config: &Config, packets: usize) -> usize {
        if config.cuts_messages() { self.payload * packets } else { self.payload }
    }
}
