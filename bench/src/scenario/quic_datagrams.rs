//! The highest rate of bare QUIC datagrams, beside that of quinn.

use super::Bench;
use crate::Result;
use crate::datagrams::{DatagramReport, Datagrams};
use crate::pair::Process;
use crate::report::{Row, Sample, Target};

/// Punctual's highest rate without a loss of more than 0.5 %, divided by quinn's.
pub(super) async fn run(bench: &mut Bench) -> Row {
    let what = "bare QUIC datagrams of 1100 bytes: highest rate, of quinn's";
    let mut found = [None; 2];
    let mut samples = Vec::new();
    for time in 1..=bench.effort.searches {
        let mut rates = Vec::new();
        for quinn in [true, false] {
            let name = if quinn { "quinn" } else { "Punctual" };
            match highest(bench, quinn, &mut found[usize::from(quinn)]).await {
                Ok(rate) => {
                    eprintln!("{what}, {time}, {name}: {rate:.0} a second");
                    rates.push(rate);
                }
                Err(failure) => eprintln!("{what}, {time}, {name}: {failure}"),
            }
        }
        let ratio = if let [quinn, punctual] = rates[..] { Some(punctual / quinn) } else { None };
        samples.push(Sample::punctual(ratio));
    }
    Row { what, unit: "×", target: Target::AtLeast(0.9), samples }
}

/// The highest rate that arrives, datagrams a second.
async fn highest(bench: &mut Bench, quinn: bool, found: &mut Option<f64>) -> Result<f64> {
    let search = bench.effort.search(*found, GUESS);
    let rate = search
        .highest(async |rate, seconds, _| {
            arrives(bench, quinn, rate, seconds).await.unwrap_or(false)
        })
        .await?;
    *found = Some(rate);
    Ok(rate)
}

/// Whether a receiver gets as good as all datagrams of this rate.
async fn arrives(bench: &mut Bench, quinn: bool, rate: f64, seconds: f64) -> Result<bool> {
    let port = bench.pairs.port();
    let file = format!("bench-{}-{port}.der", std::process::id());
    let certificate = std::env::temp_dir().join(file);
    let datagrams = Datagrams { port, rate, seconds, quinn, certificate };
    let program = bench.pairs.own();
    let mut receiver = Process::start(program, "receive-datagrams", &datagrams.flags())?;
    receiver.expect("ready").await?;
    let mut sender = Process::start(program, "send-datagrams", &datagrams.flags())?;
    sender.expect("started").await?;
    let sent: DatagramReport = sender.report().await?;
    let received: DatagramReport = receiver.report().await?;
    // Punctual's receiver writes no certificate.
    let _ = std::fs::remove_file(&datagrams.certificate);
    let total = datagrams.total();
    let enough = |count: u64| count >= total - total / 200;
    Ok(enough(sent.datagrams) && enough(received.datagrams))
}

/// The rate at which the first searches begin.
const GUESS: f64 = 150_000.0;
