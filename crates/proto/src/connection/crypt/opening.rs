use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use punctual_crypto::{Kek, KeyMessage, KeySet, PacketCipher, Parity, Passphrase};
use punctual_units::Instant;
use punctual_wire::{DataHeader, KeyFlag};

use super::Suite;
use crate::encryption::KeyState;

/// Key messages that were taken in and are remembered: an old one that comes again, late or by
/// somebody's hand, brings no old key back.
const REMEMBERED: usize = 64;
/// A key message with another salt costs a derivation of its key. Nobody makes this end do that
/// more often.
const DERIVATION_PERIOD: Duration = Duration::from_secs(1);

/// The receiving direction.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) state: KeyState,
    keys: Option<Box<Keys>>,
}

#[derive(Debug)]
struct Keys {
    suite: Suite,
    passphrase: Passphrase,
    even: Option<PacketCipher>,
    odd: Option<PacketCipher>,
    /// The newest last.
    messages: VecDeque<Vec<u8>>,
    derive_from: Instant,
}

/// Why a packet is not delivered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// This end has no keys: no packet of the kind can ever be read.
    NoKeys,
    /// This end lacks just this key, or the packet is in the clear although it should not be:
    /// another of the same number may be readable.
    NotReadable,
    /// Its tag does not fit.
    NotAuthentic,
}

impl Opening {
    /// Encrypted packets cannot be read.
    pub(crate) const fn clear(state: KeyState) -> Self {
        Self { state, keys: None }
    }

    /// Packets are encrypted with `keys`, which came in `message`.
    pub(crate) fn new(
        suite: Suite,
        passphrase: Passphrase,
        keys: &KeySet,
        message: Vec<u8>,
    ) -> Self {
        let mut opening = Keys {
            suite,
            passphrase,
            even: None,
            odd: None,
            messages: VecDeque::from([message]),
            derive_from: Instant::ORIGIN,
        };
        opening.install(keys);
        Self { state: KeyState::Secured, keys: Some(Box::new(opening)) }
    }

    /// The payload of a packet whose header and body these are. It is decrypted where it lies, if
    /// nobody else holds it.
    pub(crate) fn open(&self, header: &DataHeader, body: Bytes) -> Result<Bytes, Refusal> {
        let Some(keys) = &self.keys else {
            return if header.key == KeyFlag::Clear { Ok(body) } else { Err(Refusal::NoKeys) };
        };
        let cipher = match header.key {
            KeyFlag::Clear => None,
            KeyFlag::Even => keys.even.as_ref(),
            KeyFlag::Odd => keys.odd.as_ref(),
        };
        let cipher = cipher.ok_or(Refusal::NotReadable)?;
        let mut body = body.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
        let len = cipher.open(&header.to_bytes(), &mut body).map_err(|_| Refusal::NotAuthentic)?;
        body.truncate(len);
        Ok(body.freeze())
    }

    /// Takes in a key message after the handshake, and says what to answer; `None` for nothing,
    /// because it is nonsense. What cannot be used changes nothing: not the keys, not the state.
    pub(crate) fn handle_request(&mut self, now: Instant, body: &[u8]) -> Option<Vec<u8>> {
        let Some(keys) = &mut self.keys else {
            KeyMessage::parse(body).ok()?;
            let state =
                if self.state == KeyState::BadSecret { self.state } else { KeyState::NoSecret };
            return Some(state.to_refusal());
        };
        if keys.messages.iter().any(|known| known == body) {
            return Some(body.to_vec());
        }
        let message = KeyMessage::parse(body).ok()?;
        let suite = &keys.suite;
        if message.mode() != suite.mode {
            return Some(KeyState::BadCryptoMode.to_refusal());
        }
        let kek = keys.kek_of(now, &message)?;
        let Ok(set) = message.unwrap(&kek) else {
            return Some(KeyState::BadSecret.to_refusal());
        };
        keys.suite.kek = kek;
        keys.suite.salt = *message.salt();
        keys.install(&set);
        if keys.messages.len() == REMEMBERED {
            keys.messages.pop_front();
        }
        keys.messages.push_back(body.to_vec());
        Some(body.to_vec())
    }
}

impl Keys {
    fn install(&mut self, set: &KeySet) {
        for (parity, key) in set.iter() {
            let cipher = Some(self.suite.cipher(key));
            match parity {
                Parity::Even => self.even = cipher,
                Parity::Odd => self.odd = cipher,
            }
        }
    }

    /// The key that unwraps `message`: the one at hand unless the salt or the length is another.
    fn kek_of(&mut self, now: Instant, message: &KeyMessage) -> Option<Kek> {
        let suite = &self.suite;
        if message.salt() == &suite.salt && message.length() == suite.length() {
            return Some(suite.kek.clone());
        }
        if now < self.derive_from {
            return None;
        }
        self.derive_from = now + DERIVATION_PERIOD;
        Some(Kek::derive(&self.passphrase, message.salt(), message.length()))
    }
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
