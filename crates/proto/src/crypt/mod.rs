//! Encryption of a connection: the keys of both directions, and their refreshment. A connection in
//! the clear has no [`Crypt`].

mod opening;
mod sealing;

use bytes::Bytes;
use punctual_crypto::{
    CipherMode, GcmLayout, Kek, KeyLength, PacketCipher, Parity, Salt, StreamKey,
};
use punctual_wire::{DataHeader, KeyFlag};

pub(crate) use self::opening::{Opening, Refusal};
pub(crate) use self::sealing::Sealing;
use crate::encryption::KeyState;

/// The keys of a connection, or why there are none.
#[derive(Debug)]
pub(crate) struct Crypt {
    pub(crate) sealing: Sealing,
    pub(crate) opening: Opening,
}

/// The parameters of all keys of a connection, in both directions, fixed by the handshake.
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
    /// The state of an end without a passphrase whose peer encrypts: it sends in the clear, and
    /// refuses key messages.
    pub(crate) const fn without_secret() -> Self {
        let opening = Opening::clear(KeyState::NoSecret);
        Self { sealing: Sealing::clear(KeyState::Unsecured), opening }
    }

    /// The cipher of sent packets; `None` if they are in the clear.
    pub(crate) fn cipher(&self) -> Option<(CipherMode, KeyLength)> {
        self.sealing.suite().map(|suite| (suite.mode, suite.length()))
    }

    /// The states of both directions, sending first.
    pub(crate) const fn states(&self) -> (KeyState, KeyState) {
        (self.sealing.state, self.opening.state)
    }
}

/// Decrypts the payload of a data packet, if the connection is encrypted.
#[inline(always)]
pub(super) fn open(
    crypt: Option<&Crypt>,
    header: &DataHeader,
    payload: Bytes,
) -> Result<Bytes, Refusal> {
    match crypt {
        Some(crypt) => crypt.opening.open(header, payload),
        None if header.key == KeyFlag::Clear => Ok(payload),
        None => Err(Refusal::NoKeys),
    }
}

/// The key flag of packets under the key of `parity`.
const fn flag(parity: Parity) -> KeyFlag {
    match parity {
        Parity::Even => KeyFlag::Even,
        Parity::Odd => KeyFlag::Odd,
    }
}
