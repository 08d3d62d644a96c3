//! The rates that were tried, their verdicts, and the usable rate that follows from them.

use std::time::Duration;

use punctual_units::Bitrate;

use super::recommended;
use crate::history;
use crate::measurement::{Limit, RateVerdict, StepKind, StepResult};
use crate::report::Totals;
use crate::step::{Baseline, Sample, SenderTotals, Step, float};
use crate::summary;

/// The steps of a probe in their order. Only the last one may be under way.
#[derive(Debug, Default)]
pub(crate) struct Trials {
    steps: Vec<Step>,
    /// Number of steps with a final verdict: the first ones.
    concluded: usize,
    base: Option<Baseline>,
    usable: Option<Bitrate>,
    limit: Option<Limit>,
}

impl Trials {
    pub(super) fn begin(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Sending at the present rate ends.
    pub(super) fn end(&mut self, at: Duration) {
        if let Some(step) = self.steps.last_mut() {
            step.end(at);
        }
    }

    pub(crate) fn all(&self) -> &[Step] {
        &self.steps
    }

    pub(super) fn last(&self) -> Option<&Step> {
        self.steps.last()
    }

    /// Takes in a sample at its step, and concludes the steps before that.
    pub(super) fn take(&mut self, sample: &Sample) {
        if let Some(index) = self.steps.iter().rposition(|step| step.covers(sample.at)) {
            self.conclude_before(index);
            self.steps[index].take(sample, self.base.as_ref());
        }
    }

    /// Takes in the receiver's totals at `at`.
    pub(super) fn note_receiver(&mut self, at: Duration, totals: &Totals) {
        if let Some(step) = self.steps.iter_mut().rev().find(|step| step.covers(at)) {
            step.note_receiver(totals);
        }
    }

    /// Takes in the sender's totals before the present look and at it.
    pub(super) fn note_sender(&mut self, before: SenderTotals, now: SenderTotals) {
        if let Some(step) = self.steps.last_mut().filter(|step| step.is_under_way()) {
            step.note_sender(before, now);
        }
    }

    /// Judges the steps without a final verdict. Returns whether one of them is congested.
    pub(super) fn judge(&mut self) -> bool {
        let mut congested = false;
        for step in &mut self.steps[self.concluded..] {
            if let Some(sign) = step.congested_early()
                && step.kind() == StepKind::Ramp
            {
                self.limit.get_or_insert(Limit::Congested { at: step.rate(), sign });
            }
            congested |= step.is_congested();
        }
        congested
    }

    /// Gives every step its final verdict, and settles the usable rate by them: it is below the
    /// lowest rate of the ramp that was too much, and no higher than a recommended rate that was
    /// too much when it was sustained.
    pub(super) fn conclude_all(&mut self) {
        self.conclude_before(self.steps.len());
        let mut usable = highest_below_failure(self.of_kind(StepKind::Ramp));
        for step in self.of_kind(StepKind::Sustained).filter(|step| step.is_congested()) {
            usable = usable.map(|usable| usable.min(step.rate()));
        }
        self.usable = usable;
    }

    /// The highest rate that is known to be usable.
    pub(super) fn usable(&self) -> Option<Bitrate> {
        self.usable
    }

    /// Why no higher rate is known to be usable.
    pub(super) fn limit(&self) -> Option<Limit> {
        self.limit
    }

    pub(super) fn set_limit(&mut self, limit: Limit) {
        self.limit = Some(limit);
    }

    /// Sets the limit if there is none.
    pub(super) fn set_default_limit(&mut self, limit: Limit) {
        self.limit.get_or_insert(limit);
    }

    pub(super) fn lowest_rate(&self) -> Option<Bitrate> {
        self.steps.iter().map(Step::rate).min()
    }

    /// The number of sustained steps that the link carried.
    pub(super) fn sustained_clear(&self) -> usize {
        self.of_kind(StepKind::Sustained)
            .filter(|step| step.verdict() == RateVerdict::Clear)
            .count()
    }

    /// The highest rate that was carried whenever it was sustained.
    pub(crate) fn sustained(&self) -> Option<Bitrate> {
        highest_below_failure(self.of_kind(StepKind::Sustained))
    }

    /// Whether the link changes from second to second, at rates without congestion.
    pub(crate) fn link_changes(&self) -> bool {
        let clear = self.representative();
        self.of_kind(StepKind::Sustained).any(Step::is_congested)
            || summary::events(&clear).longest() >= OUTAGE
            || history::changes(&clear)
    }

    /// The steps that show the link as it is at the rate that is going to be recommended: those up
    /// to it without congestion, or as near to that as there are.
    pub(crate) fn representative(&self) -> Vec<&Step> {
        let rate = self.usable.map_or(Bitrate::ZERO, recommended);
        let clear = || self.steps.iter().filter(|step| !step.is_congested());
        let low: Vec<&Step> = clear().filter(|step| step.rate() <= rate).collect();
        if !low.is_empty() {
            return low;
        }
        let clear: Vec<&Step> = clear().collect();
        if clear.is_empty() { self.steps.iter().collect() } else { clear }
    }

    pub(crate) fn results(&self) -> Vec<StepResult> {
        self.steps.iter().map(Step::result).collect()
    }

    /// Number of steps with a final verdict: the first ones.
    pub(super) fn concluded(&self) -> usize {
        self.concluded
    }

    fn of_kind(&self, kind: StepKind) -> impl Iterator<Item = &Step> + Clone {
        self.steps.iter().filter(move |step| step.kind() == kind)
    }

    fn conclude_before(&mut self, index: usize) {
        while self.concluded < index {
            let step = &mut self.steps[self.concluded];
            step.conclude(self.base.as_ref());
            self.concluded += 1;
            let (at, verdict) = (step.rate(), step.verdict());
            if step.kind() == StepKind::Sustained {
                continue;
            }
            match verdict {
                // A limit that only time had set gives way.
                RateVerdict::Congested(sign)
                    if !matches!(self.limit, Some(Limit::Congested { .. })) =>
                {
                    self.limit = Some(Limit::Congested { at, sign });
                }
                RateVerdict::Clear => {
                    self.usable = Some(self.usable.map_or(at, |usable| usable.max(at)));
                    self.rebase();
                }
                RateVerdict::Congested(_) | RateVerdict::Unfinished => {}
            }
        }
    }

    /// Computes the baseline from the clear steps.
    fn rebase(&mut self) {
        let clear = || self.steps.iter().filter(|step| step.verdict() == RateVerdict::Clear);
        let lost: u64 = clear().map(|step| step.counts().lost()).sum();
        let received: u64 = clear().map(|step| step.counts().received).sum();
        let delay = clear().filter_map(Step::delay).min();
        let rtt = clear().filter_map(Step::rtt).min();
        if let (Some(delay), Some(rtt)) = (delay, rtt) {
            let loss = float(lost) / float(received.max(1));
            self.base = Some(Baseline { loss, delay, rtt });
        }
    }
}

/// The highest rate that was carried, below the lowest one that was not.
fn highest_below_failure<'a>(steps: impl Iterator<Item = &'a Step> + Clone) -> Option<Bitrate> {
    let too_much = steps.clone().filter(|step| step.is_congested()).map(Step::rate).min();
    steps
        .filter(|step| step.verdict() == RateVerdict::Clear)
        .map(Step::rate)
        .filter(|&rate| too_much.is_none_or(|too_much| rate < too_much))
        .max()
}

/// A run of losses as long as that is an outage.
const OUTAGE: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Congestion;
    use crate::step::{Load, PacketCounts};

    const SECS: fn(u64) -> Duration = Duration::from_secs;

    /// Tries a rate for 10 s, of which this share of the packets arrives.
    fn try_rate(trials: &mut Trials, mbps: u64, kind: StepKind, share: f64) {
        let from = SECS(trials.all().len() as u64 * 10);
        let load = Load::new(Bitrate::from_mbps(mbps), 1_000);
        trials.begin(Step::new(load, from, SECS(10), kind));
        #[expect(clippy::cast_possible_truncation, reason = "a few thousand")]
        #[expect(clippy::cast_sign_loss, reason = "both are positive")]
        let received = (load.packets_in(Duration::from_millis(100)) * share) as u64;
        for tenth in 0..100 {
            let counts = PacketCounts { received, ..PacketCounts::default() };
            let at = from + Duration::from_millis(tenth * 100);
            trials.take(&Sample { at, rtt: Some(20_000), counts, ..Sample::default() });
            trials.judge();
        }
        trials.end(from + SECS(10));
    }

    #[test]
    fn the_usable_rate_is_below_the_lowest_one_that_was_too_much() {
        let mut trials = Trials::default();
        for (mbps, share) in [(2, 1.0), (4, 1.0), (6, 0.5), (8, 1.0)] {
            try_rate(&mut trials, mbps, StepKind::Ramp, share);
        }
        trials.conclude_all();
        assert_eq!((trials.usable(), trials.concluded()), (Some(Bitrate::from_mbps(4)), 4));
        let limit = trials.limit().expect("a rate was too much");
        let Limit::Congested { at, sign } = limit else { panic!("{limit:?}") };
        assert_eq!(at, Bitrate::from_mbps(6));
        assert!(matches!(sign, Congestion::Throughput { .. }), "{sign:?}");
    }

    #[test]
    fn a_sustained_rate_that_was_too_much_lowers_the_usable_one() {
        let mut trials = Trials::default();
        try_rate(&mut trials, 10, StepKind::Ramp, 1.0);
        try_rate(&mut trials, 8, StepKind::Sustained, 0.5);
        try_rate(&mut trials, 6, StepKind::Sustained, 1.0);
        trials.conclude_all();
        assert_eq!(trials.usable(), Some(Bitrate::from_mbps(8)));
        assert_eq!(trials.sustained(), Some(Bitrate::from_mbps(6)));
        assert!(trials.link_changes(), "it carried 10 Mb/s once");
        assert_eq!((trials.limit(), trials.sustained_clear()), (None, 1));
    }

    #[test]
    fn a_limit_set_by_time_gives_way_to_congestion() {
        let mut trials = Trials::default();
        try_rate(&mut trials, 2, StepKind::Ramp, 1.0);
        trials.set_limit(Limit::Time);
        trials.set_default_limit(Limit::Stopped);
        assert_eq!(trials.limit(), Some(Limit::Time));
        trials.begin(Step::new(
            Load::new(Bitrate::from_mbps(4), 1_000),
            SECS(10),
            SECS(10),
            StepKind::Ramp,
        ));
        trials.take(&Sample { at: SECS(12), ..Sample::default() });
        trials.conclude_all();
        assert!(matches!(trials.limit(), Some(Limit::Congested { .. })), "{:?}", trials.limit());
    }

    #[test]
    fn only_steps_without_congestion_represent_the_link() {
        let mut trials = Trials::default();
        assert!(trials.representative().is_empty());
        for (mbps, share) in [(4, 1.0), (5, 1.0), (6, 0.5)] {
            try_rate(&mut trials, mbps, StepKind::Ramp, share);
        }
        trials.conclude_all();
        let rates: Vec<Bitrate> = trials.representative().iter().map(|s| s.rate()).collect();
        assert_eq!(rates, [Bitrate::from_mbps(4)], "4 Mb/s are recommended");
    }
}
