use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer};
use sha2::Sha256;
use zeroize::Zeroizing;

/// A text that nobody may see: a password, a passphrase, a token.
///
/// `{:?}` shows `"…"`, and there is no `{}`. The memory is zeroed when the last copy is dropped.
/// Two secrets are compared in a time that does not depend on their contents.
#[derive(Clone)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    /// The secret with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }

    /// The text, for those who have to use it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("\"…\"")
    }
}

impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        is_same(self.0.as_bytes(), other.0.as_bytes())
    }
}

impl Eq for Secret {}

/// Whether both are equal, in a time that depends on their lengths only: their hashes are compared,
/// all bytes of them.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let other = keyed(b"", other).finalize().into_bytes();
    keyed(b"", one).verify_slice(&other).is_ok()
}

/// HMAC-SHA-256 of `bytes`.
pub(crate) fn keyed(key: &[u8], bytes: &[u8]) -> Hmac<Sha256> {
    let hash = Hmac::<Sha256>::new_from_slice(key).expect("a key may have any length");
    hash.chain_update(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_its_text_and_equals_only_the_same() {
        let secret = Secret::new("hush");
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "\"…\" Some(\"…\")");
        assert_eq!(secret, "hush".into());
        for other in ["", "hus", "hushh", "Hush"] {
            assert_ne!(secret, other.into());
        }
        assert_eq!(secret.expose(), "hush");
        assert!(!secret.is_empty() && Secret::new("").is_empty());
    }
}
