/// Reads the fields of a header bit by bit. After the end every field is `None`.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// The place of the next bit.
    at: usize,
}

impl<'a> BitReader<'a> {
    /// Reads these bytes from their first bit on.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The place of the next bit.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next bit.
    pub fn bit(&mut self) -> Option<bool> {
        let byte = self.bytes.get(self.at / 8)?;
        let bit = byte >> (7 - self.at % 8) & 1;
        self.at += 1;
        Some(bit == 1)
    }

    /// The next `count` bits, at most 32.
    pub fn bits(&mut self, count: u32) -> Option<u32> {
        let mut value = 0;
        for _ in 0..count {
            value = value << 1 | u32::from(self.bit()?);
        }
        Some(value)
    }

    /// The next eight bits.
    pub fn byte(&mut self) -> Option<u8> {
        self.bits(8).map(|byte| byte.to_be_bytes()[3])
    }

    /// Passes over `count` bits.
    pub fn skip(&mut self, count: u32) -> Option<()> {
        let at = self.at.saturating_add(usize::try_from(count).ok()?);
        if at > self.bytes.len() * 8 {
            return None;
        }
        self.at = at;
        Some(())
    }

    /// An unsigned Exp-Golomb code (ue(v)).
    pub fn unsigned(&mut self) -> Option<u32> {
        let mut zeros = 0;
        while !self.bit()? {
            zeros += 1;
            if zeros > 31 {
                return None;
            }
        }
        Some((1 << zeros) - 1 + self.bits(zeros)?)
    }

    /// A signed Exp-Golomb code (se(v)).
    pub fn signed(&mut self) -> Option<i32> {
        let code = i64::from(self.unsigned()?);
        i32::try_from(if code % 2 == 1 { code / 2 + 1 } else { -(code / 2) }).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fields_up_to_the_end() {
        let mut bits = BitReader::new(&[0b1010_0110, 0b1000_1010, 0b1000_0000]);
        assert_eq!(bits.unsigned(), Some(0));
        assert_eq!(bits.unsigned(), Some(1));
        assert_eq!(bits.signed(), Some(-1));
        assert_eq!(bits.bits(3), Some(0b010));
        assert_eq!(bits.unsigned(), Some(4));
        assert_eq!(bits.position(), 15);
        assert_eq!(bits.bits(9), Some(0b0_1000_0000));
        assert_eq!(bits.bit(), None);
        assert_eq!(bits.unsigned(), None);
        assert_eq!(bits.skip(1), None);
        assert_eq!(BitReader::new(&[0; 9]).unsigned(), None);
    }
}
