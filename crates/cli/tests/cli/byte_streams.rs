//! Datagrams over a stream of bytes keep their boundaries.

use std::net::UdpSocket;
use std::time::Duration;

use bytes::Bytes;
use punctual::{Config, Socket};

use crate::program::{Program, free_port};

/// Two routes that carry datagrams over a stream of bytes, from `input` to `output`.
struct Bench {
    input: UdpSocket,
    output: UdpSocket,
    sender: Program,
    receiver: Program,
}

impl Bench {
    /// With these keys for the sender and the receiver.
    fn new(keys: [&str; 2]) -> Self {
        let (port, source) = (free_port(), free_port());
        let output = UdpSocket::bind("127.0.0.1:0").expect("loopback works");
        output.set_read_timeout(Some(Duration::from_secs(30))).expect("loopback works");
        let sink = format!("udp://{}", output.local_addr().expect("loopback works"));
        let listen = format!("srt://127.0.0.1:{port}?mode=listener&transtype=stream{}", keys[1]);
        let mut receiver = Program::start(&["route", &listen, &sink]);
        receiver.wait_for("listening");
        let call = format!("srt://127.0.0.1:{port}?transtype=stream{}", keys[0]);
        let mut sender = Program::start(&["route", &format!("udp://127.0.0.1:{source}"), &call]);
        sender.wait_for("connected");
        receiver.wait_for("connected");
        let input = UdpSocket::bind("127.0.0.1:0").expect("loopback works");
        input.connect(("127.0.0.1", source)).expect("loopback works");
        let bench = Self { input, output, sender, receiver };
        bench.wait_until_open();
        bench
    }

    /// Repeats a datagram until one of them has come through, and reads later ones.
    fn wait_until_open(&self) {
        self.output.set_read_timeout(Some(Duration::from_millis(100))).expect("loopback works");
        let mut buffer = [0; 65_535];
        let mut tries = 0;
        while self.output.recv(&mut buffer).is_err() {
            // The port may not be bound yet.
            let _ = self.input.send(b"open?");
            tries += 1;
            assert!(tries < 300, "no datagram comes through");
        }
        while self.output.recv(&mut buffer).is_ok() {}
        self.output.set_read_timeout(Some(Duration::from_secs(30))).expect("loopback works");
    }

    fn receive(&self) -> Vec<u8> {
        let mut buffer = vec![0; 65_535];
        let len = self.output.recv(&mut buffer).expect("a datagram");
        buffer.truncate(len);
        buffer
    }
}

#[test]
fn datagrams_come_out_of_a_stream_of_bytes_as_they_went_in() {
    let bench = Bench::new(["", ""]);
    assert!(bench.sender.heard().contains("with the boundaries of messages"));
    assert!(bench.receiver.heard().contains("with the boundaries of messages"));
    let sizes = [1, 188, 1_316, 1_316, 1_456, 1_457, 7, 20_000, 1_316, 500, 2];
    for round in 0..20_u8 {
        let sent: Vec<Vec<u8>> = sizes.iter().map(|size| vec![round; *size]).collect();
        sent.iter().for_each(|datagram| {
            bench.input.send(datagram).unwrap();
        });
        for datagram in &sent {
            let received = bench.receive();
            assert!(received == *datagram, "{} for {} bytes", received.len(), datagram.len());
        }
    }
    bench.sender.interrupt();
    assert_eq!(bench.sender.end().code, Some(0));
    let ended = bench.receiver.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn framing_off_at_either_end_sends_the_bytes_alone() {
    for keys in [["&framing=off", ""], ["", "&framing=off"]] {
        let bench = Bench::new(keys);
        assert!(!bench.sender.heard().contains("boundaries"), "{}", bench.sender.heard());
        bench.input.send(&[7; 3_000]).unwrap();
        let (mut received, mut datagrams) = (Vec::new(), 0);
        while received.len() < 3_000 {
            received.extend(bench.receive());
            datagrams += 1;
        }
        assert!(received == [7; 3_000]);
        assert!(datagrams > 1, "3,000 bytes do not fit one packet");
    }
}

#[tokio::test]
async fn a_damaged_frame_ends_the_route_with_a_clear_error() {
    for (bytes, expected) in [
        (&b"no frame at all"[..], "where a frame begins"),
        (&[0xF7, 0xA3, 0xFF, 0xFF], "too long for a frame"),
        (&[0xF7, 0xA3, 0x00, 0x09, 0x00], "its last 8 bytes are missing"),
    ] {
        let port = free_port();
        let listen = format!("srt://127.0.0.1:{port}?mode=listener&transtype=stream");
        let mut receiver = Program::start(&["route", &listen, "-"]);
        receiver.wait_for("listening");
        let config = Config::file().with_framing(true);
        let socket = Socket::connect(([127, 0, 0, 1], port).into(), config).await.unwrap();
        assert!(socket.info().framing);
        socket.write_all(Bytes::copy_from_slice(bytes)).await.unwrap();
        socket.close().await;
        let ended = tokio::task::spawn_blocking(move || receiver.end()).await.unwrap();
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert!(ended.stdout.is_empty());
    }
}
