use std::time::Duration;

use punctual_units::Bitrate;

use crate::course::Course;
use crate::events::LossEvents;
use crate::step::{Step, float};

/// What a probe found out about a link. All of the link's figures but those of single steps are
/// from the rates that the link carried at ease.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// Who was at the other end.
    pub peer: Peer,
    /// How long it took.
    pub duration: Duration,
    /// Round-trip time.
    pub rtt: Option<Distribution>,
    /// Mean deviation of the round-trip time, as the connection's end that receives smoothed it.
    pub rtt_variance: Duration,
    /// One-way delay of the data beyond its least; from a Punctual listener only.
    pub delay_variation: Option<Distribution>,
    /// Times that a round trip took more than twice the median and 50 ms more.
    pub spikes: u64,
    /// For how long the rates that the link carried at ease were watched.
    pub watched: Duration,
    /// For how much of that time the link was in trouble: a queue stood, much was lost, or little
    /// came through.
    pub troubled: Duration,
    /// What was lost.
    pub loss: Loss,
    /// How losses came together; from a Punctual listener only.
    pub bursts: Option<Bursts>,
    /// Packets that others had overtaken; from a Punctual listener only.
    pub reordering: Option<Reordering>,
    /// Share of packets that came twice without having been sent again; from a Punctual listener
    /// only.
    pub duplicates: Option<f64>,
    /// Share of retransmissions that were lost; `None` if there were too few.
    pub retransmission_loss: Option<f64>,
    /// Share of packets lost on the way back, by the numbers of the ACKs that came.
    pub return_loss: Option<f64>,
    /// Share of packets lost on the way back of those behind a lost one; `None` if there were too
    /// few.
    pub return_loss_again: Option<f64>,
    /// The highest rate that the link carried each time it was tried for a while after the ramp;
    /// `None` if it carried none, or none was tried.
    pub sustained: Option<Bitrate>,
    /// Whether the link was seen to change from second to second, as those of devices on the move
    /// and of shared cells do.
    pub changes: bool,
    /// The rates that were tried, in their order.
    pub steps: Vec<StepResult>,
    /// The highest rate that the link carried without congestion.
    pub usable: Option<Bitrate>,
    /// Why no higher rate is known to be usable.
    pub limit: Limit,
    /// The receiver's estimate of the link's capacity from packet pairs: rough, and far too high on
    /// shared and cellular links.
    pub capacity: Option<Bitrate>,
    /// The largest payload that arrived, bytes; from a Punctual listener only.
    pub largest_payload: Option<usize>,
    /// Bytes of payload of the messages of the ramp.
    pub payload: usize,
    /// What could not be measured.
    pub missing: Vec<Missing>,
    pub(crate) events: LossEvents,
    pub(crate) course: Course,
}

/// Who was at the other end of a probe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Peer {
    /// A Punctual listener that reports what it sees.
    Punctual,
    /// Any other SRT listener.
    Other,
}

/// How a time was distributed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Distribution {
    /// How many samples there were.
    pub samples: u64,
    /// The least.
    pub min: Duration,
    /// Half are no larger.
    pub median: Duration,
    /// 95 % are no larger.
    pub p95: Duration,
    /// 99 % are no larger.
    pub p99: Duration,
    /// The largest.
    pub max: Duration,
}

/// What was lost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loss {
    /// Packets that were on their way.
    pub packets: u64,
    /// Those that were lost.
    pub lost: u64,
    /// Share of packets lost.
    pub share: f64,
    /// The 95 % interval of that share (Wilson), if losses were independent.
    pub interval: (f64, f64),
}

/// How losses came together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bursts {
    /// Runs of losses.
    pub runs: u64,
    /// Mean length of a run, packets. Independent losses have 1 / (1 - share).
    pub mean: f64,
    /// The longest run, packets, as far as it could be told from those beside it.
    pub longest: u64,
    /// For how long nothing came through then.
    pub longest_time: Duration,
    /// Share of the lost packets that had a lost neighbour.
    pub share_in_bursts: f64,
}

/// Packets that others had overtaken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reordering {
    /// Share of packets.
    pub share: f64,
    /// How many packets overtook one at most.
    pub distance: u32,
}

/// One rate that was tried.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepResult {
    /// Rate of the payloads.
    pub rate: Bitrate,
    /// For how long it was watched.
    pub time: Duration,
    /// Whether it is the recommended rate, tried after the ramp.
    pub soak: bool,
    /// What arrived, as a rate of payloads.
    pub delivered: Bitrate,
    /// Share of packets lost.
    pub loss: f64,
    /// Median round-trip time.
    pub rtt: Option<Duration>,
    /// Whether the link carried it.
    pub verdict: Verdict,
}

/// Whether the link carried a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// It did.
    Clear,
    /// It did not.
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
        /// What arrives.
        delivered: Bitrate,
    },
    /// Messages wait in the sender: the peer's window is full.
    Backlog {
        /// Time that it takes to send what waits.
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
pub struct Missing {
    /// What.
    pub what: &'static str,
    /// Why not.
    pub why: &'static str,
}

impl Distribution {
    /// How `values`, in microseconds, are distributed; `None` without any.
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

impl Loss {
    pub(crate) fn of(lost: u64, packets: u64) -> Self {
        let packets = packets.max(lost);
        let share = float(lost) / float(packets.max(1));
        Self { packets, lost, share, interval: wilson(lost, packets) }
    }
}

impl StepResult {
    pub(crate) fn of(step: &Step) -> Self {
        Self {
            rate: step.rate,
            time: step.watched(),
            soak: step.soak,
            delivered: step.delivered(),
            loss: step.loss(),
            rtt: step.rtt().map(|us| Duration::from_micros(us.into())),
            verdict: step.verdict,
        }
    }
}

/// The 95 % interval of a share of which `part` of `whole` were seen (E. B. Wilson, Probable
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

/// 97.5 % of a normal distribution lie below so many standard deviations.
const Z: f64 = 1.96;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_has_its_ranks() {
        let of = |values: Vec<u64>| Distribution::of(values).unwrap();
        let us = Duration::from_micros;
        let hundred = of((1..=100).rev().collect());
        assert_eq!((hundred.min, hundred.median), (us(1), us(50)));
        assert_eq!((hundred.p95, hundred.p99, hundred.max), (us(95), us(99), us(100)));
        assert_eq!(of(vec![7]).p99, us(7));
        assert_eq!(Distribution::of(Vec::new()), None);
    }

    #[test]
    fn intervals_hold_what_was_seen_and_are_not_zero_without_losses() {
        let (low, high) = wilson(0, 1_000);
        assert!(low < 1e-9 && (0.003..0.005).contains(&high), "{low} to {high}");
        let (low, high) = wilson(50, 1_000);
        assert!((0.037..0.040).contains(&low) && (0.064..0.067).contains(&high), "{low} to {high}");
        assert_eq!(wilson(0, 0), (0.0, 1.0));
    }
}
