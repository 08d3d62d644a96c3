//! Key messages, and packets that somebody else encrypted.

use std::sync::OnceLock;

use punctual_crypto::{
    CipherMode, GcmLayout, Kek, KeyLength, KeyMessage, KeySet, PacketCipher, Parity, Passphrase,
    StreamKey,
};

use crate::input::FuzzInput;

const LENGTHS: [KeyLength; 3] = [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256];
const SALT: [u8; 16] = [7; 16];

/// The first byte chooses the meaning of the rest.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, rest)) = input.split_first() else { return };
    match kind % 3 {
        0 => message(rest),
        1 => changed_message(kind, &mut FuzzInput(rest)),
        _ => packet(kind, &mut FuzzInput(rest)),
    }
}

/// Whatever parses reads the same after it was written, and never gives keys to who has not
/// wrapped them.
fn message(bytes: &[u8]) {
    let message = match KeyMessage::parse(bytes) {
        Ok(message) => message,
        Err(error) => return drop(error.to_string()),
    };
    assert!(bytes.len() <= KeyMessage::MAX_LEN);
    assert_eq!(message.to_bytes(), bytes);
    assert!(keks().iter().all(|kek| message.unwrap(kek).is_err()), "forged");
}

/// A good message with some changed bytes: it gives the keys that went into it, or it is refused.
fn changed_message(kind: u8, input: &mut FuzzInput<'_>) {
    let kek = &keks()[usize::from(kind >> 2) % 3];
    let key = |byte| StreamKey::generate(kek.length(), |bytes| bytes.fill(byte));
    let keys = match kind >> 4 & 3 {
        0 => KeySet::one(Parity::Odd, key(1)),
        1 => KeySet::one(Parity::Even, key(1)).with(Parity::Odd, key(2)),
        _ => KeySet::one(Parity::Even, key(1)),
    };
    let mode = if kind & 0x40 == 0 { CipherMode::Ctr } else { CipherMode::Gcm };
    let message = KeyMessage::wrap(mode, SALT, &keys, kek).expect("of one length");
    let mut bytes = message.to_bytes();
    while let Some(at) = input.next() {
        match bytes.get_mut(usize::from(at)) {
            Some(byte) => *byte ^= input.byte(),
            None => bytes.truncate(usize::from(input.byte())),
        }
    }
    if let Ok(read) = KeyMessage::parse(&bytes)
        && let Ok(unwrapped) = read.unwrap(kek)
    {
        assert_eq!(read.wrapped(), message.wrapped(), "a changed wrap was opened");
        let given = |set: &KeySet| set.iter().map(|(_, key)| key.clone()).collect::<Vec<_>>();
        assert_eq!(given(&unwrapped), given(&keys));
    }
}

/// A packet with any header and body: what opens has been sealed.
fn packet(kind: u8, input: &mut FuzzInput<'_>) {
    let length = LENGTHS[usize::from(kind >> 2) % 3];
    let mode = if kind & 0x40 == 0 { CipherMode::Ctr } else { CipherMode::Gcm };
    let layout = if kind & 0x80 == 0 { GcmLayout::Current } else { GcmLayout::Before154 };
    let key = StreamKey::generate(length, |bytes| bytes.fill(9));
    let cipher = PacketCipher::new(mode, layout, &key, &SALT);
    let mut header = [0; 16];
    for byte in &mut header {
        *byte = input.byte();
    }
    let mut body = input.0.to_vec();
    let opened = cipher.open(&header, &mut body);
    match mode {
        CipherMode::Ctr => assert_eq!(opened, Ok(input.0.len())),
        CipherMode::Gcm => assert!(opened.is_err(), "forged"),
    }
    let mut sealed = [&header[..], input.0].concat();
    cipher.seal(&mut sealed, 0);
    assert_eq!(sealed.len(), 16 + input.0.len() + mode.overhead());
    let (sealed_header, body) = sealed.split_first_chunk_mut().expect("a header");
    let len = cipher.open(sealed_header, body).expect("it was sealed with this key");
    assert_eq!(&body[..len], input.0);
}

/// A key for each length, made from a passphrase once: that takes long on purpose.
fn keks() -> &'static [Kek; 3] {
    static KEKS: OnceLock<[Kek; 3]> = OnceLock::new();
    KEKS.get_or_init(|| {
        let passphrase = Passphrase::new("correct horse").expect("long enough");
        LENGTHS.map(|length| Kek::derive(&passphrase, &SALT, length))
    })
}
