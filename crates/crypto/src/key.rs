use crate::secret::Secret;

/// Bytes of a salt.
pub(crate) const SALT_LEN: usize = 16;

/// The salt: 16 random bytes that are sent in the clear, in the key message. They make the keys of
/// one passphrase different, and every packet's counter or nonce.
pub type Salt = [u8; SALT_LEN];

/// Length of the keys: AES-128, AES-192 or AES-256 \[pbkeylen\].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum KeyLength {
    /// 16 bytes, libsrt's default.
    #[default]
    Aes128,
    /// 24 bytes.
    Aes192,
    /// 32 bytes.
    Aes256,
}

impl KeyLength {
    /// The length in bytes as a variant: 16, 24 or 32; `None` for others.
    pub const fn from_bytes(bytes: usize) -> Option<Self> {
        match bytes {
            16 => Some(Self::Aes128),
            24 => Some(Self::Aes192),
            32 => Some(Self::Aes256),
            _ => None,
        }
    }

    /// The length that a handshake's encryption field says: 2, 3 or 4, in units of 8 bytes.
    pub const fn from_field(field: u16) -> Option<Self> {
        Self::from_bytes(8 * field as usize)
    }

    /// Bytes of such a key.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Aes128 => 16,
            Self::Aes192 => 24,
            Self::Aes256 => 32,
        }
    }

    /// As the handshake's encryption field says it.
    pub const fn field(self) -> u16 {
        match self {
            Self::Aes128 => 2,
            Self::Aes192 => 3,
            Self::Aes256 => 4,
        }
    }
}

/// Which of two keys. Each refresh takes the other one, so that the packets of both can be told
/// apart (draft section 6.1.6).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Parity {
    /// The first key of a connection, and every second one after it.
    Even,
    /// The others.
    Odd,
}

impl Parity {
    /// The one that the next refresh takes.
    #[must_use]
    pub const fn other(self) -> Self {
        match self {
            Self::Even => Self::Odd,
            Self::Odd => Self::Even,
        }
    }
}

/// A key that encrypts packets (SEK): 16, 24 or 32 bytes, wiped when dropped and never shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamKey {
    length: KeyLength,
    bytes: Secret,
}

impl StreamKey {
    /// A key of this length, whose bytes `fill` writes: from a generator that nobody can foresee.
    pub fn generate(length: KeyLength, fill: impl FnOnce(&mut [u8])) -> Self {
        Self { length, bytes: Secret::filled(length.bytes(), fill) }
    }

    pub(crate) fn new(length: KeyLength, bytes: &[u8]) -> Self {
        debug_assert_eq!(bytes.len(), length.bytes());
        Self { length, bytes: Secret::new(bytes) }
    }

    /// Its length.
    pub const fn length(&self) -> KeyLength {
        self.length
    }

    pub(crate) const fn bytes(&self) -> &[u8] {
        self.bytes.bytes()
    }
}

/// The keys in a key message: the even one, the odd one, or both.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct KeySet {
    even: Option<StreamKey>,
    odd: Option<StreamKey>,
}

impl KeySet {
    /// One key.
    pub const fn one(parity: Parity, key: StreamKey) -> Self {
        match parity {
            Parity::Even => Self { even: Some(key), odd: None },
            Parity::Odd => Self { even: None, odd: Some(key) },
        }
    }

    /// The same with `key` as that of `parity`. Both keys must have one length; a key of another
    /// length replaces both.
    #[must_use]
    pub fn with(self, parity: Parity, key: StreamKey) -> Self {
        let length = key.length();
        let fits = |kept: &StreamKey| kept.length() == length;
        match parity {
            Parity::Even => Self { even: Some(key), odd: self.odd.filter(fits) },
            Parity::Odd => Self { even: self.even.filter(fits), odd: Some(key) },
        }
    }

    /// The key of `parity`.
    pub const fn get(&self, parity: Parity) -> Option<&StreamKey> {
        match parity {
            Parity::Even => self.even.as_ref(),
            Parity::Odd => self.odd.as_ref(),
        }
    }

    /// The keys that are there, the even one first.
    pub fn iter(&self) -> impl Iterator<Item = (Parity, &StreamKey)> {
        [(Parity::Even, &self.even), (Parity::Odd, &self.odd)]
            .into_iter()
            .filter_map(|(parity, key)| Some((parity, key.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_16_24_and_32_bytes() {
        for length in [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256] {
            assert_eq!(KeyLength::from_bytes(length.bytes()), Some(length));
            assert_eq!(KeyLength::from_field(length.field()), Some(length));
        }
        for field in [0, 1, 5, u16::MAX] {
            assert_eq!(KeyLength::from_field(field), None);
        }
    }

    #[test]
    fn the_keys_of_a_set_have_one_length() {
        let key = |length| StreamKey::generate(length, |bytes| bytes.fill(7));
        let set = KeySet::one(Parity::Even, key(KeyLength::Aes128));
        let both = set.clone().with(Parity::Odd, key(KeyLength::Aes128));
        assert_eq!(both.iter().count(), 2);
        let replaced = set.with(Parity::Odd, key(KeyLength::Aes256));
        assert_eq!(replaced.iter().map(|(parity, _)| parity).collect::<Vec<_>>(), [Parity::Odd]);
    }

    #[test]
    fn keys_are_not_shown() {
        let key = StreamKey::generate(KeyLength::Aes128, |bytes| bytes.fill(0xAB));
        let shown = format!("{key:?} {:?}", KeySet::one(Parity::Even, key.clone()));
        assert!(!shown.contains("171") && !shown.to_lowercase().contains("ab,"), "{shown}");
        assert!(shown.contains("(secret)"));
    }
}
