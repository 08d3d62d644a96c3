//! Key messages in the handshake (draft section 6.1.5): the initiator generates the first key; the
//! responder returns the key message unchanged, or an error state.
//!
//! With one key for both directions, as in libsrt, two packets with the same number are encrypted
//! by the same keystream: the exclusive or of the two packets reveals that of their contents. If
//! both ends announce [`HsFlags::OWN_KEYS`](punctual_wire::HsFlags::OWN_KEYS), which libsrt
//! ignores, the responder's answer also contains a key message of the responder, and each direction
//! has its own key from the first packet on.

use punctual_crypto::{
    CipherMode, GcmLayout, Kek, KekCache, KeyLength, KeyMessage, KeySet, Parity, Salt, StreamKey,
};
use punctual_wire::{RejectReason, SeqNo};

use crate::chance::Chance;
use crate::config::Config;
use crate::crypt::{Crypt, Opening, Sealing, Suite};
use crate::encryption::KeyState;

/// The initiator's offer: a key, and the key message for the peer.
#[derive(Debug)]
pub(crate) struct KeyOffer {
    kek: Kek,
    key: StreamKey,
    chance: Chance,
    message: KeyMessage,
    /// The message as it is sent.
    bytes: Vec<u8>,
}

/// The properties of the peer that affect the keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) version: u32,
    /// Whether it generates a key for its own direction, and accepts that the other end does.
    pub(crate) own_keys: bool,
}

/// The key messages in the responder's answer.
#[derive(Debug, Default)]
pub(crate) struct KeyAnswer {
    pub(crate) km_rsp: Option<Vec<u8>>,
    /// The key message with the responder's own key.
    pub(crate) km_req: Option<Vec<u8>>,
}

/// The means that the responder takes from its endpoint.
#[derive(Debug)]
pub(crate) struct KeyTools<'a> {
    pub(crate) chance: &'a mut Chance,
    pub(crate) cache: &'a mut KekCache,
}

impl KeyOffer {
    /// Generates a key; `None` without a passphrase. `preferred` is the key length that the peer
    /// prefers; it takes precedence over the one in `config`.
    pub(crate) fn make(
        config: &Config,
        preferred: Option<KeyLength>,
        chance: &mut Chance,
    ) -> Option<Self> {
        let passphrase = config.passphrase()?;
        let mut chance = chance.fork();
        let length = preferred.or(config.key_length()).unwrap_or_default();
        let mode = config.crypto_mode().chosen();
        let mut salt = [0; 16];
        chance.fill(&mut salt);
        let key = StreamKey::generate(length, |bytes| chance.fill(bytes));
        let kek = Kek::derive(passphrase, &salt, length);
        let message = wrap(mode, salt, &key, &kek);
        let bytes = message.to_bytes();
        Some(Self { kek, key, chance, message, bytes })
    }

    pub(crate) fn message(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) const fn length(&self) -> KeyLength {
        self.kek.length()
    }

    fn suite(&self, peer: Peer) -> Suite {
        let layout = GcmLayout::of_version(peer.version);
        let (mode, salt) = (self.message.mode(), *self.message.salt());
        Suite { mode, layout, salt, kek: self.kek.clone() }
    }
}

/// The initiator's keys after the responder's answer; `None` if the connection is not encrypted.
/// `first` is the first sequence number that this end sends.
pub(crate) fn conclude(
    offer: Option<KeyOffer>,
    answer: &KeyAnswer,
    peer: Peer,
    first: SeqNo,
    config: &Config,
) -> Result<Option<Box<Crypt>>, RejectReason> {
    let Some(offer) = offer else {
        if answer.km_rsp.is_none() {
            return Ok(None);
        }
        // The peer has a passphrase and accepts us without one: its packets cannot be decrypted.
        if config.insists_on_keys() {
            return Err(RejectReason::UNSECURE);
        }
        return Ok(Some(Box::new(Crypt::without_secret())));
    };
    let returned = answer.km_rsp.as_deref() == Some(offer.message());
    let suite = offer.suite(peer);
    let (state, opening) = if returned {
        let own = answer.km_req.as_deref().filter(|_| peer.own_keys);
        let (keys, message) = match own {
            Some(own) => unwrap_own(own, &suite)?,
            None => (KeySet::one(Parity::Even, offer.key.clone()), offer.message),
        };
        (KeyState::Secured, Opening::new(suite.clone(), &keys, message))
    } else {
        let state = refusal(answer.km_rsp.as_deref());
        if config.insists_on_keys() {
            return Err(match state {
                KeyState::BadSecret => RejectReason::BAD_SECRET,
                KeyState::BadCryptoMode => RejectReason::CRYPTO,
                _ => RejectReason::UNSECURE,
            });
        }
        // This end continues to encrypt, because the application set a passphrase.
        let opening = if state == KeyState::NoSecret { KeyState::Unsecured } else { state };
        (state, Opening::clear(opening))
    };
    let sealing = Sealing::new(state, suite, offer.key, offer.chance, first, config);
    Ok(Some(Box::new(Crypt { sealing, opening })))
}

/// The responder's answer to the initiator's key message, or to an offer without one, and the
/// responder's keys; `None` if the connection is not encrypted. `first` is the first sequence
/// number that this end sends. The caller has checked the initiator's cookie before, since the
/// derivation of the key takes some 200 µs.
pub(crate) fn answer(
    request: Option<&[u8]>,
    peer: Peer,
    first: SeqNo,
    config: &Config,
    tools: &mut KeyTools<'_>,
) -> Result<(KeyAnswer, Option<Box<Crypt>>), RejectReason> {
    let refuse = |state: KeyState| KeyAnswer { km_rsp: Some(state.to_refusal()), km_req: None };
    let enforced = config.insists_on_keys();
    match (config.passphrase(), request) {
        (None, None) => Ok((KeyAnswer::default(), None)),
        (None, Some(_)) | (Some(_), None) if enforced => Err(RejectReason::UNSECURE),
        (None, Some(_)) => {
            Ok((refuse(KeyState::NoSecret), Some(Box::new(Crypt::without_secret()))))
        }
        // This end encrypts nevertheless, because the application set a passphrase. libsrt does so
        // too, and drops unencrypted packets in this case.
        (Some(_), None) => {
            let crypt = KeyOffer::make(config, None, tools.chance).map(|offer| {
                let suite = offer.suite(peer);
                let state = KeyState::NoSecret;
                let sealing = Sealing::new(state, suite, offer.key, offer.chance, first, config);
                Box::new(Crypt { sealing, opening: Opening::clear(KeyState::Unsecured) })
            });
            Ok((refuse(KeyState::Unsecured), crypt))
        }
        (Some(passphrase), Some(bytes)) => {
            let message = KeyMessage::parse(bytes).map_err(|_| RejectReason::ROGUE)?;
            if !config.crypto_mode().allows(message.mode()) {
                return Err(RejectReason::CRYPTO);
            }
            let kek = tools.cache.derive(passphrase, message.salt(), message.length());
            let mode = message.mode();
            let layout = GcmLayout::of_version(peer.version);
            let suite = Suite { mode, layout, salt: *message.salt(), kek };
            let mut chance = tools.chance.fork();
            let mut own = StreamKey::generate(suite.length(), |bytes| chance.fill(bytes));
            let mut answer = KeyAnswer::default();
            let (state, opening) = match message.unwrap(&suite.kek) {
                Ok(keys) => {
                    answer.km_rsp = Some(bytes.to_vec());
                    if peer.own_keys {
                        let own = wrap(mode, suite.salt, &own, &suite.kek);
                        answer.km_req = Some(own.to_bytes());
                    } else {
                        own = shared_key(&keys)?;
                    }
                    (KeyState::Secured, Opening::new(suite.clone(), &keys, message))
                }
                Err(_) if enforced => return Err(RejectReason::BAD_SECRET),
                // This end encrypts with a key that the peer cannot have.
                Err(_) => {
                    answer = refuse(KeyState::BadSecret);
                    (KeyState::BadSecret, Opening::clear(KeyState::BadSecret))
                }
            };
            let sealing = Sealing::new(state, suite, own, chance, first, config);
            Ok((answer, Some(Box::new(Crypt { sealing, opening }))))
        }
    }
}

/// The key for both directions, with a peer that does not support own keys.
fn shared_key(keys: &KeySet) -> Result<StreamKey, RejectReason> {
    keys.get(Parity::Even).cloned().ok_or(RejectReason::ROGUE)
}

/// Parses and unwraps the responder's own key message.
fn unwrap_own(message: &[u8], suite: &Suite) -> Result<(KeySet, KeyMessage), RejectReason> {
    let message = KeyMessage::parse(message).map_err(|_| RejectReason::ROGUE)?;
    if message.salt() != &suite.salt || message.mode() != suite.mode {
        return Err(RejectReason::ROGUE);
    }
    let keys = message.unwrap(&suite.kek).map_err(|_| RejectReason::BAD_SECRET)?;
    Ok((keys, message))
}

/// The state that a KMRSP reports which does not return the key message.
fn refusal(km_rsp: Option<&[u8]>) -> KeyState {
    match km_rsp {
        None => KeyState::NoSecret,
        Some(bytes) => match KeyState::from_refusal(bytes) {
            Some(KeyState::Unsecured | KeyState::Securing) => KeyState::NoSecret,
            // A different key message: the peer could not unwrap ours.
            None | Some(KeyState::Secured) => KeyState::BadSecret,
            Some(state) => state,
        },
    }
}

fn wrap(mode: CipherMode, salt: Salt, key: &StreamKey, kek: &Kek) -> KeyMessage {
    KeyMessage::wrap(mode, salt, &KeySet::one(Parity::Even, key.clone()), kek)
        .expect("the key has the length of what wraps it")
}
