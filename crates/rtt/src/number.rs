/// The number of a packet that asks for an acknowledgement, in the order of sending.
///
/// A later packet has a greater number. Numbers may be left out, and never wrap.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct PacketNumber(u64);

impl PacketNumber {
    /// The number `value`.
    pub const fn new(value: u64) -> Self {
        Self(value)
    }

    /// The number as an integer.
    pub const fn value(self) -> u64 {
        self.0
    }

    /// The number after this one.
    #[must_use]
    pub const fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }

    /// The number nearest to this one whose low `bits` bits are those of `truncated` (RFC 9000
    /// appendix A.3). Of two that are equally near it is the greater one.
    ///
    /// SRT's numbers have 31 bits: expanded beside the newest number they wrap no more.
    ///
    /// # Panics
    ///
    /// `bits` is 0 or greater than 32.
    #[must_use]
    pub const fn expand(self, truncated: u32, bits: u32) -> Self {
        assert!(bits >= 1 && bits <= 32, "a truncated number has 1 to 32 bits");
        let modulus = 1_u64 << bits;
        let half = modulus / 2;
        let same_round = self.0 & !(modulus - 1) | (truncated as u64 & (modulus - 1));
        if same_round + half <= self.0 {
            Self(same_round.saturating_add(modulus))
        } else if same_round > self.0.saturating_add(half) && same_round >= modulus {
            Self(same_round - modulus)
        } else {
            Self(same_round)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_truncated_number_expands_to_the_nearest_one() {
        let expand =
            |near, truncated, bits| PacketNumber::new(near).expand(truncated, bits).value();
        assert_eq!(expand(0x7FFF_FFFF, 0, 31), 0x8000_0000, "the number after the wrap");
        assert_eq!(expand(0x8000_0000, 0x7FFF_FFFF, 31), 0x7FFF_FFFF, "and the one before it");
        assert_eq!(expand(5, 0x7FFF_FFFF, 31), 0x7FFF_FFFF, "nothing comes before zero");
        assert_eq!(expand(0x1_0000_0005, 7, 32), 0x1_0000_0007);
        assert_eq!(expand(100, 100, 8), 100);
        // RFC 9000, appendix A.3.
        assert_eq!(expand(0xa82f_30ea, 0x9b32, 16), 0xa82f_9b32);
    }

    #[test]
    fn a_truncated_number_stays_within_half_a_round_of_the_reference() {
        for near in 256..1_024_u64 {
            for truncated in 0..=255_u32 {
                let found = PacketNumber::new(near).expand(truncated, 8).value();
                assert_eq!(found % 256, u64::from(truncated));
                assert!(found + 128 > near && found <= near + 128, "{near} {truncated}: {found}");
            }
        }
    }
}
