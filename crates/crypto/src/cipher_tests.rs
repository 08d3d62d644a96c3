use super::*;
use crate::hex::hex;

fn block(digits: &str) -> u128 {
    u128::from_be_bytes(hex(digits).try_into().expect("16 bytes"))
}

/// NIST SP 800-38A, F.5.1, F.5.3 and F.5.5: the first two blocks, whose counters do not begin at 0.
#[test]
fn counter_mode_as_in_sp_800_38a() {
    let clear = "6bc1bee22e409f96e93d7e117393172a ae2d8a571e03ac9c9eb76fac45af8e51";
    let encrypt = |key: &str, cipher: fn(&[u8], u128, &mut [u8])| {
        let mut data = hex(clear);
        let (first, second) = data.split_at_mut(16);
        cipher(&hex(key), block("f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"), first);
        cipher(&hex(key), block("f0f1f2f3f4f5f6f7f8f9fafbfcfdff00"), second);
        data
    };
    assert_eq!(
        encrypt("2b7e151628aed2a6abf7158809cf4f3c", |key, at, data| {
            counter::apply(&*expand::<Aes128>(key), at, data);
        }),
        hex("874d6191b620e3261bef6864990db6ce 9806f66b7970fdff8617187bb9fffdff")
    );
    assert_eq!(
        encrypt("8e73b0f7da0e6452c810f32b809079e562f8ead2522c6b7b", |key, at, data| {
            counter::apply(&*expand::<Aes192>(key), at, data);
        }),
        hex("1abc932417521ca24f2b0459fe7e6e0b 090339ec0aa6faefd5ccc2c6f4ce8e94")
    );
    let key = "603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4";
    assert_eq!(
        encrypt(key, |key, at, data| counter::apply(&*expand::<Aes256>(key), at, data)),
        hex("601ec313775789a5b7a7f504bbf3d228 f443e3ca4d62b59aca84e990cacaf5c5")
    );
}

fn cipher(mode: CipherMode, layout: GcmLayout) -> PacketCipher {
    let salt = std::array::from_fn(|i| u8::try_from(i).expect("under 16"));
    let key = StreamKey::generate(KeyLength::Aes128, |bytes| bytes.fill(0x42));
    PacketCipher::new(mode, layout, &key, &salt)
}

const HEADER: [u8; 16] = [1, 2, 3, 4, 0xC8, 0, 0, 5, 0x11, 0x22, 0x33, 0x44, 5, 6, 7, 8];

#[test]
fn counter_block_and_nonce_of_a_packet() {
    let current = cipher(CipherMode::Gcm, GcmLayout::Current);
    let counter = block("000102030405060708090B090F090000");
    assert_eq!(current.first_counter(seq_of(&HEADER)), counter);
    assert_eq!(current.nonce(&HEADER).to_vec(), hex("0001020304050607090B090F"));
    assert_eq!(current.aad(&HEADER), HEADER);
    let old = cipher(CipherMode::Gcm, GcmLayout::Before154);
    assert_eq!(old.nonce(&HEADER).to_vec(), hex("000102030405060708090B09"));
    assert_eq!(old.aad(&HEADER).to_vec(), hex("04030201 050000C8 44332211 08070605"));
    assert_eq!(GcmLayout::of_version(0x01_05_04), GcmLayout::Current);
    assert_eq!(GcmLayout::of_version(0x01_05_03), GcmLayout::Before154);
}

#[test]
fn a_retransmission_is_the_same_packet_but_for_its_flag() {
    for (mode, layout) in [
        (CipherMode::Ctr, GcmLayout::Current),
        (CipherMode::Gcm, GcmLayout::Current),
        (CipherMode::Gcm, GcmLayout::Before154),
    ] {
        let cipher = cipher(mode, layout);
        let mut again = HEADER;
        again[RETRANSMITTED.0] |= RETRANSMITTED.1;
        let sealed = |header: &[u8]| {
            // Bytes before the packet in the buffer are not touched.
            let mut out = [b"before", header, b"a payload"].concat();
            cipher.seal(&mut out, 6);
            assert_eq!(out.len(), 6 + 16 + 9 + mode.overhead());
            assert_eq!((&out[..6], &out[6..22]), (&b"before"[..], header));
            out[22..].to_vec()
        };
        let body = sealed(&HEADER);
        assert_eq!(body, sealed(&again));
        for header in [HEADER, again] {
            let mut body = body.clone();
            assert_eq!(cipher.open(&header, &mut body), Ok(9));
            assert_eq!(body[..9], b"a payload"[..]);
        }
    }
}

#[test]
fn gcm_notices_each_bit_that_changed() {
    let cipher = cipher(CipherMode::Gcm, GcmLayout::Current);
    let mut out = [&HEADER[..], b"payload"].concat();
    cipher.seal(&mut out, 0);
    for bit in 0..out.len() * 8 {
        let mut changed = out.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let (header, body) = changed.split_first_chunk_mut().expect("a header");
        let flag = (bit / 8, 1 << (bit % 8)) == RETRANSMITTED;
        assert_eq!(cipher.open(header, body).is_ok(), flag, "bit {bit}");
    }
    for len in 0..16 {
        assert_eq!(cipher.open(&HEADER, &mut vec![0; len]), Err(NotAuthentic));
    }
}

#[test]
fn a_cipher_shows_no_key() {
    let shown = format!("{:?}", cipher(CipherMode::Ctr, GcmLayout::Current));
    assert_eq!(shown, "PacketCipher { mode: Ctr, .. }");
}

/// A feature of the cipher crates wipes keys; without it nothing else would fail.
#[test]
fn expanded_keys_are_wiped_when_they_are_dropped() {
    const fn wiped<T: zeroize::ZeroizeOnDrop>() {}
    wiped::<crate::secret::Secret>();
    wiped::<Aes128>();
    wiped::<Aes192>();
    wiped::<Aes256>();
    wiped::<aes_gcm::AesGcm<Aes128, aes::cipher::consts::U12>>();
    wiped::<aes_gcm::AesGcm<Aes256, aes::cipher::consts::U12>>();
}
