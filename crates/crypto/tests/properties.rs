//! Properties that hold for every key, packet and message.

use proptest::prelude::*;
use punctual_crypto::{
    CipherMode, GcmLayout, Kek, KeyLength, KeyMessage, KeySet, PacketCipher, Parity, Passphrase,
    Salt, StreamKey,
};

fn lengths() -> impl Strategy<Value = KeyLength> {
    prop_oneof![Just(KeyLength::Aes128), Just(KeyLength::Aes192), Just(KeyLength::Aes256)]
}

fn modes() -> impl Strategy<Value = (CipherMode, GcmLayout)> {
    prop_oneof![
        Just((CipherMode::Ctr, GcmLayout::Current)),
        Just((CipherMode::Gcm, GcmLayout::Current)),
        Just((CipherMode::Gcm, GcmLayout::Before154)),
    ]
}

fn key(length: KeyLength, bytes: &[u8; 32]) -> StreamKey {
    StreamKey::generate(length, |out| out.copy_from_slice(&bytes[..length.bytes()]))
}

proptest! {
    #[test]
    fn any_bytes_are_parsed_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = KeyMessage::parse(&bytes);
    }

    /// Headers that are legal up to one changed byte, with any length behind them.
    #[test]
    fn nearly_legal_messages_are_written_as_they_were_read(
        at in 0..16_usize, to: u8, salt: Salt, keys in prop::collection::vec(any::<u8>(), 0..90),
    ) {
        let mut bytes = vec![0x12, 0x20, 0x29, 1, 0, 0, 0, 0, 2, 0, 2, 0, 0, 0, 4, 4];
        bytes[at] = to;
        bytes.extend_from_slice(&salt);
        bytes.extend_from_slice(&keys);
        if let Ok(message) = KeyMessage::parse(&bytes) {
            prop_assert_eq!(message.to_bytes(), bytes);
        }
    }

    #[test]
    fn a_sealed_payload_opens_unchanged(
        length in lengths(), (mode, layout) in modes(), bytes: [u8; 32], salt: Salt,
        header: [u8; 16], payload in prop::collection::vec(any::<u8>(), 0..1_500),
    ) {
        let key = key(length, &bytes);
        let cipher = PacketCipher::new(mode, layout, &key, &salt);
        let mut packet = [&header[..], &payload].concat();
        cipher.seal(&mut packet, 0);
        let len = packet.len();
        prop_assert_eq!(len, 16 + payload.len() + cipher.overhead());
        let (read, body) = packet.split_first_chunk_mut().expect("a header");
        prop_assert_eq!(*read, header);
        prop_assert_eq!(cipher.open(read, body), Ok(payload.len()));
        prop_assert_eq!(&body[..payload.len()], &payload[..]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn keys_come_back_from_a_message_that_nobody_changed(
        length in lengths(), one: [u8; 32], two: [u8; 32], salt: Salt,
        passphrase in prop::collection::vec(any::<u8>(), 10..=80), bit in 0..640_usize,
    ) {
        let passphrase = Passphrase::new(passphrase).expect("a legal length");
        let kek = Kek::derive(&passphrase, &salt, length);
        let keys = KeySet::one(Parity::Even, key(length, &one));
        let keys = keys.with(Parity::Odd, key(length, &two));
        let message = KeyMessage::wrap(CipherMode::Ctr, salt, &keys, &kek).expect("one length");
        let mut bytes = message.to_bytes();
        prop_assert_eq!(KeyMessage::parse(&bytes).unwrap().unwrap(&kek), Ok(keys));
        let wrapped = 32 * 8 + bit % ((bytes.len() - 32) * 8);
        bytes[wrapped / 8] ^= 1 << (wrapped % 8);
        prop_assert!(KeyMessage::parse(&bytes).unwrap().unwrap(&kek).is_err());
    }
}
