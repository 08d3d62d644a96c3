//! AES-GCM packets recorded from libsrt, which sent 24 bytes a packet to a Punctual listener under
//! the passphrase `correct-horse`: its key message unwraps, its packets open, and what is sealed
//! with its key is what it sent, byte for byte.
//!
//! It was a build of libsrt 1.5.5 (`c39196c9`) with OpenSSL and `ENABLE_AEAD_API_PREVIEW`, for no
//! package has GCM. The old layout is what it speaks to a peer that says it is 1.5.3.

#![forbid(unsafe_code)]

use punctual_crypto::{
    CipherMode, GcmLayout, Kek, KeyLength, KeyMessage, PacketCipher, Parity, Passphrase,
};

/// The record of one session.
struct Session {
    length: KeyLength,
    layout: GcmLayout,
    key_message: &'static str,
    /// The first two data packets.
    packets: [&'static str; 2],
}

#[test]
fn packets_of_libsrt_are_read_and_made_again() {
    for session in SESSIONS {
        let what = (session.length, session.layout);
        let bytes = hex(session.key_message);
        let message = KeyMessage::parse(&bytes).expect("libsrt's key message");
        assert_eq!(
            (message.mode(), message.length()),
            (CipherMode::Gcm, session.length),
            "{what:?}"
        );
        assert_eq!(message.to_bytes(), bytes, "{what:?}");
        let passphrase = Passphrase::new("correct-horse").expect("a legal length");
        let kek = Kek::derive(&passphrase, message.salt(), message.length());
        let keys = message.unwrap(&kek).expect("the right passphrase");
        let key = keys.get(Parity::Even).expect("the first key is the even one");
        let cipher = PacketCipher::new(message.mode(), session.layout, key, message.salt());
        for (number, packet) in session.packets.iter().enumerate() {
            let clear = format!("This is message {number:08}");
            let recorded = hex(packet);
            let mut packet = recorded.clone();
            let (header, body) = packet.split_first_chunk_mut::<16>().expect("a header");
            let len = cipher.open(header, body).expect("authentic");
            assert_eq!(&body[..len], clear.as_bytes(), "{what:?}");

            let mut again = [&recorded[..16], clear.as_bytes()].concat();
            cipher.seal(&mut again, 0);
            assert_eq!(again, recorded, "{what:?}");
        }
    }
}

#[test]
fn the_old_layout_shares_its_nonce_among_neighbours() {
    // This is the flaw that the documents explain: two packets have one keystream.
    let [one, two] = OLD.packets.map(hex);
    let same = one[16..].iter().zip(&two[16..]).take_while(|(one, two)| one == two).count();
    assert_eq!(same, 23, "the messages differ in their last byte only");
}

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hexadecimal digits")).collect()
}

const OLD: Session = Session {
    length: KeyLength::Aes128,
    layout: GcmLayout::Before154,
    key_message: "1220290100000000040102000000040448e9816357a17ef93d788f88e70b93fed49155cd99be85\
                  c540ff77c73dadc8e905174e33422a92f4",
    packets: [
        "241c4c3fc800000100123f6a1a2351b8f2c7b238843535ac9574c36faf67432710cc0440548845f6cfd0486d\
         4d219657b5e7778c87e81d7b",
        "241c4c40c8000002001266ee1a2351b8f2c7b238843535ac9574c36faf67432710cc0440548845f792814066\
         151ec7a9ef1516c3361f2dfa",
    ],
};

const SESSIONS: [Session; 3] = [
    Session {
        length: KeyLength::Aes128,
        layout: GcmLayout::Current,
        key_message: "122029010000000004010200000004048c9da63605ed65ae1558db3d5fdfec43178da87505\
                      cb694e457938797cd07cb0ede009f60357326b",
        packets: [
            "4e580788c800000100123c0f381fbd68ae9d55b89e63adc2d665e6e009857a41f7ec8e6a723144ff5d44\
             9c5ca6358b761aebc3e59072c3bb",
            "4e580789c800000200126390381fbd689be56b3925814a00c648bdaa4a183419a87569f97f4b17adc6e8\
             5a565dd4aaea590ed2caaa5e0074",
        ],
    },
    Session {
        length: KeyLength::Aes256,
        layout: GcmLayout::Current,
        key_message: "122029010000000004010200000004080dcf672a2a841cb8855a81c2095afb13b5f822265b\
                      ca8b1dacf842a1ba41a56e468125195d01ef493f95c6e3508c466a42697eb677edf972",
        packets: [
            "13a37ed4c800000100123adc1e01e664904f5a124e57f278e22400c6e959d2b8dc87c72a2a0fdff3b57b\
             6bcf2c8ce2f266bc3c4a1a7f1d02",
            "13a37ed5c8000002001262641e01e6644da8d2e54249577bd8dd8ce187f94c5796292919b02ac9e6c21a\
             99fd49f74147c530f353580b0ae5",
        ],
    },
    OLD,
];
