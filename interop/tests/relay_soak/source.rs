//! The stream of a publisher: small, with tables, a clock and random access points.

use bytes::Bytes;
use interop::crc32;
use punctual_mpegts::PACKET_LEN;

/// A transport stream without end. Each message has one picture in seven packets, and each second
/// begins with a random access point.
pub(crate) struct TestStream {
    /// The PID of its video, by which streams are told apart.
    pid: u16,
    pictures_per_second: u32,
    picture: u64,
    /// The continuity counters of the PAT, the map and the video.
    counters: [u8; 3],
}

impl TestStream {
    /// The beginning of the stream of this number.
    pub(crate) fn new(number: u16, pictures_per_second: u32) -> Self {
        Self { pid: video_pid(number), pictures_per_second, picture: 0, counters: [0; 3] }
    }

    /// The next picture.
    pub(crate) fn next_message(&mut self) -> Bytes {
        let rate = u64::from(self.pictures_per_second);
        let is_entry = self.picture.is_multiple_of(rate);
        let mut message = Vec::with_capacity(PACKETS * PACKET_LEN);
        if self.picture.is_multiple_of((rate / 3).max(1)) {
            message.extend(self.table(0, 0, &pat()));
            message.extend(self.table(1, MAP_PID, &map(self.pid)));
        }
        let mut is_start = true;
        while message.len() < PACKETS * PACKET_LEN {
            let mut packet = self.packet(2, self.pid);
            if std::mem::take(&mut is_start) {
                begin_picture(&mut packet, self.picture * CLOCK / rate, is_entry);
            }
            message.extend(packet);
        }
        self.picture += 1;
        message.into()
    }

    /// A packet that is full of bytes which begin nothing.
    fn packet(&mut self, place: usize, pid: u16) -> [u8; PACKET_LEN] {
        let counter = self.counters[place];
        self.counters[place] = (counter + 1) & 0x0F;
        let mut packet = [0xFF; PACKET_LEN];
        let [high, low] = pid.to_be_bytes();
        packet[..4].copy_from_slice(&[0x47, high, low, 0x10 | counter]);
        packet
    }

    fn table(&mut self, place: usize, pid: u16, section: &[u8]) -> [u8; PACKET_LEN] {
        let mut packet = self.packet(place, pid);
        packet[1] |= 0x40;
        packet[4] = 0;
        packet[5..5 + section.len()].copy_from_slice(section);
        packet
    }
}

/// The PID of the video of the stream of this number.
pub(crate) const fn video_pid(number: u16) -> u16 {
    0x100 + number
}

/// The PID of the map.
pub(crate) const MAP_PID: u16 = 0x1000;

/// Begins a picture at this time in the first packet of its own.
fn begin_picture(packet: &mut [u8; PACKET_LEN], at: u64, is_entry: bool) {
    packet[1] |= 0x40;
    packet[3] |= 0x20;
    // An adaptation field with the clock, which counts 90,000 a second here.
    let [_, _, clock @ ..] = ((at << 15) | (0x3F << 9)).to_be_bytes();
    packet[4..6].copy_from_slice(&[7, if is_entry { 0x50 } else { 0x10 }]);
    packet[6..12].copy_from_slice(&clock);
    let pts = at + DELAY;
    // Three parts of 3, 15 and 15 bits, each with a bit of 1 behind it (ISO/IEC 13818-1 2.4.3.6).
    let parts =
        0x21_0001_0001 | (pts >> 30 & 7) << 33 | (pts >> 15 & 0x7FFF) << 17 | (pts & 0x7FFF) << 1;
    packet[12..21].copy_from_slice(&[0, 0, 1, 0xE0, 0, 0, 0x80, 0x80, 5]);
    packet[21..26].copy_from_slice(&parts.to_be_bytes()[3..]);
    // An access unit delimiter, and a slice of a picture that needs no other one, or that does.
    let slice = if is_entry { 0x65 } else { 0x41 };
    packet[26..37].copy_from_slice(&[0, 0, 0, 1, 9, 0xF0, 0, 0, 1, slice, 0x88]);
}

fn pat() -> Vec<u8> {
    let [high, low] = (0xE000 | MAP_PID).to_be_bytes();
    with_checksum(vec![0x00, 0xB0, 13, 0, 1, 0xC1, 0, 0, 0, 1, high, low])
}

fn map(pid: u16) -> Vec<u8> {
    let [high, low] = (0xE000 | pid).to_be_bytes();
    let start = [0x02, 0xB0, 18, 0, 1, 0xC1, 0, 0, high, low, 0xF0, 0];
    with_checksum([&start[..], &[0x1B, high, low, 0xF0, 0]].concat())
}

fn with_checksum(mut section: Vec<u8>) -> Vec<u8> {
    section.extend(crc32(&section).to_be_bytes());
    section
}

/// The packets of a message.
const PACKETS: usize = 7;
/// The clock's units of a second.
const CLOCK: u64 = 90_000;
/// The time from a picture's packets to its presentation, in units of the clock.
const DELAY: u64 = CLOCK / 2;

#[test]
fn the_stream_has_random_access_points_and_no_fault() {
    use punctual_mpegts::{Inspector, Packet};
    use std::time::Duration;
    let (mut stream, mut inspector) = (TestStream::new(7, 25), Inspector::default());
    let mut points = Vec::new();
    for picture in 0..100_u32 {
        let now = Duration::from_millis(40) * picture;
        for packet in stream.next_message().as_chunks::<PACKET_LEN>().0 {
            points.extend(inspector.push(Packet::new(packet).expect("a packet"), now));
        }
    }
    let times: Vec<_> = points.iter().filter_map(|it| it.pts).collect();
    assert_eq!(times, [0, 1, 2, 3].map(|second| second * CLOCK + DELAY));
    assert_eq!(points[0].pid, video_pid(7));
    let faults: Vec<_> = inspector.health().faults().filter(|it| it.1.count > 0).collect();
    assert!(faults.is_empty(), "{faults:?}");
}
