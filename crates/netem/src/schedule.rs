//! A timeline and a trace at work: their changes so far, and the next one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use punctual_units::{Bitrate, Instant};

use crate::change::Change;
use crate::config::LinkConfig;
use crate::loss::Loss;
use crate::profile::LinkProfile;
use crate::service::Service;
use crate::slope::{SlopeTarget, Slopes};
use crate::timeline::{Action, Ramp, Timeline};
use crate::trace::{Trace, TraceRow};

/// The changes of a link over time.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    timeline: Timeline,
    trace: Option<Trace>,
    /// Time zero; the origin before the link has started.
    zero: Instant,
    pending: BinaryHeap<Reverse<Pending>>,
    slopes: Slopes,
    /// All that enters before is lost.
    outage_until: Instant,
    /// Nothing leaves before.
    stall_until: Option<Instant>,
    /// The rate at which the link goes on after the stall, or does so already.
    drain: Option<Bitrate>,
    /// Whether opportunities of the trace move the packets.
    by_opportunity: bool,
}

/// A change to come. Those at the same instant are made in the order of `what`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Pending {
    at: Instant,
    what: What,
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum What {
    /// A row of the trace, in a period that began at this instant.
    Row {
        index: usize,
        begin: Instant,
    },
    TraceEnd,
    /// A slope's next step, or its end.
    Slope {
        target: SlopeTarget,
        generation: u64,
    },
    StallEnd,
    /// An event of the timeline, which is due for this time after time zero.
    Event {
        index: usize,
        due: Duration,
    },
}

impl Schedule {
    /// `None` if nothing ever changes.
    pub(crate) fn new(profile: LinkProfile) -> Option<Box<Self>> {
        let LinkProfile { timeline, trace, .. } = profile;
        if timeline.is_empty() && trace.is_none() {
            return None;
        }
        Some(Box::new(Self {
            timeline,
            by_opportunity: trace.as_ref().is_some_and(|trace| trace.opportunities().is_some()),
            trace,
            zero: Instant::ORIGIN,
            pending: BinaryHeap::new(),
            slopes: Slopes::default(),
            outage_until: Instant::ORIGIN,
            stall_until: None,
            drain: None,
        }))
    }

    /// Sets time zero.
    pub(crate) fn start(&mut self, zero: Instant) {
        self.zero = zero;
        for (index, event) in self.timeline.events().iter().enumerate() {
            let what = What::Event { index, due: event.at };
            plan(&mut self.pending, zero, event.at, what);
        }
        if let Some(trace) = &self.trace {
            match trace.rows().first() {
                Some(row) => {
                    let what = What::Row { index: 0, begin: zero };
                    plan(&mut self.pending, zero, row.at, what);
                }
                None if trace.is_once() => {
                    plan(&mut self.pending, zero, trace.period(), What::TraceEnd);
                }
                None => {}
            }
        }
    }

    /// When something changes next.
    pub(crate) fn next_change(&self) -> Option<Instant> {
        self.pending.peek().map(|next| next.0.at)
    }

    /// Makes the change that is due first, in `config` or here. The link is not used before `now`,
    /// so that some of very many repetitions may be skipped.
    pub(crate) fn make_next_change(&mut self, now: Instant, config: &mut LinkConfig) {
        let Some(Reverse(Pending { at, what })) = self.pending.pop() else { return };
        match what {
            What::Row { index, begin } => self.row(at, index, begin, now, config),
            What::TraceEnd => self.by_opportunity = false,
            What::Slope { target, generation } => self.step(at, target, generation, now, config),
            What::StallEnd => {
                if self.stall_until.is_some_and(|until| until <= at) {
                    self.stall_until = None;
                }
            }
            What::Event { index, due } => self.event(at, index, due, now, config),
        }
    }

    /// Brings what changes all the time up to date.
    pub(crate) fn follow_slopes(&self, now: Instant, config: &mut LinkConfig) {
        if let Some(delay) = self.slopes.delay(now) {
            config.delay = delay;
        }
        if let Some(share) = self.slopes.loss(now) {
            config.loss = Loss::Random(share);
        }
    }

    /// The delay of a packet whose transmission ends at `at`, and the least delay that one behind
    /// it has, both if no change is due before.
    pub(crate) fn delays_at(&self, at: Instant, config: &LinkConfig) -> (Duration, Duration) {
        self.slopes.delays(at).unwrap_or((config.delay, config.delay))
    }

    /// The link has another configuration from now on.
    pub(crate) fn forget_slopes(&mut self, rate_changed: bool) {
        self.slopes.clear();
        if rate_changed {
            self.drain = None;
        }
    }

    /// Whether what enters at `now` is lost.
    pub(crate) fn is_outage(&self, now: Instant) -> bool {
        now < self.outage_until
    }

    /// The present service of the packets, and whether it is stalled.
    pub(crate) fn service(&self, config: &LinkConfig) -> (Service, bool) {
        let opportunities = self.trace.as_ref().and_then(Trace::opportunities);
        let service = match (self.drain, opportunities) {
            (Some(rate), _) => Service::Rate(Some(rate)),
            (None, Some(list)) if self.by_opportunity => {
                Service::Opportunities { zero: self.zero, list: list.clone() }
            }
            _ => Service::Rate(config.rate),
        };
        (service, self.stall_until.is_some())
    }

    /// Whether the link goes at the rate at which a stall's queue drains.
    pub(crate) fn is_draining(&self) -> bool {
        self.stall_until.is_none() && self.drain.is_some()
    }

    /// The queue has run empty.
    pub(crate) fn has_drained(&mut self) {
        self.drain = None;
    }

    fn event(
        &mut self,
        at: Instant,
        index: usize,
        due: Duration,
        now: Instant,
        config: &mut LinkConfig,
    ) {
        let event = &self.timeline.events()[index];
        let mut next = event.after(due);
        if let (Some(again), Some(every)) = (next, event.period()) {
            let skipped = repetitions_to_skip(self.zero, again, every, now);
            next = again.checked_add(every.saturating_mul(skipped));
            next = next.filter(|&next| event.until.is_none_or(|until| next <= until));
        }
        if let Some(due) = next {
            plan(&mut self.pending, self.zero, due, What::Event { index, due });
        }
        match event.action.clone() {
            Action::Set(change) => self.set(&change, config),
            Action::Ramp { to, over } => {
                if matches!(to, Ramp::Rate(_)) {
                    self.drain = None;
                }
                self.ramp(at, to, over, config);
            }
            Action::Outage(duration) => {
                self.outage_until = self.outage_until.max(at + duration);
            }
            Action::Stall { duration, drain } => {
                let end = self.stall_until.map_or(at + duration, |end| end.max(at + duration));
                self.stall_until = Some(end);
                // A link that was draining goes on so.
                self.drain = drain.or(self.drain);
                self.pending.push(Reverse(Pending { at: end, what: What::StallEnd }));
            }
        }
    }

    fn set(&mut self, change: &Change, config: &mut LinkConfig) {
        match change {
            Change::Rate(_) => {
                self.drain = None;
                self.slopes.stop(SlopeTarget::Rate);
            }
            Change::Delay(_) => self.slopes.stop(SlopeTarget::Delay),
            Change::Loss(_) => self.slopes.stop(SlopeTarget::Loss),
            _ => {}
        }
        change.apply(config);
    }

    fn ramp(&mut self, at: Instant, to: Ramp, over: Duration, config: &mut LinkConfig) {
        let (target, generation) = self.slopes.begin(at, to, over, config);
        self.step(at, target, generation, at, config);
    }

    /// A slope's step: sets the value that holds from now on, and plans the next step.
    fn step(
        &mut self,
        at: Instant,
        target: SlopeTarget,
        generation: u64,
        now: Instant,
        config: &mut LinkConfig,
    ) {
        if let Some(next) = self.slopes.step(at, target, generation, now, config) {
            let what = What::Slope { target, generation };
            self.pending.push(Reverse(Pending { at: next, what }));
        }
    }

    fn row(
        &mut self,
        at: Instant,
        index: usize,
        begin: Instant,
        now: Instant,
        config: &mut LinkConfig,
    ) {
        let Some(trace) = self.trace.clone() else { return };
        let rows = trace.rows();
        let row = rows[index];
        let next = rows.get(index + 1);
        for to in changes(&row) {
            self.ramp(at, to, Duration::ZERO, config);
        }
        if let Some(next) = next {
            if trace.is_interpolated() {
                for to in changes(next) {
                    self.ramp(at, to, next.at - row.at, config);
                }
            }
            let what = What::Row { index: index + 1, begin };
            plan(&mut self.pending, begin, next.at, what);
        } else if !trace.is_once() {
            let period = trace.period();
            let skipped = repetitions_to_skip(begin, period, period, now);
            let Some(begin) = later(begin, period.saturating_mul(skipped.saturating_add(1))) else {
                return;
            };
            plan(&mut self.pending, begin, rows[0].at, What::Row { index: 0, begin });
        }
    }
}

/// The changes of a row of a trace.
fn changes(row: &TraceRow) -> impl Iterator<Item = Ramp> + use<> {
    let rate = row.rate.map(Ramp::Rate);
    let delay = row.delay.map(Ramp::Delay);
    let loss = row.loss.map(Ramp::Loss);
    [rate, delay, loss].into_iter().flatten()
}

fn plan(pending: &mut BinaryHeap<Reverse<Pending>>, zero: Instant, at: Duration, what: What) {
    // A time beyond the clock's range never comes.
    if let Some(at) = later(zero, at) {
        pending.push(Reverse(Pending { at, what }));
    }
}

fn later(instant: Instant, by: Duration) -> Option<Instant> {
    let nanos = u64::try_from(by.as_nanos()).ok()?;
    instant.as_nanos().checked_add(nanos).map(Instant::from_nanos)
}

/// The number of repetitions from `due` on that may be skipped, because there are more than
/// [`MOST_REPETITIONS`] until `now`.
fn repetitions_to_skip(zero: Instant, due: Duration, every: Duration, now: Instant) -> u32 {
    let behind = (now - zero).saturating_sub(due).as_nanos().checked_div(every.as_nanos());
    let skipped = behind.unwrap_or(0).saturating_sub(u128::from(MOST_REPETITIONS));
    u32::try_from(skipped).unwrap_or(u32::MAX)
}

/// A link that was not used for longer makes up for this number of repetitions only.
const MOST_REPETITIONS: u32 = 1_000_000;
