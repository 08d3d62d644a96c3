//! The messages of a probe: MPEG-TS null packets, which every decoder ignores.

use bytes::Bytes;

use crate::config::TS_PACKET;

/// A message of `size` bytes: null packets (PID 0x1FFF, ISO/IEC 13818-1), the last one cut short
/// unless `size` is a multiple of 188.
pub(crate) fn null_packets(size: usize) -> Bytes {
    let packet = (0..TS_PACKET).map(|place| NULL_HEADER.get(place).copied().unwrap_or(STUFFING));
    packet.cycle().take(size).collect()
}

/// The largest payload of whole MPEG-TS packets that is no larger than `size`, seven packets at
/// most, as every program sends them.
pub(crate) fn ts_payload(size: usize) -> usize {
    (size / TS_PACKET).clamp(1, USUAL_PACKETS) * TS_PACKET
}

const NULL_HEADER: [u8; 4] = [0x47, 0x1F, 0xFF, 0x10];
const STUFFING: u8 = 0xFF;
const USUAL_PACKETS: usize = 7;

#[cfg(test)]
mod tests {
    use punctual_mpegts::Checker;

    use super::*;

    #[test]
    fn messages_are_null_packets_that_a_decoder_ignores() {
        let message = null_packets(1_316);
        assert_eq!(message.len(), 1_316);
        let mut checker = Checker::default();
        checker.push(&message);
        checker.finish();
        let report = checker.report();
        assert_eq!((report.packets, report.null_packets), (7, 7));
        assert_eq!((report.sync_losses, report.skipped_bytes), (0, 0));
    }

    #[test]
    fn payloads_are_whole_packets() {
        assert_eq!(ts_payload(1_456), 1_316);
        assert_eq!(ts_payload(1_315), 1_128);
        assert_eq!(ts_payload(100), 188);
    }
}
