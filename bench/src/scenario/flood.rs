//! The loss of an honest stream while an attacker floods its listener with whole handshakes.

use std::time::Duration;

use tokio::time::sleep;

use super::Bench;
use crate::Result;
use crate::flood::{Flood, FloodReport};
use crate::pair::Process;
use crate::report::{Row, Sample, Target};
use crate::traffic::{ReceiveReport, SendReport, Traffic};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let attacks = [
        ("5,000 handshakes a second beside 10 Mb/s: messages lost", 5_000, false),
        ("20,000 handshakes a second beside 10 Mb/s: messages lost", 20_000, false),
        ("5,000 a second at a listener with a passphrase: messages lost", 5_000, true),
        ("20,000 a second at a listener with a passphrase: messages lost", 20_000, true),
    ];
    let repeats = bench.effort.repeats.min(3);
    let mut rows = Vec::new();
    for (what, rate, encrypted) in attacks {
        let mut samples = Vec::new();
        for _ in 0..repeats {
            let lost = beside(bench, rate, encrypted).await;
            let lost = lost.map_err(|failure| eprintln!("{what}: {failure}"));
            samples.push(Sample::punctual(lost.ok()));
        }
        rows.push(Row { what, unit: "messages", target: Target::AtMost(0.0), samples });
    }
    rows
}

/// Messages that the honest stream lost.
#[expect(clippy::cast_precision_loss, reason = "messages of a run lie far below 2^53")]
async fn beside(bench: &mut Bench, rate: u32, encrypted: bool) -> Result<f64> {
    let seconds = bench.effort.steady;
    let traffic = Traffic {
        rate: 10_000_000,
        key_length: if encrypted { 16 } else { 0 },
        strangers: true,
        ..Traffic::new(bench.pairs.port(), seconds)
    };
    let program = bench.pairs.own();
    let mut receiver = Process::start(program, "receive", &traffic.flags())?;
    receiver.expect("ready").await?;
    let mut sender = Process::start(program, "send", &traffic.flags())?;
    sender.expect("started").await?;
    sleep(Duration::from_millis(300)).await;
    let flood = Flood { port: traffic.port, rate, encrypted, seconds: seconds - 0.6 };
    let mut attacker = Process::start(program, "flood", &flood.flags())?;
    attacker.expect("started").await?;
    let attack: FloodReport = attacker.report().await?;
    let sent: SendReport = sender.report().await?;
    let received: ReceiveReport = receiver.report().await?;
    let lost = sent.sent - received.received;
    eprintln!(
        "{:.0} handshakes/s{}: {lost} of {} messages lost, {} dropped by the sender, at most {} ms \
         from sending to delivery",
        attack.handshakes as f64 / attack.seconds,
        if encrypted { " with key messages" } else { "" },
        sent.sent,
        sent.dropped,
        received.delay_max_us / 1_000,
    );
    Ok(lost as f64)
}
