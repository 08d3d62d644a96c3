//! A token-bucket policer on the path, which lets bursts pass and then drops packets.

use punctual_units::Instant;

use crate::congestion::PathView;
use crate::congestion::to_f64;

/// Finds the rate of a policer: two intervals of 4 to 16 rounds in which at least a fifth of the
/// bytes was lost, and whose rates differ by less than an eighth or 4000 bytes a second. The rate
/// then holds for 48 rounds. (Linux `tcp_bbr`: "long-term" bandwidth.)
#[derive(Clone, Debug, Default)]
pub(super) struct Policer {
    /// The rate of the interval before, bytes a second.
    rate: Option<u64>,
    applies: bool,
    is_sampling: bool,
    interval: Interval,
    rounds: u32,
    lost_before_round: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    began: Instant,
    delivered: u64,
    lost: u64,
}

impl Policer {
    /// The rate of the policer in bytes a second, if there is one.
    pub(super) fn rate(&self) -> Option<u64> {
        self.rate.filter(|_| self.applies)
    }

    /// Follows an acknowledgement. True if the rate no longer holds, so that probing for bandwidth
    /// begins again.
    pub(super) fn update(
        &mut self,
        path: &PathView,
        is_round_start: bool,
        is_probing: bool,
    ) -> bool {
        if self.applies {
            self.rounds += u32::from(is_probing && is_round_start);
            let is_over = self.rounds > HOLDS;
            if is_over {
                self.reset(path);
            }
            return is_over;
        }
        let lost_in_round = path.bytes_lost > self.lost_before_round;
        if !self.is_sampling {
            if !lost_in_round {
                return false;
            }
            self.reset(path);
            self.is_sampling = true;
        }
        if path.is_rate_limited {
            self.reset(path);
            return false;
        }
        if !is_round_start {
            return false;
        }
        self.rounds += 1;
        self.lost_before_round = path.bytes_lost;
        if self.rounds > LONGEST {
            self.reset(path);
        } else if self.rounds >= SHORTEST && lost_in_round {
            self.end_interval(path);
        }
        false
    }

    /// Compares the rate of the interval with that of the one before, if enough was lost in it.
    fn end_interval(&mut self, path: &PathView) {
        let delivered = path.delivered.saturating_sub(self.interval.delivered);
        let lost = path.bytes_lost.saturating_sub(self.interval.lost);
        let seconds = path.now.saturating_since(self.interval.began).as_secs_f64();
        if delivered == 0 || to_f64(lost) < LOST * to_f64(delivered) || seconds < 0.001 {
            return;
        }
        let rate = super::to_bytes(to_f64(delivered) / seconds);
        if let Some(before) = self.rate {
            let difference = rate.abs_diff(before);
            if difference * 8 < before || difference < CLOSE {
                self.rate = Some(rate.midpoint(before));
                self.applies = true;
                self.rounds = 0;
                return;
            }
        }
        self.rate = Some(rate);
        self.begin_interval(path);
    }

    fn reset(&mut self, path: &PathView) {
        (self.rate, self.applies, self.is_sampling) = (None, false, false);
        self.begin_interval(path);
    }

    fn begin_interval(&mut self, path: &PathView) {
        self.interval =
            Interval { began: path.now, delivered: path.delivered, lost: path.bytes_lost };
        self.lost_before_round = path.bytes_lost;
        self.rounds = 0;
    }
}

/// Rounds of an interval, at least and at most.
const SHORTEST: u32 = 4;
const LONGEST: u32 = 16;
/// Rounds for which a rate holds.
const HOLDS: u32 = 48;
/// The least share of lost bytes.
const LOST: f64 = 205.0 / 1_024.0;
/// Rates that differ by less are equal, bytes a second.
const CLOSE: u64 = 4_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::testing::path;

    /// Rounds of 100 ms that deliver 10,000 bytes and lose some.
    fn rounds(policer: &mut Policer, rounds: std::ops::Range<u64>, lost: u64) -> bool {
        let mut ended = false;
        for round in rounds {
            let view = PathView {
                delivered: round * 10_000,
                bytes_lost: round * lost,
                ..path(round * 100)
            };
            ended |= policer.update(&view, true, true);
        }
        ended
    }

    #[test]
    fn two_like_intervals_with_many_losses_are_a_policer_for_48_rounds() {
        let mut policer = Policer::default();
        rounds(&mut policer, 1..12, 3_000);
        assert_eq!(policer.rate(), Some(100_000));
        assert!(rounds(&mut policer, 12..70, 0));
        assert_eq!(policer.rate(), None);
    }

    #[test]
    fn few_losses_are_no_policer() {
        let mut policer = Policer::default();
        rounds(&mut policer, 1..200, 1_000);
        assert_eq!(policer.rate(), None);
    }
}
