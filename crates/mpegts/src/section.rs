use crate::Packet;

/// Joins the sections of one PID across its packets (ISO/IEC 13818-1 section 2.4.4).
///
/// A section whose CRC-32 is wrong is counted and left out. At most one section is kept, of at most
/// 4,098 bytes, with the packets in which it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct SectionReader {
    /// The bytes of the section that has begun.
    section: Vec<u8>,
    /// The packets in which it came so far, with their numbers in the stream.
    packets: Vec<NumberedPacket>,
    has_begun: bool,
}

/// A packet, and its number in the stream.
pub(crate) type NumberedPacket = (u64, [u8; crate::PACKET_LEN]);

/// A section that is complete.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section<'a> {
    pub(crate) bytes: &'a [u8],
    /// The packets from the one in which the section begins to the one in which it ends.
    pub(crate) packets: &'a [NumberedPacket],
}

impl SectionReader {
    /// Takes in the next packet of the PID, whose number in the stream is `number`, and gives each
    /// section that it completes; the number of those with a wrong CRC is returned.
    ///
    /// `follows` says that no packet is missing before it.
    pub(crate) fn push(
        &mut self,
        packet: Packet<'_>,
        number: u64,
        follows: bool,
        mut complete: impl FnMut(Section<'_>),
    ) -> u64 {
        if !follows {
            self.drop_section();
        }
        let mut payload = packet.payload();
        let mut damaged = 0;
        if packet.starts_payload_unit() {
            let Some((&pointer, rest)) = payload.split_first() else { return 0 };
            let (tail, rest) = rest.split_at(rest.len().min(pointer.into()));
            if self.has_begun {
                self.packets.push((number, *packet.bytes()));
                damaged += self.take(tail, &mut complete).1;
            }
            self.drop_section();
            payload = rest;
            self.has_begun = !payload.is_empty() && payload[0] != STUFFING;
        }
        if !self.has_begun {
            return damaged;
        }
        self.packets.push((number, *packet.bytes()));
        loop {
            let (rest, wrong) = self.take(payload, &mut complete);
            damaged += wrong;
            if self.section.is_empty() {
                self.packets.clear();
                self.has_begun = rest.first().is_some_and(|&table| table != STUFFING);
                if self.has_begun {
                    self.packets.push((number, *packet.bytes()));
                    payload = rest;
                    continue;
                }
            }
            return damaged;
        }
    }

    /// Adds bytes to the section up to its end. Gives what is left of them.
    fn take<'a>(
        &mut self,
        mut bytes: &'a [u8],
        complete: &mut impl FnMut(Section<'_>),
    ) -> (&'a [u8], u64) {
        for needed in [HEADER_LEN, usize::MAX] {
            let needed = if needed == HEADER_LEN { needed } else { section_len(&self.section) };
            let missing = needed.saturating_sub(self.section.len()).min(bytes.len());
            self.section.extend_from_slice(&bytes[..missing]);
            bytes = &bytes[missing..];
            if self.section.len() < needed {
                return (bytes, 0);
            }
        }
        // One without the long syntax has no CRC, as a table of private data may have.
        let is_long = self.section[1] & 0x80 != 0;
        let is_sound = !is_long || (self.section.len() >= LONG_LEN && crc32(&self.section) == 0);
        if is_sound {
            complete(Section { bytes: &self.section, packets: &self.packets });
        }
        self.section.clear();
        (bytes, u64::from(!is_sound))
    }

    fn drop_section(&mut self) {
        self.section.clear();
        self.packets.clear();
        self.has_begun = false;
    }
}

/// The length of a section by its first three bytes.
pub(crate) fn section_len(header: &[u8]) -> usize {
    HEADER_LEN + usize::from(u16::from_be_bytes([header[1] & 0x0F, header[2]]))
}

/// The checksum of sections (ISO/IEC 13818-1 annex A); 0 over a section with its checksum.
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    crc32_from(u32::MAX, bytes)
}

/// The checksum's register after `bytes`, if it was `register` before.
pub(crate) fn crc32_from(register: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(register, |register, &byte| {
        (register << 8) ^ CRC_TABLE[usize::from(register.to_be_bytes()[0] ^ byte)]
    })
}

const CRC_TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let (mut index, mut top) = (0, 0_u32);
    while index < 256 {
        let mut register = top << 24;
        let mut bit = 0;
        while bit < 8 {
            let carry = register & 0x8000_0000 != 0;
            register = (register << 1) ^ if carry { 0x04C1_1DB7 } else { 0 };
            bit += 1;
        }
        table[index] = register;
        (index, top) = (index + 1, top + 1);
    }
    table
};

/// The bytes up to and with a section's length.
pub(crate) const HEADER_LEN: usize = 3;

/// The least length of a section of the long syntax: header, identifier, version, numbers, CRC.
pub(crate) const LONG_LEN: usize = 12;

/// The byte that fills a packet after its last section.
pub(crate) const STUFFING: u8 = 0xFF;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::sample::{section, section_packets};

    fn read(packets: &[[u8; 188]], missing: Option<usize>) -> (Vec<Vec<u8>>, u64) {
        let mut reader = SectionReader::default();
        let (mut sections, mut damaged, mut follows) = (Vec::new(), 0, true);
        for (number, bytes) in packets.iter().enumerate() {
            if missing == Some(number) {
                follows = false;
                continue;
            }
            let packet = Packet::new(bytes).unwrap();
            damaged += reader.push(packet, number as u64, follows, |section| {
                assert_eq!(section.packets.last().unwrap().0, number as u64);
                sections.push(section.bytes.to_vec());
            });
            follows = true;
        }
        (sections, damaged)
    }

    #[test]
    fn the_checksum_is_that_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0x0376_E6E7);
    }

    #[test]
    fn a_damaged_section_is_counted_and_left_out() {
        let mut packets = section_packets(0, 0, &[section(0, 1, 3, 0, &[1; 20])]);
        assert_eq!(read(&packets, None).1, 0);
        packets[0][20] ^= 1;
        assert_eq!(read(&packets, None), (vec![], 1));
    }

    #[test]
    fn a_section_with_a_missing_packet_is_left_out() {
        let sections = [section(2, 1, 3, 0, &[7; 600]), section(2, 2, 3, 0, &[8; 30])];
        let packets = section_packets(0x20, 0, &sections);
        assert!(packets.len() >= 4);
        assert_eq!(read(&packets, Some(1)).0, [sections[1].clone()]);
    }

    proptest! {
        #[test]
        fn sections_are_joined_wherever_packets_end(
            lengths in proptest::collection::vec(0_usize..1_000, 1..12),
        ) {
            let sections: Vec<_> = lengths
                .iter()
                .enumerate()
                .map(|(at, &len)| section(2, at as u16, 1, 0, &vec![0x55; len]))
                .collect();
            let packets = section_packets(0x20, 9, &sections);
            prop_assert_eq!(read(&packets, None), (sections, 0));
        }

        #[test]
        fn any_payload_is_read(
            packets in proptest::collection::vec(
                (any::<bool>(), proptest::collection::vec(prop_oneof![Just(0), any::<u8>()], 184)),
                0..40,
            ),
        ) {
            let packets: Vec<_> = packets
                .iter()
                .map(|(start, payload)| {
                    let mut bytes = [0x47; 188];
                    bytes[1..4].copy_from_slice(&[if *start { 0x40 } else { 0 }, 0, 0x10]);
                    bytes[4..].copy_from_slice(payload);
                    bytes
                })
                .collect();
            let _ = read(&packets, None);
        }
    }
}
