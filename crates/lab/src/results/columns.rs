//! The columns of results: every statistic of both ends under libsrt's name, every metric, the
//! counts of the links, and the exactness of the emulator.

use std::time::Duration;

use punctual::Statistics;
use punctual_metrics::{Quantiles, Report};
use punctual_netem::LinkStatistics;
use punctual_sim::TrafficStatistics;

use super::blocks::blocks;
use super::quic_model::quic_model;
use super::tcp::tcp;

/// A column of results that runs fill, and its number in one of them.
pub type NamedNumber = (String, f64);

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

#[expect(clippy::cast_precision_loss, reason = "for results: 53 bits are plenty")]
const fn count(value: u64) -> f64 {
    value as f64
}

fn small(value: u32) -> f64 {
    f64::from(value)
}

fn ms(time: Duration) -> f64 {
    us(time) / 1e3
}

/// Microseconds, exact to the nanosecond.
fn us(time: Duration) -> f64 {
    count(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)) / 1e3
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
    Sender total pktSent: |s| count(s.packets_sent);
    Sender total byteSent: |s| count(s.bytes_sent);
    Sender total pktSentUnique: |s| count(s.packets_sent_unique);
    Sender total byteSentUnique: |s| count(s.bytes_sent_unique);
    Sender total pktRetrans: |s| count(s.packets_retransmitted);
    Sender total byteRetrans: |s| count(s.bytes_retransmitted);
    Sender total pktSndLoss: |s| count(s.packets_send_lost);
    Sender total pktSndDrop: |s| count(s.packets_send_dropped);
    Sender total byteSndDrop: |s| count(s.bytes_send_dropped);
    Sender total pktRecvACK: |s| count(s.acks_received);
    Sender total pktRecvNAK: |s| count(s.naks_received);
    Sender total pktSndFilterExtra: |s| count(s.packets_send_filter_extra);
    Sender total usSndDuration: |s| us(s.send_busy);
    Receiver total pktRecv: |s| count(s.packets_received);
    Receiver total byteRecv: |s| count(s.bytes_received);
    Receiver total pktRecvUnique: |s| count(s.packets_received_unique);
    Receiver total byteRecvUnique: |s| count(s.bytes_received_unique);
    Receiver total pktRcvRetrans: |s| count(s.packets_received_retransmitted);
    Receiver total pktRcvLoss: |s| count(s.packets_receive_lost);
    Receiver total byteRcvLoss: |s| count(s.bytes_receive_lost);
    Receiver total pktRcvDrop: |s| count(s.packets_receive_dropped);
    Receiver total byteRcvDrop: |s| count(s.bytes_receive_dropped);
    Receiver total pktRcvUndecrypt: |s| count(s.packets_undecrypted);
    Receiver total byteRcvUndecrypt: |s| count(s.bytes_undecrypted);
    Receiver total pktRcvBelated: |s| count(s.packets_belated);
    Receiver total pktRcvDuplicate: |s| count(s.packets_duplicate);
    Receiver total pktSentACK: |s| count(s.acks_sent);
    Receiver total pktSentNAK: |s| count(s.naks_sent);
    Receiver total pktRcvFilterExtra: |s| count(s.packets_receive_filter_extra);
    Receiver total pktRcvFilterSupply: |s| count(s.packets_filter_supplied);
    Receiver total pktRcvFilterLoss: |s| count(s.packets_filter_lost);
    Both total pktIgnored: |s| count(s.packets_ignored);
    Both total pktOversized: |s| count(s.packets_oversized);
    Both total pathChanges: |s| count(s.path_changes);
    Receiver total pktRcvNotAuthentic: |s| count(s.packets_not_authentic);
    Sender total keyRefreshes: |s| count(s.key_refreshes);
    Receiver total rcvJumps: |s| count(s.receive_jumps);
    Sender total pktACKExpected: |s| count(s.acks_expected);
    Sender total pktACKMissed: |s| count(s.acks_missed);
    Sender total ackGaps: |s| count(s.ack_gaps);
    Receiver total rcvGaps: |s| count(s.receive_gaps);
    Receiver total rcvGapsSingle: |s| count(s.receive_gaps_single);
    Receiver total pktRcvReordered: |s| count(s.packets_reordered);
    Both total rttSamples: |s| count(s.rtt_samples);
    Sender total pktReportedOld: |s| count(s.reports_old);
    Sender total pktReportedTooLate: |s| count(s.reports_too_late);
    Sender total pktCopied: |s| count(s.packets_copied);
    Receiver total pktRequestedAgain: |s| count(s.packets_requested_again);
    Receiver total pktRecoveredFirst: |s| count(s.recovered_first_round);
    Receiver total pktRecoveredSecond: |s| count(s.recovered_second_round);
    Receiver total pktRecoveredThird: |s| count(s.recovered_third_round);
    Receiver total pktRecoveredLater: |s| count(s.recovered_later);
    Receiver total pktRcvLate: |s| count(s.packets_late);
    Receiver total rcvGlitches: |s| count(s.glitches);
    Sender instant usPktSndPeriod: |s| us(s.send_period);
    Sender instant pktFlowWindow: |s| small(s.flow_window);
    Sender instant pktCongestionWindow: |s| small(s.congestion_window);
    Sender instant pktFlightSize: |s| small(s.flight_size);
    Sender instant mbpsMaxBW: |s| s.max_bandwidth.as_mbps();
    Sender instant byteAvailSndBuf: |s| count(s.send_buffer_available);
    Sender instant pktSndBuf: |s| small(s.send_buffer_packets);
    Sender instant byteSndBuf: |s| count(s.send_buffer_bytes);
    Sender instant msSndBuf: |s| ms(s.send_buffer_span);
    Sender instant msSndTsbPdDelay: |s| ms(s.peer_latency);
    Sender instant msQueueDelay: |s| ms(s.queueing_delay);
    Receiver instant msLongestLateness: |s| ms(s.longest_lateness);
    Receiver instant pktRcvAvgBelatedTime: |s| ms(s.belated_time);
    Receiver instant pktReorderDistance: |s| small(s.reorder_distance);
    Receiver instant pktReorderTolerance: |s| small(s.reorder_tolerance);
    Receiver instant byteAvailRcvBuf: |s| count(s.receive_buffer_available);
    Receiver instant pktRcvBuf: |s| small(s.receive_buffer_packets);
    Receiver instant byteRcvBuf: |s| count(s.receive_buffer_bytes);
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
pub(crate) fn report(report: &Report) -> Vec<NamedNumber> {
    let known = |value: Option<i64>| value.map_or(f64::NAN, signed);
    let numbers = [
        ("usLatencyMin", known(report.latency_us_min)),
        ("usLatencyMax", known(report.latency_us_max)),
        ("usLatencyAvg", known(report.latency_us_avg)),
        ("usJitter", count(report.jitter_us)),
        ("usDelayFactor", report.delay_factor_us.map_or(f64::NAN, count)),
        ("pktReceived", count(report.received)),
        ("pktLost", count(report.lost)),
        ("pktReordered", count(report.reordered)),
        ("pktReorderDist", count(report.reorder_distance)),
        ("pktDuplicated", count(report.duplicates)),
        ("pktChecksumError", count(report.checksum_errors)),
        ("pktLengthError", count(report.length_errors)),
    ];
    numbers.map(|(name, number)| (name.to_owned(), number)).to_vec()
}

/// The distribution of the latency, µs.
pub(crate) fn quantiles(latency_us: &Quantiles) -> Vec<NamedNumber> {
    let known = |value: Option<u64>| value.map_or(f64::NAN, count);
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
        ("pktSent", count(link.sent)),
        ("byteSent", count(link.sent_bytes)),
        ("pktDelivered", count(link.delivered)),
        ("byteDelivered", count(link.delivered_bytes)),
        ("pktLost", count(link.lost)),
        ("pktLostByChance", count(link.lost_by_chance)),
        ("pktLostByPattern", count(link.lost_by_pattern)),
        ("pktLostInOutage", count(link.lost_in_outage)),
        ("pktDroppedByQueue", count(link.dropped_by_queue)),
        ("pktDroppedByCodel", count(link.dropped_by_codel)),
        ("pktDroppedByMtu", count(link.dropped_by_mtu)),
        ("pktDuplicated", count(link.duplicated)),
        ("pktCorrupted", count(link.corrupted)),
        ("pktReordered", count(link.reordered)),
        ("msQueueMax", ms(link.queue_delay_max)),
    ];
    numbers.map(|(name, number)| (format!("{way}.{name}"), number)).to_vec()
}

/// The counts of cross traffic in the time in which it was `there` beside the streams. If none
/// came, they are unknown.
pub(crate) fn traffic(traffic: &TrafficStatistics, there: Duration) -> Vec<NamedNumber> {
    let bytes = count(traffic.goodput_bytes);
    let rate = if there.is_zero() { f64::NAN } else { bytes * 8.0 / 1e6 / there.as_secs_f64() };
    let numbers = [count(traffic.sent), bytes, rate];
    TRAFFIC.iter().zip(numbers).map(|(name, number)| (format!("traffic.{name}"), number)).collect()
}

/// How late the emulator sent packets beside its model, in µs: above some milliseconds the machine
/// stalled, and a run shows that rather than the link. Virtual time is never late.
pub(crate) fn lateness(way: &str, nanos: &Quantiles) -> Vec<NamedNumber> {
    let known = |value: Option<u64>| value.map_or(f64::NAN, |nanos| count(nanos) / 1e3);
    let names = LATENESS.iter().map(|name| format!("{way}.{name}"));
    names.zip([known(nanos.p99()), known(nanos.max())]).collect()
}

/// Columns that runs fill, in the order of results.
pub fn result_columns() -> Vec<String> {
    let mut columns: Vec<String> = OF_THE_STREAM.iter().map(|name| (*name).to_owned()).collect();
    let names = |numbers: Vec<NamedNumber>| numbers.into_iter().map(|(name, _)| name);
    columns.extend(names(report(&Report::default())));
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
