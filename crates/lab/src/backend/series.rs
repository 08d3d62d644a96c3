//! The course of a stream over time, from its statistics so far.

use std::time::Duration;

use punctual::Statistics;
use punctual_metrics::MeterReport;

use crate::outcome::RunSeries;
use crate::results::columns::{report, statistics};

/// A stream at one moment.
pub(crate) struct Sample<'a> {
    /// Since its start.
    pub(crate) at: Duration,
    pub(crate) sender: &'a Statistics,
    pub(crate) receiver: &'a Statistics,
    /// Minimum, maximum and delay factor of the period, the rest so far.
    pub(crate) metrics: &'a MeterReport,
}

/// Turns statistics so far into those of each period.
pub(crate) fn series<'a>(samples: impl IntoIterator<Item = Sample<'a>>) -> RunSeries {
    let mut series = RunSeries::default();
    let nothing = (Statistics::default(), Statistics::default(), MeterReport::default());
    let mut before = (&nothing.0, &nothing.1, &nothing.2);
    for sample in samples {
        let sender = sample.sender.since(before.0);
        let receiver = sample.receiver.since(before.1);
        let mut numbers = vec![("time_s".to_owned(), sample.at.as_secs_f64())];
        numbers.extend(report(&since(sample.metrics, before.2)));
        numbers.extend(statistics("sender", &[&sender]));
        numbers.extend(statistics("receiver", &[&receiver]));
        if series.columns.is_empty() {
            series.columns = numbers.iter().map(|(name, _)| name.clone()).collect();
        }
        series.rows.push(numbers.into_iter().map(|(_, number)| number).collect());
        before = (sample.sender, sample.receiver, sample.metrics);
    }
    series
}

/// The counts of the period between two reports.
fn since(now: &MeterReport, before: &MeterReport) -> MeterReport {
    MeterReport {
        received: now.received.saturating_sub(before.received),
        // One that arrives after all is not lost any more.
        lost: now.lost.saturating_sub(before.lost),
        reordered: now.reordered.saturating_sub(before.reordered),
        duplicates: now.duplicates.saturating_sub(before.duplicates),
        checksum_errors: now.checksum_errors.saturating_sub(before.checksum_errors),
        length_errors: now.length_errors.saturating_sub(before.length_errors),
        ..*now
    }
}
