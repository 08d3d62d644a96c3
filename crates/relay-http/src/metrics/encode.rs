//! The names, the help and the values of all metrics.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::kept_streams::KeptRow;
use crate::report::{
    DurationCounts, RecordingState, ServerReport, SourceReport, StreamHealth, Tally, Traffic,
};

/// The values of one scrape.
#[derive(Debug)]
pub(super) struct Scrape {
    pub(super) server: ServerReport,
    pub(super) is_ready: bool,
    pub(super) streams: Vec<KeptRow>,
}

/// The labels of a series.
type Labels<'a> = Vec<(&'static str, &'a str)>;
/// The series of a counter.
type Counts<'a> = Vec<(Labels<'a>, u64)>;
/// The series of a gauge.
type Levels<'a> = Vec<(Labels<'a>, f64)>;

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut metrics = Metrics(encoder);
        self.put_server(&mut metrics)?;
        self.put_streams(&mut metrics)?;
        self.put_traffic(&mut metrics)?;
        self.put_health(&mut metrics)?;
        self.put_destinations(&mut metrics)?;
        self.put_recordings(&mut metrics)
    }
}

impl Scrape {
    fn put_server(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        let Self { server, is_ready, .. } = self;
        let version = vec![("version", server.version.as_str())];
        metrics.gauge("build_info", "The version of the program", vec![(version, 1.0)])?;
        let started = server.started_at.unix_seconds();
        metrics.gauge(
            "start_time_seconds",
            "When the relay started, in Unix time",
            one(started),
        )?;
        let ready = f64::from(u8::from(*is_ready));
        metrics.gauge(
            "ready",
            "Whether the relay is ready for calls, as /readyz says",
            one(ready),
        )?;
        let draining = f64::from(u8::from(server.draining));
        metrics.gauge(
            "draining",
            "Whether the relay takes no new calls and will end",
            one(draining),
        )?;
        let mut calls: Counts<'_> =
            vec![(vec![("result", "admitted"), ("reason", "")], server.calls_admitted)];
        calls.extend(server.calls_refused.iter().map(|Tally { reason, count }| {
            (vec![("result", "refused"), ("reason", reason.as_str())], *count)
        }));
        metrics.counter("calls_total", "Calls of publishers and viewers", calls)?;
        let runs = server.hook_runs.iter().map(|run| {
            (vec![("event", run.event.as_str()), ("result", run.result.as_str())], run.count)
        });
        metrics.counter("hook_runs_total", "Runs of hooks", runs.collect())?;
        metrics.histogram(
            "auth_request_duration_seconds",
            "The time of other servers' decisions about calls",
            vec![(Vec::new(), &server.auth_requests)],
        )
    }

    fn put_streams(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        let online = self.rows().map(|row| (of(row), float(row.online()))).collect();
        metrics.gauge("stream_online", "Whether the stream has a source", online)?;
        let viewers = self.rows().flat_map(|row| {
            row.report()
                .viewers
                .iter()
                .map(|it| (with(of(row), "protocol", &it.protocol), f64::from(it.viewers)))
        });
        metrics.gauge("stream_viewers", "The viewers of the stream", viewers.collect())?;
        let active = self.rows().filter_map(|row| {
            let SourceReport { input, .. } = row.report().source.as_ref()?;
            Some((with(of(row), "input", input), 1.0))
        });
        metrics.gauge(
            "source_active",
            "The input that is the stream's source",
            active.collect(),
        )?;
        let switches = self.tallies(|row| &row.report().source_switches);
        metrics.counter("source_switches_total", "Changes of the stream's source", switches)?;
        let skips = self.tallies(|row| &row.report().viewer_skips);
        let help = "Jumps of slow viewers to a later random access point";
        metrics.counter("viewer_skips_total", help, skips)
    }

    fn put_traffic(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        let counts = |count: fn(&KeptRow) -> u64| -> Counts<'_> {
            self.rows().map(|row| (of(row), count(row))).collect()
        };
        metrics.counter(
            "stream_received_bytes_total",
            "Bytes of the stream from its source, without headers and retransmissions",
            counts(|row| row.report().inbound.bytes),
        )?;
        metrics.counter(
            "stream_sent_bytes_total",
            "Bytes of the stream to viewers and destinations, without headers and retransmissions",
            counts(|row| row.report().outbound.bytes),
        )?;
        for (name, help, count) in PACKETS {
            let series = self.ways().map(|(labels, traffic)| (labels, count(traffic)));
            metrics.counter(name, help, series.collect())?;
        }
        let rtts = self.ways().map(|(labels, traffic)| (labels, &traffic.rtts));
        metrics.histogram(
            "stream_rtt_seconds",
            "The round-trip time of each connection, measured once a second",
            rtts.collect(),
        )?;
        let latencies = self
            .ways()
            .filter_map(|(labels, traffic)| Some((labels, f64::from(traffic.latency_ms?) / 1e3)));
        metrics.gauge("stream_latency_seconds", "The agreed latency", latencies.collect())
    }

    fn put_health(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        let continuity = self.healths().map(|(labels, it)| (labels, it.continuity_errors));
        let help = "Wrong steps of continuity counters (TR 101 290, 1.4)";
        metrics.counter("stream_continuity_errors_total", help, continuity.collect())?;
        let jumps = self.healths().map(|(labels, it)| (labels, it.pcr_discontinuities));
        let help = "Unannounced jumps of the program clock reference (TR 101 290, 2.3b)";
        metrics.counter("stream_pcr_discontinuities_total", help, jumps.collect())?;
        let errors = self.healths().flat_map(|(labels, health)| {
            OTHER_ERRORS
                .map(|(reason, count)| (with(labels.clone(), "reason", reason), count(health)))
        });
        let help = "Other errors of the transport stream (TR 101 290)";
        metrics.counter("stream_errors_total", help, errors.collect())?;
        let intervals = self.rows().filter_map(|row| {
            let interval = row.report().health_in.random_access_interval_ms?;
            Some((of(row), f64::from(interval) / 1e3))
        });
        metrics.gauge(
            "stream_random_access_interval_seconds",
            "The time from one random access point to the next",
            intervals.collect(),
        )
    }

    fn put_destinations(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        let destinations = || {
            self.rows().flat_map(|row| {
                row.report().forwards.iter().map(|it| (with(of(row), "destination", &it.id), it))
            })
        };
        let up = destinations().map(|(labels, it)| (labels, f64::from(u8::from(it.up))));
        metrics.gauge("forward_up", "Whether the destination is connected", up.collect())?;
        let wanted = destinations().map(|(labels, it)| (labels, f64::from(u8::from(it.wanted))));
        metrics.gauge("forward_wanted", "Whether the destination is to run", wanted.collect())?;
        let sent = destinations().map(|(labels, it)| (labels, it.bytes));
        metrics.counter("forward_sent_bytes_total", "Bytes to the destination", sent.collect())
    }

    fn put_recordings(&self, metrics: &mut Metrics<'_>) -> fmt::Result {
        let recordings =
            || self.rows().filter_map(|row| Some((of(row), row.report().recording.as_ref()?)));
        let active = recordings()
            .map(|(labels, it)| (labels, f64::from(u8::from(it.state == RecordingState::Running))));
        metrics.gauge("recording_active", "Whether the stream is recorded", active.collect())?;
        let bytes = recordings().map(|(labels, it)| (labels, it.bytes));
        metrics.counter("recording_bytes_total", "Bytes written", bytes.collect())?;
        let errors = recordings().map(|(labels, it)| (labels, it.errors));
        metrics.counter("recording_errors_total", "Errors of writing", errors.collect())?;
        let free = recordings().filter_map(|(labels, it)| Some((labels, float(it.free_bytes?))));
        metrics.gauge("recording_free_bytes", "Bytes free where it is written", free.collect())
    }

    fn rows(&self) -> impl Iterator<Item = &KeptRow> {
        self.streams.iter()
    }

    /// Each stream with its traffic in each direction.
    fn ways(&self) -> impl Iterator<Item = (Labels<'_>, &Traffic)> {
        self.rows().flat_map(|row| {
            let report = row.report();
            [("in", &report.inbound), ("out", &report.outbound)]
                .map(|(way, traffic)| (with(of(row), "direction", way), traffic))
        })
    }

    /// Each stream with its health in each direction.
    fn healths(&self) -> impl Iterator<Item = (Labels<'_>, &StreamHealth)> {
        self.rows().flat_map(|row| {
            let report = row.report();
            [("in", &report.health_in), ("out", &report.health_out)]
                .map(|(way, health)| (with(of(row), "direction", way), health))
        })
    }

    fn tallies<'a>(&'a self, tallies: fn(&'a KeptRow) -> &'a Vec<Tally>) -> Counts<'a> {
        let series = self.rows().flat_map(|row| {
            tallies(row).iter().map(|it| (with(of(row), "reason", &it.reason), it.count))
        });
        series.collect()
    }
}

type CountOf<T> = fn(&T) -> u64;

/// The counters of packets by direction.
const PACKETS: [(&str, &str, CountOf<Traffic>); 5] = [
    ("stream_packets_total", "SRT packets, retransmissions included", |it| it.packets),
    ("stream_lost_packets_total", "Packets lost at the first transmission", |it| it.packets_lost),
    (
        "stream_dropped_packets_total",
        "Packets lost for the application: not repaired in time",
        |it| it.packets_unrecovered,
    ),
    ("stream_retransmitted_packets_total", "Retransmissions", |it| it.packets_retransmitted),
    ("stream_undecryptable_packets_total", "Packets that could not be decrypted", |it| {
        it.packets_undecryptable
    }),
];

/// Errors of a transport stream that have no metric of their own.
const OTHER_ERRORS: [(&str, CountOf<StreamHealth>); 10] = [
    ("sync-loss", |it| it.sync_losses),
    ("sync-byte", |it| it.sync_byte_errors),
    ("pat", |it| it.pat_errors),
    ("pmt", |it| it.pmt_errors),
    ("pid", |it| it.pid_errors),
    ("transport", |it| it.transport_errors),
    ("crc", |it| it.crc_errors),
    ("pcr-repetition", |it| it.pcr_repetition_errors),
    ("pcr-accuracy", |it| it.pcr_accuracy_errors),
    ("pts", |it| it.pts_errors),
];

fn of(row: &KeptRow) -> Labels<'_> {
    vec![("stream", row.report().name.as_str())]
}

fn with<'a>(mut labels: Labels<'a>, name: &'static str, value: &'a str) -> Labels<'a> {
    labels.push((name, value));
    labels
}

fn one<'a>(value: f64) -> Levels<'a> {
    vec![(Vec::new(), value)]
}

#[expect(clippy::cast_precision_loss, reason = "Prometheus has no other numbers")]
fn float(count: u64) -> f64 {
    count as f64
}

/// Writes metrics whole: HELP, TYPE, and each series.
struct Metrics<'a>(DescriptorEncoder<'a>);

impl Metrics<'_> {
    fn counter(&mut self, name: &str, help: &str, series: Counts<'_>) -> fmt::Result {
        // The encoder adds the ending of counters.
        let name = name.strip_suffix("_total").unwrap_or(name);
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, count) in series {
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, f64>(&count, None)?;
        }
        Ok(())
    }

    fn gauge(&mut self, name: &str, help: &str, series: Levels<'_>) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, level) in series {
            metric.encode_family(&labels)?.encode_gauge(&level)?;
        }
        Ok(())
    }

    fn histogram(
        &mut self,
        name: &str,
        help: &str,
        series: Vec<(Labels<'_>, &DurationCounts)>,
    ) -> fmt::Result {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (labels, counts) in series {
            let (sum, count) = (counts.sum_s(), counts.count());
            metric.encode_family(&labels)?.encode_histogram::<NoLabelSet>(
                sum,
                count,
                &counts.buckets(),
                None,
            )?;
        }
        Ok(())
    }
}
