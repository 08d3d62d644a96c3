//! The loss of an honest stream while an attacker floods its listener with requests of callers.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
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
        ("5,000 failing QUIC calls a second: messages lost", 5_000, Kind::QuicFailing),
        ("20,000 failing QUIC calls a second: messages lost", 20_000, Kind::QuicFailing),
        ("1,300 half-open QUIC calls a second: messages lost", 1_300, Kind::QuicHalfOpen),
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
        quic: kind.is_quic(),
        ..Traffic::new(bench.pairs.port(), seconds)
    };
    let program = bench.pairs.own();
    let mut receiver = Process::start(program, "receive", &traffic.flags())?;
    receiver.expect("ready").await?;
    let before = receiver.usage()?.resident;
    // A flood of QUIC calls is there before the stream, which has to find its way in.
    let longer = if kind.is_quic() { 1.0 } else { -0.6 };
    let flood = Flood { port: traffic.port, rate, kind, seconds: seconds + longer };
    let mut early = match kind.is_quic() {
        true => Some(start(program, &flood).await?),
        false => None,
    };
    let mut sender = Process::start(program, "send", &traffic.flags())?;
    sender.expect("started").await?;
    sleep(Duration::from_millis(300)).await;
    let mut attacker = match early.take() {
        Some(attacker) => attacker,
        None => start(program, &flood).await?,
    };
    let calls = call(traffic.port, kind).await;
    let after = receiver.usage()?.resident;
    let attack: FloodReport = attacker.report().await?;
    let sent: SendReport = sender.report().await?;
    let received: ReceiveReport = receiver.report().await?;
    let lost = sent.sent - received.received;
    eprintln!(
        "{kind:?}, {:.0} a second: {lost} of {} messages lost, {} dropped by the sender, at most {} ms \
         from sending to delivery, {} kB more memory; {calls}",
        attack.requests as f64 / attack.seconds,
        sent.sent,
        sent.dropped,
        received.delay_max_us / 1_000,
        after.saturating_sub(before) / 1_024,
    );
    Ok(lost as f64)
}

/// Starts an attacker.
async fn start(program: &Path, flood: &Flood) -> Result<Process> {
    let mut attacker = Process::start(program, "flood", &flood.flags())?;
    attacker.expect("started").await?;
    Ok(attacker)
}

/// Calls a listener that is flooded a few times. Returns words for the outcome.
async fn call(port: u16, kind: Kind) -> String {
    if kind == Kind::EncryptedHandshakes || kind.is_quic() {
        sleep(Duration::from_secs(2)).await;
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
