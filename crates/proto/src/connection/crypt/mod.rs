//! Encryption of a connection: the keys of both directions, and how they are refreshed. Clear
//! connections have none of it.

mod opening;
mod sealing;

use punctual_crypto::{
    CipherMode, GcmLayout, Kek, KeyLength, PacketCipher, Parity, Salt, StreamKey,
};
use punctual_wire::KeyFlag;

pub(crate) use self::opening::{Opening, Refusal};
pub(crate) use self::sealing::Sealing;
use crate::encryption::KeyState;

/// The keys of a connection, or why there are none.
#[derive(Debug)]
pub(crate) struct Crypt {
    pub(crate) sealing: Sealing,
    pub(crate) opening: Opening,
}

/// What the keys of a connection have in common: fixed by the handshake, in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Suite {
    pub(crate) mode: CipherMode,
    pub(crate) layout: GcmLayout,
    pub(crate) salt: Salt,
    pub(crate) kek: Kek,
}

impl Suite {
    pub(crate) const fn length(&self) -> KeyLength {
        self.kek.length()
    }

    fn cipher(&self, key: &StreamKey) -> PacketCipher {
        PacketCipher::new(self.mode, self.layout, key, &self.salt)
    }
}

impl Crypt {
    /// That of an end without a passphrase whose peer encrypts: it sends in the clear, and says so
    /// to key messages.
    pub(crate) const fn without_secret() -> Self {
        let opening = Opening::clear(KeyState::NoSecret);
        Self { sealing: Sealing::clear(KeyState::Unsecured), opening }
    }

    /// The cipher of what is sent; `None` if that is in the clear.
    pub(crate) fn cipher(&self) -> Option<(CipherMode, KeyLength)> {
        self.sealing.suite().map(|suite| (suite.mode, suite.length()))
    }

    /// The states of both directions, sending first.
    pub(crate) const fn states(&self) -> (KeyState, KeyState) {
        (self.sealing.state, self.opening.state)
    }
}

/// The key flag of packets under the key of `parity`.
const fn flag(parity: Parity) -> KeyFlag {
    match parity {
        Parity::Even => KeyFlag::Even,
        Parity::Odd => KeyFlag::Odd,
    }
}
