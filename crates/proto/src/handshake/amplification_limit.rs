//! How promptly an end of a rendezvous answers a peer that may not be there.

use punctual_wire::DataHeader;

/// Answers at once to a peer that has named this end's socket. An honest handshake needs three, and
/// a few more if packets are lost or the peer is started anew.
const PROMPT: u8 = 16;
/// Peers whose first handshake is processed at once; further ones, one at each repetition. An offer
/// to a peer may derive a key from a passphrase, which is costly.
const NEW_PEERS: u8 = 16;
/// Bytes of credit at most.
const MOST_CREDIT: usize = 16_384;

/// The limit of what an end of a rendezvous sends to a peer that is not validated (compare RFC
/// 9000, section 8.1).
///
/// This end repeats its handshake at its own pace, whatever it receives. Anybody may send a wave
/// with the peer's address, and an offer is longer than a wave. So an answer goes out only for as
/// many bytes as were received, or in the place of the next repetition. A peer that names this
/// end's socket ID, which only this end's waves told, is validated and answered at once.
#[derive(Debug)]
pub(super) struct AmplificationLimit {
    /// Whether the peer has named this end's socket.
    peer_validated: bool,
    /// Bytes received, less those of answers.
    credit: usize,
    prompt: u8,
    new_peers: u8,
}

/// When an answer goes out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// At once.
    Now,
    /// In the place of the next repetition, if that is still to come.
    InAdvance,
}

impl AmplificationLimit {
    pub(super) const fn new() -> Self {
        Self { peer_validated: false, credit: 0, prompt: PROMPT, new_peers: NEW_PEERS }
    }

    /// A handshake of `bytes` bytes behind its header arrived; `names_us` if it is addressed to
    /// this end's socket.
    pub(super) fn hear(&mut self, bytes: usize, names_us: bool) {
        self.peer_validated |= names_us;
        self.credit = (self.credit + DataHeader::LEN + bytes).min(MOST_CREDIT);
    }

    /// Whether the peer has shown that it receives what this end sends.
    pub(super) const fn is_heard(&self) -> bool {
        self.peer_validated
    }

    /// Whether the handshake of a peer that is new may be processed now.
    pub(super) const fn meets_new_peer(&mut self) -> bool {
        let meets = self.new_peers > 0;
        self.new_peers = self.new_peers.saturating_sub(1);
        meets
    }

    /// When an answer of so many bytes behind its header goes out.
    pub(super) const fn turn(&mut self, bytes: usize) -> Turn {
        let bytes = DataHeader::LEN + bytes;
        if self.peer_validated && self.prompt > 0 {
            self.prompt -= 1;
        } else if bytes <= self.credit {
            self.credit -= bytes;
        } else {
            return Turn::InAdvance;
        }
        Turn::Now
    }
}
