//! Distributes the stream of a balancing group over its links.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{MsgNo, SeqNo};

use super::capacity::LinkCapacityEstimator;
use super::link::{Actions, Link, LinkStatus, Links};
use super::{GroupMessage, LinkAction, LinkId, LinkState, message_distance};
use crate::agreed_time::AgreedTime;

/// Added to the usual time to an ACK, before the message is also sent over another link.
const ACK_MARGIN: Duration = Duration::from_millis(30);
/// Added to the transit time of the other link, over which the message must still arrive in time.
const REPEAT_MARGIN: Duration = Duration::from_millis(20);
/// A link that was full makes up for no more than it carries in this time, seconds.
const MAX_CATCH_UP: f64 = 0.1;
/// The interval at which overdue messages are checked while no other link is stable.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// Distributes a stream over links by their capacity.
///
/// Each message is sent over one link: the one that has been given least in proportion to its
/// estimated capacity ([`LinkCapacityEstimator`]). It is also sent over another link, the stable
/// one of the shortest round trip (queue included), when the peer reports it lost or its ACK is
/// overdue; when its link ends, over the link whose turn it is. A link that does not answer gets no
/// new messages until it answers again, unless no other link is left.
#[derive(Debug)]
pub(super) struct Balance {
    min_stability: Duration,
    /// The delay that the peer's receiver applies.
    latency: AgreedTime,
    /// The messages from number `first` on; `None` for messages that have arrived.
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
            latency: AgreedTime::default(),
            open: VecDeque::new(),
            first: MsgNo::FIRST,
            estimators: BTreeMap::new(),
            evaluated: Instant::ORIGIN,
            resent: 0,
        }
    }

    /// The first link is established: the peer's receiver delays by `latency`.
    pub(super) fn start(&mut self, latency: AgreedTime) {
        self.latency = latency;
    }

    /// The number of transmissions beyond the first of each message.
    pub(super) const fn resent(&self) -> u64 {
        self.resent
    }

    /// Whether every message has arrived, or is too late.
    pub(super) fn is_flushed(&self) -> bool {
        self.open.is_empty()
    }

    /// A link is established, whose packets begin with `isn` and have `overhead` bytes of headers.
    pub(super) fn add(&mut self, id: LinkId, isn: SeqNo, overhead: usize) {
        let served = self.virtual_time();
        self.estimators.insert(id, LinkCapacityEstimator::new(isn, served, overhead));
    }

    /// A link has ended: the messages in flight on it are sent over the others.
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

    /// Takes in the status of a link.
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

    /// A packet of a link was reported lost. Its message is sent over the best link, possibly the
    /// same one. If no link is stable, as after the end of a stream, any established one may be it.
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
        if let Some(best) =
            best(links, None).or_else(|| nearest(links, |_, link| link.state.is_up()))
        {
            self.resent += 1;
            self.submit(now, best, message, actions);
        }
    }

    /// Updates the states of the links, and sends messages whose ACK is overdue over another link.
    pub(super) fn evaluate(&mut self, now: Instant, links: &mut Links, actions: &mut Actions) {
        self.evaluated = now;
        self.forget_late(now, links);
        let served = self.virtual_time();
        for (id, link) in links.iter_mut().filter(|(_, link)| link.state.is_up()) {
            let Some(status) = &link.status else { continue };
            let silent = status
                .silent_at(self.min_stability, self.latency.get())
                .is_some_and(|at| at <= now);
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
            self.send_overdue(now, id, links, actions);
        }
    }

    /// When `evaluate` is to be called next; `None` if no timer runs.
    pub(super) fn next(&self, links: &Links) -> Option<Instant> {
        let of_link = |(id, link): (&LinkId, &Link)| {
            let status = link.up_status()?;
            let silent = match link.state {
                LinkState::Unstable => None,
                _ => status.silent_at(self.min_stability, self.latency.get()),
            };
            let timeout = self.ack_timeout(*id, links).unwrap_or(CHECK_INTERVAL);
            let overdue = self.estimators.get(id)?.waiting().map(|sent| {
                let at = sent.at + timeout;
                // No other link was stable at the last evaluation.
                if at <= self.evaluated { self.evaluated + CHECK_INTERVAL } else { at }
            });
            silent.into_iter().chain(overdue).min()
        };
        links.iter().filter_map(of_link).min()
    }

    /// Sends messages whose ACK is overdue on a link over another one as well.
    fn send_overdue(&mut self, now: Instant, id: LinkId, links: &Links, actions: &mut Actions) {
        let (Some(timeout), Some(other)) = (self.ack_timeout(id, links), best(links, Some(id)))
        else {
            return;
        };
        while let Some(sent) = self.estimators.get(&id).and_then(LinkCapacityEstimator::waiting)
            && sent.at + timeout <= now
        {
            let (msgno, lost) = (sent.msgno, sent.lost);
            if let Some(estimator) = self.estimators.get_mut(&id) {
                estimator.pass_over();
            }
            // `lose` has sent a lost message over another link.
            if let Some(message) = self.find(msgno).cloned().filter(|_| !lost) {
                self.resent += 1;
                self.submit(now, other, message, actions);
            }
        }
    }

    /// The time after which a message over this link is also sent over another one: the usual time
    /// to an ACK, but early enough that the best other link can still deliver it in time. `None` if
    /// there is no other stable link.
    fn ack_timeout(&self, id: LinkId, links: &Links) -> Option<Duration> {
        let rtt = links.get(&id)?.up_status()?.rtt;
        let other = links.get(&best(links, Some(id))?)?.up_status()?.rtt;
        let usual = rtt.smoothed * 3 + rtt.variance * 4 + ACK_MARGIN;
        let most = self.latency.get().saturating_sub(other.smoothed * 3 / 2 + REPEAT_MARGIN);
        Some(usual.min(most).max(self.min_stability))
    }

    fn submit(&mut self, now: Instant, id: LinkId, message: GroupMessage, actions: &mut Actions) {
        let least_served = self.virtual_time() - MAX_CATCH_UP;
        let Some(estimator) = self.estimators.get_mut(&id) else { return };
        let size = estimator.size_of(message.payload.len());
        #[expect(clippy::cast_precision_loss, reason = "a packet's bytes")]
        {
            estimator.served = estimator.served.max(least_served) + size as f64 / estimator.rate();
        }
        let seq = estimator.send(now, message.msgno, size);
        actions.push_back((id, LinkAction::Submit(GroupMessage { seq, ..message })));
    }

    /// The link that has been given least in proportion to its capacity. Stable links come first.
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

    /// The virtual time of the link that has been given most.
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

    /// Drops the messages that could not arrive in time.
    fn forget_late(&mut self, now: Instant, links: &Links) {
        let trips = links.values().filter_map(Link::up_status).map(|status| status.rtt.smoothed);
        let limit = now - (self.latency.get() + trips.max().unwrap_or_default());
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
    let others = |id, link: &Link| Some(id) != except && is_stable(link);
    nearest(links, others)
}

/// The link of the shortest round trip among all that fit.
fn nearest(links: &Links, fits: impl Fn(LinkId, &Link) -> bool) -> Option<LinkId> {
    let links = links.iter().filter(|&(&id, link)| fits(id, link));
    let trips = links.filter_map(|(&id, link)| Some((link.up_status()?.rtt.smoothed, id)));
    trips.min().map(|(_, id)| id)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual_rtt::Rtt;

    use super::*;

    /// An established link without an answer from its peer.
    fn unstable(round_trip: u64) -> Link {
        let rtt = Rtt { smoothed: Duration::from_millis(round_trip), variance: Duration::ZERO };
        let status = LinkStatus {
            acknowledged: SeqNo::new(0),
            last_response: Instant::ORIGIN,
            waiting_since: None,
            room: 10,
            max_payload: 1_316,
            rtt,
            drift: 0,
        };
        let state = LinkState::Unstable;
        Link { state, status: Some(status), ..Link::new(0) }
    }

    #[test]
    fn a_lost_message_is_sent_again_although_no_link_is_stable() {
        let [far, near] = [LinkId(0), LinkId(1)];
        let mut links = Links::from([(far, unstable(300)), (near, unstable(30))]);
        let mut balance = Balance::new(Duration::from_millis(60));
        balance.start(AgreedTime::new(Duration::from_secs(1)));
        for id in [far, near] {
            balance.add(id, SeqNo::new(0), 44);
        }
        let (now, mut actions) = (Instant::from_millis(9_000), Actions::new());
        let message = GroupMessage {
            seq: SeqNo::new(0),
            msgno: MsgNo::FIRST,
            origin: now,
            expires: None,
            in_order: false,
            payload: Bytes::from_static(b"payload"),
        };
        balance.push(now, message, &mut links, &mut actions);
        let (id, _) = actions.pop_front().expect("it is sent");
        balance.lose(now, id, SeqNo::new(0), &links, &mut actions);
        assert!(matches!(actions.pop_front(), Some((id, LinkAction::Submit(_))) if id == near));
    }
}
