//! Decryption of received packets, and the answers to the peer's key messages.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use punctual_crypto::{KeyMessage, KeySet, PacketCipher, Parity};
use punctual_wire::{DataHeader, KeyFlag};

use super::Suite;
use crate::encryption::KeyState;

/// Key messages that are remembered. So a copy of an old one, delayed or replayed by an attacker,
/// does not bring the old key back.
const REMEMBERED: usize = 64;

/// The receiving direction.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) state: KeyState,
    keys: Option<Box<OpeningKeys>>,
}

#[derive(Debug)]
struct OpeningKeys {
    suite: Suite,
    even: Option<PacketCipher>,
    odd: Option<PacketCipher>,
    /// The newest last.
    messages: VecDeque<KeyMessage>,
}

/// Why a packet is not delivered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// This end has no keys: no encrypted packet can be read.
    NoKeys,
    /// This end lacks this key, or the packet is in the clear although the connection is encrypted.
    /// Another packet with the same sequence number may be readable.
    NotReadable,
    /// The authentication tag is wrong.
    NotAuthentic,
}

impl Opening {
    /// The state of an end without keys, which can read packets in the clear only.
    pub(crate) const fn clear(state: KeyState) -> Self {
        Self { state, keys: None }
    }

    /// Packets are encrypted with `keys`, which came in `message`.
    pub(crate) fn new(suite: Suite, keys: &KeySet, message: KeyMessage) -> Self {
        let messages = VecDeque::from([message]);
        let mut opening = OpeningKeys { suite, even: None, odd: None, messages };
        opening.install(keys);
        Self { state: KeyState::Secured, keys: Some(Box::new(opening)) }
    }

    /// Decrypts the body of a packet with this header: in place, if the buffer is not shared.
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

    /// Takes in a key message after the handshake and returns the answer; `None` for an invalid
    /// message, which gets no answer. A message that cannot be used changes neither keys nor state.
    pub(crate) fn handle_request(&mut self, body: &[u8]) -> Option<Vec<u8>> {
        let message = KeyMessage::parse(body).ok()?;
        let Some(keys) = &mut self.keys else {
            let bad = self.state == KeyState::BadSecret;
            let state = if bad { KeyState::BadSecret } else { KeyState::NoSecret };
            return Some(state.to_refusal());
        };
        let suite = &keys.suite;
        if message.mode() != suite.mode {
            return Some(KeyState::BadCryptoMode.to_refusal());
        }
        // The salt is not authenticated, and no peer changes it.
        if message.salt() != &suite.salt || message.length() != suite.length() {
            return None;
        }
        // An old message may be delayed or replayed, with other fields around the wrapped keys. An
        // unchanged one is answered, and none takes effect again.
        let known = keys.messages.iter().find(|known| known.wrapped() == message.wrapped());
        if let Some(known) = known {
            return (*known == message).then(|| body.to_vec());
        }
        let Ok(set) = message.unwrap(&suite.kek) else {
            return Some(KeyState::BadSecret.to_refusal());
        };
        keys.install(&set);
        if keys.messages.len() == REMEMBERED {
            keys.messages.pop_front();
        }
        keys.messages.push_back(message);
        Some(body.to_vec())
    }
}

impl OpeningKeys {
    fn install(&mut self, set: &KeySet) {
        for (parity, key) in set.iter() {
            let cipher = Some(self.suite.cipher(key));
            match parity {
                Parity::Even => self.even = cipher,
                Parity::Odd => self.odd = cipher,
            }
        }
    }
}

#[cfg(test)]
#[path = "opening_tests.rs"]
mod tests;
