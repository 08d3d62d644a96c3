use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::crc32;

/// Brings AV1 of FFmpeg from a port of this machine into `output`, as newer multiplexers write it,
/// and returns the port. FFmpeg 5.1 writes the packets of AV1 as they are to be, and leaves out of
/// the PMT that they are AV1: the registration `AV01` is put into it here.
///
/// # Panics
///
/// If no port is free.
pub fn name_av1(mut output: impl Write + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let port = listener.local_addr().expect("it is bound").port();
    thread::spawn(move || {
        let Ok((mut input, _)) = listener.accept() else { return };
        let mut packet = [0; 188];
        while input.read_exact(&mut packet).is_ok() {
            name_in_table(&mut packet);
            if output.write_all(&packet).is_err() {
                break; // The test has ended.
            }
        }
    });
    port
}

/// Adds the registration to a packet with FFmpeg's PMT, in which AV1 is a private stream without
/// descriptors.
fn name_in_table(packet: &mut [u8; 188]) {
    const TABLE: usize = 5;
    let is_table = packet[..3] == [0x47, 0x50, 0x00] && packet[TABLE] == 0x02;
    let length = usize::from(packet[TABLE + 1] & 0x0F) << 8 | usize::from(packet[TABLE + 2]);
    let end = TABLE + 3 + length - 4;
    let bare = [0x06, 0xE1, 0x00, 0xF0, 0x00];
    let found = is_table && end + 4 + AV01.len() < packet.len();
    let place = packet[..end.min(188)].windows(bare.len()).position(|window| window == bare);
    let Some(place) = place.filter(|_| found) else { return };
    let after = place + bare.len();
    packet.copy_within(after..end, after + AV01.len());
    packet[after..after + AV01.len()].copy_from_slice(&AV01);
    packet[after - 1] = 6;
    packet[TABLE + 2] += 6;
    let end = end + AV01.len();
    let checksum = crc32(&packet[TABLE..end]);
    packet[end..end + 4].copy_from_slice(&checksum.to_be_bytes());
}

/// The registration descriptor with the format `AV01`.
const AV01: [u8; 6] = *b"\x05\x04AV01";
