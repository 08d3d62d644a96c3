//! The keys of an established connection, and the key messages that it exchanges.

use std::borrow::Cow;
use std::time::Duration;

use punctual_units::Instant;

use crate::crypt::Crypt;
use crate::event::ConnectionInfo;

/// Commands of key messages outside the handshake (draft section 6.1).
const REQUEST: u16 = 3;
const ANSWER: u16 = 4;

/// The keys of both directions, and the answer to the peer that waits to be written.
#[derive(Debug)]
pub(super) struct Keys {
    /// `None` for a connection in the clear.
    crypt: Option<Box<Crypt>>,
    answer: Option<Vec<u8>>,
}

/// The packet of a key message, which is to be written.
#[derive(Debug)]
pub(super) struct KeyPacket<'a> {
    pub(super) command: u16,
    pub(super) body: Cow<'a, [u8]>,
}

impl Keys {
    /// The keys that the handshake has agreed on.
    pub(super) const fn new(crypt: Option<Box<Crypt>>) -> Self {
        Self { crypt, answer: None }
    }

    /// The keys; `None` for a connection in the clear.
    #[inline]
    pub(super) fn crypt(&self) -> Option<&Crypt> {
        self.crypt.as_deref()
    }

    /// The keys, to seal packets.
    #[inline]
    pub(super) fn crypt_mut(&mut self) -> Option<&mut Crypt> {
        self.crypt.as_deref_mut()
    }

    /// Takes in a key message. Returns whether it is valid; `None` if the command is of no key
    /// message.
    pub(super) fn handle(&mut self, command: u16, body: &[u8]) -> Option<bool> {
        match command {
            REQUEST => Some(self.handle_request(body)),
            ANSWER => {
                let crypt = self.crypt.as_mut();
                Some(crypt.is_some_and(|crypt| crypt.sealing.handle_answer(body)))
            }
            _ => None,
        }
    }

    /// The peer announces a key. An invalid announcement leaves the keys in use untouched.
    fn handle_request(&mut self, body: &[u8]) -> bool {
        let answer = self.crypt.as_mut().and_then(|crypt| crypt.opening.handle_request(body));
        let accepted = answer.as_ref().is_some_and(|answer| answer == body);
        self.answer = answer.or(self.answer.take());
        accepted
    }

    /// Whether a key message waits to be written.
    pub(super) fn has_message(&self) -> bool {
        self.answer.is_some() || self.request_is_due()
    }

    /// Whether an announcement of a key waits to be written.
    pub(super) fn request_is_due(&self) -> bool {
        self.crypt.as_ref().is_some_and(|crypt| crypt.sealing.request_is_due())
    }

    /// Takes the next message, the answer first. An answer to an announcement takes `rtt`.
    pub(super) fn take(&mut self, now: Instant, rtt: Duration) -> Option<KeyPacket<'_>> {
        if let Some(body) = self.answer.take() {
            return Some(KeyPacket { command: ANSWER, body: body.into() });
        }
        let crypt = self.crypt.as_mut().filter(|crypt| crypt.sealing.request_is_due())?;
        let body = crypt.sealing.take_request(now, rtt)?;
        Some(KeyPacket { command: REQUEST, body: body.into() })
    }

    /// When an announcement without an answer is repeated.
    pub(super) fn next_request(&self) -> Option<Instant> {
        self.crypt.as_ref()?.sealing.next_request()
    }

    /// The announcement is to be written again.
    pub(super) fn repeat_request(&mut self) {
        if let Some(crypt) = &mut self.crypt {
            crypt.sealing.repeat_request();
        }
    }

    /// The number of keys that this end has announced after the first.
    pub(super) fn refreshes(&self) -> u64 {
        self.crypt.as_ref().map_or(0, |crypt| crypt.sealing.refreshes())
    }

    pub(super) fn fill_info(&self, info: &mut ConnectionInfo) {
        (info.send_key_state, info.receive_key_state) =
            self.crypt.as_ref().map_or_else(Default::default, |crypt| crypt.states());
        info.cipher = self.crypt.as_ref().and_then(|crypt| crypt.cipher());
    }
}

impl KeyPacket<'_> {
    /// Whether this end announces a key, which the peer answers.
    pub(super) const fn is_request(&self) -> bool {
        self.command == REQUEST
    }
}

#[cfg(test)]
mod tests {
    use punctual_crypto::{
        CipherMode, Kek, KeyLength, KeyMessage, KeySet, Parity, Passphrase, StreamKey,
    };

    use super::*;

    #[test]
    fn a_connection_in_the_clear_accepts_no_key_and_answers_none() {
        let mut keys = Keys::new(None);
        assert_eq!(keys.handle(REQUEST, &[0; 40]), Some(false));
        assert_eq!(keys.handle(ANSWER, &[0; 40]), Some(false));
        assert_eq!(keys.handle(9, &[0; 40]), None);
        assert!(!keys.has_message() && keys.next_request().is_none());
        assert!(keys.take(Instant::ORIGIN, Duration::ZERO).is_none());
    }

    /// The announcement of a key.
    fn announcement() -> Vec<u8> {
        let (salt, length) = ([7; 16], KeyLength::Aes128);
        let passphrase = Passphrase::new("correct horse").unwrap();
        let kek = Kek::derive(&passphrase, &salt, length);
        let key = StreamKey::generate(length, |bytes| bytes.fill(1));
        let keys = KeySet::one(Parity::Even, key);
        KeyMessage::wrap(CipherMode::Ctr, salt, &keys, &kek).unwrap().to_bytes()
    }

    #[test]
    fn an_end_without_a_passphrase_answers_that_it_has_none() {
        let mut keys = Keys::new(Some(Box::new(Crypt::without_secret())));
        assert_eq!(keys.handle(REQUEST, &announcement()), Some(false));
        assert!(keys.has_message() && !keys.request_is_due());
        let packet = keys.take(Instant::ORIGIN, Duration::ZERO).unwrap();
        assert!(!packet.is_request());
        assert_eq!((packet.command, &packet.body[..]), (ANSWER, &[3, 0, 0, 0][..]));
        assert!(!keys.has_message());
    }

    #[test]
    fn a_key_message_that_cannot_be_read_keeps_the_answer_that_waits() {
        let mut keys = Keys::new(Some(Box::new(Crypt::without_secret())));
        keys.handle(REQUEST, &announcement());
        assert_eq!(keys.handle(REQUEST, &[0; 40]), Some(false));
        assert!(keys.has_message());
    }
}
