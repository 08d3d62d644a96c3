//! Packets, and their parts with a form.

use punctual_wire::{
    Control, ControlPacket, Handshake, LossList, LossListBuilder, Packet, SocketId, Timestamp,
};

/// Whatever parses reads the same after it was written.
pub(crate) fn packet(datagram: &[u8]) {
    match Packet::parse(datagram) {
        Ok(Packet::Data(packet)) => {
            assert_eq!([&packet.header.to_bytes(), packet.payload].concat(), datagram);
        }
        Ok(Packet::Control(packet)) => written_reads_the_same(&packet),
        Err(error) => drop(error.to_string()),
    }
}

/// Whatever handshake parses reads the same after it was written.
pub(crate) fn handshake(body: &[u8]) {
    let Ok(handshake) = Handshake::parse(body) else { return };
    let control = Control::Handshake(Box::new(handshake));
    let (timestamp, dest) = (Timestamp::default(), SocketId::LISTENER);
    written_reads_the_same(&ControlPacket { timestamp, dest, control });
}

fn written_reads_the_same(packet: &ControlPacket<'_>) {
    let mut written = Vec::new();
    packet.emit(&mut written);
    assert_eq!(written.len(), packet.emitted_len());
    assert_eq!(Packet::parse(&written), Ok(Packet::Control(packet.clone())));
}

/// Whatever loss list parses has ordered ranges, and building it anew gives the same ranges.
pub(crate) fn loss_list(body: &[u8]) {
    let Ok(list) = LossList::parse(body) else { return };
    assert_eq!(list.as_bytes(), body);
    let mut builder = LossListBuilder::new(body.len() / 4);
    assert!(list.ranges().all(|(first, last)| builder.push(first, last)));
    assert!(builder.as_list().ranges().eq(list.ranges()));
}
