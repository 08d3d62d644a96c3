//! The statistics that libsrt's tools write, with their names in CSV and JSON.

use std::time::Duration;

use punctual_proto::Statistics;
use punctual_units::Bitrate;

use crate::quic::QuicStatistics;

/// The statistics from which one row is made.
pub struct Sample {
    /// The statistics since the connection was opened.
    pub total: Statistics,
    /// The statistics since the previous row.
    pub interval: Statistics,
    /// The statistics of the QUIC connection that carries this one; `None` over UDP.
    pub quic: Option<QuicStatistics>,
}

/// One statistic.
pub struct Field {
    /// The statistic's name in CSV, which is its name in libsrt's `CBytePerfMon`.
    pub csv: &'static str,
    /// The statistic's group in JSON, empty for none, and its name there.
    pub json: (&'static str, &'static str),
    /// Takes the statistic's value out of a sample.
    pub value: fn(&Sample) -> Value,
}

/// The value of a statistic.
pub enum Value {
    /// A count.
    Whole(u64),
    /// A measured number, which is printed with six significant digits.
    Real(f64),
    /// It was not measured yet: nothing in CSV, `null` in JSON.
    Unknown,
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Whole(count) => write!(f, "{count}"),
            Self::Real(measure) => f.write_str(&six_digits(measure)),
            Self::Unknown => Ok(()),
        }
    }
}

macro_rules! fields {
    ($( $csv:ident = $group:literal . $json:literal : $value:expr; )*) => {
        /// The statistics in the order of libsrt's tools.
        pub const FIELDS: &[Field] = &[
            $( Field { csv: stringify!($csv), json: ($group, $json), value: $value } ),*
        ];
    };
}

fields! {
    Time = ""."time": |s| Value::Whole(millis(s.total.elapsed));
    pktFlowWindow = "window"."flow": |s| Value::Whole(s.total.flow_window.into());
    pktCongestionWindow = "window"."congestion": |s| Value::Whole(s.total.congestion_window.into());
    pktFlightSize = "window"."flight": |s| Value::Whole(s.total.flight_size.into());
    msRTT = "link"."rtt": |s| {
        let measured = s.total.measured_rtt();
        measured.map_or(Value::Unknown, |rtt| Value::Real(rtt.as_secs_f64() * 1e3))
    };
    mbpsBandwidth = "link"."bandwidth": |s| Value::Real(s.total.link_capacity.as_mbps());
    mbpsMaxBW = "link"."maxBandwidth": |s| Value::Real(s.total.max_bandwidth.as_mbps());
    pktSent = "send"."packets": |s| Value::Whole(s.interval.packets_sent);
    pktSentUnique = "send"."packetsUnique": |s| Value::Whole(s.interval.packets_sent_unique);
    pktSndLoss = "send"."packetsLost": |s| Value::Whole(s.interval.packets_send_lost);
    pktSndDrop = "send"."packetsDropped": |s| Value::Whole(s.interval.packets_send_dropped);
    pktRetrans = "send"."packetsRetransmitted": |s| Value::Whole(s.interval.packets_retransmitted);
    pktSndFilterExtra = "send"."packetsFilterExtra":
        |s| Value::Whole(s.interval.packets_send_filter_extra);
    byteSent = "send"."bytes": |s| Value::Whole(s.interval.bytes_sent);
    byteSentUnique = "send"."bytesUnique": |s| Value::Whole(s.interval.bytes_sent_unique);
    byteSndDrop = "send"."bytesDropped": |s| Value::Whole(s.interval.bytes_send_dropped);
    byteAvailSndBuf = "send"."byteAvailBuf": |s| Value::Whole(s.total.send_buffer_available);
    msSndBuf = "send"."msBuf": |s| Value::Whole(millis(s.total.send_buffer_span));
    mbpsSendRate = "send"."mbitRate": |s| Value::Real(mbps(s.interval.send_rate()));
    usPktSndPeriod = "send"."sendPeriod": |s| Value::Real(s.total.send_period.as_secs_f64() * 1e6);
    pktRecv = "recv"."packets": |s| Value::Whole(s.interval.packets_received);
    pktRecvUnique = "recv"."packetsUnique": |s| Value::Whole(s.interval.packets_received_unique);
    pktRcvLoss = "recv"."packetsLost": |s| Value::Whole(s.interval.packets_receive_lost);
    pktRcvDrop = "recv"."packetsDropped": |s| Value::Whole(s.interval.packets_receive_dropped);
    pktRcvRetrans = "recv"."packetsRetransmitted":
        |s| Value::Whole(s.interval.packets_received_retransmitted);
    pktRcvBelated = "recv"."packetsBelated": |s| Value::Whole(s.interval.packets_belated);
    pktRcvFilterExtra = "recv"."packetsFilterExtra":
        |s| Value::Whole(s.interval.packets_receive_filter_extra);
    pktRcvFilterSupply = "recv"."packetsFilterSupply":
        |s| Value::Whole(s.interval.packets_filter_supplied);
    pktRcvFilterLoss = "recv"."packetsFilterLoss": |s| Value::Whole(s.interval.packets_filter_lost);
    byteRecv = "recv"."bytes": |s| Value::Whole(s.interval.bytes_received);
    byteRecvUnique = "recv"."bytesUnique": |s| Value::Whole(s.interval.bytes_received_unique);
    byteRcvLoss = "recv"."bytesLost": |s| Value::Whole(s.interval.bytes_receive_lost);
    byteRcvDrop = "recv"."bytesDropped": |s| Value::Whole(s.interval.bytes_receive_dropped);
    byteAvailRcvBuf = "recv"."byteAvailBuf": |s| Value::Whole(s.total.receive_buffer_available);
    msRcvBuf = "recv"."msBuf": |s| Value::Whole(millis(s.total.receive_buffer_span));
    mbpsRecvRate = "recv"."mbitRate": |s| Value::Real(mbps(s.interval.receive_rate()));
    msRcvTsbPdDelay = "recv"."msTsbPdDelay": |s| Value::Whole(millis(s.total.receive_latency));
    // Libsrt counts it, but its tools do not write it, so it follows all that they write.
    pktRcvUndecrypt = "recv"."packetsUndecrypted": |s| Value::Whole(s.interval.packets_undecrypted);
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn mbps(rate: Bitrate) -> f64 {
    rate.as_mbps()
}

/// A number as C++ streams print it: six significant digits, without trailing zeros; in scientific
/// notation below 0.0001 and from a million.
fn six_digits(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return "0".to_owned();
    }
    let scientific = format!("{number:.5e}");
    let (digits, exponent) = scientific.split_once('e').expect("`{:e}` writes an exponent");
    let exponent: i32 = exponent.parse().expect("the exponent is a number");
    let trim = |digits: &str| match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => digits.to_owned(),
    };
    match usize::try_from(5 - exponent) {
        Ok(decimals @ 0..=9) => trim(&format!("{number:.decimals$}")),
        _ => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{}e{sign}{:02}", trim(digits), exponent.abs())
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> Sample {
        let mut total = Statistics::default();
        total.elapsed = Duration::from_millis(2_000);
        total.rtt = Duration::from_micros(20_125);
        total.max_bandwidth = Bitrate::from_mbps(1_000);
        total.packets_sent = 1_000;
        total.bytes_received = 1_360_000;
        total.packets_undecrypted = 5;
        total.receive_latency = Duration::from_millis(120);
        total.peer_latency = Duration::from_millis(250);
        let mut before = Statistics::default();
        before.elapsed = Duration::from_millis(1_000);
        before.packets_sent = 480;
        before.bytes_received = 680_000;
        before.packets_undecrypted = 2;
        Sample { interval: total.since(&before), total, quic: None }
    }

    #[test]
    fn measures_are_printed_as_cpp_streams_do() {
        for (number, expected) in [
            (0.0, "0"),
            (20.125, "20.125"),
            (1.0 / 3.0, "0.333333"),
            (5.062_144, "5.06214"),
            (999_999.4, "999999"),
            (999_999.6, "1e+06"),
            (1_234_567.0, "1.23457e+06"),
            (100_000.0, "100000"),
            (1_000.0, "1000"),
            (0.000_123_456_7, "0.000123457"),
            (0.000_012_345, "1.2345e-05"),
            (-2.5, "-2.5"),
        ] {
            assert_eq!(six_digits(number), expected);
        }
    }
}
