//! The cipher mode that the application chooses, and the state of the keys that it sees.

use std::fmt;

use punctual_crypto::CipherMode;

/// The cipher mode of a connection \[cryptomode\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CryptoMode {
    /// A caller uses counter mode, which every peer supports; a listener uses the caller's mode.
    #[default]
    Auto,
    /// Only AES in counter mode: it keeps payloads secret, but does not detect changes.
    Ctr,
    /// Only AES in Galois/counter mode: packets that were changed in the network or forged are
    /// discarded. libsrt supports it if it was built with AEAD.
    Gcm,
}

impl CryptoMode {
    /// The mode of the first key, at the end that generates it.
    pub(crate) const fn chosen(self) -> CipherMode {
        match self {
            Self::Auto | Self::Ctr => CipherMode::Ctr,
            Self::Gcm => CipherMode::Gcm,
        }
    }

    /// Whether the peer may use `mode`.
    pub(crate) const fn allows(self, mode: CipherMode) -> bool {
        matches!(
            (self, mode),
            (Self::Auto, _) | (Self::Ctr, CipherMode::Ctr) | (Self::Gcm, CipherMode::Gcm)
        )
    }
}

/// The state of the keys of one direction \[sndkmstate, rcvkmstate\]. The discriminant is libsrt's
/// number, which a refusal carries on the wire, too.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum KeyState {
    /// Nothing is encrypted.
    #[default]
    Unsecured = 0,
    /// The ends are exchanging the key.
    Securing = 1,
    /// Both ends have the key.
    Secured = 2,
    /// One end encrypts and the other has no passphrase.
    NoSecret = 3,
    /// The ends' passphrases differ.
    BadSecret = 4,
    /// The ends require different ciphers.
    BadCryptoMode = 5,
}

impl KeyState {
    /// Reads the state from a refusal of four bytes, which libsrt writes in little-endian order and
    /// other implementations in network order.
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

    /// The refusal with this state, as libsrt writes it.
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
    fn a_refusal_is_written_as_by_libsrt_and_read_in_either_order() {
        assert_eq!(KeyState::BadSecret.to_refusal(), [4, 0, 0, 0]);
        assert_eq!(KeyState::from_refusal(&[4, 0, 0, 0]), Some(KeyState::BadSecret));
        assert_eq!(KeyState::from_refusal(&[0, 0, 0, 4]), Some(KeyState::BadSecret));
        assert_eq!(KeyState::from_refusal(&[0; 4]), Some(KeyState::Unsecured));
        for invalid in [&[6, 0, 0, 0][..], &[4, 0, 0, 4], &[4], &[4, 0, 0, 0, 0], &[]] {
            assert_eq!(KeyState::from_refusal(invalid), None);
        }
    }

    #[test]
    fn automatic_mode_accepts_either_cipher() {
        let modes = [CipherMode::Ctr, CipherMode::Gcm];
        let allowed = |mode: CryptoMode| modes.map(|cipher| mode.allows(cipher));
        assert_eq!(allowed(CryptoMode::Auto), [true, true]);
        assert_eq!(allowed(CryptoMode::Ctr), [true, false]);
        assert_eq!(allowed(CryptoMode::Gcm), [false, true]);
    }
}
