use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::secret::Secret;

/// The secret that both ends know: 10 to 80 bytes, from which the keys that wrap keys are derived
/// (draft section 6.1.4).
///
/// It is wiped from memory when the last clone is dropped, and no `Debug` shows it.
#[derive(Clone, Eq, PartialEq)]
pub struct Passphrase(Arc<Secret>);

impl Passphrase {
    /// Least bytes of a passphrase.
    pub const MIN: usize = 10;
    /// Most bytes of a passphrase. libsrt's documents say 79, its code 80.
    pub const MAX: usize = 80;

    /// The passphrase of these bytes.
    ///
    /// # Errors
    ///
    /// It is too short or too long.
    pub fn new(bytes: impl AsRef<[u8]>) -> Result<Self, PassphraseError> {
        let bytes = bytes.as_ref();
        if (Self::MIN..=Self::MAX).contains(&bytes.len()) {
            Ok(Self(Arc::new(Secret::new(bytes))))
        } else {
            Err(PassphraseError { len: bytes.len() })
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(secret)")
    }
}

/// A passphrase is too short or too long. The error has its length and nothing of its text.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the passphrase has {len} bytes; it must have 10 to 80")]
pub struct PassphraseError {
    /// Bytes that were given.
    pub len: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passphrase_has_10_to_80_bytes() {
        for (len, legal) in [(0, false), (9, false), (10, true), (80, true), (81, false)] {
            let passphrase = Passphrase::new("x".repeat(len));
            assert_eq!(passphrase.is_ok(), legal, "{len} bytes");
            if let Err(error) = passphrase {
                let expected = format!("the passphrase has {len} bytes; it must have 10 to 80");
                assert_eq!(error.to_string(), expected);
            }
        }
    }

    #[test]
    fn passphrases_are_compared_and_never_printed() {
        let one = Passphrase::new("0123456789").unwrap();
        assert_eq!(one, one.clone());
        assert_ne!(one, Passphrase::new("0123456780").unwrap());
        assert_ne!(one, Passphrase::new("01234567890").unwrap());
        assert_eq!(format!("{one:?}"), "Passphrase(secret)");
        assert_eq!(format!("{:?}", one.0), "(secret)");
    }
}
