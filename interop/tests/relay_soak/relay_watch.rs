//! The relay from outside: its memory, descriptors and threads, and whether its reports agree.

use std::collections::BTreeMap;
use std::{fmt, fs};

use interop::Relay;
use serde_json::Value;

use crate::caller::name;
use crate::ledger::Ledger;

/// The resources of the relay's process.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Held {
    /// Resident memory, kilobytes.
    pub(crate) resident_kb: u64,
    pub(crate) descriptors: usize,
    pub(crate) threads: u64,
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { resident_kb, descriptors, threads } = self;
        write!(f, "{resident_kb} kB, {descriptors} descriptors and {threads} threads")
    }
}

impl Held {
    /// The resources of the process of this number.
    ///
    /// # Panics
    ///
    /// If there is no such process.
    pub(crate) fn by(process: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{process}/status"));
        let status = status.expect("the relay runs");
        let number = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            number.expect("the status of a process has this line")
        };
        let descriptors = fs::read_dir(format!("/proc/{process}/fd")).expect("the relay runs");
        Self {
            resident_kb: number("VmRSS:"),
            descriptors: descriptors.count(),
            threads: number("Threads:"),
        }
    }
}

/// The counters of streams at the latest look, by name and by the time from which they count.
#[derive(Debug, Default)]
pub(crate) struct Counters(BTreeMap<(String, String), StreamCounters>);

/// The counters of a stream in [`COUNTERS`].
type StreamCounters = [u64; COUNTERS.len()];

impl Counters {
    /// Takes in the streams of a moment. Returns each counter that has gone back.
    pub(crate) fn note(&mut self, streams: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        for it in list(streams) {
            let key = (text(&it["name"]), text(&it["counters_since"]));
            let now = COUNTERS.map(|path| it.pointer(path).and_then(Value::as_u64).unwrap_or(0));
            let before = self.0.insert(key, now).unwrap_or_default();
            for ((path, before), now) in COUNTERS.into_iter().zip(before).zip(now) {
                if now < before {
                    faults.push(format!("{path} of {} went from {before} to {now}", it["name"]));
                }
            }
        }
        faults
    }

    /// Packets of the publishers of the stream of this number that the relay never got.
    pub(crate) fn lost_before(&self, number: u16) -> u64 {
        let of_stream = self.0.iter().filter(|((stream, _), _)| *stream == name(number));
        of_stream.map(|(_, counters)| counters[0]).sum()
    }
}

/// Counters of a stream that only rise.
const COUNTERS: [&str; 6] = [
    "/inbound/packets_unrecovered",
    "/inbound/packets",
    "/inbound/bytes",
    "/outbound/packets",
    "/outbound/packets_retransmitted",
    "/outbound/bytes",
];

/// Compares all reports of the relay with each other and with what its callers know. They agree
/// when nobody comes or goes.
///
/// # Errors
///
/// The first difference.
pub(crate) fn compare(relay: &Relay, ledger: &Ledger) -> Result<(), String> {
    let (mut sources, mut viewers) = (0, 0);
    let streams = relay.json("/v1/streams");
    let shown = |number: u16| list(&streams).iter().find(|it| it["name"] == name(number));
    let metrics = metrics(relay);
    for (number, known) in (0_u16..).zip(ledger.streams()) {
        let report = shown(number).cloned().unwrap_or_default();
        let is_published = known.since.is_some();
        sources += u64::from(is_published);
        viewers += u64::from(known.viewers);
        let count: u64 =
            list(&report["viewers"]).iter().filter_map(|it| it["viewers"].as_u64()).sum();
        let of = |metric: &str| {
            let series = metrics.get(&(metric.to_owned(), name(number)));
            series.copied().unwrap_or_default()
        };
        equal(
            "publisher of a stream in the API",
            number,
            report["source"].is_object(),
            is_published,
        )?;
        equal("viewers of a stream in the API", number, count, known.viewers.into())?;
        equal("stream online in the API", number, report["state"] == "online", is_published)?;
        equal("stream online in the metrics", number, of("stream_online") == 1.0, is_published)?;
        let viewers = of("stream_viewers");
        equal("viewers of a stream in the metrics", number, viewers, f64::from(known.viewers))?;
    }
    let connections = relay.json("/v1/connections");
    let of_role = |role: &str| list(&connections).iter().filter(|it| it["role"] == role).count();
    equal("publishers among the connections", 0, of_role("publisher") as u64, sources)?;
    equal("viewers among the connections", 0, of_role("viewer") as u64, viewers)?;
    let server = relay.json("/v1/server");
    equal("streams online", 0, server["streams_online"].as_u64(), Some(sources))?;
    equal("viewers of the relay", 0, server["viewers"].as_u64(), Some(viewers))?;
    let count = |path: &str| relay.json(path)["itemCount"].as_u64();
    equal("connections for MediaMTX", 0, count("/v3/srtconns/list"), Some(sources + viewers))?;
    let paths = list(&streams).len() as u64;
    equal("paths for MediaMTX", 0, count("/v3/paths/list"), Some(paths))?;
    let publishers = relay.json("/stats")["publishers"].as_object().map(|it| it.len() as u64);
    equal("publishers for srt-live-server", 0, publishers, Some(sources))
}

/// Whether the relay has no stream and no connection.
pub(crate) fn is_empty(relay: &Relay) -> bool {
    let is_none = |path: &str| list(&relay.json(path)).is_empty();
    is_none("/v1/streams") && is_none("/v1/connections")
}

fn equal<T: Copy + PartialEq + fmt::Debug>(
    what: &str,
    number: u16,
    found: T,
    wanted: T,
) -> Result<(), String> {
    if found == wanted {
        return Ok(());
    }
    Err(format!("{what} ({number}): {found:?} where the callers know {wanted:?}"))
}

/// The sum of each metric by stream, without the prefix of the relay.
fn metrics(relay: &Relay) -> BTreeMap<(String, String), f64> {
    let (status, body) = relay.request("GET", "/metrics");
    assert_eq!(status, 200, "the metrics are there");
    let mut all = BTreeMap::new();
    for line in String::from_utf8_lossy(&body).lines().filter(|line| !line.starts_with('#')) {
        let Some((series, value)) = line.rsplit_once(' ') else { continue };
        let Some((metric, labels)) = series.split_once('{') else { continue };
        let stream = labels.split_once("stream=\"").and_then(|it| it.1.split_once('"'));
        let metric = metric.trim_start_matches("punctual_relay_");
        if let (Some((stream, _)), Ok(value)) = (stream, value.parse::<f64>()) {
            *all.entry((metric.to_owned(), stream.to_owned())).or_default() += value;
        }
    }
    all
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
