use std::time::Duration;

use bytes::Bytes;
use punctual_proto::Statistics;
use punctual_units::Instant;

use crate::report::{LinkSample, MAX_SAMPLES, Report, Totals};

/// The listener's side of a probe: samples its connection regularly, and reports to the probe.
///
/// Its driver calls [`observe`](Self::observe) with the connection's statistics at
/// [`poll_timeout`](Self::poll_timeout), and sends the messages of
/// [`poll_message`](Self::poll_message). The first report goes out at once: by it a probe knows
/// that the peer is a reporter.
#[derive(Debug)]
pub struct Reporter {
    next_sample: Instant,
    next_report: Instant,
    before: Totals,
    report: Report,
}

impl Reporter {
    /// Begins to report on a connection that is established at `now`.
    pub fn new(now: Instant) -> Self {
        Self {
            next_sample: now,
            next_report: now,
            before: Totals::default(),
            report: Report::default(),
        }
    }

    /// A message of the stream arrived, with a payload of this size in bytes.
    pub fn handle_message(&mut self, payload: usize) {
        let payload = u32::try_from(payload).unwrap_or(u32::MAX);
        self.report.largest_payload = self.report.largest_payload.max(payload);
    }

    /// When the connection should be looked at next.
    pub fn poll_timeout(&self) -> Instant {
        self.next_sample
    }

    /// Takes in how the connection is now.
    pub fn observe(&mut self, now: Instant, statistics: &Statistics) {
        if now < self.next_sample {
            return;
        }
        // Moments that were missed are not made up for.
        self.next_sample = (self.next_sample + SAMPLE_PERIOD).max(now + SAMPLE_PERIOD / 2);
        let totals = Totals::of(statistics);
        let since = |field: fn(&Totals) -> u64| {
            let count = field(&totals).saturating_sub(field(&self.before));
            u16::try_from(count).unwrap_or(u16::MAX)
        };
        let measured = totals.acks_answered > self.before.acks_answered;
        let sample = LinkSample {
            elapsed: statistics.elapsed,
            transit_us: i32::try_from(statistics.transit_micros)
                .ok()
                .filter(|_| totals.received > self.before.received),
            rtt: measured.then_some(statistics.rtt_latest),
            received: since(|totals| totals.unique),
            lost: since(|totals| totals.lost),
            gaps: since(|totals| totals.gaps),
            reordered: since(|totals| totals.reordered),
        };
        self.before = totals;
        if self.report.samples.len() < MAX_SAMPLES {
            self.report.samples.push(sample);
        }
        self.report.totals = totals;
        self.report.rtt = statistics.rtt;
        self.report.rtt_variance = statistics.rtt_variance;
        self.report.reorder_distance = statistics.reorder_distance;
        self.report.link_capacity = statistics.link_capacity;
    }

    /// The report that is due by `now`, if one is, as a message to the probe.
    pub fn poll_message(&mut self, now: Instant) -> Option<Bytes> {
        if now < self.next_report {
            return None;
        }
        self.next_report = now + REPORT_PERIOD;
        let message = self.report.to_bytes();
        self.report.number = self.report.number.wrapping_add(1);
        self.report.samples.clear();
        Some(message)
    }

    /// The counts so far.
    pub fn totals(&self) -> &Totals {
        &self.before
    }
}

/// The period of samples.
pub(crate) const SAMPLE_PERIOD: Duration = Duration::from_millis(20);

/// The period of reports, which take about 20 kb/s.
const REPORT_PERIOD: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_tell_moments_and_totals() {
        let start = Instant::from_millis(1_000);
        let mut reporter = Reporter::new(start);
        let hello = Report::parse(&reporter.poll_message(start).unwrap()).unwrap();
        assert_eq!((hello.number, hello.samples.len()), (0, 0));
        let mut statistics = Statistics::default();
        for sample in 1..=5_u64 {
            let now = start + SAMPLE_PERIOD * u32::try_from(sample).unwrap();
            assert_eq!(reporter.poll_message(now - SAMPLE_PERIOD), None);
            statistics.elapsed = now - start;
            statistics.packets_received = 10 * sample;
            statistics.packets_received_unique = 10 * sample;
            statistics.packets_receive_lost = sample / 3;
            statistics.receive_gaps = sample / 3;
            statistics.rtt_samples = sample / 2;
            statistics.rtt_latest = Duration::from_millis(30);
            reporter.handle_message(1_000);
            reporter.observe(now, &statistics);
        }
        let message = reporter.poll_message(start + REPORT_PERIOD).unwrap();
        let report = Report::parse(&message).unwrap();
        assert_eq!((report.number, report.largest_payload), (1, 1_000));
        assert_eq!((report.totals.received, report.totals.lost), (50, 1));
        let lost: Vec<u16> = report.samples.iter().map(|sample| sample.lost).collect();
        assert_eq!(lost, [0, 0, 1, 0, 0]);
        let measured: Vec<bool> = report.samples.iter().map(|s| s.rtt.is_some()).collect();
        assert_eq!(measured, [false, true, false, true, false]);
        assert!(report.samples.iter().all(|sample| sample.received == 10));
    }
}
