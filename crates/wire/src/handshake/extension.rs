use super::flags::HsFlags;
use super::string::StringField;
use crate::ParseError;
use crate::words::{Word, padded_len, put_padded, put_words, whole_words};

/// A block behind the fixed part of a handshake (draft section 3.2.1).
///
/// Strings and bodies longer than allowed are cut when written: check them where they are
/// configured.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Extension {
    /// The initiator's version, flags and latencies.
    HsReq(HsExtension),
    /// The responder's answer.
    HsRsp(HsExtension),
    /// Key message, byte for byte.
    KmReq(Vec<u8>),
    /// The key message returned, or a word that says why not, byte for byte.
    KmRsp(Vec<u8>),
    /// Stream ID: what the caller wants, nearly always text. At most [`MAX_STREAM_ID`] bytes; zeros
    /// at the end are lost.
    StreamId(Vec<u8>),
    /// Congestion control, "live" if absent. At most 16 bytes.
    Congestion(String),
    /// Packet filter configuration. At most 64 bytes.
    Filter(String),
    /// Group membership.
    Group(GroupExtension),
    /// One that this crate does not know; to be ignored.
    Unknown {
        /// The block's command.
        command: u16,
        /// Its content.
        body: Vec<u8>,
    },
}

/// Body of HSREQ and HSRSP (draft section 3.2.1.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HsExtension {
    /// SRT version, 0x010505 for 1.5.5.
    pub version: u32,
    /// The features that the peer supports and asks for.
    pub flags: HsFlags,
    /// Latency in ms at which this side receives.
    pub receive_latency_ms: u16,
    /// Latency in ms that this side wants its data received at.
    pub send_latency_ms: u16,
}

/// Body of the group extension (draft section 3.2.1.4).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GroupExtension {
    /// ID of the group, with bit 30 set.
    pub group_id: u32,
    /// 1 broadcast, 2 backup.
    pub kind: u8,
    /// Bit 0 asks for synchronisation on message numbers.
    pub flags: u8,
    /// In backup groups the link's priority, highest first.
    pub weight: u16,
}

/// Bytes that a stream ID may have.
pub const MAX_STREAM_ID: usize = 512;

impl Extension {
    /// Walks the blocks behind the fixed part. Any order and unknown commands are legal.
    pub(super) fn parse_all(blocks: &[u8]) -> Result<Vec<Self>, ParseError> {
        let mut words = whole_words("handshake extensions", blocks)?;
        let mut extensions = Vec::new();
        let (mut congestion_seen, mut filter_seen) = (false, false);
        while let Some((&[command_high, command_low, len_high, len_low], after)) =
            words.split_first()
        {
            let command = u16::from_be_bytes([command_high, command_low]);
            let len = usize::from(u16::from_be_bytes([len_high, len_low]));
            let (body, rest) = after.split_at_checked(len).ok_or(ParseError::ExtensionOverrun {
                command,
                need: 4 * len,
                got: 4 * after.len(),
            })?;
            let extension = Self::parse(command, body)?;
            match extension {
                Self::Congestion(_) => once(&mut congestion_seen, CONGESTION_FIELD.what)?,
                Self::Filter(_) => once(&mut filter_seen, FILTER_FIELD.what)?,
                _ => {}
            }
            extensions.push(extension);
            words = rest;
        }
        Ok(extensions)
    }

    fn parse(command: u16, body: &[Word]) -> Result<Self, ParseError> {
        let raw = || body.as_flattened().to_vec();
        Ok(match command {
            HSREQ => Self::HsReq(HsExtension::parse("HSREQ", body)?),
            HSRSP => Self::HsRsp(HsExtension::parse("HSRSP", body)?),
            KMREQ => Self::KmReq(raw()),
            KMRSP => Self::KmRsp(raw()),
            STREAM_ID => Self::StreamId(STREAM_ID_FIELD.decode(body)?),
            CONGESTION => Self::Congestion(CONGESTION_FIELD.decode_text(body)?),
            FILTER => Self::Filter(FILTER_FIELD.decode_text(body)?),
            GROUP => Self::Group(GroupExtension::parse(body)?),
            _ => Self::Unknown { command, body: raw() },
        })
    }

    /// Appends the block.
    pub(super) fn emit(&self, buffer: &mut Vec<u8>) {
        let words = u16::try_from(self.body_len() / 4).expect("body_len is capped to fit");
        put_words(buffer, &[u32::from(self.command()) << 16 | u32::from(words)]);
        match self {
            Self::HsReq(hs) | Self::HsRsp(hs) => hs.emit(buffer),
            Self::KmReq(body) | Self::KmRsp(body) | Self::Unknown { body, .. } => {
                put_padded(buffer, capped(body));
            }
            Self::StreamId(bytes) => STREAM_ID_FIELD.encode(bytes, buffer),
            Self::Congestion(text) => CONGESTION_FIELD.encode(text.as_bytes(), buffer),
            Self::Filter(text) => FILTER_FIELD.encode(text.as_bytes(), buffer),
            Self::Group(group) => group.emit(buffer),
        }
    }

    /// Bytes that [`emit`](Self::emit) appends.
    pub(super) fn emitted_len(&self) -> usize {
        4 + self.body_len()
    }

    fn body_len(&self) -> usize {
        match self {
            Self::HsReq(_) | Self::HsRsp(_) => HsExtension::LEN,
            Self::KmReq(body) | Self::KmRsp(body) | Self::Unknown { body, .. } => {
                padded_len(capped(body).len())
            }
            Self::StreamId(bytes) => STREAM_ID_FIELD.encoded_len(bytes),
            Self::Congestion(text) => CONGESTION_FIELD.encoded_len(text.as_bytes()),
            Self::Filter(text) => FILTER_FIELD.encoded_len(text.as_bytes()),
            Self::Group(_) => GroupExtension::LEN,
        }
    }

    fn command(&self) -> u16 {
        match self {
            Self::HsReq(_) => HSREQ,
            Self::HsRsp(_) => HSRSP,
            Self::KmReq(_) => KMREQ,
            Self::KmRsp(_) => KMRSP,
            Self::StreamId(_) => STREAM_ID,
            Self::Congestion(_) => CONGESTION,
            Self::Filter(_) => FILTER,
            Self::Group(_) => GROUP,
            Self::Unknown { command, .. } => *command,
        }
    }
}

impl HsExtension {
    const LEN: usize = 12;

    /// Words beyond the third are ignored.
    fn parse(what: &'static str, body: &[Word]) -> Result<Self, ParseError> {
        let [version, flags, [receive_high, receive_low, send_high, send_low], ..] = *body else {
            return Err(ParseError::TooShort { what, need: Self::LEN, got: 4 * body.len() });
        };
        Ok(Self {
            version: u32::from_be_bytes(version),
            flags: HsFlags::from_bits(u32::from_be_bytes(flags)),
            receive_latency_ms: u16::from_be_bytes([receive_high, receive_low]),
            send_latency_ms: u16::from_be_bytes([send_high, send_low]),
        })
    }

    fn emit(&self, buffer: &mut Vec<u8>) {
        let latencies = u32::from(self.receive_latency_ms) << 16 | u32::from(self.send_latency_ms);
        put_words(buffer, &[self.version, self.flags.bits(), latencies]);
    }
}

impl GroupExtension {
    const LEN: usize = 8;

    /// Words beyond the second are ignored.
    fn parse(body: &[Word]) -> Result<Self, ParseError> {
        let [group_id, [kind, flags, weight_high, weight_low], ..] = *body else {
            let got = 4 * body.len();
            return Err(ParseError::TooShort { what: "group extension", need: Self::LEN, got });
        };
        Ok(Self {
            group_id: u32::from_be_bytes(group_id),
            kind,
            flags,
            weight: u16::from_be_bytes([weight_high, weight_low]),
        })
    }

    fn emit(&self, buffer: &mut Vec<u8>) {
        let [weight_high, weight_low] = self.weight.to_be_bytes();
        put_words(buffer, &[self.group_id]);
        buffer.extend_from_slice(&[self.kind, self.flags, weight_high, weight_low]);
    }
}

/// Notes that an extension occurs in the handshake; an error if it occurred before.
fn once(seen: &mut bool, what: &'static str) -> Result<(), ParseError> {
    if std::mem::replace(seen, true) {
        return Err(ParseError::RepeatedExtension { what });
    }
    Ok(())
}

/// As much of `body` as the length field can say.
fn capped(body: &[u8]) -> &[u8] {
    &body[..body.len().min(4 * usize::from(u16::MAX))]
}

const HSREQ: u16 = 1;
const HSRSP: u16 = 2;
const KMREQ: u16 = 3;
const KMRSP: u16 = 4;
const STREAM_ID: u16 = 5;
const CONGESTION: u16 = 6;
const FILTER: u16 = 7;
const GROUP: u16 = 8;

const STREAM_ID_FIELD: StringField = StringField { what: "stream ID", limit: MAX_STREAM_ID };
const CONGESTION_FIELD: StringField = StringField { what: "congestion control", limit: 16 };
const FILTER_FIELD: StringField = StringField { what: "packet filter", limit: 64 };

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_stands_as(extension: &Extension, block: &[u8]) {
        let mut emitted = Vec::new();
        extension.emit(&mut emitted);
        assert_eq!(emitted, block);
        assert_eq!(emitted.len(), extension.emitted_len());
        assert_eq!(Extension::parse_all(block), Ok(vec![extension.clone()]));
    }

    #[test]
    fn hsreq_with_latency_120() {
        let hs = HsExtension {
            version: 0x0001_0505,
            flags: HsFlags::from_bits(0xBF),
            receive_latency_ms: 120,
            send_latency_ms: 0,
        };
        let block = [0, 1, 0, 3, 0, 1, 5, 5, 0, 0, 0, 0xBF, 0, 0x78, 0, 0];
        assert_stands_as(&Extension::HsReq(hs), &block);
    }

    #[test]
    fn stream_id_of_access_control() {
        let block = [0, 5, 0, 2, 0x3A, 0x3A, 0x21, 0x23, 0x00, 0x61, 0x3D, 0x75];
        assert_stands_as(&Extension::StreamId(b"#!::u=a".to_vec()), &block);
    }

    #[test]
    fn group_is_big_endian_and_key_messages_are_raw() {
        let group = GroupExtension { group_id: 0x4000_0001, kind: 2, flags: 0, weight: 300 };
        assert_stands_as(&Extension::Group(group), &[0, 8, 0, 2, 0x40, 0, 0, 1, 2, 0, 0x01, 0x2C]);
        assert_stands_as(&Extension::KmRsp(vec![4, 0, 0, 0]), &[0, 4, 0, 1, 4, 0, 0, 0]);
        let unknown = Extension::Unknown { command: 0x0100, body: vec![] };
        assert_stands_as(&unknown, &[1, 0, 0, 0]);
    }

    #[test]
    fn longer_bodies_are_tolerated() {
        let block = [0, 8, 0, 3, 0x40, 0, 0, 1, 1, 0, 0, 0, 9, 9, 9, 9];
        let group = GroupExtension { group_id: 0x4000_0001, kind: 1, flags: 0, weight: 0 };
        assert_eq!(Extension::parse_all(&block), Ok(vec![Extension::Group(group)]));
    }

    #[test]
    fn every_length_is_checked() {
        let parse = Extension::parse_all;
        let got = 3;
        let partial = ParseError::PartialWord { what: "handshake extensions", got };
        assert_eq!(parse(&[0, 5, 0]), Err(partial));
        let overrun = ParseError::ExtensionOverrun { command: 5, need: 8, got: 4 };
        assert_eq!(parse(&[0, 5, 0, 2, 1, 1, 1, 1]), Err(overrun));
        let huge = ParseError::ExtensionOverrun { command: 5, need: 262_140, got: 0 };
        assert_eq!(parse(&[0, 5, 0xFF, 0xFF]), Err(huge));
        let short = |what, need| Err(ParseError::TooShort { what, need, got: 4 });
        assert_eq!(parse(&[0, 1, 0, 1, 0, 1, 5, 5]), short("HSREQ", 12));
        assert_eq!(parse(&[0, 2, 0, 1, 0, 1, 5, 5]), short("HSRSP", 12));
        assert_eq!(parse(&[0, 8, 0, 1, 0, 1, 5, 5]), short("group extension", 8));
        assert_eq!(parse(&[0, 5, 0, 0]), Err(ParseError::EmptyString { what: "stream ID" }));
    }

    #[test]
    fn strings_keep_their_limits() {
        for (command, what, limit) in
            [(5, "stream ID", 512_u16), (6, "congestion control", 16), (7, "packet filter", 64)]
        {
            let block = |bytes: u16| {
                let mut block = vec![0, command];
                block.extend_from_slice(&(bytes / 4).to_be_bytes());
                block.resize(4 + usize::from(bytes), b'x');
                block
            };
            assert!(Extension::parse_all(&block(limit)).is_ok());
            let over = limit + 4;
            let (limit, got) = (limit.into(), over.into());
            let error = ParseError::StringTooLong { what, limit, got };
            assert_eq!(Extension::parse_all(&block(over)), Err(error));
        }
    }

    #[test]
    fn congestion_and_filter_occur_once_at_most() {
        for (command, what) in [(6, "congestion control"), (7, "packet filter")] {
            let block = [0, command, 0, 1, b'a', b'b', b'c', b'd'].repeat(2);
            assert_eq!(Extension::parse_all(&block), Err(ParseError::RepeatedExtension { what }));
        }
    }

    #[test]
    fn length_field_bounds_the_string() {
        let mut emitted = Vec::new();
        let extension = Extension::KmReq(vec![7; 300_000]);
        extension.emit(&mut emitted);
        assert_eq!(emitted.len(), 4 + 4 * 65_535);
        assert_eq!(emitted.len(), extension.emitted_len());
        assert!(Extension::parse_all(&emitted).is_ok());
    }
}
