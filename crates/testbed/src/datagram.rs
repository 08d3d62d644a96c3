//! Tells the kinds of datagrams on a link, reads them, changes them and forges them.

use punctual_wire::{
    Control, ControlPacket, DataHeader, Handshake, KeyFlag, MsgNo, Packet, Position, SeqNo,
    SocketId, Timestamp,
};

use crate::random::Random;

/// Random bytes of this length.
pub fn noise(random: &mut Random, length: usize) -> Vec<u8> {
    (0..length).map(|_| random.next_u32() as u8).collect()
}

/// The kind of a datagram.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Kind {
    /// The original of a data packet.
    Data,
    /// A data packet that was sent before.
    Retransmission,
    /// A handshake of any phase.
    Handshake,
    /// Says that the sender is alive.
    KeepAlive,
    /// A full ACK, with the state of the link.
    Ack,
    /// An ACK that is only a number.
    LightAck,
    /// Lost packets.
    Nak,
    /// The end of the connection.
    Shutdown,
    /// The answer to a full ACK.
    AckAck,
    /// Packets that the sender has given up.
    DropRequest,
    /// Any other datagram, also one that is not an SRT packet.
    Other,
}

/// Tells the kind of a datagram.
pub fn kind(datagram: &[u8]) -> Kind {
    match Packet::parse(datagram) {
        Ok(Packet::Data(data)) if data.header.retransmitted => Kind::Retransmission,
        Ok(Packet::Data(_)) => Kind::Data,
        Ok(Packet::Control(packet)) => match packet.control {
            Control::Handshake(_) => Kind::Handshake,
            Control::KeepAlive => Kind::KeepAlive,
            Control::Ack(ack) if ack.link().is_none() => Kind::LightAck,
            Control::Ack(_) => Kind::Ack,
            Control::Nak(_) => Kind::Nak,
            Control::Shutdown => Kind::Shutdown,
            Control::AckAck(_) => Kind::AckAck,
            Control::DropRequest(_) => Kind::DropRequest,
            _ => Kind::Other,
        },
        Err(_) => Kind::Other,
    }
}

/// Whether a datagram is a data packet.
pub fn is_data(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|byte| byte & 0x80 == 0)
}

/// The header of a data packet; `None` for any other datagram.
pub fn data_header(datagram: &[u8]) -> Option<DataHeader> {
    match Packet::parse(datagram) {
        Ok(Packet::Data(data)) => Some(data.header),
        _ => None,
    }
}

/// The control information of a control packet; `None` for any other datagram.
pub fn control(datagram: &[u8]) -> Option<Control<'_>> {
    match Packet::parse(datagram) {
        Ok(Packet::Control(packet)) => Some(packet.control),
        _ => None,
    }
}

/// The handshake in a datagram; `None` for any other.
pub fn handshake(datagram: &[u8]) -> Option<Handshake> {
    match control(datagram) {
        Some(Control::Handshake(handshake)) => Some(*handshake),
        _ => None,
    }
}

/// Changes the handshake in a datagram. Any other datagram stays as it is.
pub fn edit_handshake(datagram: Vec<u8>, edit: impl FnOnce(&mut Handshake)) -> Vec<u8> {
    let Ok(Packet::Control(ControlPacket { timestamp, dest, control })) = Packet::parse(&datagram)
    else {
        return datagram;
    };
    let Control::Handshake(mut handshake) = control else { return datagram };
    edit(&mut handshake);
    let mut edited = Vec::new();
    ControlPacket { timestamp, dest, control: Control::Handshake(handshake) }.emit(&mut edited);
    edited
}

/// A data packet as a peer, or somebody in its name, could send it.
pub fn forged_data(seq: SeqNo, timestamp: Timestamp, dest: SocketId, payload: &[u8]) -> Vec<u8> {
    let header = DataHeader {
        seq,
        position: Position::Solo,
        in_order: false,
        key: KeyFlag::Clear,
        retransmitted: false,
        msgno: MsgNo::FIRST,
        timestamp,
        dest,
    };
    [&header.to_bytes()[..], payload].concat()
}

/// A control packet as a peer, or somebody in its name, could send it.
pub fn forged(dest: SocketId, timestamp: Timestamp, control: Control<'_>) -> Vec<u8> {
    let mut datagram = Vec::new();
    ControlPacket { timestamp, dest, control }.emit(&mut datagram);
    datagram
}
