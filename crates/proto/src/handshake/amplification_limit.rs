//! Limits the answers that an end of a rendezvous sends to an address that may be forged.

use punctual_wire::DataHeader;

/// The number of immediate answers to a validated peer. A handshake needs three, and a few more if
/// packets are lost or the peer restarts.
const PROMPT: u8 = 16;
/// The number of peers whose first handshake is processed at once. Of further peers, one is
/// processed in each repetition interval, since an offer may need the costly derivation of a key.
const NEW_PEERS: u8 = 16;
/// The largest credit, bytes.
const MOST_CREDIT: usize = 16_384;

/// The limit of the bytes that an end of a rendezvous sends to a peer that is not validated (as in
/// RFC 9000, section 8.1).
///
/// The repetitions of this end's handshake do not depend on what it receives. But an attacker may
/// send wave-a-hand requests with a forged address, and an offer is longer than such a request. So
/// an answer is sent at once only if it has no more bytes than were received; otherwise it replaces
/// the next repetition. A peer that addresses this end's socket ID, which it can know only from
/// this end's requests, is validated and gets its answers at once.
#[derive(Debug)]
pub(super) struct AmplificationLimit {
    /// Whether the peer has addressed this end's socket ID.
    peer_validated: bool,
    /// Bytes received, less bytes sent in answers.
    credit: usize,
    prompt: u8,
    new_peers: u8,
}

/// When an answer is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SendTime {
    /// Immediately.
    Now,
    /// In place of the next repetition, unless that has been sent in advance already.
    InAdvance,
}

impl AmplificationLimit {
    pub(super) const fn new() -> Self {
        Self { peer_validated: false, credit: 0, prompt: PROMPT, new_peers: NEW_PEERS }
    }

    /// Notes a received handshake with `bytes` bytes after the header; `is_to_our_socket` if it is
    /// addressed to this end's socket ID.
    pub(super) fn receive(&mut self, bytes: usize, is_to_our_socket: bool) {
        self.peer_validated |= is_to_our_socket;
        self.credit = (self.credit + DataHeader::LEN + bytes).min(MOST_CREDIT);
    }

    /// Whether the peer has shown that it receives this end's packets.
    pub(super) const fn is_validated(&self) -> bool {
        self.peer_validated
    }

    /// Whether the handshake of a new peer may be processed now. Counts this peer.
    pub(super) const fn admits_new_peer(&mut self) -> bool {
        let admits = self.new_peers > 0;
        self.new_peers = self.new_peers.saturating_sub(1);
        admits
    }

    /// When an answer with `bytes` bytes after the header is sent.
    pub(super) const fn send_time(&mut self, bytes: usize) -> SendTime {
        let bytes = DataHeader::LEN + bytes;
        if self.peer_validated && self.prompt > 0 {
            self.prompt -= 1;
        } else if bytes <= self.credit {
            self.credit -= bytes;
        } else {
            return SendTime::InAdvance;
        }
        SendTime::Now
    }
}
