//! AES-GCM by aws-lc.

use aws_lc_rs::aead::{
    AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce as AwsNonce, UnboundKey,
};

use super::{Nonce, TAG_LEN, Tag};
use crate::cipher::NotAuthentic;
use crate::key::{KeyLength, StreamKey};

/// An expanded key. aws-lc keeps it on the heap, and wipes it when it is dropped.
///
/// The key is "less safe" because its user chooses the nonces. SRT's nonces are the numbers of
/// packets, which a key never sees twice.
pub(crate) struct GcmKey(LessSafeKey);

impl GcmKey {
    pub(crate) fn new(key: &StreamKey) -> Self {
        let algorithm = match key.length() {
            KeyLength::Aes128 => &AES_128_GCM,
            KeyLength::Aes192 => &AES_192_GCM,
            KeyLength::Aes256 => &AES_256_GCM,
        };
        let key = UnboundKey::new(algorithm, key.bytes());
        Self(LessSafeKey::new(key.expect("a key has the length that it says")))
    }

    /// Encrypts `payload` in place and returns its tag.
    pub(crate) fn seal(&self, nonce: &Nonce, aad: &[u8], payload: &mut [u8]) -> Tag {
        let nonce = AwsNonce::assume_unique_for_key(*nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(aad), payload);
        let tag = tag.expect("a packet is shorter than GCM's limit");
        tag.as_ref().try_into().expect("a tag has 16 bytes")
    }

    /// Decrypts `body`, the payload and its tag, in place, and returns the length of the payload.
    pub(crate) fn open(
        &self,
        nonce: &Nonce,
        aad: &[u8],
        body: &mut [u8],
    ) -> Result<usize, NotAuthentic> {
        let len = body.len().checked_sub(TAG_LEN).ok_or(NotAuthentic)?;
        let nonce = AwsNonce::assume_unique_for_key(*nonce);
        self.0.open_in_place(nonce, Aad::from(aad), body).map(|_| len).map_err(|_| NotAuthentic)
    }
}
