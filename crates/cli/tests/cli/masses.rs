//! Callers in masses at a listener.

use std::net::SocketAddr;

use punctual::{Config, Port, PortConfig};

use crate::program::{Folder, Program, free_port};

const CALLERS: usize = 300;

/// Calls the listener again and again from one port, and ends each connection at once; how many
/// were taken.
fn call(port: u16, passphrase: &str) -> usize {
    let remote = SocketAddr::from(([127, 0, 0, 1], port));
    let config = || Config::default().with_passphrase(passphrase).expect("it is long enough");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let port = Port::bind(PortConfig::default()).await.expect("a port");
        let mut taken = 0;
        for _ in 0..CALLERS {
            if let Ok(socket) = port.connect(remote, config()).await {
                taken += 1;
                let _ = socket.close().await;
            }
        }
        taken
    })
}

/// The number of events in `messages`, some of which are for one event and others for many.
fn told(messages: &str, one: &str, more: &str) -> u64 {
    let each =
        messages.lines().filter(|line| line.contains(one) && !line.contains("… and ")).count();
    let sums = messages.lines().filter(|line| line.contains(more)).map(|line| {
        let (_, sum) = line.split_once("… and ").expect("it sums up");
        let (sum, _) = sum.split_once(" more").expect("it tells a number");
        sum.replace(',', "").parse::<u64>().expect("a number")
    });
    each as u64 + sums.sum::<u64>()
}

#[test]
fn refused_callers_in_masses_leave_few_lines_that_count_all() {
    let port = free_port();
    let uri = format!("srt://:{port}?passphrase=a_long_secret");
    let mut receiver = Program::start(&["receive", &uri]);
    receiver.wait_for("listening");
    assert_eq!(call(port, "another_secret"), 0);
    receiver.wait_for("more callers were refused");
    receiver.interrupt();
    let messages = receiver.end().stderr;
    assert_eq!(told(&messages, "was not accepted", "callers were refused"), CALLERS as u64);
    assert!(messages.lines().count() < CALLERS / 2, "{messages}");
}

#[test]
fn connections_in_masses_leave_few_lines_and_few_rows() {
    let folder = Folder::new("masses");
    let (port, stats) = (free_port(), folder.file("stats.csv"));
    let mut receiver = Program::start(&[
        "receive",
        &format!("srt://:{port}?passphrase=a_long_secret"),
        "--concurrent-streams",
        "1000",
        "--maxconns=-1",
        "--enable-metrics",
        "--statsfile",
        &stats,
        "--statsfreq",
        "1h",
    ]);
    receiver.wait_for("listening");
    assert_eq!(call(port, "a_long_secret"), CALLERS);
    receiver.wait_for("more callers connected");
    receiver.wait_for("more connections ended");
    receiver.interrupt();
    let ended = receiver.end();
    let messages = ended.stderr;
    assert_eq!(told(&messages, "connected with", "callers connected"), CALLERS as u64);
    let (all, one_by_one): (Vec<_>, Vec<_>) =
        messages.lines().partition(|line| line.contains(" connections in all: received "));
    assert_eq!(all.len(), 1, "{messages}");
    assert_eq!(told(&one_by_one.join("\n"), ": received ", "connections ended"), CALLERS as u64);
    assert!(messages.lines().count() < CALLERS / 2, "{messages}");
    assert!(messages.contains("statistics: "), "{messages}");
    let rows = std::fs::read_to_string(stats).expect("statistics").lines().count();
    assert!(rows < CALLERS * 3 / 4, "{rows} rows");
    assert!(ended.stdout.split(|&byte| byte == b'\n').count() < CALLERS * 3 / 4);
}
