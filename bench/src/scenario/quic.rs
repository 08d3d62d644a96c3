//! SRT over QUIC beside SRT over UDP, both Punctual's, one right after the other.

use std::fs;

use super::{Bench, LARGE_UDP_BUFFER, NO_PACING, demand_held, quic_calls, timing};
use crate::Result;
use crate::libsrt::Tuning;
use crate::pair::{Implementation, Outcome};
use crate::report::{Row, Sample, Target};
use crate::traffic::Traffic;

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let mut rows = vec![rate(bench).await];
    for (what, mbps) in [
        ("over QUIC: CPU time a gigabit at 100 Mb/s, of that over UDP", 100),
        ("over QUIC: CPU time a gigabit at 500 Mb/s, of that over UDP", 500),
    ] {
        let [samples] = compare(bench, what, async |bench, quic| {
            let outcome = steady(bench, mbps * 1_000_000, quic).await?;
            Ok([outcome.cores])
        })
        .await
        .map(|pairs| pairs.into_iter().map(|[udp, quic]| quic / udp).collect());
        rows.push(row(what, "×", Target::AtMost(3.0), samples));
    }
    rows.extend(times(bench).await);
    rows.extend(quic_calls::run(bench).await);
    rows
}

/// The highest rate of one connection over QUIC, divided by that over UDP.
async fn rate(bench: &mut Bench) -> Row {
    let what = "over QUIC: highest rate of one connection, of that over UDP";
    let mut found = [None; 2];
    let [samples] = compare(bench, what, async |bench, quic| {
        let which = usize::from(quic);
        let search = bench.effort.search(found[which], GUESSES[which]);
        let mbps = search
            .highest(async |mbps, seconds, _| {
                let traffic = traffic(bench, bits_per_second(mbps), seconds, quic);
                let run = bench.pairs.run(Implementation::Punctual, &traffic, Tuning::DEFAULT);
                run.await.is_ok_and(|outcome| outcome.held().is_ok())
            })
            .await?;
        found[which] = Some(mbps);
        Ok([mbps])
    })
    .await
    .map(|pairs| pairs.into_iter().map(|[udp, quic]| quic / udp).collect());
    row(what, "×", Target::AtLeast(0.5), samples)
}

/// The 99th percentile of lateness and the median of SRT's round-trip time at 10 Mb/s, each less
/// that over UDP.
async fn times(bench: &mut Bench) -> [Row; 2] {
    let directory = std::env::temp_dir();
    let what = "p99 of lateness, round-trip time at 10 Mb/s, µs";
    let [lateness, rtt] = compare(bench, what, async |bench, quic| {
        let port = bench.pairs.port();
        let path = directory.join(format!("bench-{}-{port}.trace", std::process::id()));
        let traffic = Traffic {
            rate: 10_000_000,
            batch_us: 0,
            trace: Some(path.clone()),
            quic,
            ..Traffic::new(port, bench.effort.steady)
        };
        let outcome = bench.pairs.run(Implementation::Punctual, &traffic, Tuning::DEFAULT).await;
        let contents = fs::read(&path);
        // The file is temporary; if it was never written there is nothing to remove.
        let _ = fs::remove_file(&path);
        let outcome = demand_held(outcome?)?;
        let [p99, ..] = timing::figures(&contents?)?;
        #[expect(clippy::cast_precision_loss, reason = "round trips lie far below 2^53 µs")]
        Ok([p99, outcome.send.rtt_us as f64])
    })
    .await
    .map(|pairs| pairs.into_iter().map(|[udp, quic]| quic - udp).collect());
    [
        row(
            "over QUIC: delivery at 10 Mb/s, p99 of the difference to TSBPD time, less that over UDP",
            "µs",
            Target::AtMost(200.0),
            lateness,
        ),
        row(
            "over QUIC: SRT's round-trip time on loopback, median, less that over UDP",
            "µs",
            Target::AtMost(1_000.0),
            rtt,
        ),
    ]
}

/// Takes `N` figures over UDP and then over QUIC, as often as the effort says. A measurement that
/// fails is tried once more; then it leaves a gap. Returns the pairs of each figure.
async fn compare<const N: usize>(
    bench: &mut Bench,
    what: &str,
    mut measure: impl AsyncFnMut(&mut Bench, bool) -> Result<[f64; N]>,
) -> [Vec<[f64; 2]>; N] {
    let mut pairs = [const { Vec::new() }; N];
    for time in 1..=bench.effort.repeats {
        let mut both = Vec::new();
        for quic in [false, true] {
            eprint!("{what}, {time}, {}: ", if quic { "QUIC" } else { "UDP" });
            let mut figures = measure(bench, quic).await;
            if let Err(failure) = &figures {
                eprint!("({failure}) ");
                figures = measure(bench, quic).await;
            }
            match figures {
                Ok(figures) => {
                    eprintln!("{figures:.3?}");
                    both.push(figures);
                }
                Err(failure) => eprintln!("failed: {failure}"),
            }
        }
        if let [udp, quic] = both[..] {
            let figures = udp.into_iter().zip(quic);
            pairs.iter_mut().zip(figures).for_each(|(pairs, (udp, quic))| pairs.push([udp, quic]));
        }
    }
    pairs
}

/// A run at a constant rate, bits per second.
async fn steady(bench: &mut Bench, rate: u64, quic: bool) -> Result<Outcome> {
    let traffic = traffic(bench, rate, bench.effort.steady, quic);
    demand_held(bench.pairs.run(Implementation::Punctual, &traffic, Tuning::DEFAULT).await?)
}

fn traffic(bench: &mut Bench, rate: u64, seconds: f64, quic: bool) -> Traffic {
    Traffic {
        rate,
        max_bandwidth: NO_PACING,
        udp_buffer: LARGE_UDP_BUFFER,
        quic,
        ..Traffic::new(bench.pairs.port(), seconds)
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are positive")]
fn bits_per_second(mbps: f64) -> u64 {
    (mbps * 1e6) as u64
}

fn row(what: &'static str, unit: &'static str, target: Target, figures: Vec<f64>) -> Row {
    let samples = figures.into_iter().map(|figure| Sample::punctual(Some(figure))).collect();
    Row { what, unit, target, samples }
}

/// The rates at which the first searches begin, Mb/s over UDP and over QUIC.
const GUESSES: [f64; 2] = [5_000.0, 2_000.0];
