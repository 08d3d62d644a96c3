//! Values for the unit tests of this folder.

use std::net::{IpAddr, Ipv4Addr};

use punctual_wire::{
    DataHeader, Handshake, HandshakeRequest, KeyFlag, MsgNo, PeerIp, Position, SeqNo, SocketId,
    Timestamp,
};

/// A handshake of the kind `request`, without extensions.
pub(super) fn handshake(request: HandshakeRequest, socket_id: SocketId) -> Handshake {
    Handshake {
        version: 5,
        encryption: 0,
        extension_field: 0,
        isn: SeqNo::new(1),
        mss: 1_500,
        flow_window: 8_192,
        request,
        socket_id,
        cookie: 0,
        peer_ip: PeerIp::from(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        extensions: Vec::new(),
    }
}

/// The header of the first packet of a live stream.
pub(super) fn data_header() -> DataHeader {
    DataHeader {
        seq: SeqNo::new(1),
        position: Position::Solo,
        in_order: false,
        key: KeyFlag::Clear,
        retransmitted: false,
        msgno: MsgNo::FIRST,
        timestamp: Timestamp::default(),
        dest: SocketId::new(7),
    }
}
