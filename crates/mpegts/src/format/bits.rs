/// Reads the fields of a header bit by bit. Beyond the end everything is zero, and the reader says
/// that it [is past the end](Self::is_past_end).
#[derive(Clone, Debug)]
pub(super) struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn flag(&mut self) -> bool {
        let byte = self.bytes.get(self.at / 8).copied().unwrap_or(0);
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        bit == 1
    }

    /// A number of up to 32 bits.
    pub(super) fn bits(&mut self, count: u32) -> u32 {
        (0..count).fold(0, |value, _| value << 1 | u32::from(self.flag()))
    }

    pub(super) fn skip(&mut self, count: usize) {
        self.at = self.at.saturating_add(count);
    }

    /// An unsigned number in the code of Exp-Golomb (`ue(v)` of H.264 and HEVC).
    pub(super) fn ue(&mut self) -> u32 {
        let mut zeros = 0;
        while zeros < 32 && !self.is_past_end() && !self.flag() {
            zeros += 1;
        }
        if zeros == 32 { u32::MAX } else { (1 << zeros) - 1 + self.bits(zeros) }
    }

    /// A signed number in the code of Exp-Golomb (`se(v)`).
    pub(super) fn se(&mut self) -> i64 {
        let code = i64::from(self.ue());
        if code % 2 == 0 { -(code / 2) } else { code / 2 + 1 }
    }

    /// A number of AV1's `uvlc()`, which is coded as `ue(v)` is.
    pub(super) fn uvlc(&mut self) -> u32 {
        self.ue()
    }

    pub(super) fn is_past_end(&self) -> bool {
        self.at > self.bytes.len() * 8
    }
}

/// Copies a NAL unit without the bytes that keep start codes out of it
/// (`emulation_prevention_three_byte`, ITU-T H.264 section 7.3.1).
pub fn without_emulation_prevention(nal: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(nal.len());
    let mut zeros = 0;
    for &byte in nal {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        plain.push(byte);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_exp_golomb() {
        let mut bits = Bits::new(&[0b1010_0110, 0b0100_0010, 0b1000_0000]);
        assert_eq!([bits.ue(), bits.ue(), bits.ue(), bits.ue()], [0, 1, 2, 3]);
        assert_eq!(bits.se(), -2);
        assert!(!bits.is_past_end());
        assert_eq!(Bits::new(&[0; 9]).ue(), u32::MAX);
    }

    #[test]
    fn emulation_prevention_is_taken_out() {
        let plain = without_emulation_prevention;
        assert_eq!(plain(&[1, 0, 0, 3, 1, 0, 0, 0, 3, 3]), [1, 0, 0, 1, 0, 0, 0, 3]);
        assert_eq!(plain(&[1, 0, 0, 3, 1, 3, 0, 0, 3]), [1, 0, 0, 1, 3, 0, 0]);
    }
}
