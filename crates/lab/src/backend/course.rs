//! Figures of a whole stream from its series: round-trip time, highest rate, jitter.

use crate::outcome::RunSeries;

/// Numbers of the whole course, by column of the results, as far as the series has them.
pub(crate) fn of_the_course(series: &RunSeries) -> Vec<(&'static str, f64)> {
    let mut numbers = Vec::new();
    let rtt = settled(series, "sender.msRTT");
    if rtt.iter().any(|time| *time > 0.0) {
        numbers.push(("msRTTMean", mean(&rtt)));
        numbers.push(("msRTTMax", rtt.iter().copied().fold(0.0, f64::max)));
        let rates = settled(series, "receiver.mbpsRecvRate");
        let burst = rates.windows(BURST).map(mean).fold(0.0, f64::max);
        numbers.push(("mbpsBurst", burst));
    }
    let mut jitter = settled(series, "usJitter");
    jitter.sort_by(f64::total_cmp);
    if let Some(middle) = jitter.get(jitter.len() / 2) {
        numbers.push(("usJitterP50", *middle));
    }
    let delay_factor = settled(series, "usDelayFactor");
    if !delay_factor.is_empty() {
        numbers.push(("usDelayFactorMean", mean(&delay_factor)));
        numbers.push(("usDelayFactorMax", delay_factor.iter().copied().fold(0.0, f64::max)));
    }
    numbers
}

/// A column without its first second, in which everything starts, and without unknown values.
fn settled(series: &RunSeries, name: &str) -> Vec<f64> {
    let Some(column) = series.columns.iter().position(|column| column == name) else {
        return Vec::new();
    };
    let rows = series.rows.iter().filter(|row| row[0] > SETTLING);
    rows.map(|row| row[column]).filter(|number| !number.is_nan()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "a series has few rows")]
fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// Periods over which a burst is measured: two seconds of the usual 100 ms. A burst after an
/// ordinary pause of a mobile link is shorter.
const BURST: usize = 20;

/// The length of the start, s.
const SETTLING: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn series(rows: &[[f64; 4]]) -> RunSeries {
        let columns = ["time_s", "sender.msRTT", "receiver.mbpsRecvRate", "usJitter"];
        let columns = columns.map(str::to_owned).to_vec();
        RunSeries { columns, rows: rows.iter().map(|row| row.to_vec()).collect() }
    }

    #[test]
    fn rtt_burst_and_jitter_are_measured_after_the_first_second() {
        let rows: Vec<_> = (1..=60_i32)
            .map(|tenth| match tenth {
                ..=10 => [f64::from(tenth) / 10.0, 999.0, 99.0, 999.0],
                21..=44 => [f64::from(tenth) / 10.0, 300.0, 12.0, 70.0],
                _ => [f64::from(tenth) / 10.0, 100.0, 8.0, 50.0],
            })
            .collect();
        let numbers = of_the_course(&series(&rows));
        let expected =
            [("msRTTMean", 196.0), ("msRTTMax", 300.0), ("mbpsBurst", 12.0), ("usJitterP50", 50.0)];
        assert_eq!(numbers, expected);
    }

    #[test]
    fn the_delay_factor_has_a_mean_and_a_maximum() {
        let columns = vec!["time_s".to_owned(), "usDelayFactor".to_owned()];
        let rows = [[0.5, 9e9], [2.0, 30.0], [3.0, f64::NAN], [4.0, 90.0]].map(Vec::from);
        let numbers = of_the_course(&RunSeries { columns, rows: rows.to_vec() });
        assert_eq!(numbers, [("usDelayFactorMean", 60.0), ("usDelayFactorMax", 90.0)]);
    }

    #[test]
    fn bare_datagrams_have_no_round_trip_time() {
        let rows: Vec<_> = (20..30_i32).map(|tenth| [f64::from(tenth), 0.0, 0.0, 4e3]).collect();
        assert_eq!(of_the_course(&series(&rows)), [("usJitterP50", 4e3)]);
    }
}
