//! The difference between a message's TSBPD time and its delivery to the application, at 10 Mb/s.

use std::fs;

use punctual_metrics::{DelayFactor, InterarrivalJitter, Quantiles};

use super::{Bench, demand_held};
use crate::Result;
use crate::libsrt::Tuning;
use crate::pair::Implementation;
use crate::report::{Row, Target};
use crate::traffic::{TraceRecord, Traffic};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let repeats = bench.effort.repeats;
    let directory = std::env::temp_dir();
    let what = "p99 of lateness, jitter, TS-DF at 10 Mb/s, µs";
    let [lateness, jitter, delay_factor] = bench
        .alternate(what, Implementation::TWO, repeats, async |bench, implementation| {
            let port = bench.pairs.port();
            let path = directory.join(format!("bench-{}-{port}.trace", std::process::id()));
            let traffic = Traffic {
                rate: RATE,
                batch_us: 0,
                trace: Some(path.clone()),
                ..Traffic::new(port, bench.effort.steady)
            };
            let outcome = bench.pairs.run(implementation, &traffic, Tuning::DEFAULT).await;
            let contents = fs::read(&path);
            // The file is temporary; if it was never written there is nothing to remove.
            let _ = fs::remove_file(&path);
            demand_held(outcome?)?;
            figures(&contents?)
        })
        .await;
    vec![
        Row {
            what: "delivery against TSBPD time at 10 Mb/s, p99 of the difference",
            unit: "µs",
            target: Target::AtMost(200.0),
            samples: lateness,
        },
        Row {
            what: "jitter of RFC 3550 at 10 Mb/s, mean",
            unit: "µs",
            target: Target::AtMostTimes(1.0),
            samples: jitter,
        },
        Row {
            what: "TS-DF of EBU TECH 3337 at 10 Mb/s, median second",
            unit: "µs",
            target: Target::AtMostTimes(1.0),
            samples: delay_factor,
        },
    ]
}

/// The 99th percentile of the distance from the TSBPD time, the mean jitter and the median of the
/// delay factors of all whole seconds, microseconds.
#[expect(clippy::cast_precision_loss, reason = "times of a run lie far below 2^53")]
pub(super) fn figures(trace: &[u8]) -> Result<[f64; 3]> {
    let mut distance = Quantiles::default();
    let mut jitter = InterarrivalJitter::default();
    let mut jitter_sum = 0;
    let mut delay_factor = DelayFactor::default();
    let mut delay_factors = Vec::new();
    let mut second_began = None;
    for record in TraceRecord::read_all(trace) {
        let began = *second_began.get_or_insert(record.delivered_ns);
        if record.delivered_ns >= began + 1_000_000_000 {
            delay_factors.extend(delay_factor.delay_factor_us());
            delay_factor.begin_period();
            second_began = Some(began + 1_000_000_000);
        }
        let (sent_us, delivered_us) =
            (i64::try_from(record.sent_ns / 1_000)?, i64::try_from(record.delivered_ns / 1_000)?);
        distance.record(record.late_ns.unsigned_abs());
        jitter.submit(sent_us, delivered_us);
        jitter_sum += jitter.jitter_us();
        delay_factor.submit(sent_us, delivered_us);
    }
    delay_factors.sort_unstable();
    let p99 = distance.p99().ok_or("the trace is empty")?;
    let median = delay_factors.get(delay_factors.len() / 2).ok_or("the trace is too short")?;
    Ok([p99 as f64 / 1e3, jitter_sum as f64 / distance.count() as f64, *median as f64])
}

const RATE: u64 = 10_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_made_up_trace() {
        // A message a millisecond for 2.5 s, each 50 µs after its time, every 40th 450 µs.
        let trace: Vec<u8> = (0..2_500)
            .flat_map(|n: u64| {
                let late_us = if n % 40 == 39 { 450 } else { 50 };
                let sent_ns = n * 1_000_000;
                let delivered_ns = sent_ns + 120_000_000 + late_us * 1_000;
                let late_ns = i64::try_from(late_us).unwrap() * 1_000;
                TraceRecord { sent_ns, delivered_ns, late_ns }.to_bytes()
            })
            .collect();
        let [p99, jitter, delay_factor] = figures(&trace).unwrap();
        assert!((p99 - 450.0).abs() < 5.0, "{p99}");
        assert!(jitter > 5.0 && jitter < 50.0, "{jitter}");
        assert_eq!(delay_factor, 400.0);
        assert!(figures(&[]).is_err());
    }
}
