//! Encryption as the application chooses and sees it.

use std::fmt;

use punctual_crypto::CipherMode;

/// How packets are to be encrypted \[cryptomode\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CryptoMode {
    /// A caller takes counter mode, which every peer knows; a listener takes what the caller does.
    #[default]
    Auto,
    /// AES in counter mode and nothing else: nobody can read, but nobody notices a change either.
    Ctr,
    /// AES in Galois/counter mode and nothing else: packets that were changed on their way, or that
    /// somebody else sent, are refused. libsrt knows it if it was built with AEAD.
    Gcm,
}

impl CryptoMode {
    /// The mode that the end uses which makes the first key.
    pub(crate) const fn chosen(self) -> CipherMode {
        match self {
            Self::Auto | Self::Ctr => CipherMode::Ctr,
            Self::Gcm => CipherMode::Gcm,
        }
    }

    /// Whether the other end may use `mode`.
    pub(crate) const fn allows(self, mode: CipherMode) -> bool {
        matches!(
            (self, mode),
            (Self::Auto, _) | (Self::Ctr, CipherMode::Ctr) | (Self::Gcm, CipherMode::Gcm)
        )
    }
}

/// How far the two ends are with the keys of one direction \[sndkmstate, rcvkmstate\]. The
/// discriminant is libsrt's number, which also travels in a refusal.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KeyState {
    /// Nothing is encrypted.
    #[default]
    Unsecured = 0,
    /// The ends are at it.
    Securing = 1,
    /// Both ends have the key.
    Secured = 2,
    /// One end encrypts and the other has no passphrase.
    NoSecret = 3,
    /// The ends' passphrases differ.
    BadSecret = 4,
    /// The ends insist on different ciphers.
    BadCryptoMode = 5,
}

impl KeyState {
    /// The state in a refusal of four bytes, which libsrt writes in a PC's order of bytes and
    /// others in the network's.
    pub(crate) fn from_refusal(bytes: &[u8]) -> Option<Self> {
        let bytes: [u8; 4] = bytes.try_into().ok()?;
        match u32::from_le_bytes(bytes).min(u32::from_be_bytes(bytes)) {
            0 => Some(Self::Unsecured),
            1 => Some(Self::Securing),
            2 => Some(Self::Secured),
            3 => Some(Self::NoSecret),
            4 => Some(Self::BadSecret),
            5 => Some(Self::BadCryptoMode),
            _ => None,
        }
    }

    /// The refusal that says so, as libsrt writes it.
    pub(crate) fn to_refusal(self) -> Vec<u8> {
        (self as u32).to_le_bytes().to_vec()
    }
}

impl fmt::Display for KeyState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsecured => "not encrypted",
            Self::Securing => "agreeing on a key",
            Self::Secured => "encrypted",
            Self::NoSecret => "one end has no passphrase",
            Self::BadSecret => "the passphrases differ",
            Self::BadCryptoMode => "the ciphers differ",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_libsrts_and_is_read_in_either_order() {
        assert_eq!(KeyState::BadSecret.to_refusal(), [4, 0, 0, 0]);
        assert_eq!(KeyState::from_refusal(&[4, 0, 0, 0]), Some(KeyState::BadSecret));
        assert_eq!(KeyState::from_refusal(&[0, 0, 0, 4]), Some(KeyState::BadSecret));
        assert_eq!(KeyState::from_refusal(&[0; 4]), Some(KeyState::Unsecured));
        for odd in [&[6, 0, 0, 0][..], &[4, 0, 0, 4], &[4], &[4, 0, 0, 0, 0], &[]] {
            assert_eq!(KeyState::from_refusal(odd), None);
        }
    }

    #[test]
    fn an_end_that_does_not_insist_takes_either_cipher() {
        let modes = [CipherMode::Ctr, CipherMode::Gcm];
        let allowed = |mode: CryptoMode| modes.map(|cipher| mode.allows(cipher));
        assert_eq!(allowed(CryptoMode::Auto), [true, true]);
        assert_eq!(allowed(CryptoMode::Ctr), [true, false]);
        assert_eq!(allowed(CryptoMode::Gcm), [false, true]);
    }
}
