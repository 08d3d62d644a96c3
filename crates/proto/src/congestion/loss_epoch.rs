use punctual_wire::SeqNo;

use crate::chance::Chance;

/// The largest number of decreases of the rate in one epoch.
const DECREASES: u32 = 5;

/// The epochs of NAKs in file congestion control (draft-gg-udt-03 section 4). An epoch begins with
/// the first loss of a packet that was sent after the last decrease of the rate, and the rate
/// decreases at most five times in it.
#[derive(Debug)]
pub(super) struct LossEpoch {
    /// A loss after this number begins a new epoch.
    last_decrease: SeqNo,
    /// The number of NAKs in this epoch, and the mean number in an epoch.
    reports: u32,
    mean_reports: f64,
    /// The rate decreases at each NAK whose number in the epoch is a multiple of this.
    decrease_each: u32,
    /// The number of NAKs in this epoch that could cause a decrease.
    decreases: u32,
    chance: Chance,
}

impl LossEpoch {
    /// The state before the first loss. The first packet has number `isn`.
    pub(super) fn new(isn: SeqNo, chance: Chance) -> Self {
        Self {
            last_decrease: isn.minus(1),
            reports: 0,
            mean_reports: 0.0,
            decrease_each: 1,
            decreases: 0,
            chance,
        }
    }

    /// Whether the loss of `first` begins a new epoch.
    pub(super) fn is_ended_by(&self, first: SeqNo) -> bool {
        first.is_after(self.last_decrease)
    }

    /// A new epoch begins with a NAK and a decrease.
    pub(super) fn begin(&mut self, next_new: SeqNo) {
        self.decreased(next_new);
        self.mean_reports = (self.mean_reports * 0.97 + f64::from(self.reports) * 0.03).ceil();
        self.reports = 1;
        self.decreases = 1;
        // The random choice keeps senders that share a queue from slowing down all at once.
        self.decrease_each = if self.mean_reports > 1.0 {
            #[expect(clippy::cast_possible_truncation, reason = "a mean of u32")]
            #[expect(clippy::cast_sign_loss, reason = "checked just above")]
            let most = self.mean_reports as u32;
            1 + self.chance.number() % most
        } else {
            1
        };
    }

    /// Another NAK came in this epoch. Returns whether the rate is to decrease.
    pub(super) fn report(&mut self) -> bool {
        let may = self.decreases < DECREASES;
        self.decreases += 1;
        self.reports += u32::from(may);
        may && self.reports.is_multiple_of(self.decrease_each)
    }

    /// The rate decreased before `next_new` was sent.
    pub(super) fn decreased(&mut self, next_new: SeqNo) {
        self.last_decrease = next_new.minus(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_five_decreases_and_ends_with_a_later_loss() {
        let mut epoch = LossEpoch::new(SeqNo::new(1_000), Chance::new([1; 32]));
        assert!(epoch.is_ended_by(SeqNo::new(1_000)), "nothing was lost before");
        epoch.begin(SeqNo::new(1_100));
        assert!(!epoch.is_ended_by(SeqNo::new(1_099)));
        assert_eq!((0..9).filter(|_| epoch.report()).count(), 4, "the first began the epoch");
        assert!(epoch.is_ended_by(SeqNo::new(1_100)));
    }

    #[test]
    fn after_epochs_of_many_naks_not_every_nak_slows_down() {
        let mut epoch = LossEpoch::new(SeqNo::new(0), Chance::new([7; 32]));
        let mut decreases = 0;
        for i in 0..1_000 {
            epoch.begin(SeqNo::new(i));
            decreases += (0..4).filter(|_| epoch.report()).count();
        }
        // The mean number of NAKs is rounded up to 5, so that between every NAK and every fifth one
        // counts.
        assert!((800..2_000).contains(&decreases), "{decreases}");
    }
}
