//! What the link made of each rate that was tried, and what follows from all of them.

use super::{Going, Probe};
use crate::measurement::{Limit, Verdict};
use crate::step::{Baseline, Sample, Step, float};

impl Probe {
    /// Judges the steps whose samples have come; whether the present one is too much.
    pub(super) fn judge(&mut self) -> bool {
        let mut congested = false;
        for index in self.judged..self.steps.len() {
            let step = &mut self.steps[index];
            if let Some(sign) = step.congested_early() {
                let at = step.rate;
                if !step.soak {
                    self.limit.get_or_insert(Limit::Congested { at, sign });
                }
            }
            congested |= matches!(self.steps[index].verdict, Verdict::Congested(_));
        }
        congested
    }

    /// Takes in a sample at its step, and concludes the steps before that.
    pub(super) fn take(&mut self, sample: &Sample) {
        let Some(index) = self.steps.iter().rposition(|step| step.covers(sample.at)) else {
            return;
        };
        self.conclude_before(index);
        let base = self.base;
        self.steps[index].take(sample, base.as_ref());
    }

    pub(super) fn conclude_before(&mut self, index: usize) {
        while self.judged < index {
            let base = self.base;
            let step = &mut self.steps[self.judged];
            step.conclude(base.as_ref());
            self.judged += 1;
            let (at, verdict, soak) = (step.rate, step.verdict, step.soak);
            match verdict {
                Verdict::Congested(sign) if !soak => {
                    // A limit that only time set was none.
                    match self.limit {
                        Some(Limit::Congested { .. }) => {}
                        _ => self.limit = Some(Limit::Congested { at, sign }),
                    }
                }
                Verdict::Clear if !soak && self.going != Going::Soak => {
                    self.usable = Some(self.usable.map_or(at, |usable| usable.max(at)));
                    self.rebase();
                }
                _ => {}
            }
        }
    }

    pub(super) fn conclude_steps(&mut self) {
        self.conclude_before(self.steps.len());
    }

    /// What the clear steps say together.
    fn rebase(&mut self) {
        let clear = || self.steps.iter().filter(|step| step.verdict == Verdict::Clear);
        let lost: u64 = clear().map(|step| step.lost.saturating_sub(step.reordered)).sum();
        let received: u64 = clear().map(|step| step.received).sum();
        let delay = clear().filter_map(Step::delay).min();
        let rtt = clear().filter_map(Step::rtt).min();
        if let (Some(delay), Some(rtt)) = (delay, rtt) {
            let loss = float(lost) / float(received.max(1));
            self.base = Some(Baseline { loss, delay, rtt });
        }
    }

    /// What is usable, after all that was judged: no more than what lies below the lowest rate that
    /// was too much, and less if the recommended rate was too much after all.
    pub(super) fn settle_usable(&mut self) {
        let ramp = || self.steps.iter().filter(|step| !step.soak);
        let too_much = ramp()
            .filter(|step| matches!(step.verdict, Verdict::Congested(_)))
            .map(|step| step.rate)
            .min();
        let mut usable = ramp()
            .filter(|step| step.verdict == Verdict::Clear)
            .map(|step| step.rate)
            .filter(|&rate| too_much.is_none_or(|too_much| rate < too_much))
            .max();
        for step in self.steps.iter().filter(|step| step.soak) {
            if matches!(step.verdict, Verdict::Congested(_)) {
                usable = usable.map(|usable| usable.min(step.rate));
            }
        }
        self.usable = usable;
    }
}
