/// The packets of a [`Link`](crate::Link): anything with a size that can be copied and corrupted.
#[expect(clippy::len_without_is_empty, reason = "a packet's size, not a collection's")]
pub trait Packet: Clone {
    /// Bytes that the packet takes on the link. Add the headers of lower layers here if the link's
    /// rate is to count them.
    fn len(&self) -> usize;

    /// Damages the content; `entropy` decides where.
    fn corrupt(&mut self, entropy: u64);
}

impl Packet for Vec<u8> {
    fn len(&self) -> usize {
        self.len()
    }

    /// Flips one bit; an empty packet stays as it is.
    fn corrupt(&mut self, entropy: u64) {
        let byte = (entropy >> 3).checked_rem(self.len() as u64).map(usize::try_from);
        if let Some(Ok(byte)) = byte {
            self[byte] ^= 1 << (entropy & 7);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corruption_flips_exactly_one_bit() {
        for entropy in [0, 7, 8, 12_345, u64::MAX] {
            let mut packet = vec![0_u8; 3];
            packet.corrupt(entropy);
            assert_eq!(packet.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1);
        }
        let mut empty = Vec::<u8>::new();
        empty.corrupt(5);
        assert!(empty.is_empty());
    }
}
