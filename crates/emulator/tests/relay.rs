//! The relay between real sockets.

use std::time::Duration;

use punctual_emulator::{Emulator, EmulatorConfig, LinkDirection};
use punctual_netem::{Action, Event, LinkEnd, Loss, Timeline};
use tokio::net::UdpSocket;

#[tokio::test]
async fn datagrams_go_both_ways_and_clients_are_told_apart() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap();
    let mut config = EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), target);
    config.up.config.delay = Duration::from_millis(20);
    config.down.config.delay = Duration::from_millis(30);
    config.max_clients = 2;
    let emulator = Emulator::start(config).await.unwrap();
    tokio::spawn(async move {
        let mut buffer = [0; 2_000];
        while let Ok((size, from)) = server.recv_from(&mut buffer).await {
            server.send_to(&buffer[..size], from).await.unwrap();
        }
    });
    for name in [b"one", b"two"] {
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.connect(emulator.local_addr()).await.unwrap();
        let start = punctual_io::now();
        client.send(name).await.unwrap();
        let mut buffer = [0; 10];
        let size = client.recv(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..size], name);
        assert!(punctual_io::now() - start >= Duration::from_millis(50));
    }
    let third = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    third.send_to(b"three", emulator.local_addr()).await.unwrap();
    until(|| emulator.report().refused > 0).await;
    let report = emulator.stop().await;
    assert_eq!((report.clients, report.refused), (2, 1));
    assert_eq!((report.up.link.delivered, report.down.link.delivered), (2, 2));
    // Three bytes each, and the headers of IPv4 and UDP.
    assert_eq!(report.up.link.delivered_bytes, 2 * 31);
    assert_eq!(report.up.lateness.count(), 2);
}

#[tokio::test]
async fn silent_clients_make_room_for_others() {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut config =
        EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), target.local_addr().unwrap());
    config.max_clients = 1;
    config.client_timeout = Duration::from_millis(50);
    let emulator = Emulator::start(config).await.unwrap();
    for number in 1..=3_u8 {
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut buffer = [0; 10];
        // Refused until the client before it is forgotten.
        loop {
            client.send_to(&[number], emulator.local_addr()).await.unwrap();
            let pause = tokio::time::timeout(Duration::from_millis(20), target.recv(&mut buffer));
            if pause.await.is_ok() && buffer[0] == number {
                break;
            }
        }
    }
    let report = emulator.stop().await;
    assert_eq!(report.clients, 3);
    assert!(report.up.link.delivered >= 3, "{report:?}");
}

#[tokio::test]
async fn each_client_meets_the_timeline_from_its_beginning() {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut config =
        EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), target.local_addr().unwrap());
    // Nothing comes through at first.
    let pause = Duration::from_millis(50);
    config.up.timeline = Timeline::new().with(Event::once(Duration::ZERO, Action::Outage(pause)));
    config.each_client = true;
    let emulator = Emulator::start(config).await.unwrap();
    for _ in 0..2 {
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.connect(emulator.local_addr()).await.unwrap();
        let before = emulator.report().up.link;
        client.send(b"lost").await.unwrap();
        until(|| emulator.report().up.link.sent > before.sent).await;
        let link = emulator.report().up.link;
        assert_eq!(link.lost_in_outage, before.lost_in_outage + 1);
        let mut buffer = [0; 10];
        loop {
            client.send(b"late").await.unwrap();
            let pause = tokio::time::timeout(Duration::from_millis(10), target.recv(&mut buffer));
            if pause.await.is_ok() {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_client_that_comes_later_meets_what_happens_at_that_time() {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut config =
        EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), target.local_addr().unwrap());
    // Nothing comes through after the first moment.
    let begin = Duration::from_millis(300);
    let outage = Action::Outage(Duration::from_secs(3_600));
    config.up.timeline = Timeline::new().with(Event::once(begin, outage));
    let emulator = Emulator::start(config).await.unwrap();
    let send = async |text: &[u8]| {
        let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        client.send_to(text, emulator.local_addr()).await.unwrap();
    };
    let start = punctual_io::now();
    send(b"first").await;
    until(|| emulator.report().up.link.sent == 1).await;
    until(|| punctual_io::now() - start > begin + Duration::from_millis(50)).await;
    send(b"again").await;
    until(|| emulator.report().up.link.sent == 2).await;
    let report = emulator.stop().await;
    assert_eq!((report.clients, report.up.link.lost_in_outage), (2, 1));
}

#[tokio::test]
async fn a_watcher_is_told_of_each_datagram_at_both_ends_of_its_link() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let target = server.local_addr().unwrap();
    let mut config = EmulatorConfig::new("127.0.0.1:0".parse().unwrap(), target);
    config.up.config.delay = Duration::from_millis(20);
    // The answer enters its link, and never leaves it.
    config.down.config.loss = Loss::All;
    let (watch, mut notes) = tokio::sync::mpsc::unbounded_channel();
    config.watch = Some(watch);
    let emulator = Emulator::start(config).await.unwrap();
    let client = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    client.send_to(b"there", emulator.local_addr()).await.unwrap();
    let mut buffer = [0; 10];
    let (_, from) = server.recv_from(&mut buffer).await.unwrap();
    server.send_to(b"back", from).await.unwrap();
    until(|| emulator.report().down.link.sent > 0).await;
    emulator.stop().await;
    let mut told = Vec::new();
    while let Some(note) = notes.recv().await {
        told.push(note);
    }
    let seen: Vec<_> = told.iter().map(|note| (note.way, note.gate, &note.content[..])).collect();
    assert_eq!(
        seen,
        [
            (LinkDirection::Up, LinkEnd::Entrance, &b"there"[..]),
            (LinkDirection::Up, LinkEnd::Exit, b"there"),
            (LinkDirection::Down, LinkEnd::Entrance, b"back"),
        ]
    );
    assert!(told[1].at - told[0].at >= Duration::from_millis(20));
}

/// Waits until `condition` holds. The timeout only turns a hang into a failure.
async fn until(condition: impl Fn() -> bool) {
    let held = async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), held).await.expect("it does not happen");
}
