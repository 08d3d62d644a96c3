use crate::ReadStampError;

/// Payloads that arrived damaged, over the whole run.
///
/// Such a payload counts as received and in one of these two, and nowhere else: none of its fields
/// can be trusted, so its number stays missing and its times measure nothing. srt-xtransmit counts
/// a cut payload under both, since its checksum fails too; here it is a wrong length alone.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Integrity {
    /// Payloads of the right length whose MD5 checksum is wrong.
    pub checksum_errors: u64,
    /// Payloads of another length than their stamp says, or too short to have a stamp.
    pub length_errors: u64,
}

impl Integrity {
    /// Takes in a payload whose stamp could not be read because of `error`.
    pub fn submit(&mut self, error: ReadStampError) {
        match error {
            ReadStampError::TooShort { .. } | ReadStampError::WrongLength { .. } => {
                self.length_errors += 1;
            }
            ReadStampError::WrongChecksum => self.checksum_errors += 1,
        }
    }

    /// All damaged payloads.
    pub fn errors(self) -> u64 {
        self.checksum_errors + self.length_errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_counts_once() {
        let mut integrity = Integrity::default();
        integrity.submit(ReadStampError::TooShort { length: 3, least: 56 });
        integrity.submit(ReadStampError::WrongLength { length: 99, stamped: 100 });
        integrity.submit(ReadStampError::WrongChecksum);
        assert_eq!(integrity, Integrity { checksum_errors: 1, length_errors: 2 });
        assert_eq!(integrity.errors(), 3);
    }
}
