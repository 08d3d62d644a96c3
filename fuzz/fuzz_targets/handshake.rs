//! Whatever handshake parses reads the same after it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_wire::{Control, ControlPacket, Handshake, Packet, SocketId, Timestamp};

fuzz_target!(|body: &[u8]| {
    let Ok(handshake) = Handshake::parse(body) else { return };
    let control = Control::Handshake(Box::new(handshake));
    let packet =
        ControlPacket { timestamp: Timestamp::default(), dest: SocketId::LISTENER, control };
    let mut written = Vec::new();
    packet.emit(&mut written);
    assert_eq!(written.len(), packet.emitted_len());
    assert_eq!(Packet::parse(&written), Ok(Packet::Control(packet)));
});
