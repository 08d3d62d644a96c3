//! The columns of results: every statistic of both ends under libsrt's name, every metric, the
//! counts of the links, and the exactness of the emulator.

use std::time::Duration;

use punctual::Statistics;
use punctual_metrics::{MeterReport, Quantiles};
use punctual_netem::LinkStatistics;
use punctual_sim::TrafficStatistics;

use super::blocks::blocks;
use super::quic_model::quic_model;
use super::tcp::tcp;
use crate::numbers::{NamedNumber, number};

/// One statistic of a connection.
pub(crate) struct StatisticColumn {
    /// libsrt's name, or ours where libsrt has none.
    pub(crate) name: &'static str,
    /// The end that means it when nothing is said.
    side: Side,
    /// Whether it counts since the start; others hold at the end.
    pub(crate) total: bool,
    value: Reading,
}

/// Reads one statistic.
type Reading = fn(&Statistics) -> f64;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Sender,
    Receiver,
    /// Each end has one.
    Both,
}

fn small(value: u32) -> f64 {
    f64::from(value)
}

fn ms(time: Duration) -> f64 {
    us(time) / 1e3
}

/// Microseconds, exact to the nanosecond.
fn us(time: Duration) -> f64 {
    number(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)) / 1e3
}

macro_rules! columns {
    ($( $side:ident $kind:ident $name:ident : |$s:ident| $value:expr; )*) => {
        /// Every statistic of a connection.
        pub(crate) const STATISTICS: &[StatisticColumn] = &[
            $( StatisticColumn {
                name: stringify!($name),
                side: Side::$side,
                total: columns!(@$kind),
                value: |$s| $value,
            } ),*
        ];
    };
    (@total) => { true };
    (@instant) => { false };
}

columns! {
    Both total msElapsed: |s| ms(s.elapsed);
    Sender total pktSent: |s| number(s.packets_sent);
    Sender total byteSent: |s| number(s.bytes_sent);
    Sender total pktSentUnique: |s| number(s.packets_sent_unique);
    Sender total byteSentUnique: |s| number(s.bytes_sent_unique);
    Sender total pktRetrans: |s| number(s.packets_retransmitted);
    Sender total byteRetrans: |s| number(s.bytes_retransmitted);
    Sender total pktSndLoss: |s| number(s.packets_send_lost);
    Sender total pktSndDrop: |s| number(s.packets_send_dropped);
    Sender total byteSndDrop: |s| number(s.bytes_send_dropped);
    Sender total pktPeerDrop: |s| number(s.packets_peer_dropped);
    Sender total pktPeerDropReports: |s| number(s.peer_drop_reports);
    Sender total pktRecvACK: |s| number(s.acks_received);
    Sender total pktRecvNAK: |s| number(s.naks_received);
    Sender total pktSndFilterExtra: |s| number(s.packets_send_filter_extra);
    Sender total usSndDuration: |s| us(s.send_busy);
    Receiver total pktRecv: |s| number(s.packets_received);
    Receiver total byteRecv: |s| number(s.bytes_received);
    Receiver total pktRecvUnique: |s| number(s.packets_received_unique);
    Receiver total byteRecvUnique: |s| number(s.bytes_received_unique);
    Receiver total pktRcvRetrans: |s| number(s.packets_received_retransmitted);
    Receiver total pktRcvLoss: |s| number(s.packets_receive_lost);
    Receiver total byteRcvLoss: |s| number(s.bytes_receive_lost);
    Receiver total pktRcvDrop: |s| number(s.packets_receive_dropped);
    Receiver total byteRcvDrop: |s| number(s.bytes_receive_dropped);
    Receiver total pktRcvUndecrypt: |s| number(s.packets_undecrypted);
    Receiver total byteRcvUndecrypt: |s| number(s.bytes_undecrypted);
    Receiver total pktRcvBelated: |s| number(s.packets_belated);
    Receiver total pktRcvDuplicate: |s| number(s.packets_duplicate);
    Receiver total pktSentACK: |s| number(s.acks_sent);
    Receiver total pktSentNAK: |s| number(s.naks_sent);
    Receiver total pktRcvFilterExtra: |s| number(s.packets_receive_filter_extra);
    Receiver total pktRcvFilterSupply: |s| number(s.packets_filter_supplied);
    Receiver total pktRcvFilterLoss: |s| number(s.packets_filter_lost);
    Both total pktIgnored: |s| number(s.packets_ignored);
    Both total pktOversized: |s| number(s.packets_oversized);
    Both total pathChanges: |s| number(s.path_changes);
    Receiver total pktRcvNotAuthentic: |s| number(s.packets_not_authentic);
    Sender total keyRefreshes: |s| number(s.key_refreshes);
    Receiver total rcvJumps: |s| number(s.receive_jumps);
    Sender total pktACKExpected: |s| number(s.acks_expected);
    Sender total pktACKMissed: |s| number(s.acks_missed);
    Sender total ackGaps: |s| number(s.ack_gaps);
    Receiver total rcvGaps: |s| number(s.receive_gaps);
    Receiver total rcvGapsSingle: |s| number(s.receive_gaps_single);
    Receiver total pktRcvReordered: |s| number(s.packets_reordered);
    Both total rttSamples: |s| number(s.rtt_samples);
    Sender total pktReportedOld: |s| number(s.reports_old);
    Sender total pktReportedTooLate: |s| number(s.reports_too_late);
    Sender total pktCopied: |s| number(s.packets_copied);
    Receiver total pktRequestedAgain: |s| number(s.packets_requested_again);
    Receiver total pktRecoveredFirst: |s| number(s.recovered_first_round);
    Receiver total pktRecoveredSecond: |s| number(s.recovered_second_round);
    Receiver total pktRecoveredThird: |s| number(s.recovered_third_round);
    Receiver total pktRecoveredLater: |s| number(s.recovered_later);
    Receiver total pktRcvLate: |s| number(s.packets_late);
    Receiver total rcvGlitches: |s| number(s.glitches);
    Sender instant usPktSndPeriod: |s| us(s.send_period);
    Sender instant pktFlowWindow: |s| small(s.flow_window);
    Sender instant pktCongestionWindow: |s| small(s.congestion_window);
    Sender instant pktFlightSize: |s| small(s.flight_size);
    Sender instant mbpsMaxBW: |s| s.max_bandwidth.as_mbps();
    Sender instant byteAvailSndBuf: |s| number(s.send_buffer_available);
    Sender instant pktSndBuf: |s| small(s.send_buffer_packets);
    Sender instant byteSndBuf: |s| number(s.send_buffer_bytes);
    Sender instant msSndBuf: |s| ms(s.send_buffer_span);
    Sender instant msSndTsbPdDelay: |s| ms(s.peer_latency);
    Sender instant msQueueDelay: |s| ms(s.queueing_delay);
    Receiver instant msLongestLateness: |s| ms(s.longest_lateness);
    Receiver instant pktRcvAvgBelatedTime: |s| ms(s.belated_time);
    Receiver instant pktReorderDistance: |s| small(s.reorder_distance);
    Receiver instant pktReorderTolerance: |s| small(s.reorder_tolerance);
    Receiver instant byteAvailRcvBuf: |s| number(s.receive_buffer_available);
    Receiver instant pktRcvBuf: |s| small(s.receive_buffer_packets);
    Receiver instant byteRcvBuf: |s| number(s.receive_buffer_bytes);
    Receiver instant msRcvBuf: |s| ms(s.receive_buffer_span);
    Receiver instant msRcvTsbPdDelay: |s| ms(s.receive_latency);
    Receiver instant usDrift: |s| signed(s.drift_micros);
    Both instant msRTT: |s| ms(s.rtt);
    Both instant msRTTLatest: |s| ms(s.rtt_latest);
    Receiver instant usTransit: |s| signed(s.transit_micros);
    Both instant msRTTVar: |s| ms(s.rtt_variance);
    Both instant mbpsBandwidth: |s| s.link_capacity.as_mbps();
    Both instant byteMSS: |s| small(s.mss);
    Sender instant mbpsSendRate: |s| s.send_rate().as_mbps();
    Receiver instant mbpsRecvRate: |s| s.receive_rate().as_mbps();
}

#[expect(clippy::cast_precision_loss, reason = "for results: 53 bits are plenty")]
fn signed(value: i64) -> f64 {
    value as f64
}

/// The numbers of a connection's end, or of an interval of it; `end` is `sender` or `receiver`.
/// `others` are the same end's statistics on other connections of the run: what counts is summed.
pub(crate) fn statistics(end: &str, of: &[&Statistics]) -> Vec<NamedNumber> {
    let number = |column: &StatisticColumn| match of {
        [] => 0.0,
        [first, ..] if !column.total || column.name == "msElapsed" => (column.value)(first),
        all => all.iter().map(|statistics| (column.value)(statistics)).sum(),
    };
    STATISTICS.iter().map(|column| (format!("{end}.{}", column.name), number(column))).collect()
}

/// The counts of the receiver, by the stamps in the messages.
pub(crate) fn report(report: &MeterReport) -> Vec<NamedNumber> {
    let known = |value: Option<i64>| value.map_or(f64::NAN, signed);
    let numbers = [
        ("usLatencyMin", known(report.latency_us_min)),
        ("usLatencyMax", known(report.latency_us_max)),
        ("usLatencyAvg", known(report.latency_us_avg)),
        ("usJitter", number(report.jitter_us)),
        ("usDelayFactor", report.delay_factor_us.map_or(f64::NAN, number)),
        ("pktReceived", number(report.received)),
        ("pktLost", number(report.lost)),
        ("pktReordered", number(report.reordered)),
        ("pktReorderDist", number(report.reorder_distance)),
        ("pktDuplicated", number(report.duplicates)),
        ("pktChecksumError", number(report.checksum_errors)),
        ("pktLengthError", number(report.length_errors)),
    ];
    numbers.map(|(name, number)| (name.to_owned(), number)).to_vec()
}

/// The distribution of the latency, µs.
pub(crate) fn quantiles(latency_us: &Quantiles) -> Vec<NamedNumber> {
    let known = |value: Option<u64>| value.map_or(f64::NAN, number);
    [
        ("usLatencyP50", known(latency_us.median())),
        ("usLatencyP99", known(latency_us.p99())),
        ("usLatencyP999", known(latency_us.p999())),
    ]
    .map(|(name, number)| (name.to_owned(), number))
    .to_vec()
}

/// The counts of a link; `way` is `up` (from the sender) or `down`.
pub(crate) fn link(way: &str, link: &LinkStatistics) -> Vec<NamedNumber> {
    let numbers = [
        ("pktSent", number(link.sent)),
        ("byteSent", number(link.sent_bytes)),
        ("pktDelivered", number(link.delivered)),
        ("byteDelivered", number(link.delivered_bytes)),
        ("pktLost", number(link.lost)),
        ("pktLostByChance", number(link.lost_by_chance)),
        ("pktLostByPattern", number(link.lost_by_pattern)),
        ("pktLostInOutage", number(link.lost_in_outage)),
        ("pktDroppedByQueue", number(link.dropped_by_queue)),
        ("pktDroppedByCodel", number(link.dropped_by_codel)),
        ("pktDroppedByMtu", number(link.dropped_by_mtu)),
        ("pktDuplicated", number(link.duplicated)),
        ("pktCorrupted", number(link.corrupted)),
        ("pktReordered", number(link.reordered)),
        ("msQueueMax", ms(link.queue_delay_max)),
    ];
    numbers.map(|(name, number)| (format!("{way}.{name}"), number)).to_vec()
}

/// The counts of cross traffic in the time in which it was `there` beside the streams. If none
/// came, they are unknown.
pub(crate) fn traffic(traffic: &TrafficStatistics, there: Duration) -> Vec<NamedNumber> {
    let bytes = number(traffic.goodput_bytes);
    let rate = if there.is_zero() { f64::NAN } else { bytes * 8.0 / 1e6 / there.as_secs_f64() };
    let numbers = [number(traffic.sent), bytes, rate];
    TRAFFIC.iter().zip(numbers).map(|(name, number)| (format!("traffic.{name}"), number)).collect()
}

/// How late the emulator sent packets beside its model, in µs: above some milliseconds the machine
/// stalled, and a run shows that rather than the link. Virtual time is never late.
pub(crate) fn lateness(way: &str, nanos: &Quantiles) -> Vec<NamedNumber> {
    let known = |value: Option<u64>| value.map_or(f64::NAN, |nanos| number(nanos) / 1e3);
    let names = LATENESS.iter().map(|name| format!("{way}.{name}"));
    names.zip([known(nanos.p99()), known(nanos.max())]).collect()
}

/// Columns that runs fill, in the order of results.
pub fn result_columns() -> Vec<String> {
    let mut columns: Vec<String> = OF_THE_STREAM.iter().map(|name| (*name).to_owned()).collect();
    let names = |numbers: Vec<NamedNumber>| numbers.into_iter().map(|(name, _)| name);
    columns.extend(names(report(&MeterReport::default())));
    columns.extend(names(quantiles(&Quantiles::default())));
    columns.extend(names(statistics("sender", &[])));
    columns.extend(names(statistics("receiver", &[])));
    columns.extend(names(link("up", &LinkStatistics::default())));
    columns.extend(names(link("down", &LinkStatistics::default())));
    columns.extend(names(traffic(&TrafficStatistics::default(), Duration::ZERO)));
    columns.extend(names(quic_model(None)));
    columns.extend(names(blocks(None)));
    columns.extend(names(tcp(None)));
    columns.extend(names(lateness("up", &Quantiles::default())));
    columns.extend(names(lateness("down", &Quantiles::default())));
    columns
}

/// The full name of a column that a formula means: `pktRetrans` is the sender's.
pub fn full_name(name: &str) -> Option<String> {
    let statistic = STATISTICS.iter().find(|column| column.name == name)?;
    match statistic.side {
        Side::Sender => Some(format!("sender.{name}")),
        Side::Receiver => Some(format!("receiver.{name}")),
        Side::Both => None,
    }
}

/// Names of the statistics of an end.
pub(crate) fn statistic_names() -> impl Iterator<Item = &'static str> {
    STATISTICS.iter().map(|column| column.name)
}

/// Whether a statistic counts since the start; others hold at a moment.
pub(crate) fn is_total(name: &str) -> bool {
    STATISTICS.iter().any(|column| column.name == name && column.total)
}

/// How late the emulator was.
pub(crate) const LATENESS: [&str; 2] = ["usLateP99", "usLateMax"];

/// The columns of cross traffic.
const TRAFFIC: [&str; 3] = ["pktSent", "byteGoodput", "mbpsGoodput"];

/// The columns of the stream itself.
pub(crate) const OF_THE_STREAM: [&str; 23] = [
    "attempts",
    "messagesSent",
    "messagesReceived",
    "messagesRefused",
    "byteMessagesSent",
    "byteMessagesReceived",
    "byteMessagesReceivedMin",
    "msConnected",
    "messagesDamaged",
    "messagesDoubled",
    "messagesDisordered",
    "messagesEarly",
    "messagesLate",
    "msLateMax",
    "mbpsUsable",
    "msRTTMean",
    "msRTTMax",
    "mbpsBurst",
    "usJitterP50",
    "usDelayFactorMean",
    "usDelayFactorMax",
    "quicDatagramsDropped",
    "sStartUp",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statistic_has_a_column() {
        let fields = Statistics::default().fields().count();
        // Both rates are computed.
        assert_eq!(STATISTICS.len(), fields + 2);
    }

    #[test]
    fn columns_have_libsrts_units_and_each_its_own_name() {
        let mut statistics = Statistics::default();
        statistics.rtt = Duration::from_micros(20_125);
        statistics.send_period = Duration::from_nanos(1_500);
        statistics.packets_sent = 7;
        let numbers = super::statistics("sender", &[&statistics]);
        let number = |name: &str| numbers.iter().find(|(other, _)| other == name).unwrap().1;
        assert_eq!(number("sender.msRTT"), 20.125);
        assert_eq!(number("sender.usPktSndPeriod"), 1.5);
        assert_eq!(number("sender.pktSent"), 7.0);
        let mut columns = result_columns();
        let all = columns.len();
        columns.sort();
        columns.dedup();
        assert_eq!(columns.len(), all);
    }

    #[test]
    fn counts_of_several_streams_are_summed() {
        let mut statistics = Statistics::default();
        statistics.packets_sent = 7;
        statistics.rtt = Duration::from_millis(20);
        let numbers = super::statistics("sender", &[&statistics, &statistics]);
        let number = |name: &str| numbers.iter().find(|(other, _)| other == name).unwrap().1;
        assert_eq!((number("sender.pktSent"), number("sender.msRTT")), (14.0, 20.0));
    }

    #[test]
    fn a_name_without_an_end_means_the_end_that_counts_it() {
        assert_eq!(full_name("pktRetrans").as_deref(), Some("sender.pktRetrans"));
        assert_eq!(full_name("pktRcvDrop").as_deref(), Some("receiver.pktRcvDrop"));
        assert_eq!(full_name("msRTT"), None);
    }
}
