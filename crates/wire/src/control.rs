use crate::packet::CONTROL_BIT;
use crate::words::{HEADER_LEN, header_bytes, padded_len, put_padded, whole_words};
use crate::{Ack, AckNo, DropRequest, Handshake, LossList, MsgNo, ParseError, SocketId, Timestamp};

/// A control packet: checked if it was parsed, ready to go if it was built (draft section 3.2).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ControlPacket<'a> {
    /// The time at which it was sent.
    pub timestamp: Timestamp,
    /// The peer's socket ID, or [`SocketId::LISTENER`] in a handshake's first packets.
    pub dest: SocketId,
    /// The contents, by the packet's type.
    pub control: Control<'a>,
}

impl<'a> ControlPacket<'a> {
    pub(crate) fn from_words(header: [u32; 4], body: &'a [u8]) -> Result<Self, ParseError> {
        let [kind, info, timestamp, dest] = header;
        let [kind_high, kind_low, subtype_high, subtype_low] = (kind & !CONTROL_BIT).to_be_bytes();
        let kind = u16::from_be_bytes([kind_high, kind_low]);
        let subtype = u16::from_be_bytes([subtype_high, subtype_low]);
        Ok(Self {
            timestamp: Timestamp::from_micros(timestamp),
            dest: SocketId::new(dest),
            control: Control::parse(kind, subtype, info, body)?,
        })
    }
}

impl ControlPacket<'_> {
    /// Appends the packet to `buffer`.
    pub fn emit(&self, buffer: &mut Vec<u8>) {
        let (kind, subtype, info) = self.control.header();
        let kind = CONTROL_BIT | u32::from(kind) << 16 | u32::from(subtype);
        let header = [kind, info, self.timestamp.as_micros(), self.dest.value()];
        buffer.reserve(self.emitted_len());
        buffer.extend_from_slice(&header_bytes(header));
        self.control.emit_body(buffer);
    }

    /// Bytes that [`emit`](Self::emit) appends.
    pub fn emitted_len(&self) -> usize {
        HEADER_LEN + self.control.body_len()
    }
}

/// The contents of a control packet. The types are those of draft section 3.2, and the peer error
/// of file mode.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Control<'a> {
    /// Opens a connection, or refuses it.
    Handshake(Box<Handshake>),
    /// Nothing to say, but here.
    KeepAlive,
    /// The same from a link of a backup group that goes idle: its type-specific word is 1.
    KeepAliveIdle,
    /// The packets that were received.
    Ack(Ack),
    /// The packets that are lost.
    Nak(LossList<'a>),
    /// The receiver asks for a slower pace. Old peers only.
    CongestionWarning,
    /// The connection ends.
    Shutdown,
    /// An ACK arrived: its number, for the receiver to measure the round trip.
    AckAck(AckNo),
    /// The sender has given up packets.
    DropRequest(DropRequest),
    /// The peer's application failed; 4000 is a file that could not be written.
    PeerError(u32),
    /// An extension outside the handshake: a key message (command 3) or its answer (4). Written
    /// with zeros up to whole words.
    Extension {
        /// The extension's command, in the subtype field.
        command: u16,
        /// Its body.
        body: &'a [u8],
    },
}

impl<'a> Control<'a> {
    /// A type without a body may come with any: peers append a word of zeros. Nor does anything
    /// hang on the subtype, or on the type-specific word of types that do not use it.
    fn parse(kind: u16, subtype: u16, info: u32, body: &'a [u8]) -> Result<Self, ParseError> {
        Ok(match kind {
            HANDSHAKE => Self::Handshake(Box::new(Handshake::parse(body)?)),
            KEEP_ALIVE if info == IDLE => Self::KeepAliveIdle,
            KEEP_ALIVE => Self::KeepAlive,
            ACK => Self::Ack(Ack::parse(AckNo::new(info), body)?),
            NAK => Self::Nak(LossList::parse(body)?),
            CONGESTION_WARNING => Self::CongestionWarning,
            SHUTDOWN => Self::Shutdown,
            ACK_ACK => Self::AckAck(AckNo::new(info)),
            DROP_REQUEST => Self::DropRequest(DropRequest::parse(MsgNo::new(info), body)?),
            PEER_ERROR => Self::PeerError(info),
            EXTENSION => {
                let body = whole_words("extension body", body)?.as_flattened();
                Self::Extension { command: subtype, body }
            }
            unknown => return Err(ParseError::UnknownControl(unknown)),
        })
    }

    /// Type, subtype and type-specific word.
    fn header(&self) -> (u16, u16, u32) {
        match self {
            Self::Handshake(_) => (HANDSHAKE, 0, 0),
            Self::KeepAlive => (KEEP_ALIVE, 0, 0),
            Self::KeepAliveIdle => (KEEP_ALIVE, 0, IDLE),
            Self::Ack(ack) => (ACK, 0, ack.header_number().value()),
            Self::Nak(_) => (NAK, 0, 0),
            Self::CongestionWarning => (CONGESTION_WARNING, 0, 0),
            Self::Shutdown => (SHUTDOWN, 0, 0),
            Self::AckAck(number) => (ACK_ACK, 0, number.value()),
            Self::DropRequest(request) => (DROP_REQUEST, 0, request.msgno.value()),
            Self::PeerError(code) => (PEER_ERROR, 0, *code),
            Self::Extension { command, .. } => (EXTENSION, *command, 0),
        }
    }

    fn emit_body(&self, buffer: &mut Vec<u8>) {
        match self {
            Self::Handshake(handshake) => handshake.emit(buffer),
            Self::Ack(ack) => ack.emit(buffer),
            Self::Nak(list) => buffer.extend_from_slice(list.as_bytes()),
            Self::DropRequest(request) => request.emit(buffer),
            Self::Extension { body, .. } => put_padded(buffer, body),
            Self::KeepAlive
            | Self::KeepAliveIdle
            | Self::CongestionWarning
            | Self::Shutdown
            | Self::AckAck(_)
            | Self::PeerError(_) => buffer.extend_from_slice(&PAD),
        }
    }

    fn body_len(&self) -> usize {
        match self {
            Self::Handshake(handshake) => handshake.emitted_len(),
            Self::Ack(ack) => ack.emitted_len(),
            Self::Nak(list) => list.as_bytes().len(),
            Self::DropRequest(_) => DropRequest::LEN,
            Self::Extension { body, .. } => padded_len(body.len()),
            Self::KeepAlive
            | Self::KeepAliveIdle
            | Self::CongestionWarning
            | Self::Shutdown
            | Self::AckAck(_)
            | Self::PeerError(_) => PAD.len(),
        }
    }
}

/// The body of a control packet that needs none: libsrt never sends a packet without a body.
const PAD: [u8; 4] = [0; 4];

const HANDSHAKE: u16 = 0;
const KEEP_ALIVE: u16 = 1;
const ACK: u16 = 2;
const NAK: u16 = 3;
const CONGESTION_WARNING: u16 = 4;
const SHUTDOWN: u16 = 5;
const ACK_ACK: u16 = 6;
const DROP_REQUEST: u16 = 7;
const PEER_ERROR: u16 = 8;
const EXTENSION: u16 = 0x7FFF;
/// In the type-specific word of a keepalive: the link goes idle.
const IDLE: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Packet, SeqNo};

    /// Timestamp and destination of every packet here.
    const TAIL: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

    fn packet(control: Control<'_>) -> ControlPacket<'_> {
        ControlPacket {
            timestamp: Timestamp::from_micros(0x0102_0304),
            dest: SocketId::new(0x0506_0708),
            control,
        }
    }

    /// A datagram of the first two words, [`TAIL`] and a body.
    fn datagram(head: [u8; 8], body: &[u8]) -> Vec<u8> {
        [&head[..], &TAIL, body].concat()
    }

    #[track_caller]
    fn assert_stands_as(control: Control<'_>, head: [u8; 8], body: &[u8]) {
        let packet = packet(control);
        let mut emitted = vec![0xEE];
        packet.emit(&mut emitted);
        let datagram = datagram(head, body);
        assert_eq!(emitted[1..], datagram);
        assert_eq!(packet.emitted_len(), datagram.len());
        assert_eq!(Packet::parse(&datagram), Ok(Packet::Control(packet)));
    }

    #[test]
    fn bodyless_types_are_padded_to_20_bytes() {
        let pad = &[0; 4];
        assert_stands_as(Control::KeepAlive, [0x80, 1, 0, 0, 0, 0, 0, 0], pad);
        assert_stands_as(Control::KeepAliveIdle, [0x80, 1, 0, 0, 0, 0, 0, 1], pad);
        assert_stands_as(Control::CongestionWarning, [0x80, 4, 0, 0, 0, 0, 0, 0], pad);
        assert_stands_as(Control::Shutdown, [0x80, 5, 0, 0, 0, 0, 0, 0], pad);
        assert_stands_as(Control::AckAck(AckNo::new(7)), [0x80, 6, 0, 0, 0, 0, 0, 7], pad);
        assert_stands_as(Control::PeerError(4000), [0x80, 8, 0, 0, 0, 0, 0x0F, 0xA0], pad);
    }

    #[test]
    fn bodyless_types_are_read_with_any_body() {
        for body in [&[][..], &[0; 4], &[1, 2, 3, 4, 5]] {
            let datagram = datagram([0x80, 1, 0, 0, 0, 0, 0, 2], body);
            let keep_alive = Packet::Control(packet(Control::KeepAlive));
            assert_eq!(Packet::parse(&datagram), Ok(keep_alive));
        }
    }

    #[test]
    fn types_with_a_body_carry_it() {
        let next = SeqNo::new(3);
        let light = Control::Ack(Ack::Light { next });
        assert_stands_as(light, [0x80, 2, 0, 0, 0, 0, 0, 0], &[0, 0, 0, 3]);

        let body = [0x80, 0, 0, 3, 0, 0, 0, 9];
        let list = LossList::parse(&body).unwrap();
        assert_stands_as(Control::Nak(list), [0x80, 3, 0, 0, 0, 0, 0, 0], &body);

        let request = DropRequest { msgno: MsgNo::new(2), first: next, last: SeqNo::new(9) };
        let body = [0, 0, 0, 3, 0, 0, 0, 9];
        assert_stands_as(Control::DropRequest(request), [0x80, 7, 0, 0, 0, 0, 0, 2], &body);

        let extension = Control::Extension { command: 3, body: &[1, 2, 3, 4] };
        assert_stands_as(extension, [0xFF, 0xFF, 0, 3, 0, 0, 0, 0], &[1, 2, 3, 4]);
    }

    #[test]
    fn extension_body_is_padded_and_must_be_whole() {
        let mut emitted = Vec::new();
        let extension = packet(Control::Extension { command: 3, body: &[1, 2, 3, 4, 5] });
        extension.emit(&mut emitted);
        assert_eq!(emitted[16..], [1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(emitted.len(), extension.emitted_len());
        let error = ParseError::PartialWord { what: "extension body", got: 5 };
        assert_eq!(Packet::parse(&emitted[..21]), Err(error));
    }

    #[test]
    fn unknown_types_are_named() {
        for kind in [9, 0x7FFE] {
            let [high, low] = u16::to_be_bytes(kind | 0x8000);
            let datagram = datagram([high, low, 0, 0, 0, 0, 0, 0], &[0; 4]);
            assert_eq!(Packet::parse(&datagram), Err(ParseError::UnknownControl(kind)));
        }
    }
}
