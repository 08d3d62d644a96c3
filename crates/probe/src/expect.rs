//! The loss to be expected of a stream.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::events::LossEvent;
use crate::measurement::{Measurement, TimeDistribution};
use crate::model::{Rounds, TimedRounds};
use crate::step::float;

/// The loss to be expected of a stream with the recommended settings, on a link as it was measured.
///
/// On a link that does not change, these are the losses that cannot be recovered within the
/// latency, by the model of [`model`](crate::model). On one that changes, packets also come too
/// late because the link has too little capacity at times. That is estimated from the seconds that
/// were watched with at least the stream's rate: the part of the stream that would have been late
/// in them, and half a second more (half an event of a second), because so few seconds do not show
/// everything. These figures are means over good and bad times: a stream that meets no bad time
/// does better, one that meets several does worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Share of packets that come too late or never.
    pub share: f64,
    /// The upper end of the 95 % interval of that.
    pub at_most: f64,
    /// The part of `share` that was measured: the latency could still change it.
    pub seen: f64,
    /// Retransmissions that there is time for.
    pub rounds: u32,
}

/// A model of the recovery of lost packets.
pub(crate) trait Model: Copy {
    /// The round trip that it reckons with.
    fn rtt(&self) -> Duration;
    /// The number of rounds that fit into `time`.
    fn within(&self, time: Duration) -> u32;
    /// The probability that a lost packet is still missing after `time`.
    fn missing_after(&self, time: Duration) -> f64;
    /// The same model with this round trip.
    fn with_rtt(self, rtt: Duration) -> Self;
    /// The model of a link that is worse than the measured one.
    fn unlucky(self) -> Self;
}

impl Model for Rounds {
    fn rtt(&self) -> Duration {
        self.rtt
    }

    fn within(&self, time: Duration) -> u32 {
        Self::within(self, time)
    }

    fn missing_after(&self, time: Duration) -> f64 {
        Self::missing_after(self, time)
    }

    fn with_rtt(self, rtt: Duration) -> Self {
        Self { rtt, ..self }
    }

    fn unlucky(self) -> Self {
        Self {
            rtt_variance: self.rtt_variance.mul_f64(1.25),
            loss: worse(self.loss, 0.01),
            nak_loss: worse(self.nak_loss, 0.01),
            nak_loss_again: worse(self.nak_loss_again, 0.02),
            ..self
        }
    }
}

/// The deadline-aware algorithm with this number of copies of each last retransmission.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    pub(crate) rounds: TimedRounds,
    pub(crate) copies: u32,
}

impl Model for Timed {
    fn rtt(&self) -> Duration {
        self.rounds.rtt
    }

    fn within(&self, time: Duration) -> u32 {
        self.rounds.within(time)
    }

    fn missing_after(&self, time: Duration) -> f64 {
        self.rounds.outcome(time, self.copies).missing
    }

    fn with_rtt(self, rtt: Duration) -> Self {
        let least_rtt = self.rounds.least_rtt.min(rtt);
        Self { rounds: TimedRounds { rtt, least_rtt, ..self.rounds }, ..self }
    }

    fn unlucky(self) -> Self {
        let usual = self.rounds;
        let rounds = TimedRounds {
            rtt_variance: usual.rtt_variance.mul_f64(1.25),
            loss: worse(usual.loss, 0.01),
            loss_again: worse(usual.loss_again, 0.02),
            nak_loss: worse(usual.nak_loss, 0.01),
            nak_loss_again: worse(usual.nak_loss_again, 0.02),
            ..usual
        };
        Self { rounds, ..self }
    }
}

/// A share that was measured, if that was a lucky time.
fn worse(share: f64, more: f64) -> f64 {
    (share * 1.25 + more).min(1.0)
}

/// The loss to be expected of a stream of this rate at this latency, by this model.
pub(crate) fn expected(
    measurement: &Measurement,
    rtt: &TimeDistribution,
    usual: &impl Model,
    rate: Bitrate,
    latency: Duration,
) -> Expected {
    let loss = &measurement.losses.total;
    let unlucky = usual.unlucky().with_rtt(rtt.p99);
    let packets = float(loss.packets.max(1));
    let late = late(measurement, rate, latency);
    let seen = missing(measurement, usual, latency, 1.0) / packets + late.seen;
    let more = loss.interval.1 / loss.share.max(1.0 / packets);
    let lost_at_most =
        missing(measurement, &unlucky, latency, 1.25) / packets * more.max(1.0) + 3.0 / packets;
    Expected {
        share: (seen + late.unseen).min(1.0),
        at_most: (lost_at_most + late.at_most).min(1.0),
        seen: seen.min(1.0),
        rounds: usual.within(latency),
    }
}

/// Packets that stay lost: each loss that was seen has the time that is left of the latency when
/// packets come through again, and its own round trip.
fn missing(measurement: &Measurement, model: &impl Model, latency: Duration, stretch: f64) -> f64 {
    let of_event = |event: LossEvent| {
        let rtt = event.rtt.unwrap_or_default().max(model.rtt());
        let left = latency.saturating_sub(event.span.mul_f64(stretch));
        float(event.packets) * model.with_rtt(rtt).missing_after(left)
    };
    measurement.losses.events.iter().map(of_event).sum()
}

/// Shares that are late because the link has no room at times.
#[derive(Clone, Copy, Debug, Default)]
struct Late {
    seen: f64,
    unseen: f64,
    at_most: f64,
}

fn late(measurement: &Measurement, rate: Bitrate, latency: Duration) -> Late {
    if !measurement.changes {
        return Late::default();
    }
    let replay = measurement.history.replay(rate, latency);
    let seconds = replay.seconds.max(1.0);
    let times = float(replay.times);
    let each = (replay.late / times.max(1.0)).max(UNSEEN);
    Late {
        seen: replay.late / seconds,
        unseen: UNSEEN / 2.0 / (seconds + 1.0),
        at_most: (most_events(replay.times) * each / seconds).min(1.0),
    }
}

/// The upper end of the 95 % interval of a mean number of events, if `seen` of them were seen:
/// three if there were none, and otherwise the cube-root form of the exact Poisson limit (E. B.
/// Wilson and M. M. Hilferty, The distribution of chi-square, 1931).
fn most_events(seen: u64) -> f64 {
    if seen == 0 {
        return 3.0;
    }
    let more = float(seen + 1);
    more * libm::pow(1.0 - 1.0 / (9.0 * more) + 1.96 / (3.0 * more.sqrt()), 3.0)
}

/// The part of a stream that a worse event than those seen costs, in seconds.
const UNSEEN: f64 = 1.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_were_not_seen_may_have_been_three() {
        assert_eq!(most_events(0).to_bits(), 3.0_f64.to_bits());
        // The exact limits are 5.57 and 18.39.
        assert!((most_events(1) - 5.57).abs() < 0.05, "{}", most_events(1));
        assert!((most_events(10) - 18.39).abs() < 0.05, "{}", most_events(10));
    }
}
