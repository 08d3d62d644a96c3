//! The cost of calls and of idle connections over QUIC, each with a QUIC connection of its own,
//! beside those over UDP.

use super::Bench;
use crate::Result;
use crate::calls::{Calls, CallsReport};
use crate::pair::Process;
use crate::report::{Row, Sample, Target};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let mut rows = Vec::new();
    for (quic, calls, memory) in [
        (
            true,
            "over QUIC: calls a second and core, both ends, QUIC's handshake and SRT's",
            "over QUIC: resident memory a connection with ports of its own, both ends",
        ),
        (
            false,
            "the same over UDP: calls a second and core",
            "the same over UDP: resident memory a connection",
        ),
    ] {
        let mut samples = [Vec::new(), Vec::new()];
        for _ in 0..bench.effort.repeats {
            let figures = measure(bench, quic).await;
            let figures = figures.map_err(|failure| eprintln!("{calls}: {failure}")).ok();
            for (samples, which) in samples.iter_mut().zip(0..) {
                samples.push(Sample::punctual(figures.map(|figures: [f64; 2]| figures[which])));
            }
        }
        let [made, resident] = samples;
        rows.push(Row { what: calls, unit: "calls", target: Target::None, samples: made });
        rows.push(Row { what: memory, unit: "kB", target: Target::None, samples: resident });
    }
    rows
}

/// Calls a second and core, and kilobytes a connection.
#[expect(clippy::cast_precision_loss, reason = "memory lies far below 2^53 bytes")]
async fn measure(bench: &mut Bench, quic: bool) -> Result<[f64; 2]> {
    let calls = Calls { number: CALLS, quic, port: bench.pairs.port() };
    let mut process = Process::start(bench.pairs.own(), "calls", &calls.flags())?;
    let report: CallsReport = process.report().await?;
    let figures =
        [f64::from(CALLS) / report.cpu_seconds, report.resident as f64 / f64::from(CALLS) / 1e3];
    eprintln!("{CALLS} calls, {}: {figures:.1?}", if quic { "QUIC" } else { "UDP" });
    Ok(figures)
}

const CALLS: u32 = 400;
