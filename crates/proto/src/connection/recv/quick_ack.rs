//! The packets of a file that are acknowledged at once.

use crate::path::Path;

/// Bytes that a packet filter and an authentication tag may take of a full packet.
const EXTRAS: usize = 20;

/// Notices the last packet of a message or of a piece of a stream, which is acknowledged at once:
/// one with less payload than a full packet.
#[derive(Debug)]
pub(super) struct QuickAcks {
    mss: usize,
    /// The least payload of a full packet over the path, for any headers of the peer.
    full: usize,
    due: bool,
}

impl QuickAcks {
    /// Of a connection over this path, with packets of at most `mss` bytes.
    pub(super) fn new(path: &Path, mss: usize) -> Self {
        Self { mss, full: least_full(path, mss), due: false }
    }

    /// The properties of the path have changed.
    pub(super) fn follow_path(&mut self, path: &Path) {
        self.full = least_full(path, self.mss);
    }

    /// A data packet of any kind arrived, with `payload` bytes.
    pub(super) const fn arrived(&mut self, payload: usize) {
        self.due |= payload < self.full;
    }

    /// Returns whether such a last packet has arrived, and takes the mark back.
    pub(super) const fn take(&mut self) -> bool {
        std::mem::replace(&mut self.due, false)
    }
}

fn least_full(path: &Path, mss: usize) -> usize {
    path.least_packet_room(mss).saturating_sub(EXTRAS)
}
