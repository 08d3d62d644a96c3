//! AES-GCM by the crates `aes` and `aes-gcm`.

use aes::cipher::consts::{U12, U16};
use aes::cipher::{Array, KeyInit};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::AesGcm;
use aes_gcm::aead::AeadInOut;

use super::{Nonce, TAG_LEN, Tag};
use crate::cipher::NotAuthentic;
use crate::key::{KeyLength, StreamKey};

/// An expanded key. Boxed, because an expanded key is large and a move would leave copies of it
/// behind.
pub(crate) enum GcmKey {
    Aes128(Box<AesGcm<Aes128, U12>>),
    Aes192(Box<AesGcm<Aes192, U12>>),
    Aes256(Box<AesGcm<Aes256, U12>>),
}

impl GcmKey {
    pub(crate) fn new(key: &StreamKey) -> Self {
        match key.length() {
            KeyLength::Aes128 => Self::Aes128(expand(key.bytes())),
            KeyLength::Aes192 => Self::Aes192(expand(key.bytes())),
            KeyLength::Aes256 => Self::Aes256(expand(key.bytes())),
        }
    }

    /// Encrypts `payload` in place and returns its tag.
    pub(crate) fn seal(&self, nonce: &Nonce, aad: &[u8], payload: &mut [u8]) -> Tag {
        match self {
            Self::Aes128(key) => seal(&**key, nonce, aad, payload),
            Self::Aes192(key) => seal(&**key, nonce, aad, payload),
            Self::Aes256(key) => seal(&**key, nonce, aad, payload),
        }
    }

    /// Decrypts `body`, the payload and its tag, in place, and returns the length of the payload.
    pub(crate) fn open(
        &self,
        nonce: &Nonce,
        aad: &[u8],
        body: &mut [u8],
    ) -> Result<usize, NotAuthentic> {
        match self {
            Self::Aes128(key) => open(&**key, nonce, aad, body),
            Self::Aes192(key) => open(&**key, nonce, aad, body),
            Self::Aes256(key) => open(&**key, nonce, aad, body),
        }
    }
}

fn expand<C: KeyInit>(key: &[u8]) -> Box<C> {
    Box::new(C::new_from_slice(key).expect("a key has the length that it says"))
}

fn seal<C>(key: &C, nonce: &Nonce, aad: &[u8], payload: &mut [u8]) -> Tag
where
    C: AeadInOut<NonceSize = U12, TagSize = U16>,
{
    key.encrypt_inout_detached(&Array(*nonce), aad, payload.into())
        .expect("a packet is shorter than GCM's limit")
        .0
}

fn open<C>(key: &C, nonce: &Nonce, aad: &[u8], body: &mut [u8]) -> Result<usize, NotAuthentic>
where
    C: AeadInOut<NonceSize = U12, TagSize = U16>,
{
    let (payload, tag) = body.split_last_chunk_mut::<TAG_LEN>().ok_or(NotAuthentic)?;
    let len = payload.len();
    key.decrypt_inout_detached(&Array(*nonce), aad, payload.into(), &Array(*tag))
        .map(|()| len)
        .map_err(|_| NotAuthentic)
}
