//! The handshake: the packet that opens a connection (draft section 3.2.1).

mod extension;
mod flags;
mod peer_ip;
mod string;

pub use extension::{Extension, GroupExtension, HsExtension, MAX_STREAM_ID};
pub use flags::HsFlags;
pub use peer_ip::PeerIp;

use crate::words::put_words;
use crate::{ParseError, RejectReason, SeqNo, SocketId};

/// Body of a handshake packet (draft section 3.2.1). An owned value: handshakes are rare.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Handshake {
    /// Version of the handshake: 4 in an induction request, 5 from then on.
    pub version: u32,
    /// Length of the encryption key in units of 8 bytes: 2, 3 or 4; 0 says nothing.
    pub encryption: u16,
    /// [`HS_MAGIC`] in an induction response, `HS_EXT_*` flags in a conclusion, 2 in an induction
    /// request.
    pub extension_field: u16,
    /// The first sequence number that will be sent, less than 2^31 - 1.
    pub isn: SeqNo,
    /// Largest packet in bytes, IP and UDP headers included; at least 32.
    pub mss: u32,
    /// Packets that may be under way; at least 2.
    pub flow_window: u32,
    /// The kind of handshake.
    pub request: HandshakeRequest,
    /// The sender's socket ID; in an induction response, the caller's own.
    pub socket_id: SocketId,
    /// The listener's cookie; 0 in an induction request.
    pub cookie: u32,
    /// The receiver's address as the sender sees it.
    pub peer_ip: PeerIp,
    /// Extensions. Read and written only in version 5, and only in a conclusion or an agreement:
    /// elsewhere, peers do not look for any.
    pub extensions: Vec<Extension>,
}

/// The kind of handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandshakeRequest {
    /// A caller asks for a cookie, or a listener gives it one.
    Induction,
    /// A rendezvous peer begins.
    WaveAHand,
    /// A caller or a rendezvous peer asks for the connection, or the other end agrees to it.
    Conclusion,
    /// A rendezvous ends.
    Agreement,
    /// The connection is refused.
    Rejection(RejectReason),
    /// Any other number.
    Unknown(u32),
}

/// In the extension field of an induction response: the listener speaks SRT, not UDT.
pub const HS_MAGIC: u16 = 0x4A17;
/// In the extension field: HSREQ or HSRSP is there.
pub const HS_EXT_HSREQ: u16 = 1;
/// In the extension field: KMREQ or KMRSP is there.
pub const HS_EXT_KMREQ: u16 = 2;
/// In the extension field: a stream ID, congestion control, packet filter or group is there.
pub const HS_EXT_CONFIG: u16 = 4;

impl Handshake {
    /// Bytes of the fixed part.
    const LEN: usize = 48;

    /// Checks the body of a handshake packet.
    ///
    /// A rejection echoes the handshake it answers, and nothing in it matters but the reason; so
    /// its other fields are not judged.
    ///
    /// # Errors
    ///
    /// Says which field or extension is out of its range.
    pub fn parse(body: &[u8]) -> Result<Self, ParseError> {
        let Some((fixed, blocks)) = body.split_first_chunk() else {
            return Err(ParseError::TooShort {
                what: "handshake",
                need: Self::LEN,
                got: body.len(),
            });
        };
        let mut handshake = Self::from_fixed_part(fixed)?;
        if handshake.carries_extensions() {
            handshake.extensions = Extension::parse_all(blocks)?;
        }
        Ok(handshake)
    }

    fn from_fixed_part(bytes: &[u8; Self::LEN]) -> Result<Self, ParseError> {
        let word = |i: usize| {
            let at = 4 * i;
            u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let mut peer_ip = [0; 16];
        peer_ip.copy_from_slice(&bytes[32..]);
        let (version, isn, mss, flow_window) = (word(0), word(2), word(3), word(4));
        let request = HandshakeRequest::from_wire(word(5));
        if !matches!(request, HandshakeRequest::Rejection(_)) {
            check(version >= 4, ParseError::HandshakeVersion(version))?;
            check(isn < SeqNo::MAX.value(), ParseError::HandshakeIsn(isn))?;
            check((32..=INT_MAX).contains(&mss), ParseError::HandshakeMss(mss))?;
            check(
                (2..=INT_MAX).contains(&flow_window),
                ParseError::HandshakeFlowWindow(flow_window),
            )?;
        }
        Ok(Self {
            version,
            encryption: u16::from_be_bytes([bytes[4], bytes[5]]),
            extension_field: u16::from_be_bytes([bytes[6], bytes[7]]),
            isn: SeqNo::new(isn),
            mss,
            flow_window,
            request,
            socket_id: SocketId::new(word(6)),
            cookie: word(7),
            peer_ip: PeerIp::from_wire(peer_ip),
            extensions: Vec::new(),
        })
    }

    fn carries_extensions(&self) -> bool {
        self.version == 5
            && matches!(self.request, HandshakeRequest::Conclusion | HandshakeRequest::Agreement)
    }

    /// The extensions that are written.
    fn written_extensions(&self) -> &[Extension] {
        if self.carries_extensions() { &self.extensions } else { &[] }
    }

    pub(crate) fn emit(&self, buffer: &mut Vec<u8>) {
        let kind = u32::from(self.encryption) << 16 | u32::from(self.extension_field);
        put_words(
            buffer,
            &[
                self.version,
                kind,
                self.isn.value(),
                self.mss,
                self.flow_window,
                self.request.to_wire(),
                self.socket_id.value(),
                self.cookie,
            ],
        );
        buffer.extend_from_slice(&self.peer_ip.to_wire());
        for extension in self.written_extensions() {
            extension.emit(buffer);
        }
    }

    /// Bytes of the handshake as it is written, without the header of its packet.
    pub fn emitted_len(&self) -> usize {
        Self::LEN + self.written_extensions().iter().map(Extension::emitted_len).sum::<usize>()
    }
}

impl HandshakeRequest {
    /// The request with this number on the wire.
    fn from_wire(number: u32) -> Self {
        match number {
            WAVE_A_HAND => Self::WaveAHand,
            INDUCTION => Self::Induction,
            CONCLUSION => Self::Conclusion,
            AGREEMENT => Self::Agreement,
            _ => RejectReason::from_wire(number).map_or(Self::Unknown(number), Self::Rejection),
        }
    }

    /// The number on the wire.
    fn to_wire(self) -> u32 {
        match self {
            Self::WaveAHand => WAVE_A_HAND,
            Self::Induction => INDUCTION,
            Self::Conclusion => CONCLUSION,
            Self::Agreement => AGREEMENT,
            Self::Rejection(reason) => reason.code(),
            Self::Unknown(number) => number,
        }
    }
}

fn check(holds: bool, otherwise: ParseError) -> Result<(), ParseError> {
    if holds { Ok(()) } else { Err(otherwise) }
}

const WAVE_A_HAND: u32 = 0;
const INDUCTION: u32 = 1;
const CONCLUSION: u32 = 0xFFFF_FFFF;
const AGREEMENT: u32 = 0xFFFF_FFFE;

/// Peers read MSS and flow window as signed numbers.
const INT_MAX: u32 = 0x7FFF_FFFF;

#[cfg(test)]
mod tests {
    use super::*;

    /// An induction request: version 4, type 2, ISN, MSS 1500, window 8192, request 1, ID, cookie
    /// 0, peer 127.0.0.1.
    const INDUCTION_REQUEST: [u8; 48] = [
        0, 0, 0, 4, 0, 0, 0, 2, 0x12, 0x34, 0x56, 0x78, 0, 0, 0x05, 0xDC, //
        0, 0, 0x20, 0, 0, 0, 0, 1, 0x2A, 0, 0, 1, 0, 0, 0, 0, //
        1, 0, 0, 0x7F, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];

    fn induction_request() -> Handshake {
        Handshake {
            version: 4,
            encryption: 0,
            extension_field: 2,
            isn: SeqNo::new(0x1234_5678),
            mss: 1500,
            flow_window: 8192,
            request: HandshakeRequest::Induction,
            socket_id: SocketId::new(0x2A00_0001),
            cookie: 0,
            peer_ip: PeerIp::from(std::net::IpAddr::from([127, 0, 0, 1])),
            extensions: Vec::new(),
        }
    }

    fn emitted(handshake: &Handshake) -> Vec<u8> {
        let mut body = Vec::new();
        handshake.emit(&mut body);
        assert_eq!(body.len(), handshake.emitted_len());
        body
    }

    /// [`INDUCTION_REQUEST`] with the word at `index` replaced.
    fn with_word(index: usize, word: u32) -> [u8; 48] {
        let mut body = INDUCTION_REQUEST;
        body[4 * index..4 * index + 4].copy_from_slice(&word.to_be_bytes());
        body
    }

    #[test]
    fn induction_is_laid_out_as_libsrt_writes_it() {
        assert_eq!(emitted(&induction_request()), INDUCTION_REQUEST);
        assert_eq!(Handshake::parse(&INDUCTION_REQUEST), Ok(induction_request()));

        let mut response = INDUCTION_REQUEST;
        response[..8].copy_from_slice(&[0, 0, 0, 5, 0, 2, 0x4A, 0x17]);
        let parsed = Handshake::parse(&response).unwrap();
        assert_eq!((parsed.version, parsed.encryption), (5, 2));
        assert_eq!(parsed.extension_field, HS_MAGIC);
        assert_eq!(parsed.isn, induction_request().isn);
    }

    #[test]
    fn conclusion_carries_its_extensions() {
        let conclusion = Handshake {
            version: 5,
            extension_field: HS_EXT_HSREQ | HS_EXT_CONFIG,
            request: HandshakeRequest::Conclusion,
            extensions: vec![
                Extension::StreamId(b"read:live".to_vec()),
                Extension::Congestion("live".to_owned()),
            ],
            ..induction_request()
        };
        let body = emitted(&conclusion);
        assert_eq!(body[20..24], [0xFF; 4]);
        assert_eq!(body[48..52], [0, 5, 0, 3]);
        assert_eq!(Handshake::parse(&body), Ok(conclusion));
        assert!(matches!(
            Handshake::parse(&body[..body.len() - 4]),
            Err(ParseError::ExtensionOverrun { command: 6, need: 4, got: 0 })
        ));
    }

    #[test]
    fn only_conclusions_of_version_5_have_extensions() {
        let mut body = INDUCTION_REQUEST.to_vec();
        body.extend_from_slice(&[0, 5, 0xFF, 0xFF, 7]);
        assert_eq!(Handshake::parse(&body), Ok(induction_request()));
        let extensions = vec![Extension::StreamId(b"x".to_vec())];
        let loaded = Handshake { extensions, ..induction_request() };
        assert_eq!(emitted(&loaded), INDUCTION_REQUEST);
    }

    #[test]
    fn rejection_is_read_with_any_echo() {
        let mut body = with_word(5, 1404 + 1000);
        body[8..20].fill(0xFF);
        let rejection = Handshake::parse(&body).unwrap();
        assert_eq!(rejection.request, HandshakeRequest::Rejection(RejectReason::NOT_FOUND));
    }

    #[test]
    fn fields_keep_their_ranges() {
        let parse = |index, word| Handshake::parse(&with_word(index, word)).err();
        assert_eq!(parse(0, 3), Some(ParseError::HandshakeVersion(3)));
        assert_eq!(parse(2, 0x7FFF_FFFE), None);
        assert_eq!(parse(2, 0x7FFF_FFFF), Some(ParseError::HandshakeIsn(0x7FFF_FFFF)));
        assert_eq!(parse(3, 32), None);
        assert_eq!(parse(3, 31), Some(ParseError::HandshakeMss(31)));
        assert_eq!(parse(3, u32::MAX), Some(ParseError::HandshakeMss(u32::MAX)));
        assert_eq!(parse(4, 2), None);
        assert_eq!(parse(4, 1), Some(ParseError::HandshakeFlowWindow(1)));
        let short = ParseError::TooShort { what: "handshake", need: 48, got: 47 };
        assert_eq!(Handshake::parse(&INDUCTION_REQUEST[..47]), Err(short));
    }

    #[test]
    fn request_numbers() {
        let requests = [
            (0, HandshakeRequest::WaveAHand),
            (1, HandshakeRequest::Induction),
            (0xFFFF_FFFF, HandshakeRequest::Conclusion),
            (0xFFFF_FFFE, HandshakeRequest::Agreement),
            (1004, HandshakeRequest::Rejection(RejectReason::ROGUE)),
            (999, HandshakeRequest::Unknown(999)),
            (0x8000_0000, HandshakeRequest::Unknown(0x8000_0000)),
        ];
        for (number, request) in requests {
            assert_eq!(HandshakeRequest::from_wire(number), request);
            assert_eq!(request.to_wire(), number);
        }
    }
}
