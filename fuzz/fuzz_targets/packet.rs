//! Whatever parses reads the same after it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use punctual_wire::Packet;

fuzz_target!(|datagram: &[u8]| match Packet::parse(datagram) {
    Ok(Packet::Data(packet)) => {
        assert_eq!([&packet.header.to_bytes(), packet.payload].concat(), datagram);
    }
    Ok(Packet::Control(packet)) => {
        let mut written = Vec::new();
        packet.emit(&mut written);
        assert_eq!(written.len(), packet.emitted_len());
        assert_eq!(Packet::parse(&written), Ok(Packet::Control(packet)));
    }
    Err(error) => drop(error.to_string()),
});
