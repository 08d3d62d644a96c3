//! Two sides, with the kernel's own protocols between them.

#![cfg(target_os = "linux")]
#![expect(clippy::disallowed_types, reason = "the sockets of a system under test")]

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::Duration;

use punctual_emulator::{Side, TunConfig, TunEmulator, check_tun};
use punctual_netem::{Action, Event, LinkConfig, LinkProfile, Loss, Reorder, Timeline};

/// Whether this process may make two sides. If not, says so past the test harness's capture, so
/// that nobody takes a skipped test for a passed one.
fn allowed() -> bool {
    let Err(error) = check_tun() else { return true };
    let problem = format!("{}: {error}", thread::current().name().unwrap_or("test"));
    assert!(std::env::var("PUNCTUAL_REQUIRE_PEERS").as_deref() != Ok("1"), "{problem}");
    // The harness may be in the middle of a line.
    let _ = writeln!(io::stdout(), "\nskipped: {problem}");
    false
}

/// An emulator with the same link both ways.
fn emulator(link: LinkConfig) -> TunEmulator {
    let config = TunConfig { up: link.clone().into(), down: link.into(), ..TunConfig::default() };
    TunEmulator::start(config).expect("it starts")
}

/// The result of `work` in a thread on that side.
fn on<T: Send>(emulator: &TunEmulator, side: Side, work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let thread = scope.spawn(|| {
            emulator.enter(side).expect("the side can be entered");
            work()
        });
        thread.join().expect("the work succeeds")
    })
}

fn udp(emulator: &TunEmulator, side: Side, address: impl Into<IpAddr>) -> UdpSocket {
    let address = SocketAddr::new(address.into(), PORT);
    let socket = on(emulator, side, || UdpSocket::bind(address).expect("the port is free"));
    socket.set_read_timeout(Some(TIMEOUT)).expect("it is not zero");
    socket
}

/// Sends a datagram there and back; gives the round-trip time.
fn round_trip(left: &UdpSocket, right: &UdpSocket) -> io::Result<Duration> {
    let mut buffer = [0; 100];
    let start = punctual_io::now();
    left.send_to(b"there", right.local_addr()?)?;
    let (size, from) = right.recv_from(&mut buffer)?;
    assert_eq!((&buffer[..size], from), (&b"there"[..], left.local_addr()?));
    right.send_to(b"and back", from)?;
    let size = left.recv(&mut buffer)?;
    assert_eq!(&buffer[..size], b"and back");
    Ok(punctual_io::now() - start)
}

#[test]
fn datagrams_take_the_delay_of_the_links_with_either_version_of_ip() {
    if !allowed() {
        return;
    }
    let emulator = emulator(LinkConfig::default().with_delay(Duration::from_millis(20)));
    let sides = |address: fn(Side) -> IpAddr| {
        [Side::Left, Side::Right].map(|side| udp(&emulator, side, address(side)))
    };
    for [left, right] in [sides(|side| side.ipv4().into()), sides(|side| side.ipv6().into())] {
        let fastest = (0..5).map(|_| round_trip(&left, &right).unwrap()).min().unwrap();
        let [least, most] = [40, 60].map(Duration::from_millis);
        assert!(fastest >= least && fastest < most, "{fastest:?}");
    }
    let report = emulator.stop();
    for direction in [&report.up, &report.down] {
        // Nothing but these went over the links.
        assert_eq!((direction.link.sent, direction.link.delivered), (10, 10), "{report}");
        assert_eq!(direction.lateness.count(), 10);
        assert_eq!((direction.overruns, direction.refused), (0, 0));
    }
    // 5 and 8 bytes of payload, behind headers of 28 and of 48 bytes.
    assert_eq!(report.up.link.sent_bytes, 5 * (33 + 53));
    assert_eq!(report.down.link.sent_bytes, 5 * (36 + 56));
}

#[test]
fn lost_packets_are_missing_at_the_other_side_and_counted() {
    if !allowed() {
        return;
    }
    let emulator = emulator(LinkConfig::default().with_loss(Loss::Random(0.1)).unwrap());
    let left = udp(&emulator, Side::Left, Side::Left.ipv4());
    let right = udp(&emulator, Side::Right, Side::Right.ipv4());
    let mut arrived = 0;
    for number in 0..1_000_u32 {
        left.send_to(&number.to_be_bytes(), right.local_addr().unwrap()).unwrap();
        // One at a time, so that no queue of the system is filled: gone, or there.
        let link = loop {
            let link = emulator.report().up.link;
            if link.delivered + link.lost > number.into() {
                break link;
            }
        };
        if link.delivered > arrived {
            let mut buffer = [0; 4];
            right.recv(&mut buffer).unwrap();
            assert_eq!(u32::from_be_bytes(buffer), number);
            arrived += 1;
        }
    }
    let report = emulator.stop();
    let link = &report.up.link;
    assert_eq!((link.sent, link.delivered), (1_000, arrived));
    assert_eq!(link.lost_by_chance, 1_000 - arrived);
    assert!((70..130).contains(&link.lost), "{report}");
}

#[test]
fn tcp_arrives_byte_for_byte_through_loss_reordering_and_damage() {
    if !allowed() {
        return;
    }
    let link = LinkConfig::default()
        .with_delay(Duration::from_millis(5))
        .with_loss(Loss::Random(0.01))
        .and_then(|link| link.with_corrupt(0.01))
        .and_then(|link| link.with_duplicate(0.01))
        .and_then(|link| {
            link.with_reorder(Reorder::Late { share: 0.01, by: Duration::from_millis(3) })
        })
        .unwrap();
    let emulator = emulator(link);
    let sent: Vec<u8> =
        (0..2_000_000_u32).map(|n| n.wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let listener =
        on(&emulator, Side::Right, || TcpListener::bind((Side::Right.ipv6(), PORT)).unwrap());
    let received = thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).unwrap();
            received
        });
        on(&emulator, Side::Left, || {
            let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            stream.write_all(&sent).unwrap();
        });
        receiving.join().unwrap()
    });
    assert!(received == sent, "{} bytes of {}", received.len(), sent.len());
    let report = emulator.stop();
    let link = &report.up.link;
    assert!(link.lost > 0 && link.corrupted > 0 && link.reordered > 0, "{report}");
    // Without offloads no packet is longer than the MTU.
    assert!(link.sent_bytes <= link.sent * 1_500, "{report}");
}

#[test]
fn a_timeline_begins_with_the_emulator_and_anew_when_it_is_restarted() {
    if !allowed() {
        return;
    }
    let outage = Event::once(Duration::ZERO, Action::Outage(Duration::from_secs(3_600)));
    let config = TunConfig {
        up: LinkProfile::default().with_timeline(Timeline::new().with(outage)),
        ..TunConfig::default()
    };
    let mut emulator = TunEmulator::start(config).unwrap();
    let left = udp(&emulator, Side::Left, Side::Left.ipv4());
    for _ in 0..2 {
        left.send_to(b"lost", (Side::Right.ipv4(), PORT)).unwrap();
        while emulator.report().up.link.sent == 0 {}
        let report = emulator.report();
        assert_eq!((report.up.link.lost_in_outage, report.up.link.delivered), (1, 0), "{report}");
        emulator.restart();
        assert_eq!(emulator.report().up.link.sent, 0);
    }
}

#[test]
fn sides_do_not_see_the_network_of_the_system_nor_each_others_ports() {
    if !allowed() {
        return;
    }
    let emulator = emulator(LinkConfig::default());
    let outside = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = outside.local_addr().unwrap().port();
    for side in [Side::Left, Side::Right] {
        let address = ("127.0.0.1", port);
        let own = on(&emulator, side, || UdpSocket::bind(address).unwrap());
        assert_eq!(own.local_addr().unwrap(), outside.local_addr().unwrap());
        own.connect(address).unwrap();
        own.send(b"to itself").unwrap();
        assert_eq!(own.recv(&mut [0; 20]).unwrap(), 9);
    }
    outside.set_nonblocking(true).unwrap();
    assert_eq!(outside.recv(&mut [0; 20]).unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

const PORT: u16 = 4_200;

/// Long enough for a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);
