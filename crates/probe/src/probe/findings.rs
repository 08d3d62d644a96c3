//! What a probe has found out.

use std::time::Duration;

use punctual_units::Bitrate;

use super::{Probe, recommended};
use crate::capacity;
use crate::course::{self, Course};
use crate::measurement::{Limit, Measurement, Peer, Verdict};
use crate::step::{Step, median};
use crate::summary;

impl Probe {
    /// What was found out.
    pub fn measurement(&self) -> Measurement {
        let at_ease: Vec<&Step> = self.at_ease();
        let peer = self.peer.unwrap_or(Peer::Other);
        let rtt = summary::rtt(&at_ease);
        let events = summary::events(&at_ease);
        let loss = summary::loss(&at_ease);
        let rtt_variance = median(&self.far.rtt_variances)
            .map_or(self.own.rtt_variance, |us| Duration::from_micros(us.into()));
        let reported = |step: &[&Step]| peer == Peer::Punctual && !step.is_empty();
        let limit = self.limit.unwrap_or(Limit::Stopped);
        let told = match peer {
            Peer::Punctual => self.far.capacity,
            Peer::Other => self.own.link_capacity,
        };
        let capacity = capacity::believed(told, self.usable, limit);
        let mut missing = summary::missing(peer, &at_ease);
        missing.extend(capacity.err());
        Measurement {
            peer,
            duration: self.now - self.started,
            rtt,
            rtt_variance,
            delay_variation: summary::delay_variation(&at_ease),
            watched: at_ease.iter().map(|step| step.watched()).sum(),
            troubled: at_ease.iter().map(|step| step.troubled()).sum(),
            spikes: summary::spikes(&at_ease, rtt.as_ref()),
            loss,
            bursts: reported(&at_ease).then(|| summary::bursts(&at_ease, &events)).flatten(),
            reordering: reported(&at_ease)
                .then(|| summary::reordering(&at_ease, self.far.reorder_distance)),
            duplicates: reported(&at_ease).then(|| summary::duplicates(&at_ease)),
            retransmission_loss: summary::retransmission_loss(&at_ease),
            return_loss: summary::return_loss(&at_ease),
            return_loss_again: summary::return_loss_again(&at_ease),
            sustained: self.sustained(),
            changes: self.changes(),
            steps: self.steps(),
            usable: self.usable,
            limit,
            capacity: capacity.ok(),
            largest_payload: (peer == Peer::Punctual && self.far.largest_payload > 0)
                .then_some(self.far.largest_payload),
            payload: self.message.len(),
            missing,
            events,
            course: Course::of(self.steps.iter().map(Step::course), &at_ease),
        }
    }

    /// The highest rate that was carried whenever it was tried for a while.
    fn sustained(&self) -> Option<Bitrate> {
        let soaks = || self.steps.iter().filter(|step| step.soak);
        let too_much = soaks()
            .filter(|step| matches!(step.verdict, Verdict::Congested(_)))
            .map(|step| step.rate)
            .min();
        soaks()
            .filter(|step| step.verdict == Verdict::Clear)
            .map(|step| step.rate)
            .filter(|&rate| too_much.is_none_or(|too_much| rate < too_much))
            .max()
    }

    /// Whether the link changes from second to second, at rates that it carries at ease.
    pub(super) fn changes(&self) -> bool {
        let at_ease = self.at_ease();
        let failed = |step: &Step| step.soak && matches!(step.verdict, Verdict::Congested(_));
        self.steps.iter().any(failed)
            || summary::events(&at_ease).longest() >= OUTAGE
            || course::changes(&at_ease)
    }

    /// The steps that tell what the link is like at the rate that is going to be recommended.
    fn at_ease(&self) -> Vec<&Step> {
        let rate = self.usable.map_or(Bitrate::ZERO, recommended);
        let clear = |step: &&Step| !matches!(step.verdict, Verdict::Congested(_));
        let low: Vec<&Step> =
            self.steps.iter().filter(clear).filter(|step| step.rate <= rate).collect();
        if !low.is_empty() {
            return low;
        }
        let clear: Vec<&Step> = self.steps.iter().filter(clear).collect();
        if clear.is_empty() { self.steps.iter().collect() } else { clear }
    }
}

/// A run of losses as long as that is an outage.
const OUTAGE: Duration = Duration::from_millis(100);
