//! What goes wrong with a file at one end, and what the other end is told of it (PEERERROR).

use super::established::Established;
use crate::error::{PeerError, SendError};

/// What the peer says of what went wrong there.
#[derive(Debug, Default)]
pub(super) struct Troubles {
    /// What it said last.
    peer: Option<PeerError>,
    /// Whoever waits for room is still to be woken up to hear of it.
    unannounced: bool,
    /// Whoever sends next is still to be told.
    untold: bool,
}

impl Troubles {
    /// What the peer said last.
    pub(super) const fn of_peer(&self) -> Option<PeerError> {
        self.peer
    }

    /// Whether there is news for whoever waits for room; tells once.
    pub(super) const fn announce(&mut self) -> bool {
        std::mem::replace(&mut self.unannounced, false)
    }
}

impl Established {
    /// Something went wrong at the peer. `false` in live mode, where no receiver has a file.
    pub(super) const fn note_peer_error(&mut self, error: PeerError) -> bool {
        let file = self.receiver.is_of_file();
        if file {
            self.troubles = Troubles { peer: Some(error), unannounced: true, untold: true };
        }
        file
    }

    /// Tells the peer what went wrong here. Nobody answers that, and a second packet would be a
    /// second error to it, so it is sent once, as libsrt does.
    pub(super) const fn tell_error(&mut self, error: PeerError) {
        if self.is_live() && self.receiver.is_of_file() {
            self.pending.error = Some(error);
        }
    }

    /// What keeps the application from sending: first what the peer said, once, even if it has left
    /// since.
    pub(super) fn refuses_sending(&mut self) -> Option<SendError> {
        if self.troubles.untold
            && let Some(error) = self.troubles.peer
        {
            self.troubles.untold = false;
            return Some(SendError::PeerError(error));
        }
        self.phase.refuses_sending().map(SendError::Closed)
    }
}
