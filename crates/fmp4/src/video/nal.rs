/// The NAL units of a byte stream with start codes (ISO/IEC 14496-10 annex B), without those.
pub(crate) fn nal_units(stream: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = start_code(stream, 0).map(|start| start + 3);
    std::iter::from_fn(move || {
        let begin = at?;
        let next = start_code(stream, begin);
        at = next.map(|start| start + 3);
        Some(without_trailing_zeros(&stream[begin..next.unwrap_or(stream.len())]))
    })
    .filter(|nal| !nal.is_empty())
}

/// The place of the next 00 00 01 from `from` on.
fn start_code(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from + 2;
    // The third byte tells how far the next start code is at least.
    while let Some(&third) = bytes.get(at) {
        match third {
            0 => at += 1,
            1 if bytes[at - 1] == 0 && bytes[at - 2] == 0 => return Some(at - 2),
            _ => at += 3,
        }
    }
    None
}

fn without_trailing_zeros(nal: &[u8]) -> &[u8] {
    let length = nal.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &nal[..length]
}

/// Appends a NAL unit with its length in four bytes before it.
pub(crate) fn append_with_length(nal: &[u8], to: &mut Vec<u8>) {
    // A PES packet is shorter than 4 GiB.
    let length = u32::try_from(nal.len()).unwrap_or(0);
    to.extend(length.to_be_bytes());
    to.extend_from_slice(nal);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn nal_units_lie_between_start_codes() {
        let stream = [9, 0, 0, 0, 1, 0x67, 1, 0, 0, 1, 0x68, 0, 0, 0, 0, 1, 0, 0, 1, 0x65, 0, 0, 3];
        let found: Vec<&[u8]> = nal_units(&stream).collect();
        assert_eq!(found, [&[0x67, 1][..], &[0x68], &[0x65, 0, 0, 3]]);
        assert_eq!(nal_units(&[0, 0, 1]).count(), 0);
        assert_eq!(nal_units(&[0, 0]).count(), 0);
    }

    proptest! {
        #[test]
        fn joined_units_are_split(
            nals in proptest::collection::vec(
                proptest::collection::vec(1_u8..=255, 1..40), 0..10),
        ) {
            let mut stream = Vec::new();
            for nal in &nals {
                stream.extend([0, 0, 1]);
                stream.extend(nal);
            }
            prop_assert_eq!(nal_units(&stream).collect::<Vec<_>>(), nals);
        }

        #[test]
        fn any_bytes_are_split(bytes in proptest::collection::vec(0_u8..4, 0..300)) {
            let length: usize = nal_units(&bytes).map(<[u8]>::len).sum();
            prop_assert!(length <= bytes.len());
        }
    }
}
