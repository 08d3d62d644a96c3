use std::fmt;

use aes::cipher::KeyInit;
use aes::{Aes128, Aes192, Aes256};
use thiserror::Error;

use crate::counter;
use crate::gcm::{GcmKey, Nonce, TAG_LEN};
use crate::key::{KeyLength, Salt, StreamKey};

/// Bytes of a data packet's header, which GCM authenticates.
const HEADER_LEN: usize = 16;
/// The byte and the bit of the retransmission flag in a header. It is set after encryption.
const RETRANSMITTED: (usize, u8) = (4, 0x04);

/// The mode of AES in which keys are used \[cryptomode\].
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum CipherMode {
    /// AES in counter mode: nobody can read, but what is changed on its way is not noticed.
    #[default]
    Ctr,
    /// AES in Galois/counter mode: what is changed is noticed. 16 bytes a packet.
    Gcm,
}

impl CipherMode {
    /// Bytes that a packet grows by.
    pub const fn overhead(self) -> usize {
        match self {
            Self::Ctr => 0,
            Self::Gcm => TAG_LEN,
        }
    }
}

/// The layout of GCM's nonce, and the order in which it reads the header.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum GcmLayout {
    /// As libsrt since 1.5.4: each packet number makes a nonce of its own.
    #[default]
    Current,
    /// As libsrt up to 1.5.3: only the upper half of the packet number is in the nonce, so that
    /// 65,536 packets in a row share one. That breaks what GCM promises; it is there to be
    /// understood by such peers, and nothing to be chosen.
    Before154,
}

impl GcmLayout {
    /// The layout that a peer of this version (0x00MMmmpp) uses.
    pub const fn of_version(version: u32) -> Self {
        if version >= 0x01_05_04 { Self::Current } else { Self::Before154 }
    }
}

/// Encrypts and decrypts packets with one key. The key is expanded once, and wiped when this is
/// dropped.
pub struct PacketCipher {
    salt: Salt,
    layout: GcmLayout,
    keyed: Keyed,
}

/// Boxed, because an expanded key is large and moving it would leave copies of it behind.
enum Keyed {
    Ctr128(Box<Aes128>),
    Ctr192(Box<Aes192>),
    Ctr256(Box<Aes256>),
    Gcm(Box<GcmKey>),
}

impl PacketCipher {
    /// The cipher of `key` and `salt`. The layout matters to GCM only.
    pub fn new(mode: CipherMode, layout: GcmLayout, key: &StreamKey, salt: &Salt) -> Self {
        let keyed = match (mode, key.length()) {
            (CipherMode::Ctr, KeyLength::Aes128) => Keyed::Ctr128(expand(key.bytes())),
            (CipherMode::Ctr, KeyLength::Aes192) => Keyed::Ctr192(expand(key.bytes())),
            (CipherMode::Ctr, KeyLength::Aes256) => Keyed::Ctr256(expand(key.bytes())),
            (CipherMode::Gcm, _) => Keyed::Gcm(Box::new(GcmKey::new(key))),
        };
        Self { salt: *salt, layout, keyed }
    }

    /// Encrypts the packet that is in `out` from `start` on, header and payload, in place. GCM
    /// appends its tag. The same packet gives the same bytes each time, whatever its retransmission
    /// flag says.
    ///
    /// # Panics
    ///
    /// There is less than a header behind `start`.
    pub fn seal(&self, out: &mut Vec<u8>, start: usize) {
        let (header, payload) = out[start..]
            .split_first_chunk_mut::<HEADER_LEN>()
            .expect("a packet begins with its header");
        let first = self.first_counter(seq_of(header));
        match &self.keyed {
            Keyed::Ctr128(key) => counter::apply(&**key, first, payload),
            Keyed::Ctr192(key) => counter::apply(&**key, first, payload),
            Keyed::Ctr256(key) => counter::apply(&**key, first, payload),
            Keyed::Gcm(key) => {
                let tag = key.seal(&self.nonce(header), &self.aad(header), payload);
                out.extend_from_slice(&tag);
            }
        }
    }

    /// Decrypts the bytes that follow `header` in place, and returns how many of them are payload.
    ///
    /// # Errors
    ///
    /// GCM: the packet was not sealed with this key. `body` must not be used then.
    pub fn open(&self, header: &[u8; HEADER_LEN], body: &mut [u8]) -> Result<usize, NotAuthentic> {
        let first = self.first_counter(seq_of(header));
        match &self.keyed {
            Keyed::Ctr128(key) => counter::apply(&**key, first, body),
            Keyed::Ctr192(key) => counter::apply(&**key, first, body),
            Keyed::Ctr256(key) => counter::apply(&**key, first, body),
            Keyed::Gcm(key) => return key.open(&self.nonce(header), &self.aad(header), body),
        }
        Ok(body.len())
    }

    /// Bytes that a packet grows by.
    pub const fn overhead(&self) -> usize {
        match self.keyed {
            Keyed::Ctr128(_) | Keyed::Ctr192(_) | Keyed::Ctr256(_) => CipherMode::Ctr.overhead(),
            Keyed::Gcm(_) => CipherMode::Gcm.overhead(),
        }
    }

    /// The first counter block for a packet: the salt's first 14 bytes with the packet number in
    /// the last four of them, and two bytes that count blocks.
    fn first_counter(&self, seq: [u8; 4]) -> u128 {
        (u128::from_be_bytes(self.salt) >> 16 ^ u128::from(u32::from_be_bytes(seq))) << 16
    }

    fn nonce(&self, header: &[u8; HEADER_LEN]) -> Nonce {
        let mut nonce = [0; 12];
        match self.layout {
            GcmLayout::Current => {
                nonce.copy_from_slice(&self.salt[..12]);
                mix(&mut nonce[8..], seq_of(header));
            }
            GcmLayout::Before154 => {
                nonce.copy_from_slice(&self.first_counter(seq_of(header)).to_be_bytes()[..12]);
            }
        }
        nonce
    }

    /// The data that GCM authenticates beside the payload: the header without its retransmission
    /// flag.
    fn aad(&self, header: &[u8; HEADER_LEN]) -> [u8; HEADER_LEN] {
        let mut aad = *header;
        aad[RETRANSMITTED.0] &= !RETRANSMITTED.1;
        if self.layout == GcmLayout::Before154 {
            // Old peers took the words as they stood in the memory of a little-endian host.
            aad.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        }
        aad
    }
}

impl fmt::Debug for PacketCipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = if self.overhead() == 0 { CipherMode::Ctr } else { CipherMode::Gcm };
        f.debug_struct("PacketCipher").field("mode", &mode).finish_non_exhaustive()
    }
}

/// A packet's tag does not fit: it was changed on its way, or is not from whom it says.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the packet is not authentic")]
pub struct NotAuthentic;

const fn seq_of(header: &[u8; HEADER_LEN]) -> [u8; 4] {
    [header[0], header[1], header[2], header[3]]
}

fn mix(place: &mut [u8], seq: [u8; 4]) {
    place.iter_mut().zip(seq).for_each(|(byte, with)| *byte ^= with);
}

fn expand<C: KeyInit>(key: &[u8]) -> Box<C> {
    Box::new(C::new_from_slice(key).expect("a key has the length that it says"))
}

#[cfg(test)]
#[path = "cipher_tests.rs"]
mod tests;
