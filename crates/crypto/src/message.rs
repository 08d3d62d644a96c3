use thiserror::Error;

use crate::cipher::CipherMode;
use crate::kek::{Kek, WRAP_OVERHEAD};
use crate::key::{KeyLength, KeySet, Parity, SALT_LEN, Salt, StreamKey};
use crate::secret::Secret;

/// A key message: one key or both, wrapped, and what is needed to unwrap and to use them
/// (draft section 3.2.2). It travels in a handshake, and after it in a packet of its own.
///
/// It holds nothing secret: whoever lacks the passphrase learns only the cipher and the salt.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeyMessage {
    mode: CipherMode,
    length: KeyLength,
    salt: Salt,
    even: bool,
    odd: bool,
    wrapped: Vec<u8>,
}

impl KeyMessage {
    /// Bytes of the longest key message: two keys of 32 bytes.
    pub const MAX_LEN: usize = FIXED_LEN + 2 * 32 + WRAP_OVERHEAD;

    /// A message with these keys, wrapped by `kek`, whose length is theirs; `None` if it is not, or
    /// if there is no key.
    pub fn wrap(mode: CipherMode, salt: Salt, keys: &KeySet, kek: &Kek) -> Option<Self> {
        let length = kek.length();
        let count = keys.iter().filter(|(_, key)| key.length() == length).count();
        if count == 0 || count != keys.iter().count() {
            return None;
        }
        let joined = Secret::filled(count * length.bytes(), |out| {
            for (place, (_, key)) in out.chunks_exact_mut(length.bytes()).zip(keys.iter()) {
                place.copy_from_slice(key.bytes());
            }
        });
        Some(Self {
            mode,
            length,
            salt,
            even: keys.get(Parity::Even).is_some(),
            odd: keys.get(Parity::Odd).is_some(),
            wrapped: kek.wrap(joined.bytes()),
        })
    }

    /// Reads a message. Every length must be exactly what the fields say.
    ///
    /// # Errors
    ///
    /// Says which field or length is not what it must be.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyMessageError> {
        let Some((fixed, wrapped)) = bytes.split_first_chunk::<FIXED_LEN>() else {
            return Err(KeyMessageError::TooShort { got: bytes.len() });
        };
        if fixed[..3] != START || fixed[3] & !BOTH_KEYS != 0 {
            return Err(KeyMessageError::NoKeyMessage);
        }
        let (even, odd) = (fixed[3] & EVEN != 0, fixed[3] & ODD != 0);
        if !even && !odd {
            return Err(KeyMessageError::NoKey);
        }
        if fixed[4..8] != [0; 4] {
            return Err(KeyMessageError::OtherSecret);
        }
        let mode = match (fixed[8], fixed[9]) {
            (CIPHER_CTR, 0) => CipherMode::Ctr,
            (CIPHER_GCM, AUTH_GCM) => CipherMode::Gcm,
            (cipher, auth) => return Err(KeyMessageError::Cipher { cipher, auth }),
        };
        if fixed[10] != ENCAPSULATION_SRT {
            return Err(KeyMessageError::Encapsulation(fixed[10]));
        }
        if fixed[11..14] != [0; 3] {
            return Err(KeyMessageError::Reserved);
        }
        if usize::from(fixed[14]) != SALT_LEN / 4 {
            return Err(KeyMessageError::SaltLength(4 * usize::from(fixed[14])));
        }
        let key_bytes = 4 * usize::from(fixed[15]);
        let length =
            KeyLength::from_bytes(key_bytes).ok_or(KeyMessageError::KeyLength(key_bytes))?;
        let keys = usize::from(even) + usize::from(odd);
        let expected = FIXED_LEN + keys * length.bytes() + WRAP_OVERHEAD;
        if bytes.len() != expected {
            return Err(KeyMessageError::Length { expected, got: bytes.len() });
        }
        let mut salt = [0; SALT_LEN];
        salt.copy_from_slice(&fixed[SALT_AT..]);
        Ok(Self { mode, length, salt, even, odd, wrapped: wrapped.to_vec() })
    }

    /// The message as it travels.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0; FIXED_LEN];
        bytes[..3].copy_from_slice(&START);
        bytes[3] = if self.even { EVEN } else { 0 } | if self.odd { ODD } else { 0 };
        (bytes[8], bytes[9]) = match self.mode {
            CipherMode::Ctr => (CIPHER_CTR, 0),
            CipherMode::Gcm => (CIPHER_GCM, AUTH_GCM),
        };
        bytes[10] = ENCAPSULATION_SRT;
        let quarter = |bytes: usize| u8::try_from(bytes / 4).expect("salt and keys are short");
        bytes[14] = quarter(SALT_LEN);
        bytes[15] = quarter(self.length.bytes());
        bytes[SALT_AT..].copy_from_slice(&self.salt);
        bytes.extend_from_slice(&self.wrapped);
        bytes
    }

    /// The keys, if `kek` is the key that wrapped them.
    ///
    /// # Errors
    ///
    /// The other side's passphrase is another one, or the message was changed on its way.
    pub fn unwrap(&self, kek: &Kek) -> Result<KeySet, WrongPassphrase> {
        if kek.length() != self.length {
            return Err(WrongPassphrase);
        }
        let keys = kek.unwrap(&self.wrapped).ok_or(WrongPassphrase)?;
        let parities = [(self.even, Parity::Even), (self.odd, Parity::Odd)];
        let mut present = parities.iter().filter(|(there, _)| *there).map(|&(_, parity)| parity);
        let mut set: Option<KeySet> = None;
        for bytes in keys.bytes().chunks_exact(self.length.bytes()) {
            let parity = present.next().ok_or(WrongPassphrase)?;
            let key = StreamKey::new(self.length, bytes);
            set = Some(match set {
                None => KeySet::one(parity, key),
                Some(set) => set.with(parity, key),
            });
        }
        set.ok_or(WrongPassphrase)
    }

    /// The mode of AES in which the keys are used.
    pub const fn mode(&self) -> CipherMode {
        self.mode
    }

    /// The wrapped keys: the part of the message that nobody can make without the passphrase. The
    /// rest of it anybody can change.
    pub fn wrapped(&self) -> &[u8] {
        &self.wrapped
    }

    /// Length of the keys.
    pub const fn length(&self) -> KeyLength {
        self.length
    }

    /// The salt.
    pub const fn salt(&self) -> &Salt {
        &self.salt
    }
}

/// Why bytes are no key message.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum KeyMessageError {
    /// Shorter than what every message begins with.
    #[error("a key message has 32 bytes and its keys; this has {got}")]
    TooShort {
        /// Bytes that came.
        got: usize,
    },
    /// Longer or shorter than its fields say.
    #[error("the key message says that it has {expected} bytes, and has {got}")]
    Length {
        /// Bytes by its fields.
        expected: usize,
        /// Bytes that came.
        got: usize,
    },
    /// It does not begin as one.
    #[error("not a key message")]
    NoKeyMessage,
    /// It carries neither key.
    #[error("the key message carries no key")]
    NoKey,
    /// Its keys are wrapped by something else than the passphrase.
    #[error("the key message asks for a secret other than the passphrase")]
    OtherSecret,
    /// A cipher or an authentication that the draft does not define.
    #[error("unknown cipher {cipher} with authentication {auth}")]
    Cipher {
        /// The cipher's number.
        cipher: u8,
        /// The authentication's number.
        auth: u8,
    },
    /// The key message is for another encapsulation than that of SRT packets.
    #[error("the key message is for stream encapsulation {0}, not for SRT's")]
    Encapsulation(u8),
    /// Reserved bytes are not zero.
    #[error("reserved bytes of the key message are not zero")]
    Reserved,
    /// The salt does not have 16 bytes.
    #[error("the salt has {0} bytes; it must have 16")]
    SaltLength(usize),
    /// The keys do not have a length of AES.
    #[error("the keys have {0} bytes; they must have 16, 24 or 32")]
    KeyLength(usize),
}

/// Keys could not be unwrapped: the two ends' passphrases are not the same.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the passphrases of both ends differ")]
pub struct WrongPassphrase;

/// Bytes up to the wrapped keys.
const FIXED_LEN: usize = 32;
const SALT_AT: usize = 16;
/// Version 1, packet type 2 (key message), and the signature "HAI" in five-bit letters.
const START: [u8; 3] = [0x12, 0x20, 0x29];
const EVEN: u8 = 0b01;
const ODD: u8 = 0b10;
const BOTH_KEYS: u8 = EVEN | ODD;
const CIPHER_CTR: u8 = 2;
const CIPHER_GCM: u8 = 4;
const AUTH_GCM: u8 = 1;
const ENCAPSULATION_SRT: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::passphrase::Passphrase;

    const SALT: Salt = [7; 16];

    fn key(length: KeyLength, byte: u8) -> StreamKey {
        StreamKey::generate(length, |bytes| bytes.fill(byte))
    }

    fn kek(passphrase: &str, length: KeyLength) -> Kek {
        Kek::derive(&Passphrase::new(passphrase).unwrap(), &SALT, length)
    }

    #[test]
    fn a_message_returns_its_keys_with_the_passphrase() {
        for length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
            let (good, bad) = (kek("correct horse", length), kek("battery staple", length));
            let even = KeySet::one(Parity::Even, key(length, 1));
            let odd = KeySet::one(Parity::Odd, key(length, 2));
            let both = even.clone().with(Parity::Odd, key(length, 2));
            for keys in [even, odd, both] {
                for mode in [CipherMode::Ctr, CipherMode::Gcm] {
                    let message = KeyMessage::wrap(mode, SALT, &keys, &good).unwrap();
                    let bytes = message.to_bytes();
                    assert!(bytes.len() <= KeyMessage::MAX_LEN);
                    let read = KeyMessage::parse(&bytes).unwrap();
                    assert_eq!(read, message);
                    assert_eq!((read.mode(), read.length(), read.salt()), (mode, length, &SALT));
                    assert_eq!(read.unwrap(&good), Ok(keys.clone()));
                    assert_eq!(read.unwrap(&bad), Err(WrongPassphrase));
                }
            }
        }
    }

    #[test]
    fn keys_and_kek_must_have_one_length() {
        let keys = KeySet::one(Parity::Even, key(KeyLength::Aes128, 1));
        let long = kek("correct horse", KeyLength::Aes256);
        assert_eq!(KeyMessage::wrap(CipherMode::Ctr, SALT, &keys, &long), None);
        let short = kek("correct horse", KeyLength::Aes128);
        let message = KeyMessage::wrap(CipherMode::Ctr, SALT, &keys, &short).unwrap();
        assert_eq!(message.unwrap(&long), Err(WrongPassphrase));
    }

    #[test]
    fn the_layout_is_that_of_the_draft() {
        let keys = KeySet::one(Parity::Even, key(KeyLength::Aes192, 1));
        let kek = kek("correct horse", KeyLength::Aes192);
        let bytes = KeyMessage::wrap(CipherMode::Ctr, SALT, &keys, &kek).unwrap().to_bytes();
        assert_eq!(bytes.len(), 16 + 16 + 24 + 8);
        let head = [0x12, 0x20, 0x29, 1, 0, 0, 0, 0, 2, 0, 2, 0, 0, 0, 4, 6];
        assert_eq!(bytes[..16], head);
        assert_eq!(bytes[16..32], SALT);
        let bytes = KeyMessage::wrap(CipherMode::Gcm, SALT, &keys, &kek).unwrap().to_bytes();
        assert_eq!(bytes[8..11], [4, 1, 2]);
    }

    #[test]
    fn every_field_and_length_is_checked() {
        let keys = KeySet::one(Parity::Even, key(KeyLength::Aes128, 1));
        let kek = kek("correct horse", KeyLength::Aes128);
        let bytes = KeyMessage::wrap(CipherMode::Ctr, SALT, &keys, &kek).unwrap().to_bytes();
        let changed = |at: usize, to: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = to;
            KeyMessage::parse(&bytes)
        };
        use KeyMessageError as E;
        for len in 0..FIXED_LEN {
            assert_eq!(KeyMessage::parse(&bytes[..len]), Err(E::TooShort { got: len }));
        }
        for len in FIXED_LEN..bytes.len() {
            let error = E::Length { expected: 56, got: len };
            assert_eq!(KeyMessage::parse(&bytes[..len]), Err(error));
        }
        let longer = [&bytes[..], &[0; 4]].concat();
        assert_eq!(KeyMessage::parse(&longer), Err(E::Length { expected: 56, got: 60 }));
        assert_eq!(changed(0, 0x22), Err(E::NoKeyMessage));
        assert_eq!(changed(1, 0x21), Err(E::NoKeyMessage));
        assert_eq!(changed(3, 4), Err(E::NoKeyMessage));
        assert_eq!(changed(3, 0), Err(E::NoKey));
        assert_eq!(changed(3, 3), Err(E::Length { expected: 72, got: 56 }));
        assert_eq!(changed(7, 1), Err(E::OtherSecret));
        assert_eq!(changed(8, 4), Err(E::Cipher { cipher: 4, auth: 0 }));
        assert_eq!(changed(9, 1), Err(E::Cipher { cipher: 2, auth: 1 }));
        assert_eq!(changed(10, 1), Err(E::Encapsulation(1)));
        for at in 11..14 {
            assert_eq!(changed(at, 1), Err(E::Reserved));
        }
        assert_eq!(changed(14, 2), Err(E::SaltLength(8)));
        assert_eq!(changed(15, 0), Err(E::KeyLength(0)));
        assert_eq!(changed(15, 255), Err(E::KeyLength(1_020)));
        assert_eq!(changed(15, 8), Err(E::Length { expected: 72, got: 56 }));
    }
}
