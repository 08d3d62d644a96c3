//! The reports of a Punctual listener, on this end's clock.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::report::{LinkSample, Report};

/// The figures of the reports so far.
#[derive(Debug, Default)]
pub(super) struct PeerReports {
    largest_payload: usize,
    reorder_distance: u32,
    capacity: Bitrate,
    rtt: Option<Duration>,
    rtt_variances: Vec<u32>,
    /// The peer's time less this end's, at the arrival of packets; µs.
    offset: Option<i64>,
    /// The peer's time of the latest sample.
    last: Duration,
}

impl PeerReports {
    /// Takes in the figures of a report; no payload is larger than `max_payload`.
    pub(super) fn take(&mut self, report: &Report, max_payload: usize) {
        let payload = usize::try_from(report.largest_payload).unwrap_or(0);
        self.largest_payload = payload.min(max_payload);
        self.reorder_distance = report.reorder_distance;
        self.capacity = report.link_capacity;
        if !report.rtt.is_zero() && report.totals.acks_answered > 0 {
            self.rtt = Some(report.rtt);
            if self.rtt_variances.len() < MOST_VARIANCES {
                let micros = u32::try_from(report.rtt_variance.as_micros()).unwrap_or(u32::MAX);
                self.rtt_variances.push(micros);
            }
        }
    }

    /// Whether this sample is newer than all before it.
    pub(super) fn is_new(&mut self, sample: &LinkSample) -> bool {
        let new = sample.elapsed > self.last;
        self.last = self.last.max(sample.elapsed);
        new
    }

    /// Learns the offset between the clocks from the first sample with packets: they are the first
    /// ones, which were sent at `first_sent`.
    pub(super) fn match_clocks(&mut self, sample: &LinkSample, first_sent: Option<Duration>) {
        if let Some(sent) = first_sent.filter(|_| sample.received > 0) {
            let offset = signed_micros(sample.elapsed) - signed_micros(sent);
            self.offset.get_or_insert(offset);
        }
    }

    /// The time of this end at a time of the peer, if the clocks are matched.
    pub(super) fn local_time(&self, elapsed: Duration) -> Option<Duration> {
        let micros = signed_micros(elapsed) - self.offset?;
        u64::try_from(micros).ok().map(Duration::from_micros)
    }

    /// The largest payload that arrived, bytes; zero before the first report.
    pub(super) fn largest_payload(&self) -> usize {
        self.largest_payload
    }

    /// The greatest number of packets that came before one sent earlier.
    pub(super) fn reorder_distance(&self) -> u32 {
        self.reorder_distance
    }

    /// The capacity of the link by packet pairs; zero if it is unknown.
    pub(super) fn capacity(&self) -> Bitrate {
        self.capacity
    }

    /// The latest smoothed round-trip time, if one was measured.
    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Median of the deviations of the round-trip time, if one was measured.
    pub(super) fn rtt_variance(&self) -> Option<Duration> {
        let micros = crate::step::median(&self.rtt_variances)?;
        Some(Duration::from_micros(micros.into()))
    }
}

fn signed_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

const MOST_VARIANCES: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Totals;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn sample(at: u64, received: u16) -> LinkSample {
        LinkSample { elapsed: MS(at), received, ..LinkSample::default() }
    }

    #[test]
    fn the_first_packets_match_the_clocks() {
        let mut reports = PeerReports::default();
        reports.match_clocks(&sample(700, 0), Some(MS(100)));
        reports.match_clocks(&sample(800, 5), None);
        assert_eq!(reports.local_time(MS(900)), None);
        reports.match_clocks(&sample(1_000, 5), Some(MS(100)));
        reports.match_clocks(&sample(1_500, 5), Some(MS(100)));
        assert_eq!(reports.local_time(MS(1_200)), Some(MS(300)));
        assert_eq!(reports.local_time(MS(899)), None, "before the probe began");
    }

    #[test]
    fn a_sample_counts_once() {
        let mut reports = PeerReports::default();
        let new: Vec<bool> = [5, 10, 10, 7, 12].map(|at| reports.is_new(&sample(at, 1))).into();
        assert_eq!(new, [true, true, false, false, true]);
    }

    #[test]
    fn a_round_trip_counts_once_it_was_measured() {
        let mut reports = PeerReports::default();
        let mut report = Report { rtt: MS(100), rtt_variance: MS(50), ..Report::default() };
        reports.take(&report, 1_000);
        assert_eq!((reports.rtt(), reports.rtt_variance()), (None, None));
        report.totals = Totals { acks_answered: 1, ..Totals::default() };
        report.largest_payload = 9_000;
        reports.take(&report, 1_000);
        assert_eq!((reports.rtt(), reports.rtt_variance()), (Some(MS(100)), Some(MS(50))));
        assert_eq!(reports.largest_payload(), 1_000);
    }
}
