//! The rounds that fit into a buffer, and the probabilities that their parts are lost.

use std::time::Duration;

use super::super::PathFigures;
use super::super::gilbert::{again, lost_again, lost_later};
use super::super::timed::ACK_PERIOD;
use super::recovery::{RecoveryEffort, RoundTiming};

/// The fate of a missing packet in the round before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Before {
    /// There was no round before: the original was lost.
    Nothing,
    NakLost,
    RetransmissionLost,
}

/// One round: the probabilities that its parts are lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Round {
    /// All datagrams of the NAK: usually, and if the NAK of the round before was lost.
    nak: [f64; 2],
    /// The first transmission: right after the loss of the original, after a lost NAK, and a round
    /// after a lost one.
    first: [f64; 3],
    /// A copy, if the transmission before it was lost.
    pub(super) copy: f64,
    pub(super) copies: u32,
    pub(super) datagrams: u32,
}

/// The rounds that fit into a time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct FittingRounds {
    pub(super) rounds: u32,
    /// The time by which the last retransmission could still come later.
    pub(super) slack: Duration,
}

/// The rounds on a path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule<'a> {
    pub(super) path: &'a PathFigures,
    pub(super) timing: RoundTiming,
    pub(super) recovery: &'a RecoveryEffort,
}

impl Round {
    pub(super) fn nak_lost(&self, before: Before) -> f64 {
        self.nak[usize::from(before == Before::NakLost)]
    }

    pub(super) fn first_lost(&self, before: Before) -> f64 {
        match before {
            Before::Nothing => self.first[0],
            Before::NakLost => self.first[1],
            Before::RetransmissionLost => self.first[2],
        }
    }

    pub(super) fn without_copies(self) -> Self {
        Self { copies: 0, ..self }
    }

    /// The probability that the first transmission of a packet and all its copies are lost.
    pub(super) fn all_lost(&self, before: Before) -> f64 {
        self.first_lost(before) * libm::pow(self.copy, self.copies.into())
    }
}

impl Schedule<'_> {
    /// The rounds whose last retransmission, with all that belongs to it, comes within `time` after
    /// a packet that is missing should have come. `lost` packets in a row are lost, so that the
    /// first of them is noticed so much later.
    pub(super) fn fit(&self, time: Duration, lost: f64) -> FittingRounds {
        let nothing = FittingRounds { rounds: 0, slack: Duration::ZERO };
        let first = self.noticed(lost) + self.path.rtt;
        let Some(left) = time.checked_sub(first) else { return nothing };
        let period = self.period();
        let most = left.as_nanos() / period.as_nanos().max(1) + 1;
        let mut rounds = u32::try_from(most).unwrap_or(u32::MAX).min(MOST_ROUNDS);
        while rounds > 0 {
            let slack = left.saturating_sub(period * (rounds - 1));
            if self.needed(rounds) <= slack {
                return FittingRounds { rounds, slack };
            }
            rounds -= 1;
        }
        nothing
    }

    /// The least time into which this number of rounds fits.
    pub(super) fn time_for(&self, rounds: u32, lost: f64) -> Duration {
        let Some(before) = rounds.checked_sub(1) else { return Duration::ZERO };
        let rounds_before = self.period().saturating_mul(before);
        self.noticed(lost) + self.path.rtt + rounds_before + self.needed(rounds)
    }

    /// The time until a loss of `lost` packets in a row is noticed.
    fn noticed(&self, lost: f64) -> Duration {
        if self.timing.is_noticed_late { self.path.packet.mul_f64(lost) } else { Duration::ZERO }
    }

    /// The time from one NAK to its repetition.
    fn period(&self) -> Duration {
        self.path.rtt + self.timing.margin
    }

    /// The time that the datagrams and copies of a last round take beyond a round trip, if copies
    /// follow each other closely.
    fn needed(&self, last: u32) -> Duration {
        let effort = self.recovery.effort(last, last);
        self.timing.spacing * (effort.datagrams - 1) + self.path.packet * effort.copies
    }

    /// All rounds that fit.
    pub(super) fn rounds(&self, fit: FittingRounds) -> Vec<Round> {
        (1..=fit.rounds).map(|number| self.round(number, fit)).collect()
    }

    /// One of the rounds that fit, counted from 1.
    pub(super) fn round(&self, number: u32, fit: FittingRounds) -> Round {
        let effort = self.recovery.effort(number, fit.rounds);
        // Copies of earlier rounds must come before the NAK would be repeated.
        let spread = if number == fit.rounds { fit.slack * 7 / 8 } else { self.timing.margin };
        self.round_of(effort.datagrams, effort.copies, spread)
    }

    /// A round after the last one in time.
    pub(super) fn late_round(&self) -> Round {
        let usual = self.recovery.usual();
        self.round_of(usual.datagrams, usual.copies, self.timing.margin)
    }

    fn round_of(&self, datagrams: u32, copies: u32, spread: Duration) -> Round {
        let PathFigures { rtt, loss, return_loss, burst, .. } = *self.path;
        let [there, back] = [loss, return_loss].map(|loss| again(loss, burst));
        // Each datagram on the way back has ACKs, and NAKs of other runs, between it and the one
        // before.
        let reports = self.reports_per_second();
        let behind =
            |time: Duration| lost_again(return_loss, back, 1.0 + time.as_secs_f64() * reports);
        let further = libm::pow(behind(self.timing.spacing), f64::from(datagrams) - 1.0);
        let after = |time: Duration| lost_again(loss, there, self.packets_in(time));
        // The packet by which a loss is noticed arrived, so that the bad state had ended.
        let first = if self.timing.is_noticed_late {
            lost_later(loss, there, self.packets_in(rtt))
        } else {
            after(rtt)
        };
        Round {
            nak: [return_loss * further, behind(self.period()) * further],
            first: [first, loss, after(self.period())],
            copy: after(spread / copies.max(1)),
            copies,
            datagrams,
        }
    }

    /// The datagrams on the way back in a second: ACKs, and for each run of losses a NAK.
    fn reports_per_second(&self) -> f64 {
        let runs = self.path.loss / self.path.burst / self.path.packet.as_secs_f64().max(1e-9);
        1.0 / ACK_PERIOD.as_secs_f64() + runs * f64::from(self.recovery.usual().datagrams)
    }

    fn packets_in(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.path.packet.as_secs_f64().max(1e-9)
    }
}

/// More rounds are not reckoned with: they would make hardly a difference.
const MOST_ROUNDS: u32 = 200;

#[cfg(test)]
mod tests {
    use punctual_units::Bitrate;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn path() -> PathFigures {
        let path = PathFigures::new(MS(200), Duration::ZERO, Bitrate::from_mbps(10), 1_250);
        path.and_then(|path| path.with_loss(0.02, 0.02, 1.0)).expect("a path")
    }

    #[test]
    fn rounds_of_the_paper_fit_as_often_as_round_trips() {
        let (path, recovery) = (path(), RecoveryEffort::once());
        let schedule = Schedule { path: &path, timing: RoundTiming::EXACT, recovery: &recovery };
        let rounds = |ms| schedule.fit(MS(ms), 1.0).rounds;
        assert_eq!([199, 200, 399, 400, 500, 1_000].map(rounds), [0, 1, 1, 2, 2, 5]);
    }

    #[test]
    fn a_buffer_of_whole_round_trips_has_a_round_fewer_than_it_seems() {
        let path = path();
        let recovery = RecoveryEffort::deadline(3);
        let timing = RoundTiming::timed(&path);
        let schedule = Schedule { path: &path, timing, recovery: &recovery };
        // 1 ms to notice a loss, 200 ms a round trip, 206 ms from round to round; 15 ms for four
        // datagrams of the last NAK, and 3 ms for its copies.
        let rounds = |ms| schedule.fit(MS(ms), 1.0).rounds;
        assert_eq!([400, 424, 425, 600, 630, 631].map(rounds), [1, 1, 2, 2, 2, 3]);
        assert_eq!(schedule.fit(MS(500), 1.0).slack, MS(93));
        assert_eq!(schedule.fit(MS(425), 10.0).rounds, 1);
    }

    #[test]
    fn without_bursts_every_part_is_lost_with_its_share() {
        let (path, recovery) = (path(), RecoveryEffort::deadline(3));
        let schedule =
            Schedule { path: &path, timing: RoundTiming::timed(&path), recovery: &recovery };
        let fit = schedule.fit(MS(500), 1.0);
        let last = schedule.round(2, fit);
        for before in [Before::Nothing, Before::NakLost, Before::RetransmissionLost] {
            assert!((last.nak_lost(before) - 1.6e-7).abs() < 1e-20, "{last:?}");
            assert!((last.all_lost(before) - 1.6e-7).abs() < 1e-20, "{last:?}");
        }
        assert!((schedule.round(1, fit).nak_lost(Before::Nothing) - 4e-4).abs() < 1e-18);
    }
}
