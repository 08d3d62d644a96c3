use md5_many::{Md5Digest, Md5Many, md5};

/// Whether payloads carry a checksum.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Checksum {
    /// MD5 of all of the payload, as srt-xtransmit has it.
    #[default]
    Md5,
    /// None: the checksum's 16 bytes are zero. It saves most of the time that a payload takes, and
    /// damage shows only in a payload's length.
    None,
}

/// Computes the MD5 of several payloads at once, which takes a fraction of the time of one after
/// the other: each step of MD5 needs the result of the step before, so a processor computes several
/// in the time of one.
#[derive(Clone, Debug)]
pub(crate) struct Checksums {
    engine: Md5Many,
    /// The bytes that the checksums cover, payload after payload.
    covered: Vec<u8>,
    /// The end of each payload in `covered`.
    ends: Vec<usize>,
    digests: Vec<Md5Digest>,
}

impl Default for Checksums {
    fn default() -> Self {
        Self { engine: Md5Many::new(), covered: Vec::new(), ends: Vec::new(), digests: Vec::new() }
    }
}

impl Checksums {
    /// Adds a payload whose checksum covers `head` and `rest`.
    pub(crate) fn add(&mut self, head: &[u8], rest: &[u8]) {
        self.covered.extend_from_slice(head);
        self.covered.extend_from_slice(rest);
        self.ends.push(self.covered.len());
    }

    /// The checksums of the payloads that were added since the last call, in their order.
    pub(crate) fn take(&mut self) -> &[Md5Digest] {
        self.digests.resize(self.ends.len(), [0; 16]);
        let mut start = 0;
        for (ends, digests) in self.ends.chunks(AT_ONCE).zip(self.digests.chunks_mut(AT_ONCE)) {
            let mut inputs = [&[][..]; AT_ONCE];
            for (input, &end) in inputs.iter_mut().zip(ends) {
                *input = &self.covered[start..end];
                start = end;
            }
            match (&inputs[..ends.len()], &mut *digests) {
                ([only], [digest]) => *digest = md5(only),
                (inputs, digests) => self.engine.hash_many(inputs, digests),
            }
        }
        self.covered.clear();
        self.ends.clear();
        &self.digests
    }
}

/// Payloads whose checksums are computed at once.
const AT_ONCE: usize = 16;

#[cfg(test)]
mod tests {
    use md5::Digest;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The reference is another implementation of MD5, which computes one at a time.
        #[test]
        fn checksums_of_many_payloads_are_those_of_each(
            payloads in prop::collection::vec(
                (prop::collection::vec(any::<u8>(), 0..1_500), 0usize..1_500),
                0..40,
            ),
        ) {
            let mut checksums = Checksums::default();
            for _ in 0..2 {
                for (payload, cut) in &payloads {
                    let (head, rest) = payload.split_at((*cut).min(payload.len()));
                    checksums.add(head, rest);
                }
                let expected: Vec<[u8; 16]> = payloads
                    .iter()
                    .map(|(payload, _)| md5::Md5::digest(payload).into())
                    .collect();
                prop_assert_eq!(checksums.take(), expected);
            }
        }

        #[test]
        fn checksums_of_equal_lengths_are_those_of_each(
            length in 0usize..1_500, count in 1usize..40, seed: u8,
        ) {
            let payload = |number: usize| -> Vec<u8> {
                (0..length).map(|at| (at * 7 + number * 31).to_le_bytes()[0] ^ seed).collect()
            };
            let mut checksums = Checksums::default();
            (0..count).for_each(|number| checksums.add(&payload(number), &[]));
            let expected: Vec<[u8; 16]> =
                (0..count).map(|number| md5::Md5::digest(payload(number)).into()).collect();
            prop_assert_eq!(checksums.take(), expected);
        }
    }
}
