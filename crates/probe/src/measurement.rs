use std::time::Duration;

use punctual_units::Bitrate;

use crate::events::LossEvents;
use crate::history::ProbeHistory;
use crate::step::float;

/// The result of a probe. All figures of the link but those of single steps are from the rates that
/// the link carried without congestion.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The program at the other end.
    pub peer: ProbePeer,
    /// Duration of the whole probe.
    pub duration: Duration,
    /// Round trips and one-way delays.
    pub delay: Delay,
    /// The time for which the link was watched, and the part with signs of congestion.
    pub watched: Watched,
    /// Losses on the way to the peer.
    pub losses: Losses,
    /// Losses on the way back.
    pub return_path: ReturnPath,
    /// Reordered packets; from a Punctual listener only.
    pub reordering: Option<Reordering>,
    /// Share of packets that came twice without a retransmission; from a Punctual listener only.
    pub duplicates: Option<f64>,
    /// Whether the link was seen to change from second to second, as those of devices on the move
    /// and of shared cells do.
    pub changes: bool,
    /// The rates that were tried, and the rate that the link carries.
    pub rates: TriedRates,
    /// The largest payload that arrived, bytes; from a Punctual listener only.
    pub largest_payload: Option<usize>,
    /// Bytes of payload of the messages of the ramp.
    pub payload: usize,
    /// Quantities that could not be measured.
    pub missing: Vec<Unmeasured>,
    pub(crate) history: ProbeHistory,
}

/// Round trips and one-way delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Delay {
    /// Round-trip time.
    pub rtt: Option<TimeDistribution>,
    /// Mean deviation of the round-trip time, as the receiving end of the connection smoothed it.
    pub rtt_variance: Duration,
    /// One-way delay of the data beyond its minimum; from a Punctual listener only.
    pub variation: Option<TimeDistribution>,
    /// Number of times that a round trip took more than twice the median and 50 ms more.
    pub spikes: u64,
}

/// The time for which the link was watched at rates that it carried without congestion.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Watched {
    /// All of that time.
    pub time: Duration,
    /// The part with a sign of congestion: a standing queue, much loss, or little throughput.
    pub troubled: Duration,
}

/// Losses on the way to the peer.
#[derive(Clone, Debug, PartialEq)]
pub struct Losses {
    /// Number and share of the lost packets.
    pub total: PacketLoss,
    /// Runs of losses; from a Punctual listener only.
    pub bursts: Option<LossBursts>,
    /// Share of retransmissions that were lost; `None` if there were too few.
    pub of_retransmissions: Option<f64>,
    pub(crate) events: LossEvents,
}

/// Losses on the way back, by the numbers of the ACKs that came.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReturnPath {
    /// Share of packets lost.
    pub loss: Option<f64>,
    /// Share of packets lost of those directly after a lost one; `None` if there were too few.
    pub loss_again: Option<f64>,
}

/// The rates that were tried, and the rate that the link carries.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedRates {
    /// The rates that were tried, in their order.
    pub steps: Vec<StepResult>,
    /// The highest rate that the link carried without congestion.
    pub usable: Option<Bitrate>,
    /// Why no higher rate is known to be usable.
    pub limit: Limit,
    /// The highest rate that the link carried each time it was tried for a while after the ramp;
    /// `None` if there was no such rate.
    pub sustained: Option<Bitrate>,
    /// The receiver's estimate of the link's capacity from packet pairs: rough, and far too high on
    /// shared and cellular links.
    pub capacity: Option<Bitrate>,
}

/// The program at the other end of a probe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProbePeer {
    /// A Punctual listener that sends reports.
    Punctual,
    /// Any other SRT listener.
    Other,
}

/// The distribution of a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TimeDistribution {
    /// Number of samples.
    pub samples: u64,
    /// Minimum.
    pub min: Duration,
    /// Median: half of the samples are no larger.
    pub median: Duration,
    /// 95th percentile.
    pub p95: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// Maximum.
    pub max: Duration,
}

/// Number and share of lost packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PacketLoss {
    /// Packets sent.
    pub packets: u64,
    /// Packets lost.
    pub lost: u64,
    /// Share of packets lost.
    pub share: f64,
    /// The 95 % interval of that share (Wilson), if losses were independent.
    pub interval: (f64, f64),
}

/// Runs of losses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossBursts {
    /// Number of runs.
    pub runs: u64,
    /// Mean length of a run in packets. Independent losses have 1 / (1 - share).
    pub mean: f64,
    /// The longest run in packets, as far as it could be told from its neighbours.
    pub longest: u64,
    /// Duration of the longest run.
    pub longest_time: Duration,
    /// Share of the lost packets that had a lost neighbour.
    pub share_in_bursts: f64,
}

/// Reordered packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Share of packets that were reordered.
    pub share: f64,
    /// The greatest number of later packets that came before one of them.
    pub distance: u32,
}

/// One rate that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepResult {
    /// Rate of the payloads.
    pub rate: Bitrate,
    /// The time for which it was watched.
    pub time: Duration,
    /// Why it was tried.
    pub kind: StepKind,
    /// Rate of the payloads that arrived.
    pub delivered: Bitrate,
    /// Share of packets lost.
    pub loss: f64,
    /// Median round-trip time.
    pub rtt: Option<Duration>,
    /// Whether the link carried it.
    pub verdict: RateVerdict,
}

/// Why a rate was tried.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StepKind {
    /// As part of the ramp that looks for the highest usable rate.
    Ramp,
    /// After the ramp, for a while: the rate that is going to be recommended.
    Sustained,
}

/// Whether the link carried a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateVerdict {
    /// The link carried it.
    Clear,
    /// The link did not carry it.
    Congested(Congestion),
    /// It was not tried for long enough.
    Unfinished,
}

/// A sign of congestion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Congestion {
    /// More is lost than at lower rates.
    Loss {
        /// Share of packets lost.
        share: f64,
    },
    /// Packets wait in a queue all the time.
    Queue {
        /// Delay beyond that of lower rates.
        delay: Duration,
    },
    /// Less arrives than is sent.
    Throughput {
        /// Rate of the payloads that arrive.
        delivered: Bitrate,
    },
    /// Messages wait in the sender: the peer's window is full.
    Backlog {
        /// Time that it takes to send the waiting messages.
        waiting: Duration,
    },
}

/// Why no higher rate is known to be usable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// This rate was too much.
    Congested {
        /// The rate.
        at: Bitrate,
        /// The sign of congestion.
        sign: Congestion,
    },
    /// No higher one was allowed.
    MaxRate,
    /// The time was over.
    Time,
    /// The probe was stopped, or the connection ended.
    Stopped,
}

/// Something that could not be measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Unmeasured {
    /// Name of the quantity.
    pub what: &'static str,
    /// Why it could not be measured.
    pub why: &'static str,
}

impl TimeDistribution {
    /// The distribution of `values` in microseconds; `None` without any.
    pub(crate) fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let last = values.len().checked_sub(1)?;
        let at = |per_mille: usize| {
            let place = (values.len() * per_mille).div_ceil(1_000).max(1) - 1;
            Duration::from_micros(values[place.min(last)])
        };
        Some(Self {
            samples: values.len() as u64,
            min: at(0),
            median: at(500),
            p95: at(950),
            p99: at(990),
            max: at(1_000),
        })
    }
}

impl PacketLoss {
    pub(crate) fn of(lost: u64, packets: u64) -> Self {
        let packets = packets.max(lost);
        let share = float(lost) / float(packets.max(1));
        Self { packets, lost, share, interval: wilson(lost, packets) }
    }
}

/// The 95 % interval of a share, if `part` of `whole` were seen (E. B. Wilson, Probable
/// inference, the law of succession, and statistical inference, 1927).
pub(crate) fn wilson(part: u64, whole: u64) -> (f64, f64) {
    if whole == 0 {
        return (0.0, 1.0);
    }
    let n = float(whole);
    let share = float(part) / n;
    let z2 = Z * Z;
    let middle = share + z2 / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z2 / n;
    (((middle - half) / scale).max(0.0), ((middle + half) / scale).min(1.0))
}

/// 97.5 % of a normal distribution lie below this number of standard deviations.
const Z: f64 = 1.96;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_its_ranks() {
        let of = |values: Vec<u64>| TimeDistribution::of(values).unwrap();
        let us = Duration::from_micros;
        let hundred = of((1..=100).rev().collect());
        assert_eq!((hundred.min, hundred.median), (us(1), us(50)));
        assert_eq!((hundred.p95, hundred.p99, hundred.max), (us(95), us(99), us(100)));
        assert_eq!(of(vec![7]).p99, us(7));
        assert_eq!(TimeDistribution::of(Vec::new()), None);
    }

    #[test]
    fn intervals_hold_the_seen_share_and_are_not_empty_without_losses() {
        let (low, high) = wilson(0, 1_000);
        assert!(low < 1e-9 && (0.003..0.005).contains(&high), "{low} to {high}");
        let (low, high) = wilson(50, 1_000);
        assert!((0.037..0.040).contains(&low) && (0.064..0.067).contains(&high), "{low} to {high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }
}
