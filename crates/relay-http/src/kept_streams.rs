//! The streams of metrics: a bounded number by name, and the sum of the rest.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::report::{StreamHealth, StreamReport, StreamState, Tally, Traffic, ViewerCount};

/// The name under which the rest is summed.
const REST: &str = "other";

/// The streams that have series of their own.
pub(crate) struct KeptStreams(Mutex<StreamNames>);

impl KeptStreams {
    /// At most this number.
    pub(crate) fn new(most: usize) -> Self {
        Self(Mutex::new(StreamNames { most, kept: BTreeSet::new() }))
    }

    /// The streams by name, and the rest under the name `other`.
    pub(crate) fn rows(&self, streams: Vec<StreamReport>) -> Vec<KeptRow> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).rows(streams)
    }
}

/// The names of the streams that have series of their own: those that came first, so that no series
/// moves into the sum and back.
struct StreamNames {
    most: usize,
    kept: BTreeSet<String>,
}

/// A stream, or a sum of streams.
#[derive(Debug)]
pub(crate) struct KeptRow {
    report: StreamReport,
    online: u64,
}

impl StreamNames {
    /// Keeps the names that are still there, and new ones while there is room.
    fn rows(&mut self, streams: Vec<StreamReport>) -> Vec<KeptRow> {
        let present: BTreeSet<&str> = streams.iter().map(|it| it.name.as_str()).collect();
        self.kept.retain(|name| present.contains(name.as_str()));
        let mut rows = Vec::new();
        let mut rest: Option<KeptRow> = None;
        for report in streams {
            let online = u64::from(report.state == StreamState::Online);
            let row = KeptRow { report, online };
            if self.keeps(&row.report.name) {
                rows.push(row);
            } else {
                match &mut rest {
                    Some(rest) => rest.add(row),
                    None => rest = Some(KeptRow { report: renamed(row.report), online }),
                }
            }
        }
        rows.extend(rest);
        rows
    }

    fn keeps(&mut self, name: &str) -> bool {
        if name == REST {
            return false;
        }
        if !self.kept.contains(name) && self.kept.len() < self.most {
            self.kept.insert(name.to_owned());
        }
        self.kept.contains(name)
    }
}

/// The report under the name of the rest. Destinations and recordings have no sum.
fn renamed(report: StreamReport) -> StreamReport {
    StreamReport {
        name: REST.to_owned(),
        source: None,
        tracks: Vec::new(),
        forwards: Vec::new(),
        recording: None,
        ..report
    }
}

impl KeptRow {
    /// The report, or the sum of reports.
    pub(crate) fn report(&self) -> &StreamReport {
        &self.report
    }

    /// The number of streams with a source.
    pub(crate) fn online(&self) -> u64 {
        self.online
    }

    fn add(&mut self, other: Self) {
        self.online += other.online;
        let (sum, more) = (&mut self.report, other.report);
        add_viewers(&mut sum.viewers, more.viewers);
        add_traffic(&mut sum.inbound, &more.inbound);
        add_traffic(&mut sum.outbound, &more.outbound);
        add_health(&mut sum.health_in, &more.health_in);
        add_health(&mut sum.health_out, &more.health_out);
        add_tallies(&mut sum.viewer_skips, more.viewer_skips);
        add_tallies(&mut sum.source_switches, more.source_switches);
    }
}

fn add_viewers(sum: &mut Vec<ViewerCount>, more: Vec<ViewerCount>) {
    for count in more {
        match sum.iter_mut().find(|it| it.protocol == count.protocol) {
            Some(same) => same.viewers += count.viewers,
            None => sum.push(count),
        }
    }
}

fn add_tallies(sum: &mut Vec<Tally>, more: Vec<Tally>) {
    for tally in more {
        match sum.iter_mut().find(|it| it.reason == tally.reason) {
            Some(same) => same.count += tally.count,
            None => sum.push(tally),
        }
    }
}

fn add_traffic(sum: &mut Traffic, more: &Traffic) {
    sum.bytes += more.bytes;
    sum.packets += more.packets;
    sum.packets_lost += more.packets_lost;
    sum.packets_unrecovered += more.packets_unrecovered;
    sum.packets_retransmitted += more.packets_retransmitted;
    sum.packets_undecryptable += more.packets_undecryptable;
    sum.rtts.add(&more.rtts);
    // A latency has no sum.
    sum.latency_ms = None;
}

fn add_health(sum: &mut StreamHealth, more: &StreamHealth) {
    sum.packets += more.packets;
    sum.sync_losses += more.sync_losses;
    sum.sync_byte_errors += more.sync_byte_errors;
    sum.pat_errors += more.pat_errors;
    sum.continuity_errors += more.continuity_errors;
    sum.pmt_errors += more.pmt_errors;
    sum.pid_errors += more.pid_errors;
    sum.transport_errors += more.transport_errors;
    sum.crc_errors += more.crc_errors;
    sum.pcr_repetition_errors += more.pcr_repetition_errors;
    sum.pcr_discontinuities += more.pcr_discontinuities;
    sum.pcr_accuracy_errors += more.pcr_accuracy_errors;
    sum.pts_errors += more.pts_errors;
    sum.random_access_interval_ms = None;
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn stream(name: &str, bytes: u64) -> StreamReport {
        StreamReport {
            name: name.to_owned(),
            state: StreamState::Online,
            since: None,
            source: None,
            tracks: Vec::new(),
            viewers: vec![ViewerCount { protocol: "srt".to_owned(), viewers: 2 }],
            inbound: Traffic { bytes, ..Traffic::default() },
            outbound: Traffic::default(),
            health_in: StreamHealth::default(),
            health_out: StreamHealth::default(),
            viewer_skips: vec![Tally { reason: "slow".to_owned(), count: 3 }],
            source_switches: Vec::new(),
            forwards: Vec::new(),
            recording: None,
            counters_since: UNIX_EPOCH.into(),
        }
    }

    fn shown(rows: &[KeptRow]) -> Vec<(&str, u64, u64)> {
        rows.iter()
            .map(|row| (row.report.name.as_str(), row.report.inbound.bytes, row.online))
            .collect()
    }

    #[test]
    fn streams_beyond_the_cap_are_summed_as_other() {
        let names = KeptStreams::new(2);
        let all = ["a", "b", "c", "d"].map(|name| stream(name, 10));
        let rows = names.rows(all.to_vec());
        assert_eq!(shown(&rows), [("a", 10, 1), ("b", 10, 1), ("other", 20, 2)]);
        let rest = &rows[2].report;
        assert_eq!(rest.viewers[0].viewers, 4);
        assert_eq!(rest.viewer_skips[0].count, 6);
    }

    #[test]
    fn a_stream_keeps_its_series_while_others_come() {
        let names = KeptStreams::new(1);
        names.rows(vec![stream("m", 1)]);
        let rows = names.rows(vec![stream("a", 1), stream("m", 1)]);
        assert_eq!(shown(&rows), [("m", 1, 1), ("other", 1, 1)]);
        let rows = names.rows(vec![stream("a", 1)]);
        assert_eq!(shown(&rows), [("a", 1, 1)], "the place of `m` is free");
    }

    #[test]
    fn a_stream_called_other_makes_no_second_series() {
        let rows =
            KeptStreams::new(1).rows(vec![stream("a", 1), stream("b", 2), stream("other", 4)]);
        assert_eq!(shown(&rows), [("a", 1, 1), ("other", 6, 2)]);
    }
}
