use std::collections::VecDeque;
use std::sync::Arc;

use aes::cipher::consts::U16;
use aes::cipher::{BlockCipherDecrypt, BlockCipherEncrypt, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use aes_kw::{AesKw, InnerInit};
use sha1::Sha1;

use crate::key::{KeyLength, SALT_LEN, Salt};
use crate::passphrase::Passphrase;
use crate::secret::Secret;

/// Rounds of PBKDF2 (draft section 6.1.4).
const ROUNDS: u32 = 2_048;
/// The part of the salt that goes into the derivation: its last eight bytes.
const SALT_PART: usize = SALT_LEN / 2;
/// Bytes that wrapping adds (RFC 3394).
pub(crate) const WRAP_OVERHEAD: usize = 8;

/// A key that wraps keys (KEK), derived from a passphrase and a salt. Wiped when the last clone is
/// dropped, and never shown.
#[derive(Clone, Debug)]
pub struct Kek {
    length: KeyLength,
    bytes: Arc<Secret>,
}

impl Kek {
    /// Derives the key by PBKDF2 with HMAC-SHA-1: some 200 µs of work. Whoever does it for a
    /// stranger should have checked before that the stranger receives at its address.
    pub fn derive(passphrase: &Passphrase, salt: &Salt, length: KeyLength) -> Self {
        let bytes = Secret::filled(length.bytes(), |out| {
            pbkdf2(passphrase.bytes(), &salt[SALT_PART..], ROUNDS, out);
        });
        Self { length, bytes: Arc::new(bytes) }
    }

    /// Its length, which is that of the keys that it wraps.
    pub const fn length(&self) -> KeyLength {
        self.length
    }

    /// `keys` wrapped (RFC 3394): 8 bytes more. Their length must be a multiple of 8.
    pub(crate) fn wrap(&self, keys: &[u8]) -> Vec<u8> {
        let mut wrapped = vec![0; keys.len() + WRAP_OVERHEAD];
        let key = self.bytes.bytes();
        match self.length {
            KeyLength::Aes128 => wrap::<Aes128>(key, keys, &mut wrapped),
            KeyLength::Aes192 => wrap::<Aes192>(key, keys, &mut wrapped),
            KeyLength::Aes256 => wrap::<Aes256>(key, keys, &mut wrapped),
        }
        wrapped
    }

    /// The keys in `wrapped`; `None` if they were wrapped with another key, or changed on the way.
    pub(crate) fn unwrap(&self, wrapped: &[u8]) -> Option<Secret> {
        let len = wrapped.len().checked_sub(WRAP_OVERHEAD)?;
        let key = self.bytes.bytes();
        let mut whole = false;
        let keys = Secret::filled(len, |out| {
            whole = match self.length {
                KeyLength::Aes128 => unwrap::<Aes128>(key, wrapped, out),
                KeyLength::Aes192 => unwrap::<Aes192>(key, wrapped, out),
                KeyLength::Aes256 => unwrap::<Aes256>(key, wrapped, out),
            };
        });
        whole.then_some(keys)
    }
}

fn pbkdf2(password: &[u8], salt: &[u8], rounds: u32, out: &mut [u8]) {
    pbkdf2::pbkdf2_hmac::<Sha1>(password, salt, rounds, out);
}

fn wrapper<C: KeyInit>(key: &[u8]) -> AesKw<C> {
    AesKw::inner_init(C::new_from_slice(key).expect("a KEK has the length that it says"))
}

fn wrap<C: KeyInit + BlockCipherEncrypt<BlockSize = U16>>(key: &[u8], keys: &[u8], out: &mut [u8]) {
    wrapper::<C>(key).wrap_key(keys, out).expect("keys are multiples of 8 bytes and `out` fits");
}

fn unwrap<C: KeyInit + BlockCipherDecrypt<BlockSize = U16>>(
    key: &[u8],
    wrapped: &[u8],
    out: &mut [u8],
) -> bool {
    wrapper::<C>(key).unwrap_key(wrapped, out).is_ok()
}

/// The last keys that were derived, so that a handshake that is repeated, and a caller that comes
/// again with the same salt, cost no derivation. It holds [`KekCache::LIMIT`] at most.
#[derive(Debug, Default)]
pub struct KekCache {
    /// The most recently used first.
    entries: VecDeque<(Passphrase, [u8; SALT_PART], Kek)>,
}

impl KekCache {
    /// Keys that are kept.
    pub const LIMIT: usize = 32;

    /// Whether the key is here.
    pub fn contains(&self, passphrase: &Passphrase, salt: &Salt, length: KeyLength) -> bool {
        self.place(passphrase, salt, length).is_some()
    }

    /// Takes in a key that was derived elsewhere.
    pub fn insert(&mut self, passphrase: &Passphrase, salt: &Salt, kek: Kek) {
        if let Some(place) = self.place(passphrase, salt, kek.length) {
            self.entries.remove(place);
        }
        self.entries.truncate(Self::LIMIT - 1);
        let mut part = [0; SALT_PART];
        part.copy_from_slice(&salt[SALT_PART..]);
        self.entries.push_front((passphrase.clone(), part, kek));
    }

    /// As [`Kek::derive`], if the key is not here.
    pub fn derive(&mut self, passphrase: &Passphrase, salt: &Salt, length: KeyLength) -> Kek {
        let known = self.place(passphrase, salt, length).map(|place| self.entries[place].2.clone());
        let kek = known.unwrap_or_else(|| Kek::derive(passphrase, salt, length));
        self.insert(passphrase, salt, kek.clone());
        kek
    }

    fn place(&self, passphrase: &Passphrase, salt: &Salt, length: KeyLength) -> Option<usize> {
        self.entries.iter().position(|(known, part, kek)| {
            part[..] == salt[SALT_PART..] && kek.length == length && known == passphrase
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hex::hex;

    /// RFC 6070, the vectors whose work is reasonable.
    #[test]
    fn pbkdf2_as_in_rfc_6070() {
        let cases: [(&str, &str, u32, &str); 5] = [
            ("password", "salt", 1, "0c60c80f961f0e71f3a9b524af6012062fe037a6"),
            ("password", "salt", 2, "ea6c014dc72d6f8ccd1ed92ace1d41f0d8de8957"),
            ("password", "salt", 4_096, "4b007901b765489abead49d926f721d065a429c1"),
            (
                "passwordPASSWORDpassword",
                "saltSALTsaltSALTsaltSALTsaltSALTsalt",
                4_096,
                "3d2eec4fe41c849b80c8d83662c0e44a8b291a964cf2f07038",
            ),
            ("pass\0word", "sa\0lt", 4_096, "56fa6aa75548099dcc37d7f03425e0c3"),
        ];
        for (password, salt, rounds, expected) in cases {
            let expected = hex(expected);
            let mut key = vec![0; expected.len()];
            pbkdf2(password.as_bytes(), salt.as_bytes(), rounds, &mut key);
            assert_eq!(key, expected, "{password} {salt} {rounds}");
        }
    }

    fn kek(bytes: &str) -> Kek {
        let bytes = hex(bytes);
        let length = KeyLength::from_bytes(bytes.len()).expect("a legal length");
        Kek { length, bytes: Arc::new(Secret::new(&bytes)) }
    }

    /// RFC 3394, sections 4.1 to 4.6.
    #[test]
    fn wrapping_as_in_rfc_3394() {
        let long = "000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F";
        let cases = [
            (
                32,
                "00112233445566778899AABBCCDDEEFF",
                "1FA68B0A8112B447AEF34BD8FB5A7B829D3E862371D2CFE5",
            ),
            (
                48,
                "00112233445566778899AABBCCDDEEFF",
                "96778B25AE6CA435F92B5B97C050AED2468AB8A17AD84E5D",
            ),
            (
                64,
                "00112233445566778899AABBCCDDEEFF",
                "64E8C3F9CE0F5BA263E9777905818A2A93C8191E7D6E8AE7",
            ),
            (
                48,
                "00112233445566778899AABBCCDDEEFF0001020304050607",
                "031D33264E15D33268F24EC260743EDCE1C6C7DDEE725A936BA814915C6762D2",
            ),
            (
                64,
                "00112233445566778899AABBCCDDEEFF0001020304050607",
                "A8F9BC1612C68B3FF6E6F4FBE30E71E4769C8B80A32CB8958CD5D17D6B254DA1",
            ),
            (
                64,
                "00112233445566778899AABBCCDDEEFF000102030405060708090A0B0C0D0E0F",
                "28C9F404C4B810F4CBCCB35CFB87F8263F5786E2D80ED326CBC7F0E71A99F43BFB988B9B7A02DD21",
            ),
        ];
        for (digits, keys, wrapped) in cases {
            let kek = kek(&long[..digits]);
            let (keys, mut wrapped) = (hex(keys), hex(wrapped));
            assert_eq!(kek.wrap(&keys), wrapped);
            assert_eq!(kek.unwrap(&wrapped).expect("whole").bytes(), keys);
            wrapped[5] ^= 1;
            assert!(kek.unwrap(&wrapped).is_none());
        }
    }

    #[test]
    fn bytes_that_are_not_a_wrapped_key_are_refused() {
        let kek = kek("000102030405060708090A0B0C0D0E0F");
        for len in 0..40 {
            assert!(kek.unwrap(&vec![7; len]).is_none(), "{len} bytes");
        }
    }

    #[test]
    fn the_cache_gives_derived_keys_and_stays_small() {
        let mut cache = KekCache::default();
        let passphrase = |n: usize| Passphrase::new(format!("passphrase {n}")).unwrap();
        for n in 0..3 * KekCache::LIMIT {
            let salt = [u8::try_from(n % 5).unwrap(); 16];
            let length = if n % 2 == 0 { KeyLength::Aes128 } else { KeyLength::Aes256 };
            let derived = Kek::derive(&passphrase(n), &salt, length);
            for _ in 0..2 {
                assert_eq!(cache.derive(&passphrase(n), &salt, length).bytes, derived.bytes);
            }
            assert!(cache.entries.len() <= KekCache::LIMIT);
        }
        // Only the last eight bytes of the salt count, as in libsrt.
        let (mut salt, first) = ([9; 16], cache.entries.len());
        let one = cache.derive(&passphrase(0), &salt, KeyLength::Aes128);
        salt[..8].fill(1);
        let two = cache.derive(&passphrase(0), &salt, KeyLength::Aes128);
        assert!(Arc::ptr_eq(&one.bytes, &two.bytes));
        assert_eq!(cache.entries.len(), first);
    }
}
