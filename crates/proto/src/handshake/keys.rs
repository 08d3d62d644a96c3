//! Key messages in the handshake (draft section 6.1.5): the initiator makes the first key, the
//! responder returns its message as it came, or says what is wrong.
//!
//! One key for both directions, whose packets may have the same numbers, means that two packets are
//! encrypted with one keystream: who adds up both sees the sum of what they say. libsrt has it so.
//! Where both ends say [`HsFlags::OWN_KEYS`](punctual_wire::HsFlags::OWN_KEYS), which libsrt passes
//! over, the responder's answer brings a key message of its own beside the returned one, and each
//! direction has its key from the first packet on.

use punctual_crypto::{
    CipherMode, GcmLayout, Kek, KekCache, KeyLength, KeyMessage, KeySet, Parity, Salt, StreamKey,
};
use punctual_wire::{RejectReason, SeqNo};

use crate::chance::Chance;
use crate::config::Config;
use crate::connection::crypt::{Crypt, Opening, Sealing, Suite};
use crate::encryption::KeyState;

/// What the initiator offers: a key, and the message that brings it to the peer.
#[derive(Debug)]
pub(crate) struct KeyOffer {
    kek: Kek,
    key: StreamKey,
    chance: Chance,
    message: KeyMessage,
    /// The message as it travels.
    bytes: Vec<u8>,
}

/// What the other end says of itself that matters to the keys.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    pub(crate) version: u32,
    /// It draws a key of its own for its direction, and understands that the other end does.
    pub(crate) own_keys: bool,
}

/// The key messages in the responder's answer.
#[derive(Debug, Default)]
pub(crate) struct KeyAnswer {
    pub(crate) km_rsp: Option<Vec<u8>>,
    /// The responder's own key.
    pub(crate) km_req: Option<Vec<u8>>,
}

/// What the responder's side needs from its endpoint.
#[derive(Debug)]
pub(crate) struct KeyTools<'a> {
    pub(crate) chance: &'a mut Chance,
    pub(crate) cache: &'a mut KekCache,
}

impl KeyOffer {
    /// A new key, if there is a passphrase. The listener's wish for a length, if it has one, comes
    /// before our own.
    pub(crate) fn make(
        config: &Config,
        wished: Option<KeyLength>,
        chance: &mut Chance,
    ) -> Option<Self> {
        let passphrase = config.passphrase()?;
        let mut chance = chance.fork();
        let length = wished.or(config.key_length()).unwrap_or_default();
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

/// What the initiator makes of the responder's answer, with the keys if the connection has any.
/// `first` is the first number that this end sends.
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
        // The peer has a passphrase and lets us in without: what it sends cannot be read.
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
        // What is sent stays encrypted all the same: the application wants that.
        let opening = if state == KeyState::NoSecret { KeyState::Unsecured } else { state };
        (state, Opening::clear(opening))
    };
    let sealing = Sealing::new(state, suite, offer.key, offer.chance, first, config);
    Ok(Some(Box::new(Crypt { sealing, opening })))
}

/// The responder's answer to an offer's key message, or to its having none, and the keys if the
/// connection has any. `first` is the first number that this end sends. The initiator's cookie was
/// checked before: unwrapping costs some 200 µs.
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
        // What is sent is encrypted all the same, for the application wants that. Libsrt does so
        // too, and expects it: it passes over packets in the clear here.
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
            let mut said = KeyAnswer::default();
            let (state, opening) = match message.unwrap(&suite.kek) {
                Ok(keys) => {
                    said.km_rsp = Some(bytes.to_vec());
                    if peer.own_keys {
                        let own = wrap(mode, suite.salt, &own, &suite.kek);
                        said.km_req = Some(own.to_bytes());
                    } else {
                        own = shared_key(&keys)?;
                    }
                    (KeyState::Secured, Opening::new(suite.clone(), &keys, message))
                }
                Err(_) if enforced => return Err(RejectReason::BAD_SECRET),
                // What is sent is encrypted, with a key that the peer cannot have.
                Err(_) => {
                    said = refuse(KeyState::BadSecret);
                    (KeyState::BadSecret, Opening::clear(KeyState::BadSecret))
                }
            };
            let sealing = Sealing::new(state, suite, own, chance, first, config);
            Ok((said, Some(Box::new(Crypt { sealing, opening }))))
        }
    }
}

/// The key that both directions use with a peer that knows nothing else.
fn shared_key(keys: &KeySet) -> Result<StreamKey, RejectReason> {
    keys.get(Parity::Even).cloned().ok_or(RejectReason::ROGUE)
}

/// The responder's own keys.
fn unwrap_own(message: &[u8], suite: &Suite) -> Result<(KeySet, KeyMessage), RejectReason> {
    let message = KeyMessage::parse(message).map_err(|_| RejectReason::ROGUE)?;
    if message.salt() != &suite.salt || message.mode() != suite.mode {
        return Err(RejectReason::ROGUE);
    }
    let keys = message.unwrap(&suite.kek).map_err(|_| RejectReason::BAD_SECRET)?;
    Ok((keys, message))
}

/// What a KMRSP says that does not return the message.
fn refusal(km_rsp: Option<&[u8]>) -> KeyState {
    match km_rsp {
        None => KeyState::NoSecret,
        Some(bytes) => match KeyState::from_refusal(bytes) {
            Some(KeyState::Unsecured | KeyState::Securing) => KeyState::NoSecret,
            // Another message than ours: the peer did not understand it.
            None | Some(KeyState::Secured) => KeyState::BadSecret,
            Some(state) => state,
        },
    }
}

fn wrap(mode: CipherMode, salt: Salt, key: &StreamKey, kek: &Kek) -> KeyMessage {
    KeyMessage::wrap(mode, salt, &KeySet::one(Parity::Even, key.clone()), kek)
        .expect("the key has the length of what wraps it")
}
