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
