//! The loss of an honest stream while an attacker floods its listener with requests of callers.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use punctual::{Config, Socket};
use tokio::time::{Instant, sleep};

use super::Bench;
use crate::Result;
use crate::flood::{Flood, FloodReport, Kind};
use crate::pair::Process;
use crate::report::{Row, Sample, Target};
use crate::traffic::{ReceiveReport, SendReport, Traffic};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let attacks = [
        ("5,000 handshakes a second beside 10 Mb/s: messages lost", 5_000, Kind::Handshakes),
        ("20,000 handshakes a second beside 10 Mb/s: messages lost", 20_000, Kind::Handshakes),
        (
            "5,000 a second at a listener with a passphrase: messages lost",
            5_000,
            Kind::EncryptedHandshakes,
        ),
        (
            "20,000 a second at a listener with a passphrase: messages lost",
            20_000,
            Kind::EncryptedHandshakes,
        ),
        ("150,000 inductions a second: messages lost", 150_000, Kind::Inductions),
        ("200,000 inductions a second: messages lost", 200_000, Kind::Inductions),
        ("400,000 inductions a second: messages lost", 400_000, Kind::Inductions),
    ];
    let repeats = bench.effort.repeats.min(3);
    let mut rows = Vec::new();
    for (what, rate, kind) in attacks {
        let mut samples = Vec::new();
        for _ in 0..repeats {
            let lost = beside(bench, rate, kind).await;
            let lost = lost.map_err(|failure| eprintln!("{what}: {failure}"));
            samples.push(Sample::punctual(lost.ok()));
        }
        rows.push(Row { what, unit: "messages", target: Target::AtMost(0.0), samples });
    }
    rows
}

/// Messages that the honest stream lost.
#[expect(clippy::cast_precision_loss, reason = "messages of a run lie far below 2^53")]
async fn beside(bench: &mut Bench, rate: u32, kind: Kind) -> Result<f64> {
    let seconds = bench.effort.steady;
    let traffic = Traffic {
        rate: 10_000_000,
        key_length: if kind == Kind::EncryptedHandshakes { 16 } else { 0 },
        strangers: true,
        ..Traffic::new(bench.pairs.port(), seconds)
    };
    let program = bench.pairs.own();
    let mut receiver = Process::start(program, "receive", &traffic.flags())?;
    receiver.expect("ready").await?;
    let mut sender = Process::start(program, "send", &traffic.flags())?;
    sender.expect("started").await?;
    sleep(Duration::from_millis(300)).await;
    let flood = Flood { port: traffic.port, rate, kind, seconds: seconds - 0.6 };
    let mut attacker = Process::start(program, "flood", &flood.flags())?;
    attacker.expect("started").await?;
    let calls = call(traffic.port, kind).await;
    let attack: FloodReport = attacker.report().await?;
    let sent: SendReport = sender.report().await?;
    let received: ReceiveReport = receiver.report().await?;
    let lost = sent.sent - received.received;
    eprintln!(
        "{kind:?}, {:.0} a second: {lost} of {} messages lost, {} dropped by the sender, at most {} ms \
         from sending to delivery; {calls}",
        attack.requests as f64 / attack.seconds,
        sent.sent,
        sent.dropped,
        received.delay_max_us / 1_000,
    );
    Ok(lost as f64)
}

/// Calls a listener that is flooded a few times. Returns words for the outcome.
async fn call(port: u16, kind: Kind) -> String {
    if kind == Kind::EncryptedHandshakes {
        return "no further callers".to_owned();
    }
    let listener = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let began = Instant::now();
        let called = Socket::connect(listener, Config::default()).await;
        times.push(called.map_or(-1, |_| began.elapsed().as_millis().cast_signed()));
    }
    format!("further callers were taken after {times:?} ms")
}

/// Callers that call while the listener is flooded.
const CALLS: usize = 5;
