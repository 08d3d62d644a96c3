//! Datagrams that are RTP with a transport stream.

use punctual_metrics::rtp::RtpPacket;
use punctual_mpegts::Layout;

use crate::end::cut::starts_like_transport_stream;

/// Whether a datagram is RTP with a transport stream.
pub(super) fn is_rtp(datagram: &[u8]) -> bool {
    RtpPacket::parse(datagram).is_some_and(|packet| is_transport_stream(&datagram[packet.payload]))
}

/// Whether bytes are packets of a transport stream, also with timestamps or parity.
pub(super) fn is_transport_stream(bytes: &[u8]) -> bool {
    starts_like_transport_stream(bytes) || Layout::find(bytes).is_some()
}

#[cfg(test)]
mod tests {
    use punctual_metrics::rtp::{MPEG_TS, RtpHeader, rtp_header};

    use super::*;

    #[test]
    fn rtp_with_a_transport_stream_is_recognised() {
        let header = rtp_header(RtpHeader { payload_type: MPEG_TS, ..RtpHeader::default() });
        let packets = [&[0x47][..], &[1; 187]].concat().repeat(7);
        assert!(is_rtp(&[&header[..], &packets].concat()));
        let protected = [&[0x47][..], &[1; 203]].concat().repeat(7);
        assert!(is_rtp(&[&header[..], &protected].concat()));
        assert!(!is_rtp(&packets) && !is_rtp(&header) && !is_rtp(&[0x80; 1_328]));
    }
}
