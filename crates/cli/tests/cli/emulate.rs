//! The emulator between real programs.

use std::time::Duration;

use crate::program::{Program, free_port, rows, run};
use punctual_emulator::{Emulator, EmulatorConfig};
use punctual_netem::Loss;

#[tokio::test(flavor = "multi_thread")]
async fn srt_recovers_the_losses_of_the_link() {
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
fn the_command_reports_its_figures() {
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
