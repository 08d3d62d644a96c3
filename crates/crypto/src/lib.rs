//! SRT encryption (draft section 6): key messages, the keys that wrap keys, and packet ciphers.
//!
//! A [`Passphrase`] that both ends know gives a [`Kek`]; the KEK wraps random [`StreamKey`]s, which
//! travel in a [`KeyMessage`]; and each makes a [`PacketCipher`]. Which keys are made when, and
//! what is told to whom, is the protocol machine's part. This crate has no clock and no randomness:
//! keys and salts are what their user draws.
//!
//! Nothing here shows a key or a passphrase, and all of them are wiped when they are dropped.
//!
//! ```
//! use punctual_crypto::{
//!     CipherMode, GcmLayout, Kek, KeyLength, KeyMessage, KeySet, PacketCipher, Parity, Passphrase,
//!     StreamKey,
//! };
//!
//! // One end draws a key and a salt, and sends the key in a message.
//! let (salt, mode) = ([7; 16], CipherMode::Gcm);
//! let key = StreamKey::generate(KeyLength::Aes128, |bytes| bytes.fill(9));
//! let kek = Kek::derive(&Passphrase::new("correct horse")?, &salt, KeyLength::Aes128);
//! let keys = KeySet::one(Parity::Even, key.clone());
//! let message = KeyMessage::wrap(mode, salt, &keys, &kek).expect("one length").to_bytes();
//!
//! // The other one unwraps it, and decrypts what is sealed with it.
//! let message = KeyMessage::parse(&message)?;
//! let kek = Kek::derive(&Passphrase::new("correct horse")?, message.salt(), message.length());
//! let keys = message.unwrap(&kek)?;
//! let received = keys.get(Parity::Even).expect("the even key");
//! let opener = PacketCipher::new(mode, GcmLayout::Current, received, message.salt());
//!
//! let mut packet = [&[0; 16][..], b"payload"].concat();
//! PacketCipher::new(mode, GcmLayout::Current, &key, &salt).seal(&mut packet, 0);
//! let (header, body) = packet.split_first_chunk_mut().expect("a header");
//! let len = opener.open(header, body)?;
//! assert_eq!(&body[..len], b"payload");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod cipher;
mod counter;
mod gcm;
#[cfg(test)]
mod hex;
mod kek;
mod key;
mod message;
mod passphrase;
mod secret;

pub use cipher::{CipherMode, GcmLayout, NotAuthentic, PacketCipher};
pub use kek::{Kek, KekCache};
pub use key::{KeyLength, KeySet, Parity, Salt, StreamKey};
pub use message::{KeyMessage, KeyMessageError, WrongPassphrase};
pub use passphrase::{Passphrase, PassphraseError};
