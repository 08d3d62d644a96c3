//! How both ends try to recover a lost packet: datagrams of each NAK, copies of each
//! retransmission, and the time from one round to the next.

use std::time::Duration;

use super::super::PathFigures;
use super::super::timed::{DATAGRAMS, LAST_DATAGRAMS, LEAST_MARGIN, apart};

/// The effort of one round of NAK and retransmission.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Effort {
    /// Datagrams in which the NAK is sent, at least 1; one that arrives is enough.
    pub datagrams: u32,
    /// Copies of the retransmission, which is sent one time more than that.
    pub copies: u32,
}

/// The effort of each round.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecoveryEffort {
    usual: Effort,
    last: Effort,
    /// Rounds with an effort of their own, counted from 1.
    chosen: Vec<(u32, Effort)>,
}

/// The time from one round to the next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RoundTiming {
    /// Time beyond a round trip after which a NAK is repeated.
    pub margin: Duration,
    /// Time between two datagrams of a NAK.
    pub spacing: Duration,
    /// Whether a loss is noticed when the next packet comes, or at once.
    pub is_noticed_late: bool,
}

impl Effort {
    /// One datagram, no copy: the paper's rounds.
    pub const ONCE: Self = Self { datagrams: 1, copies: 0 };
}

impl RecoveryEffort {
    /// The rounds of the paper: each NAK is one datagram, each retransmission is sent once.
    pub fn once() -> Self {
        Self { usual: Effort::ONCE, last: Effort::ONCE, chosen: Vec::new() }
    }

    /// The rounds of the deadline-aware algorithm (`docs/retransmission.md`): NAKs in two
    /// datagrams, the last that can be answered in time in four, and this number of copies of its
    /// retransmission.
    pub fn deadline(copies: u32) -> Self {
        let usual = Effort { datagrams: DATAGRAMS, copies: 0 };
        Self { usual, last: Effort { datagrams: LAST_DATAGRAMS, copies }, chosen: Vec::new() }
    }

    /// Makes this effort in rounds that are not chosen and not the last in time.
    #[must_use]
    pub fn with_usual(self, usual: Effort) -> Self {
        Self { usual: usual.valid(), ..self }
    }

    /// Makes this effort in the last round that can be in time.
    #[must_use]
    pub fn with_last(self, last: Effort) -> Self {
        Self { last: last.valid(), ..self }
    }

    /// Makes this effort in one round, counted from 1, whether it is the last or not.
    #[must_use]
    pub fn with_round(mut self, round: u32, effort: Effort) -> Self {
        self.chosen.retain(|(other, _)| *other != round);
        self.chosen.push((round, effort.valid()));
        self
    }

    /// The effort in a round, counted from 1, of which the `last` one can be in time.
    pub fn effort(&self, round: u32, last: u32) -> Effort {
        let chosen = self.chosen.iter().find(|(chosen, _)| *chosen == round);
        let other = if round == last { self.last } else { self.usual };
        chosen.map_or(other, |(_, effort)| *effort)
    }

    /// The effort in rounds that come too late, in which nothing is given up either.
    pub fn usual(&self) -> Effort {
        self.usual
    }
}

impl RoundTiming {
    /// The rounds of the paper: of one round trip each, the first as soon as the packet is missing.
    pub const EXACT: Self =
        Self { margin: Duration::ZERO, spacing: Duration::ZERO, is_noticed_late: false };

    /// The rounds of NAK timers for single packets: a NAK is repeated when a retransmission for the
    /// last datagram of the one before is overdue by four mean deviations of the round-trip time,
    /// at least by a millisecond.
    pub fn timed(path: &PathFigures) -> Self {
        let spacing = apart(path.rtt);
        let margin = (path.jitter * 4).max(LEAST_MARGIN) + spacing;
        Self { margin, spacing, is_noticed_late: true }
    }

    /// The same with another margin; with a margin of zero [`EXACT`](Self::EXACT).
    #[must_use]
    pub fn with_margin(self, margin: Duration) -> Self {
        if margin.is_zero() { Self::EXACT } else { Self { margin, ..self } }
    }
}

impl Effort {
    fn valid(self) -> Self {
        let datagrams = self.datagrams.clamp(1, MOST_DATAGRAMS);
        Self { datagrams, copies: self.copies.min(MOST_COPIES) }
    }
}

/// The most datagrams of a NAK.
pub(crate) const MOST_DATAGRAMS: u32 = 32;
/// The most copies of a retransmission.
pub(crate) const MOST_COPIES: u32 = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chosen_round_keeps_its_effort_even_as_the_last() {
        let three = Effort { datagrams: 1, copies: 3 };
        let recovery = RecoveryEffort::deadline(2).with_round(2, three);
        assert_eq!(recovery.effort(1, 3), Effort { datagrams: 2, copies: 0 });
        assert_eq!(recovery.effort(2, 3), three);
        assert_eq!(recovery.effort(2, 2), three);
        assert_eq!(recovery.effort(3, 3), Effort { datagrams: 4, copies: 2 });
    }

    #[test]
    fn a_nak_has_at_least_one_datagram() {
        let none = Effort { datagrams: 0, copies: 0 };
        let recovery = RecoveryEffort::once().with_usual(none).with_last(none);
        assert_eq!((recovery.effort(1, 2), recovery.effort(2, 2)), (Effort::ONCE, Effort::ONCE));
    }
}
