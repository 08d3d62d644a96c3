//! How a balancing group spreads its stream over its links.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{MsgNo, SeqNo};

use super::capacity::LinkCapacityEstimator;
use super::link::{Actions, Link, LinkStatus, Links};
use super::{GroupMessage, LinkAction, LinkId, LinkState, message_distance};

/// Added to what an answer may take before a message goes over another link as well.
const PATIENCE: Duration = Duration::from_millis(30);
/// Added to the round trip of the link that helps out.
const HELP: Duration = Duration::from_millis(20);
/// A link that had no room is given no more at once for it than it carries in this time, seconds.
const MOST_BEHIND: f64 = 0.1;
/// How often it is looked whether another link can help out again.
const WATCH: Duration = Duration::from_millis(20);

/// Spreads a stream over links by their capacity.
///
/// Each message goes over one link: the one that was given the least for its estimated capacity
/// ([`LinkCapacityEstimator`]). It also goes over another link when the peer reports it lost, when
/// its ACK is overdue, and when its link ends: over the link of the shortest round trip, queue
/// included. A link that is silent although it should answer gets no new messages until it does.
#[derive(Debug)]
pub(super) struct Balance {
    min_stability: Duration,
    /// Delay that the peer's receiver applies.
    latency: Duration,
    /// The messages from `first` on; `None` for what has arrived.
    open: VecDeque<Option<GroupMessage>>,
    first: MsgNo,
    estimators: BTreeMap<LinkId, LinkCapacityEstimator>,
    evaluated: Instant,
    resent: u64,
}

impl Balance {
    pub(super) fn new(min_stability: Duration) -> Self {
        Self {
            min_stability,
            latency: Duration::ZERO,
            open: VecDeque::new(),
            first: MsgNo::FIRST,
            estimators: BTreeMap::new(),
            evaluated: Instant::ORIGIN,
            resent: 0,
        }
    }

    /// The first link is established: the peer delays by `latency`.
    pub(super) const fn start(&mut self, latency: Duration) {
        self.latency = latency;
    }

    /// Messages that went over a link again, or over another one as well.
    pub(super) const fn resent(&self) -> u64 {
        self.resent
    }

    /// A link is established, whose packets begin with `isn` and have `overhead` bytes of headers.
    pub(super) fn add(&mut self, id: LinkId, isn: SeqNo, overhead: usize) {
        let served = self.virtual_time();
        self.estimators.insert(id, LinkCapacityEstimator::new(isn, served, overhead));
    }

    /// A link has ended: what was on its way goes over the others.
    pub(super) fn remove(
        &mut self,
        now: Instant,
        id: LinkId,
        links: &Links,
        actions: &mut Actions,
    ) {
        let Some(estimator) = self.estimators.remove(&id) else { return };
        for msgno in estimator.flight() {
            if let Some(message) = self.find(msgno).cloned()
                && let Some(other) = self.next_turn(links)
            {
                self.resent += 1;
                self.submit(now, other, message, actions);
            }
        }
    }

    /// Sends a message of the stream over the link whose turn it is.
    pub(super) fn push(
        &mut self,
        now: Instant,
        message: GroupMessage,
        links: &mut Links,
        actions: &mut Actions,
    ) {
        if self.open.is_empty() {
            self.first = message.msgno;
        }
        self.open.push_back(Some(message.clone()));
        if let Some(id) = self.next_turn(links) {
            if let Some(status) = links.get_mut(&id).and_then(|link| link.status.as_mut()) {
                status.waiting_since.get_or_insert(now);
                status.room = status.room.saturating_sub(1);
            }
            self.submit(now, id, message, actions);
        }
    }

    /// What a link says of itself.
    pub(super) fn update(&mut self, id: LinkId, status: &LinkStatus) {
        let level = self.estimators.values().map(LinkCapacityEstimator::rate).fold(0.0, f64::max);
        let Self { estimators, open, first, .. } = self;
        if let Some(estimator) = estimators.get_mut(&id) {
            estimator.acknowledge(status, level, |msgno| {
                let place = usize::try_from(message_distance(msgno, *first)).ok();
                if let Some(message) = place.and_then(|place| open.get_mut(place)) {
                    *message = None;
                }
            });
        }
        self.forget_arrived();
    }

    /// A packet of a link was reported lost: its message goes over the best link, which may be the
    /// same one.
    pub(super) fn lose(
        &mut self,
        now: Instant,
        id: LinkId,
        seq: SeqNo,
        links: &Links,
        actions: &mut Actions,
    ) {
        let msgno = self.estimators.get_mut(&id).and_then(|estimator| estimator.lose(seq));
        let Some(message) = msgno.and_then(|msgno| self.find(msgno)).cloned() else { return };
        if let Some(best) = best(links, None) {
            self.resent += 1;
            self.submit(now, best, message, actions);
        }
    }

    /// Judges the links, and helps out where answers are overdue.
    pub(super) fn evaluate(&mut self, now: Instant, links: &mut Links, actions: &mut Actions) {
        self.evaluated = now;
        self.forget_late(now, links);
        let served = self.virtual_time();
        for (id, link) in links.iter_mut().filter(|(_, link)| link.state.is_up()) {
            let Some(status) = &link.status else { continue };
            let silent =
                status.silent_at(self.min_stability, self.latency).is_some_and(|at| at <= now);
            let state = match link.state {
                _ if silent => LinkState::Unstable,
                LinkState::Unstable if status.last_response > link.since => {
                    if let Some(estimator) = self.estimators.get_mut(id) {
                        estimator.restart(served);
                    }
                    LinkState::Stable
                }
                unchanged => unchanged,
            };
            link.enter(now, state);
        }
        let ids: Vec<LinkId> = self.estimators.keys().copied().collect();
        for id in ids {
            self.help_out(now, id, links, actions);
        }
    }

    /// When `evaluate` may come to another result.
    pub(super) fn next(&self, links: &Links) -> Option<Instant> {
        let of_link = |(id, link): (&LinkId, &Link)| {
            let status = link.up_status()?;
            let silent = match link.state {
                LinkState::Unstable => None,
                _ => status.silent_at(self.min_stability, self.latency),
            };
            let patience = self.patience(*id, links).unwrap_or(WATCH);
            let overdue = self.estimators.get(id)?.waiting().map(|sent| {
                let at = sent.at + patience;
                // Nobody could help out so far.
                if at <= self.evaluated { self.evaluated + WATCH } else { at }
            });
            silent.into_iter().chain(overdue).min()
        };
        links.iter().filter_map(of_link).min()
    }

    /// Sends what is overdue on a link over another one as well.
    fn help_out(&mut self, now: Instant, id: LinkId, links: &Links, actions: &mut Actions) {
        let (Some(patience), Some(other)) = (self.patience(id, links), best(links, Some(id)))
        else {
            return;
        };
        while let Some(sent) = self.estimators.get(&id).and_then(LinkCapacityEstimator::waiting)
            && sent.at + patience <= now
        {
            let (msgno, lost) = (sent.msgno, sent.lost);
            if let Some(estimator) = self.estimators.get_mut(&id) {
                estimator.look_on();
            }
            // What was lost went over the best link when that was told.
            if let Some(message) = self.find(msgno).cloned().filter(|_| !lost) {
                self.resent += 1;
                self.submit(now, other, message, actions);
            }
        }
    }

    /// How long a message over this link may be without an answer: what is usual, but so that the
    /// best other link can still deliver it in time. `None` if there is no other.
    fn patience(&self, id: LinkId, links: &Links) -> Option<Duration> {
        let rtt = links.get(&id)?.up_status()?.rtt;
        let other = links.get(&best(links, Some(id))?)?.up_status()?.rtt;
        let usual = rtt.smoothed * 3 + rtt.variance * 4 + PATIENCE;
        let most = self.latency.saturating_sub(other.smoothed * 3 / 2 + HELP);
        Some(usual.min(most).max(self.min_stability))
    }

    fn submit(&mut self, now: Instant, id: LinkId, message: GroupMessage, actions: &mut Actions) {
        let behind = self.virtual_time() - MOST_BEHIND;
        let Some(estimator) = self.estimators.get_mut(&id) else { return };
        let size = estimator.size_of(message.payload.len());
        #[expect(clippy::cast_precision_loss, reason = "a packet's bytes")]
        {
            estimator.served = estimator.served.max(behind) + size as f64 / estimator.rate();
        }
        let seq = estimator.send(now, message.msgno, size);
        actions.push_back((id, LinkAction::Submit(GroupMessage { seq, ..message })));
    }

    /// The link that has been given least for what it carries. Those that answer come first.
    fn next_turn(&self, links: &Links) -> Option<LinkId> {
        let of = |stable: bool| {
            let estimators = self.estimators.iter().filter(move |(id, _)| {
                links.get(id).is_some_and(|link| {
                    link.has_room() && link.state.is_up() && is_stable(link) == stable
                })
            });
            estimators.min_by(|(_, a), (_, b)| a.served.total_cmp(&b.served)).map(|(&id, _)| id)
        };
        of(true).or_else(|| of(false))
    }

    /// Up to what the links have been given messages.
    fn virtual_time(&self) -> f64 {
        self.estimators.values().map(|estimator| estimator.served).fold(0.0, f64::max)
    }

    fn find(&self, msgno: MsgNo) -> Option<&GroupMessage> {
        let place = usize::try_from(message_distance(msgno, self.first)).ok()?;
        self.open.get(place)?.as_ref()
    }

    fn forget_arrived(&mut self) {
        while self.open.front().is_some_and(Option::is_none) {
            self.open.pop_front();
            self.first = self.first.next();
        }
    }

    /// Lets go what the peer could not play any more.
    fn forget_late(&mut self, now: Instant, links: &Links) {
        let trips = links.values().filter_map(Link::up_status).map(|status| status.rtt.smoothed);
        let limit = now - (self.latency + trips.max().unwrap_or_default());
        while let Some(front) = self.open.front_mut()
            && front.as_ref().is_none_or(|message| message.origin < limit)
        {
            self.open.pop_front();
            self.first = self.first.next();
        }
    }
}

fn is_stable(link: &Link) -> bool {
    link.state == LinkState::Stable
}

/// The stable link of the shortest round trip, but not `except`.
fn best(links: &Links, except: Option<LinkId>) -> Option<LinkId> {
    let others = links.iter().filter(|(id, link)| Some(**id) != except && is_stable(link));
    let trips = others.filter_map(|(&id, link)| Some((link.up_status()?.rtt.smoothed, id)));
    trips.min().map(|(_, id)| id)
}
