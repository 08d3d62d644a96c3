//! The emulator between real programs.

use std::time::Duration;

use crate::program::{Program, free_port, rows, run};
use punctual_emulator::{Emulator, EmulatorConfig};
use punctual_netem::Loss;
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
        let start = punctual::now();
        client.send(name).await.unwrap();
        let mut buffer = [0; 10];
        let size = client.recv(&mut buffer).await.unwrap();
        assert_eq!(&buffer[..size], name);
        assert!(punctual::now() - start >= Duration::from_millis(50));
    }
    let third = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    third.send_to(b"three", emulator.local_addr()).await.unwrap();
    while emulator.report().refused == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
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

#[tokio::test(flavor = "multi_thread")]
async fn srt_recovers_what_the_link_loses() {
    let port = free_port();
    let mut config = EmulatorConfig::new(
        "127.0.0.1:0".parse().unwrap(),
        format!("127.0.0.1:{port}").parse().unwrap(),
    );
    config.seed = 7;
    config.up.config.loss = Loss::Random(0.05);
    config.up.config.delay = Duration::from_millis(10);
    config.down = config.up.clone();
    let emulator = Emulator::start(config).await.unwrap();
    let mut receiver =
        Program::start(&["receive", &format!("srt://:{port}?latency=1s"), "--enable-metrics"]);
    receiver.wait_for("listening");
    let uri = format!("srt://{}?latency=1s", emulator.local_addr());
    let generated = tokio::task::spawn_blocking(move || {
        run(&["generate", &uri, "--sendrate", "5Mbps", "--num", "1000", "--enable-metrics"], b"")
    });
    let generated = generated.await.unwrap();
    assert_eq!(generated.code, Some(0), "{}", generated.stderr);
    let metrics = rows(&receiver.end().text());
    let last = metrics.last().unwrap();
    assert_eq!((last["pktReceived"].as_str(), last["pktLost"].as_str()), ("1000", "0"));
    let report = emulator.stop().await;
    assert!(report.up.link.lost > 0 && report.down.link.lost > 0, "{report}");
}

#[test]
fn the_command_tells_what_it_did() {
    let (listen, target) = (free_port(), free_port());
    let (listen, target) = (format!("127.0.0.1:{listen}"), format!("127.0.0.1:{target}"));
    let mut emulator =
        Program::start(&["emulate", &listen, &target, "--loss", "10%", "--seed", "3"]);
    emulator.wait_for("relaying");
    let uri = format!("udp://{listen}");
    let sender = run(&["generate", &uri, "--sendrate", "20Mbps", "--num", "500"], b"");
    assert_eq!(sender.code, Some(0), "{}", sender.stderr);
    emulator.wait_for("client 127.0.0.1");
    emulator.interrupt();
    let report = emulator.end().text();
    assert!(report.starts_with("1 client in "), "{report}");
    let lost = report.lines().find(|line| line.starts_with("lost")).unwrap();
    assert!(!lost.contains(" 0 "), "{report}");
    assert!(report.contains("late, p99"), "{report}");
}
