//! The statistics of a connection.

use punctual::Statistics;

use super::buffer_means::BufferLevels;
use super::link::Link;

/// The snapshot from which the present interval counts.
#[derive(Debug, Default)]
pub(super) struct StatisticsBaseline(Option<Box<Statistics>>);

/// The statistics of a connection since it was made, and of an interval.
#[derive(Clone, Debug, Default)]
pub struct TransferStatistics {
    /// Since the connection was made.
    pub total: Statistics,
    /// Since the interval began.
    pub interval: Statistics,
    /// The mean contents of the buffers over about the last second.
    pub buffers: BufferLevels,
    /// The largest payload of a packet, bytes.
    pub payload: usize,
}

impl TransferStatistics {
    /// The statistics of a connection, with the interval from `baseline` on. With `clear`, a new
    /// interval begins.
    pub(super) fn of(link: &Link, baseline: &mut StatisticsBaseline, clear: bool) -> Self {
        let total = link.statistics();
        let interval = match &baseline.0 {
            Some(baseline) => total.since(baseline),
            None => total.clone(),
        };
        if clear {
            baseline.0 = Some(Box::new(total.clone()));
        }
        let payload = link.connection().map_or(1_456, |it| it.info().max_payload);
        let buffers = link.means.sample(punctual::now(), &total);
        Self { total, interval, buffers, payload }
    }
}
