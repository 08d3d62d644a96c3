use crate::{PACKET_LEN, Pcr, SYNC_BYTE};

/// A packet for tests: of `pid`, with counter `counter` and a payload.
pub(crate) fn packet(pid: u16, counter: u8) -> Sample {
    let mut bytes = [0xAA; PACKET_LEN];
    let [high, low] = pid.to_be_bytes();
    bytes[..4].copy_from_slice(&[SYNC_BYTE, high, low, 0x10 | (counter & 0x0F)]);
    Sample { bytes }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) bytes: [u8; PACKET_LEN],
}

impl Sample {
    /// The same with a PCR `ticks` after zero.
    pub(crate) fn pcr(self, ticks: u64) -> Self {
        let mut sample = self.adaptation(0x10);
        let ticks = Pcr::from_ticks(ticks).ticks();
        let field = ((ticks / 300) << 15) | (0x3F << 9) | (ticks % 300);
        sample.bytes[6..12].copy_from_slice(&field.to_be_bytes()[2..]);
        sample
    }

    /// The same with the discontinuity indicator set.
    pub(crate) fn discontinuity(self) -> Self {
        self.adaptation(0x80)
    }

    /// The same with the adaptation field alone.
    pub(crate) fn without_payload(self) -> Self {
        let mut sample = self.adaptation(0);
        sample.bytes[3] &= !0x10;
        sample.bytes[4] = 183;
        sample
    }

    /// The same with `byte` in its payload.
    pub(crate) fn payload(mut self, byte: u8) -> Self {
        self.bytes[100] = byte;
        self
    }

    fn adaptation(mut self, flags: u8) -> Self {
        if self.bytes[3] & 0x20 == 0 {
            self.bytes[3] |= 0x20;
            self.bytes[4..6].copy_from_slice(&[7, 0]);
        }
        self.bytes[5] |= flags;
        self
    }
}

/// The bytes of `packets`, one after the other.
pub(crate) fn stream(packets: &[Sample]) -> Vec<u8> {
    packets.iter().flat_map(|sample| sample.bytes).collect()
}

/// A section of the long syntax with its CRC.
pub(crate) fn section(table: u8, extension: u16, version: u8, number: u8, body: &[u8]) -> Vec<u8> {
    let len = u16::try_from(body.len() + 9).unwrap();
    let mut bytes = vec![table];
    bytes.extend((0xB000 | len).to_be_bytes());
    bytes.extend(extension.to_be_bytes());
    bytes.extend([0xC1 | (version << 1), number, number]);
    bytes.extend(body);
    bytes.extend(crate::section::crc32(&bytes).to_be_bytes());
    bytes
}

/// The packets that have `sections` one directly after the other, with the first counter given.
pub(crate) fn section_packets(
    pid: u16,
    counter: u8,
    sections: &[Vec<u8>],
) -> Vec<[u8; PACKET_LEN]> {
    let bytes = sections.concat();
    let starts: Vec<usize> = sections
        .iter()
        .scan(0, |at, section| Some(std::mem::replace(at, *at + section.len())))
        .collect();
    let (mut at, mut packets) = (0, Vec::new());
    while at < bytes.len() {
        let mut sample = packet(pid, counter.wrapping_add(packets.len() as u8)).bytes;
        let start = starts.iter().find(|&&start| (at..at + 183).contains(&start));
        let mut payload = 4;
        if let Some(start) = start {
            sample[1] |= 0x40;
            sample[4] = (start - at) as u8;
            payload = 5;
        }
        let len = (PACKET_LEN - payload).min(bytes.len() - at);
        sample[payload..].fill(0xFF);
        sample[payload..payload + len].copy_from_slice(&bytes[at..at + len]);
        at += len;
        packets.push(sample);
    }
    packets
}

/// The body of a PAT with these programs and the PIDs of their tables.
pub(crate) fn pat(programs: &[(u16, u16)]) -> Vec<u8> {
    let entry =
        |&(number, pid): &(u16, u16)| [number.to_be_bytes(), (0xE000 | pid).to_be_bytes()].concat();
    programs.iter().flat_map(entry).collect()
}

/// The body of a PMT with these streams: type, PID, descriptors.
pub(crate) fn pmt(pcr_pid: u16, streams: &[(u8, u16, &[u8])]) -> Vec<u8> {
    let mut body = (0xE000 | pcr_pid).to_be_bytes().to_vec();
    body.extend([0xF0, 0]);
    for (kind, pid, descriptors) in streams {
        body.push(*kind);
        body.extend((0xE000 | pid).to_be_bytes());
        body.extend((0xF000 | descriptors.len() as u16).to_be_bytes());
        body.extend(*descriptors);
    }
    body
}
