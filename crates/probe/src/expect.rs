//! What will stay lost of a stream.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::events::LossEvent;
use crate::measurement::{Distribution, Measurement};
use crate::model::Rounds;
use crate::step::float;

/// What will stay lost of a stream that is set up as recommended, on a link as it was measured.
///
/// On a link that does not change, that is what was lost and cannot be brought back within the
/// latency, by the model of [`model`](crate::model). On one that changes there is also what comes
/// too late because the link has no room for it at times. The seconds that were watched with at
/// least the stream's rate tell of that: what would have been late in them, and, because so few
/// seconds do not show all, half a second more (half an event of a second). These
/// figures are means over the link's moods: a stream that meets none of the bad times does
/// better, one that meets several does worse.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Share of packets that come too late or never.
    pub share: f64,
    /// The upper end of the 95 % interval of that.
    pub at_most: f64,
    /// The part of `share` that was seen: what the latency could still change.
    pub seen: f64,
    /// Retransmissions that there is time for.
    pub rounds: u32,
}

/// What stays lost of a stream of this rate at this latency, with these rounds.
pub(crate) fn expected(
    measurement: &Measurement,
    rtt: &Distribution,
    usual: &Rounds,
    rate: Bitrate,
    latency: Duration,
) -> Expected {
    let loss = &measurement.loss;
    let unlucky = Rounds {
        rtt: rtt.p99,
        rtt_variance: usual.rtt_variance.mul_f64(1.25),
        loss: (usual.loss * 1.25 + 0.01).min(1.0),
        report_loss: (usual.report_loss * 1.25 + 0.01).min(1.0),
        report_loss_again: (usual.report_loss_again * 1.25 + 0.02).min(1.0),
        ..*usual
    };
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
fn missing(measurement: &Measurement, rounds: &Rounds, latency: Duration, stretch: f64) -> f64 {
    let of_event = |event: LossEvent| {
        let rtt = event.rtt.unwrap_or_default().max(rounds.rtt);
        let rounds = Rounds { rtt, ..*rounds };
        let left = latency.saturating_sub(event.span.mul_f64(stretch));
        float(event.packets) * rounds.missing_after(left)
    };
    measurement.events.iter().map(of_event).sum()
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
    let replay = measurement.course.replay(rate, latency);
    let seconds = replay.seconds.max(1.0);
    let times = float(replay.times);
    let each = (replay.late / times.max(1.0)).max(UNSEEN);
    Late {
        seen: replay.late / seconds,
        unseen: UNSEEN / 2.0 / (seconds + 1.0),
        at_most: (most_events(replay.times) * each / seconds).min(1.0),
    }
}

/// The upper end of the 95 % interval of a mean count of events of which so many were seen: three
/// for none, and otherwise the cube-root form of the exact Poisson limit (E. B. Wilson and M. M.
/// Hilferty, The distribution of chi-square, 1931).
fn most_events(seen: u64) -> f64 {
    if seen == 0 {
        return 3.0;
    }
    let more = float(seen + 1);
    more * (1.0 - 1.0 / (9.0 * more) + 1.96 / (3.0 * more.sqrt())).powi(3)
}

/// How much of a stream an event costs that is worse than those that were seen, in seconds.
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
