//! Datagrams that libsrt 1.5.1 (srt-live-transmit) sent, recorded between a caller and a listener
//! whose passphrase is known.

use punctual_crypto::{
    CipherMode, GcmLayout, Kek, KeyLength, KeyMessage, KeySet, PacketCipher, Parity, Passphrase,
};

const PASSPHRASE: &str = "our-own-passphrase";

/// A key message of a conclusion, and the first data packets after it.
struct Recorded {
    length: KeyLength,
    message: &'static str,
    packets: [&'static str; 2],
}

const RECORDED: [Recorded; 3] = [
    Recorded {
        length: KeyLength::Aes128,
        message: "12202901000000000200020000000404031b549223508666ed76ed4161cd6869\
        df3c7fd64a9f773fa849ea48730ee67f2633aab5c381784e",
        packets: [
            "49bb3167c8000001000f525a19459237b2a6c7ad6312613a96f04805270fe2dd\
            c2e1ebc88edf7c809347f34b413bdc5c05124394a41a6a39ae8bd54a32",
            "49bb3168c8000002000fca4919459237c0f3861da0ba249c710c5bec3d4a7eb4\
            10352e904ecf28cdcc0756d2de60a1c77e5154c9c6cc1374f6edd56337",
        ],
    },
    Recorded {
        length: KeyLength::Aes192,
        message: "1220290100000000020002000000040617a6309d88b3d0d465f89b9cfdea5327\
        73795bf84e375929e984a8709ad8d47dd8c60e1ffacb3bb0d9cb969fa640d4c7",
        packets: [
            "2b4b1e3cc8000001000f74492e55ed31486216d68811e3aa311c2b23a8066ad5\
            0fabe9cfe413788cefff741a940ef2c193aa028ade4526f5e96beed7ad",
            "2b4b1e3dc8000002000fb3812e55ed31a206b6da0516bd0a334e6797a1145e1e\
            6aed7dcff18f1c1ce5ffb0914078eb62feb1a56e5b85c1b5e61dfe5f41",
        ],
    },
    Recorded {
        length: KeyLength::Aes256,
        message: "12202901000000000200020000000408b364a521e8640d510b376bc503e56479\
        10995381fd6dbc8a3f5a262bab1b384c135c33ed240531d180a7728ddb4a0530\
        5cbadf877839ed5a",
        packets: [
            "13a08984c8000001000f50440b04595c60a08003291e2cddcf2637d77c09e772\
            f3b7ac8aa3c8e99a7b004e19bf16fcab8fecc233eb8c1e7bcbf0c9af05",
            "13a08985c8000002000f907d0b04595ceb77f46235f7783b069a47517d470dbc\
            e91d2332f8852f4d42263f3c6a185e4ac0d6bc46d9f94f04aa72bce30c",
        ],
    },
];

/// With `kmrefreshrate=16&kmpreannounce=4`: the key message of the conclusion, that of the first
/// refresh, the last packet under the first key and the first one under the second.
const FIRST: &str = "12202901000000000200020000000404cd29c193551530d413a157303480e3cd\
    dd5ef10c5f7d43a08df7cb5cd5e42e15b42c7ad0e669967c";
const REFRESH: &str = "12202903000000000200020000000404cd29c193551530d413a157303480e3cd\
    1df3af5a0af30ebac2b6f1f9fec942eecef3995d52056e3854e4cf92316195e2\
    5bc271b3fd74f582";
const LAST_EVEN: &str = "06bac28ec8000010001458d6399c0130a4c74d7627fc188b8b102afc9124ed4b\
    e03227360ca794f18e76ffa0d8320aa48f044f3b4b6d74cf364d6650a1";
const FIRST_ODD: &str = "06bac28fd00000110014d696399c0130c822c6df409ba7cb382f60a015d91ed0\
    77c4694db02b96b76e3ca551051ddee80c87c8f2a46f75959ed1694e90";

fn hex(digits: &str) -> Vec<u8> {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a hexadecimal digit");
    digits
        .as_bytes()
        .chunks(2)
        .map(|pair| u8::try_from(digit(pair[0]) << 4 | digit(pair[1])).expect("a byte"))
        .collect()
}

fn keys_of(message: &str, passphrase: &str) -> Option<(KeyMessage, Kek, KeySet)> {
    let message = KeyMessage::parse(&hex(message)).expect("a key message");
    let passphrase = Passphrase::new(passphrase).expect("a legal length");
    let kek = Kek::derive(&passphrase, message.salt(), message.length());
    let keys = message.unwrap(&kek).ok()?;
    Some((message, kek, keys))
}

fn cipher(message: &KeyMessage, keys: &KeySet, parity: Parity) -> PacketCipher {
    let key = keys.get(parity).expect("the key is there");
    PacketCipher::new(message.mode(), GcmLayout::Current, key, message.salt())
}

/// Opens a recorded packet, and seals it again to the same bytes.
#[track_caller]
fn assert_says(cipher: &PacketCipher, packet: &str, expected: &str) {
    let recorded = hex(packet);
    let (header, body) = recorded.split_first_chunk().expect("a header");
    let mut payload = body.to_vec();
    assert_eq!(cipher.open(header, &mut payload), Ok(body.len()));
    assert_eq!(String::from_utf8_lossy(&payload), expected);
    let mut sealed = [&header[..], &payload].concat();
    cipher.seal(&mut sealed, 0);
    assert_eq!(sealed, recorded);
}

#[test]
fn libsrts_packets_are_read_with_its_key_message() {
    for recorded in &RECORDED {
        let (message, kek, keys) = keys_of(recorded.message, PASSPHRASE).expect("the passphrase");
        assert_eq!((message.mode(), message.length()), (CipherMode::Ctr, recorded.length));
        let cipher = cipher(&message, &keys, Parity::Even);
        for (i, packet) in recorded.packets.iter().enumerate() {
            let expected = format!("recorded message {i:02} of a stream that is known");
            assert_says(&cipher, packet, &expected);
        }
        // Wrapping has no chance in it: our message of the same key is libsrt's.
        let ours = KeyMessage::wrap(CipherMode::Ctr, *message.salt(), &keys, &kek);
        assert_eq!(ours.expect("one length").to_bytes(), hex(recorded.message));
    }
}

#[test]
fn another_passphrase_does_not_unwrap_them() {
    for recorded in &RECORDED {
        assert!(keys_of(recorded.message, "our-own-passphrasf").is_none());
    }
}

#[test]
fn libsrts_refresh_brings_the_old_key_and_the_new_one() {
    let (message, _, first) = keys_of(FIRST, PASSPHRASE).expect("the passphrase");
    let (refresh, _, both) = keys_of(REFRESH, PASSPHRASE).expect("the passphrase");
    assert_eq!(refresh.salt(), message.salt());
    assert_eq!(both.get(Parity::Even), first.get(Parity::Even));
    let (even, odd) = (LAST_EVEN, FIRST_ODD);
    let expected = "recorded message 15 of a stream that is known";
    assert_says(&cipher(&refresh, &both, Parity::Even), even, expected);
    let expected = "recorded message 16 of a stream that is known";
    assert_says(&cipher(&refresh, &both, Parity::Odd), odd, expected);
}
