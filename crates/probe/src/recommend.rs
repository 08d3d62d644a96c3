use std::time::Duration;

use punctual_proto::RetransmitAlgorithm;
use punctual_units::Bitrate;
use thiserror::Error;

use crate::both_ends::{self, BothEnds};
use crate::expect::{Expected, Model, expected};
use crate::measurement::{Measurement, TimeDistribution};
use crate::model::{Rounds, TimedRounds};
use crate::probe::recommended;
use crate::step::scaled;
use crate::uris::{self, Uris};
use crate::why;

/// The user's requirements of the stream.
#[derive(Clone, Debug, PartialEq)]
pub struct Constraints {
    /// Share of packets that may stay lost. Default one in 100,000.
    pub target: f64,
    /// Rate of the stream's payloads; `None` (default) for as much as the link carries.
    pub rate: Option<Bitrate>,
    /// Whether the sender moves or its link is a mobile one; `None` (default) to judge by the
    /// measurement.
    pub mobile: Option<bool>,
    /// The longest latency that is acceptable. Default 8 s.
    pub max_latency: Duration,
}

impl Default for Constraints {
    fn default() -> Self {
        Self { target: 1e-5, rate: None, mobile: None, max_latency: Duration::from_secs(8) }
    }
}

/// How to set up a stream over a link, and why so.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// Whether the link was taken for a steady or a mobile one.
    pub kind: LinkKind,
    /// Latency of both ends \[latency\].
    pub latency: Duration,
    /// Rate of the stream's payloads.
    pub stream_rate: Bitrate,
    /// Limit of everything that is sent, headers and retransmissions too \[maxbw\].
    pub max_bandwidth: Bitrate,
    /// The maximum bandwidth in percent above the stream's rate \[oheadbw\].
    pub overhead_percent: u32,
    /// Bytes of payload of a message \[payloadsize\].
    pub payload: usize,
    /// Least buffer of the end that receives \[rcvbuf\].
    pub receive_buffer: Buffer,
    /// Least buffer of the end that sends \[sndbuf\].
    pub send_buffer: Buffer,
    /// Reordering tolerance of the receiving end in packets \[lossmaxttl\].
    pub reorder_tolerance: u32,
    /// The sender's retransmission algorithm \[retransmitalgo\].
    pub algorithm: Algorithm,
    /// The loss to be expected.
    pub expected: Expected,
    /// Better settings for two Punctual ends; `None` if there are none.
    pub both_ends: Option<BothEnds>,
    /// Why each of these.
    pub why: Vec<Why>,
    /// Warnings for the user, a sentence each.
    pub warnings: Vec<String>,
}

impl Recommendation {
    /// URIs to call `address`, a host and port, with these settings. The scheme is `srt`, or
    /// `srt+quic`, which other programs do not speak. `extra` are more keys and values in the form
    /// of a URI, such as the stream ID. With a `mode` among them the two ends meet in a rendezvous,
    /// and the URI of the other one has `HERE` for this end's host.
    pub fn uris(&self, scheme: &str, address: &str, extra: &[(String, String)]) -> Uris {
        uris::uris(self, scheme, address, extra)
    }
}

/// The variability of a link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkKind {
    /// Round trips are much the same.
    Steady,
    /// Round trips change a lot, as over a mobile network.
    Mobile,
}

/// The necessary size of a buffer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Buffer {
    /// Packets.
    pub packets: usize,
    /// Bytes as libsrt counts them: 1472 for each packet.
    pub bytes: usize,
}

/// The sender's retransmission algorithm \[retransmitalgo\].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Algorithm {
    /// Retransmits a packet once in a round trip; 1.
    Efficient,
    /// Retransmits on every NAK; 0.
    Aggressive,
}

impl Algorithm {
    /// libsrt's number for it \[retransmitalgo\].
    pub fn number(self) -> u32 {
        match self {
            Self::Aggressive => 0,
            Self::Efficient => 1,
        }
    }
}

/// The reason for a setting.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Why {
    /// The setting's name as in the JSON form.
    pub setting: &'static str,
    /// The reason, a sentence.
    pub text: String,
}

/// Too little was measured to recommend anything.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum NotEnough {
    /// Nothing came back.
    #[error("no round trip was measured: nothing can be recommended")]
    NoRoundTrip,
    /// Even the lowest rate was too much, or no step was finished.
    #[error(
        "no rate was found that the link carries: nothing can be recommended; try a lower --start"
    )]
    NoRate,
}

/// How to set up a stream over a link that was measured.
pub fn recommend(
    measurement: &Measurement,
    constraints: &Constraints,
) -> Result<Recommendation, NotEnough> {
    let rtt = measurement.delay.rtt.ok_or(NotEnough::NoRoundTrip)?;
    let usable = measurement.rates.usable.ok_or(NotEnough::NoRate)?;
    let plan = SettingsBasis::new(measurement, constraints, rtt, usable);
    let (algorithm, latency) = plan.latency();
    let expected = plan.expected(latency, algorithm);
    let mut recommendation = Recommendation {
        kind: plan.kind,
        latency,
        stream_rate: plan.rate,
        max_bandwidth: plan.max_bandwidth,
        overhead_percent: plan.overhead_percent,
        payload: plan.payload,
        receive_buffer: plan.receive_buffer(latency),
        send_buffer: plan.send_buffer(latency),
        reorder_tolerance: plan.reorder_tolerance,
        algorithm,
        expected,
        both_ends: both_ends::better(&plan, latency, &expected),
        why: Vec::new(),
        warnings: Vec::new(),
    };
    why::explain(&mut recommendation, measurement, constraints, &plan.reasons());
    Ok(recommendation)
}

/// The lower bounds of a latency, and their reasons.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reasons {
    pub(crate) factor: u32,
    pub(crate) by_rtt: Duration,
    pub(crate) by_spike: Duration,
    pub(crate) burst: Duration,
    pub(crate) by_burst: Duration,
    pub(crate) highest: Duration,
}

/// All that the settings are made from.
pub(crate) struct SettingsBasis<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) constraints: &'a Constraints,
    pub(crate) rtt: TimeDistribution,
    pub(crate) kind: LinkKind,
    rate: Bitrate,
    max_bandwidth: Bitrate,
    overhead_percent: u32,
    payload: usize,
    reorder_tolerance: u32,
    rounds: Rounds,
}

impl<'a> SettingsBasis<'a> {
    fn new(
        measurement: &'a Measurement,
        constraints: &'a Constraints,
        rtt: TimeDistribution,
        usable: Bitrate,
    ) -> Self {
        let kind = match constraints.mobile {
            Some(true) => LinkKind::Mobile,
            Some(false) => LinkKind::Steady,
            None => kind_of(measurement, &rtt),
        };
        let loss = measurement.losses.total.share;
        // Lost packets are retransmitted, and some retransmissions are lost, too.
        let needed = loss / (1.0 - loss.min(0.9)) * 1.5;
        let overhead = needed.clamp(USUAL_OVERHEAD, 1.0);
        #[expect(clippy::cast_possible_truncation, reason = "it is 25 to 100")]
        #[expect(clippy::cast_sign_loss, reason = "it is 25 to 100")]
        let overhead_percent = (overhead * 100.0).ceil() as u32;
        let highest = if overhead_percent > 25 {
            scaled(usable, 1.0 / (1.0 + overhead))
        } else {
            recommended(usable)
        };
        let rate = constraints.rate.map_or(highest, |wish| wish.min(highest));
        let max_bandwidth = Bitrate::from_bits_per_sec(
            rate.as_bits_per_sec().saturating_mul(100 + u64::from(overhead_percent)) / 100,
        );
        let payload = measurement.payload;
        let reorder_tolerance = measurement
            .reordering
            .filter(|reordering| reordering.share > WORTH_WAITING)
            .map_or(0, |reordering| reordering.distance.min(MOST_TOLERANCE));
        let packet = rate.time_for(payload as u64);
        let rounds = Rounds {
            // Most round trips must fit, not half of them.
            rtt: rtt.p95,
            rtt_variance: measurement.delay.rtt_variance,
            loss: measurement.losses.of_retransmissions.unwrap_or(loss).max(loss),
            nak_loss: measurement.return_path.loss.unwrap_or(loss),
            nak_loss_again: measurement.return_path.loss_again.unwrap_or(loss),
            detection: packet.saturating_mul(1 + reorder_tolerance),
            holds_back: true,
        };
        Self {
            measurement,
            constraints,
            rtt,
            kind,
            rate,
            max_bandwidth,
            overhead_percent,
            payload,
            reorder_tolerance,
            rounds,
        }
    }

    /// The least latency that is long enough by every rule, and the algorithm that needs it.
    fn latency(&self) -> (Algorithm, Duration) {
        let least = self.reasons().least(&self.rounds);
        let most =
            self.constraints.max_latency.min(LONGEST_LATENCY).max(least.min(LONGEST_LATENCY));
        let enough = |algorithm| {
            let reaches = |latency| self.suffices(&self.expected(latency, algorithm));
            let mut latency = rounded_up(least.min(most));
            while latency < most && !reaches(latency) {
                latency += GRAIN;
            }
            (latency, reaches(latency))
        };
        let (efficient, efficient_reaches) = enough(Algorithm::Efficient);
        let (aggressive, aggressive_reaches) = enough(Algorithm::Aggressive);
        // Answering everything costs twice the bandwidth: it must be worth that.
        let room = self.measurement.losses.total.share * 4.0 < USUAL_OVERHEAD;
        let worth = aggressive + self.rtt.median < efficient || !efficient_reaches;
        if room && worth && aggressive_reaches {
            return (Algorithm::Aggressive, aggressive);
        }
        if efficient_reaches {
            return (Algorithm::Efficient, efficient);
        }
        // Where no latency is enough, one that is hardly better is not worth its delay.
        let mut latency = rounded_up(least.min(most));
        let last = self.expected(efficient, Algorithm::Efficient).seen;
        while latency < most
            && self.expected(latency, Algorithm::Efficient).seen > last * 1.2 + 1e-9
        {
            latency += GRAIN;
        }
        (Algorithm::Efficient, latency)
    }

    /// Whether no more is expected to be lost than is wanted.
    pub(crate) fn suffices(&self, expected: &Expected) -> bool {
        // A smaller loss than the expected unseen one is not worth a delay.
        expected.seen <= self.constraints.target.max(expected.share - expected.seen)
    }

    /// The rounds of the deadline-aware algorithm. The maximum bandwidth keeps packets apart: a
    /// retransmission waits for the packet before it, and the originals after it wait in turn;
    /// round trips are measured without that wait.
    pub(crate) fn timed_rounds(&self) -> TimedRounds {
        let usual = &self.rounds;
        let wait = self.max_bandwidth.time_for(self.payload as u64);
        let bursts =
            self.measurement.losses.bursts.map_or(0.0, |bursts| 1.0 - 1.0 / bursts.mean.max(1.0));
        let packet = self.rate.time_for(self.payload as u64);
        // A NAK is repeated by the usual round trip and its deviation, which already includes that
        // nearly all retransmissions have come by then.
        let rarely = usual.rtt.saturating_sub(self.rtt.median);
        TimedRounds {
            rtt: usual.rtt + wait,
            least_rtt: self.rtt.min.min(usual.rtt),
            rtt_variance: usual.rtt_variance.saturating_sub(rarely / 4),
            packet,
            loss: usual.loss,
            loss_again: bursts.max(usual.loss),
            nak_loss: usual.nak_loss,
            nak_loss_again: usual.nak_loss_again,
            detection: packet.saturating_mul(self.reorder_tolerance) + wait * 2,
        }
    }

    /// The receiving end holds the packets of the latency.
    pub(crate) fn receive_buffer(&self, latency: Duration) -> Buffer {
        self.buffer(latency + self.rtt.median / 2)
    }

    /// The sender keeps unacknowledged packets for the latency, and for a second at least.
    pub(crate) fn send_buffer(&self, latency: Duration) -> Buffer {
        self.buffer(latency.max(SENDER_KEEPS) + self.rtt.median)
    }

    fn buffer(&self, time: Duration) -> Buffer {
        let bytes = self.max_bandwidth.as_bytes_per_sec() as u128 * time.as_nanos() / 1_000_000_000;
        let packets = usize::try_from(bytes.div_ceil(self.payload as u128)).unwrap_or(usize::MAX);
        Buffer { packets, bytes: packets.saturating_mul(BUFFER_UNIT) }
    }

    pub(crate) fn reasons(&self) -> Reasons {
        let measured = self.measurement;
        let factor = match self.kind {
            LinkKind::Mobile => 5,
            LinkKind::Steady if measured.losses.total.share > HARDLY_LOSSY => 4,
            LinkKind::Steady => 3,
        };
        // Packets that were late one way were late for the whole round trip.
        let late = measured.delay.variation.map_or(Duration::ZERO, |variation| {
            self.rtt.median + variation.max.saturating_sub(variation.median)
        });
        let highest = self.rtt.max.max(late);
        let by_spike = match self.kind {
            LinkKind::Mobile => highest.mul_f64(1.25),
            LinkKind::Steady => highest,
        };
        let longest = measured.losses.events.longest();
        let burst = match self.kind {
            LinkKind::Mobile => longest.mul_f64(1.25),
            LinkKind::Steady => longest,
        };
        let by_burst = burst + self.rtt.median * 3;
        Reasons { factor, by_rtt: self.rtt.median * factor, by_spike, burst, by_burst, highest }
    }

    /// The loss to be expected at this latency.
    fn expected(&self, latency: Duration, algorithm: Algorithm) -> Expected {
        self.expected_by(&self.rounds.with_algorithm(&algorithm.into()), latency)
    }

    /// The loss to be expected at this latency by this model.
    pub(crate) fn expected_by(&self, model: &impl Model, latency: Duration) -> Expected {
        expected(self.measurement, &self.rtt, model, self.rate, latency)
    }
}

impl Reasons {
    /// The least latency that all of them allow.
    fn least(&self, rounds: &Rounds) -> Duration {
        let two_naks = rounds.rtt + rounds.nak_period() * 2 + rounds.detection;
        self.by_rtt.max(self.by_spike).max(self.by_burst).max(two_naks)
    }
}

impl From<Algorithm> for RetransmitAlgorithm {
    fn from(algorithm: Algorithm) -> Self {
        match algorithm {
            Algorithm::Efficient => Self::Efficient,
            Algorithm::Aggressive => Self::Aggressive,
        }
    }
}

/// A link whose round trips or delays change by much is a mobile one, or like one.
fn kind_of(measurement: &Measurement, rtt: &TimeDistribution) -> LinkKind {
    let varied = measurement.delay.variation.is_some_and(|variation| {
        variation.p99.saturating_sub(variation.min) > rtt.median.max(Duration::from_millis(20)) / 2
    });
    let wide = rtt.p95 > rtt.median.mul_f64(1.5) + Duration::from_millis(5);
    if varied || wide || measurement.delay.spikes > 0 || measurement.changes {
        LinkKind::Mobile
    } else {
        LinkKind::Steady
    }
}

pub(crate) fn rounded_up(latency: Duration) -> Duration {
    let grains = latency.as_nanos().div_ceil(GRAIN.as_nanos());
    GRAIN.saturating_mul(u32::try_from(grains).unwrap_or(u32::MAX)).min(LONGEST_LATENCY)
}

pub(crate) const GRAIN: Duration = Duration::from_millis(10);
/// The longest latency that a handshake can carry.
pub(crate) const LONGEST_LATENCY: Duration = Duration::from_millis(65_530);
/// A quarter of the stream, as the SRT cookbook has it, and libsrt by default.
const USUAL_OVERHEAD: f64 = 0.25;
/// Less loss than that lets three round trips do.
const HARDLY_LOSSY: f64 = 0.001;
/// Less reordering than that costs less than waiting for it.
const WORTH_WAITING: f64 = 0.000_5;
const MOST_TOLERANCE: u32 = 1_000;
/// libsrt keeps sent packets for a second at least (draft section 4.6).
const SENDER_KEEPS: Duration = Duration::from_millis(1_020);
/// libsrt's bytes of buffer for a packet.
const BUFFER_UNIT: usize = 1_472;
