//! Captures, read by a few lines of our own; `interop/` has tshark read them.

use punctual_sim::{
    StreamConfig, TcpConfig, TcpControl, TcpSource, Traffic, TrafficConfig, Transport,
};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, delay, latency, lossy, srt, tcp};

/// A packet of a capture.
struct Captured {
    interface: u32,
    nanos: u64,
    size: u32,
    data: Vec<u8>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// The names of a capture's interfaces, and its packets.
fn read(file: &[u8]) -> (Vec<String>, Vec<Captured>) {
    let (mut names, mut packets) = (Vec::new(), Vec::new());
    let mut rest = file;
    while !rest.is_empty() {
        let (kind, total) = (word(rest, 0), word(rest, 4) as usize);
        assert_eq!(total % 4, 0);
        assert_eq!(word(rest, total - 4) as usize, total, "the length is repeated at the end");
        let body = &rest[8..total - 4];
        match kind {
            0x0A0D_0D0A => assert_eq!(word(body, 0), 0x1A2B_3C4D),
            1 => {
                assert_eq!(word(body, 0), 101, "raw IP");
                let length = usize::from(u16::from_le_bytes([body[10], body[11]]));
                names.push(String::from_utf8(body[12..12 + length].to_vec()).expect("text"));
            }
            6 => {
                let length = word(body, 12) as usize;
                packets.push(Captured {
                    interface: word(body, 0),
                    nanos: u64::from(word(body, 4)) << 32 | u64::from(word(body, 8)),
                    size: word(body, 16),
                    data: body[20..20 + length].to_vec(),
                });
            }
            other => panic!("a block of type {other}"),
        }
        rest = &rest[total..];
    }
    (names, packets)
}

/// The Internet checksum over this, which is zero if it holds.
fn sum(bytes: &[u8]) -> u16 {
    let mut sum = 0_u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| low.into());
    }
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    !(sum as u16)
}

/// The sum over addresses, protocol, length and everything above IP.
fn upper_sum(packet: &[u8]) -> u16 {
    let length = (packet.len() - 20) as u16;
    let mut pseudo = packet[12..20].to_vec();
    pseudo.extend([0, packet[9]]);
    pseudo.extend(length.to_be_bytes());
    pseudo.extend(&packet[20..]);
    sum(&pseudo)
}

#[test]
fn a_capture_has_every_packet_at_its_nanosecond_at_both_ends() {
    let mut pair = Pair::new(1, lossy(20, 0.1));
    pair.world.capture(pair.there);
    let stream = pair.add(pair.stream(Transport::Udp, 10, 2));
    pair.world.run_for(SECS(3));
    let (names, packets) = read(&pair.world.capture_bytes(pair.there));
    assert_eq!(names, ["link 0 entrance", "link 0 exit"]);
    let outcome = pair.world.outcome(stream);
    let at = |interface| packets.iter().filter(move |packet| packet.interface == interface);
    assert_eq!(at(0).count() as u64, outcome.messages_sent);
    assert_eq!(at(1).count() as u64, outcome.messages_received);
    for (n, packet) in at(0).enumerate() {
        assert_eq!(packet.nanos, n as u64 * 1_000_000);
        assert_eq!((packet.size, packet.data.len()), (1_278, 1_278));
    }
    assert!(at(1).all(|packet| packet.nanos % 1_000_000 == 0 && packet.nanos >= 20_000_000));
    assert!(packets.is_sorted_by_key(|packet| packet.nanos));
}

#[test]
fn checksums_hold_and_show_what_was_damaged() {
    let mut pair = Pair::new(1, delay(20).with_corrupt(0.1).expect("a share"));
    pair.world.capture(pair.there);
    let stream = pair.stream(srt(&latency(120)), 5, 2);
    pair.add(StreamConfig { payload: 1_001, ..stream });
    pair.world.run_for(SECS(3));
    let (_, packets) = read(&pair.world.capture_bytes(pair.there));
    assert!(packets.iter().all(|packet| sum(&packet.data[..20]) == 0), "IP headers");
    let wrong = packets.iter().filter(|packet| upper_sum(&packet.data) != 0);
    let wrong: Vec<u32> = wrong.map(|packet| packet.interface).collect();
    assert!(wrong.iter().all(|&interface| interface == 1), "nothing is damaged at the entrance");
    assert_eq!(wrong.len() as u64, pair.world.link_statistics(pair.there).corrupted);
}

#[test]
fn cross_traffic_is_captured_with_its_headers() {
    let mut pair = Pair::new(1, delay(20));
    for link in [pair.there, pair.back] {
        pair.world.capture(link);
    }
    for traffic in
        [Traffic::TcpLike { max_window: 20_000 }, Traffic::Constant { rate: Bitrate::from_mbps(1) }]
    {
        let (links, back) = (vec![pair.there], vec![pair.back]);
        let start = MS(0);
        let traffic =
            TrafficConfig { traffic, packet: 1_500, links, back, start, duration: SECS(1) };
        pair.world.add_traffic(traffic).expect("traffic");
    }
    pair.world.run_for(SECS(2));
    let (names, packets) = read(&pair.world.capture_of_all());
    assert_eq!(names.len(), 4);
    let tcp = packets.iter().filter(|packet| packet.data[9] == 6).count();
    let udp = packets.iter().filter(|packet| packet.data[9] == 17).count();
    assert!(tcp > 100 && udp > 100 && tcp + udp == packets.len());
    let sizes: Vec<(u32, usize)> =
        packets.iter().map(|packet| (packet.size, packet.data.len())).collect();
    assert!(
        sizes.contains(&(1_500, 40)) && sizes.contains(&(1_500, 28)) && sizes.contains(&(40, 40))
    );
    let (_, back) = read(&pair.world.capture_bytes(pair.back));
    assert!(!back.is_empty() && back.iter().all(|packet| packet.size == 40));
}

#[test]
fn a_capture_shows_retransmissions_with_their_sequence_numbers() {
    let mut pair = Pair::new(1, lossy(20, 0.02));
    pair.world.capture(pair.there);
    let control = TcpConfig::new(TcpControl::Cubic).with_source(TcpSource::Bytes(500_000));
    let traffic = TrafficConfig { traffic: Traffic::Tcp(control), ..tcp(&pair, control.control) };
    let flow = pair.world.add_traffic(traffic).expect("traffic");
    pair.world.run_for(SECS(10));
    let (_, packets) = read(&pair.world.capture_bytes(pair.there));
    // At the entrance.
    let mut sequences: Vec<u32> = packets
        .iter()
        .filter(|packet| packet.interface == 0)
        .map(|packet| u32::from_be_bytes(packet.data[24..28].try_into().expect("four bytes")))
        .collect();
    let statistics = pair.world.traffic_statistics(flow);
    assert_eq!(sequences.len() as u64, statistics.sent);
    sequences.sort_unstable();
    sequences.dedup();
    assert!(statistics.retransmitted > 0, "{statistics:?}");
    assert_eq!(sequences.len() as u64, statistics.sent - statistics.retransmitted);
    assert_eq!(sequences.last(), Some(&(345 * 1_460)));
}

#[test]
fn without_a_capture_there_is_an_empty_file() {
    let mut pair = Pair::new(1, delay(20));
    pair.add(pair.stream(Transport::Udp, 5, 1));
    pair.world.run_for(SECS(1));
    let (names, packets) = read(&pair.world.capture_bytes(pair.there));
    assert!(names.is_empty() && packets.is_empty());
}
