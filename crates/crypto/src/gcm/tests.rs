use super::{GcmKey, Nonce};
use crate::hex::hex;
use crate::key::{KeyLength, StreamKey};

const LENGTHS: [KeyLength; 3] = [KeyLength::Aes128, KeyLength::Aes192, KeyLength::Aes256];

fn key(length: KeyLength, bytes: &[u8; 32]) -> StreamKey {
    StreamKey::generate(length, |out| out.copy_from_slice(&bytes[..length.bytes()]))
}

/// The test cases 4, 10 and 16 of GCM's authors, which NIST took over.
#[test]
fn gcm_as_in_its_specification() {
    let key = hex("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
    let nonce: Nonce = hex("cafebabefacedbaddecaf888").try_into().expect("12 bytes");
    let aad = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    let clear = hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72
         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
    let cases = [
        (
            "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e
             21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091",
            "5bc94fbc3221a5db94fae95ae7121a47",
        ),
        (
            "3980ca0b3c00e841eb06fac4872a2757859e1ceaa6efd984628593b40ca1e19c
             7d773d00c144c525ac619d18c84a3f4718e2448b2fe324d9ccda2710",
            "2519498e80f1478f37ba55bd6d27618c",
        ),
        (
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa
             8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
            "76fc6ece0f4e1768cddf8853bb2d551b",
        ),
    ];
    let key: [u8; 32] = key.try_into().expect("32 bytes");
    for (length, (sealed, tag)) in LENGTHS.into_iter().zip(cases) {
        let key = self::key(length, &key);
        let mut data = clear.clone();
        assert_eq!(GcmKey::new(&key).seal(&nonce, &aad, &mut data).to_vec(), hex(tag));
        assert_eq!(data, hex(sealed), "{length:?}");
    }
}

#[test]
fn each_changed_bit_of_tag_and_header_is_noticed() {
    for length in LENGTHS {
        let key = GcmKey::new(&key(length, &[7; 32]));
        let mut body = *b"payload: tag follows after these";
        let (payload, tag) = body.split_last_chunk_mut::<16>().expect("there is room");
        *tag = key.seal(&[1; 12], b"header", payload);
        for bit in 0..body.len() * 8 {
            let mut changed = body;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(key.open(&[1; 12], b"header", &mut changed).is_err(), "bit {bit}");
        }
        assert!(key.open(&[1; 12], b"heade", &mut body.clone()).is_err());
        assert_eq!(key.open(&[1; 12], b"header", &mut body), Ok(16));
        assert_eq!(body[..16], b"payload: tag follows after these"[..16]);
    }
}

/// The two implementations are the same cipher.
#[cfg(feature = "aws-lc")]
mod agreement {
    use proptest::prelude::*;

    use super::super::{aws_lc, pure_rust};
    use super::{LENGTHS, key};

    proptest! {
        #[test]
        fn one_opens_packets_that_the_other_has_sealed(
            length in prop::sample::select(&LENGTHS[..]), bytes: [u8; 32], nonce: [u8; 12],
            aad: [u8; 16], payload in prop::collection::vec(any::<u8>(), 0..1_500),
            bit in any::<prop::sample::Index>(),
        ) {
            let key = key(length, &bytes);
            let (aws, pure) = (aws_lc::GcmKey::new(&key), pure_rust::GcmKey::new(&key));
            let (mut by_aws, mut by_pure) = (payload.clone(), payload.clone());
            let tags = [aws.seal(&nonce, &aad, &mut by_aws), pure.seal(&nonce, &aad, &mut by_pure)];
            prop_assert_eq!(tags[0], tags[1]);
            prop_assert_eq!(&by_aws, &by_pure);

            let sealed = [&by_aws[..], &tags[0]].concat();
            let (mut one, mut other) = (sealed.clone(), sealed.clone());
            prop_assert_eq!(aws.open(&nonce, &aad, &mut one), Ok(payload.len()));
            prop_assert_eq!(pure.open(&nonce, &aad, &mut other), Ok(payload.len()));
            prop_assert_eq!(&one[..payload.len()], &payload[..]);
            prop_assert_eq!(&other[..payload.len()], &payload[..]);

            let mut changed = sealed;
            let bit = bit.index(changed.len() * 8);
            changed[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(aws.open(&nonce, &aad, &mut changed.clone()).is_err());
            prop_assert!(pure.open(&nonce, &aad, &mut changed).is_err());
        }
    }

    #[test]
    fn a_body_without_room_for_a_tag_is_refused() {
        let key = aws_lc::GcmKey::new(&key(LENGTHS[0], &[7; 32]));
        for len in 0..16 {
            assert!(key.open(&[0; 12], &[], &mut vec![0; len]).is_err());
        }
    }
}
