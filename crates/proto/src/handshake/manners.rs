use punctual_wire::DataHeader;

/// An honest handshake needs three answers at once, a few more if packets are lost or the peer is
/// started anew.
const PROMPT: u8 = 16;
/// Peers that are met as soon as they show up; behind them one at each repetition. An offer to one
/// may take a key from a passphrase, which is costly.
const NEWCOMERS: u8 = 16;
/// Bytes of credit at most.
const MOST_CREDIT: usize = 16_384;

/// How promptly an end of a rendezvous answers.
///
/// It repeats what it says at its own pace, whatever it hears. Who waves may be anybody who writes
/// the peer's address on his datagrams, and an offer is longer than a wave; so an answer goes out
/// besides only for as many bytes as were heard, or in the place of the next repetition. A peer
/// that names this end's socket, which only its waves told, hears it: that one is answered at once.
#[derive(Debug)]
pub(super) struct Manners {
    /// Whether the peer has named this end's socket.
    hears_us: bool,
    /// Bytes heard, less those of answers.
    credit: usize,
    prompt: u8,
    newcomers: u8,
}

/// When an answer goes out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    /// At once.
    Now,
    /// In the place of the next repetition, if that is still to come.
    InAdvance,
}

impl Manners {
    pub(super) const fn new() -> Self {
        Self { hears_us: false, credit: 0, prompt: PROMPT, newcomers: NEWCOMERS }
    }

    /// A handshake of so many bytes came, behind its header; `names_us` if it is addressed to this
    /// end's socket.
    pub(super) fn hear(&mut self, bytes: usize, names_us: bool) {
        self.hears_us |= names_us;
        self.credit = (self.credit + DataHeader::LEN + bytes).min(MOST_CREDIT);
    }

    /// Whether the peer has shown that it hears this end.
    pub(super) const fn is_heard(&self) -> bool {
        self.hears_us
    }

    /// Whether a peer that was not met yet is met now.
    pub(super) const fn meets_newcomer(&mut self) -> bool {
        let meets = self.newcomers > 0;
        self.newcomers = self.newcomers.saturating_sub(1);
        meets
    }

    /// When an answer of so many bytes behind its header goes out.
    pub(super) const fn turn(&mut self, bytes: usize) -> Turn {
        let bytes = DataHeader::LEN + bytes;
        if self.hears_us && self.prompt > 0 {
            self.prompt -= 1;
        } else if bytes <= self.credit {
            self.credit -= bytes;
        } else {
            return Turn::InAdvance;
        }
        Turn::Now
    }
}
