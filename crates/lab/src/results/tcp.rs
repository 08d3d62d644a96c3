//! The columns of a live stream over TCP.

use punctual_probe::model::tcp::TcpPath;
use punctual_sim::TrafficStatistics;
use punctual_units::Bitrate;

use crate::numbers::{NamedNumber, number};

/// The segments of a TCP connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TcpCounts {
    pub(crate) sent: u64,
    /// The ones that the sender took for lost, if it tells.
    pub(crate) lost: Option<u64>,
    pub(crate) retransmitted: u64,
    /// How often the retransmission timer ended.
    pub(crate) timeouts: u64,
}

impl TcpCounts {
    /// Those of a simulated connection.
    pub(crate) fn of(statistics: &TrafficStatistics) -> Self {
        let TrafficStatistics { sent, lost, retransmitted, timeouts, .. } = *statistics;
        Self { sent, lost: Some(lost), retransmitted, timeouts }
    }
}

/// A live stream over TCP: what was measured, and the path for the formulas.
pub(crate) struct TcpFound {
    pub(crate) counts: TcpCounts,
    /// The rate in which bytes arrived in order.
    pub(crate) goodput: Bitrate,
    /// `None` for a path without a formula.
    pub(crate) path: Option<TcpPath>,
    /// The stream, in b/s, and the time that is wanted of it first.
    pub(crate) stream: f64,
    pub(crate) readchunk: std::time::Duration,
}

/// The columns of a run; all unknown without a stream over TCP.
pub(crate) fn tcp(found: Option<&TcpFound>) -> Vec<NamedNumber> {
    let count =
        |of: fn(&TcpCounts) -> u64| found.map_or(f64::NAN, |found| number(of(&found.counts)));
    // The quickest of the formulas and the slowest: an ACK for each segment, and for each second.
    let path = found.and_then(|found| found.path);
    let (quick, slow) = (path, path.map(TcpPath::with_delayed_acks));
    let rate = |path: Option<TcpPath>, of: fn(&TcpPath) -> f64| path.as_ref().map(of);
    let (mathis, pftk) = (rate(quick, TcpPath::mathis), rate(slow, TcpPath::pftk));
    let start_up = |path: Option<TcpPath>, rate: Option<f64>| {
        let found = found?;
        Some(path?.start_up(found.stream, found.readchunk, rate?))
    };
    let numbers = [
        ("pktSent", count(|it| it.sent)),
        ("pktLost", found.and_then(|found| found.counts.lost).map_or(f64::NAN, number)),
        ("pktRetrans", count(|it| it.retransmitted)),
        ("timeouts", count(|it| it.timeouts)),
        ("mbpsGoodput", found.map_or(f64::NAN, |found| found.goodput.as_mbps())),
        ("mbpsMathis", mathis.map_or(f64::NAN, |rate| rate / 1e6)),
        ("mbpsPftk", pftk.map_or(f64::NAN, |rate| rate / 1e6)),
        ("sStartUpMathis", start_up(quick, mathis).map_or(f64::NAN, |it| it.with_slow_start)),
        ("sStartUpPftk", start_up(slow, pftk).map_or(f64::NAN, |it| it.at_steady_rate)),
    ];
    numbers.map(|(name, number)| (format!("tcp.{name}"), number)).to_vec()
}
