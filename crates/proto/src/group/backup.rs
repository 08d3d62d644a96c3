//! Decides which links of a backup group carry the stream.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::history::History;
use super::link::{Actions, Link, Links};
use super::{GroupMessage, LinkAction, LinkId, LinkState, LinkStatus};
use crate::agreed_time::AgreedTime;

/// Added to the latency for the time in which a new active link must show that it is stable, as in
/// libsrt.
const ACTIVATION_MARGIN: Duration = Duration::from_millis(50);
/// A link that answers again becomes stable after this number of latencies.
const PROBATION_LATENCIES: u32 = 4;
/// The interval at which an unstable link is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// A link that takes over gets the unacknowledged messages at this multiple of the stream's rate.
/// libsrt sends them all at once, which floods the only link that is left.
const CATCH_UP_RATE: u32 = 2;
/// The longest pause in catching up that a link may make good by a burst.
const CREDIT: Duration = Duration::from_millis(10);

/// Decides which links of a backup group carry the stream: the stable one of the highest weight,
/// and while no link is stable, more than one.
///
/// A link is unstable if its data is unanswered for twice the round-trip time plus four times its
/// variance; at least for `min_stability`, and no longer than lets another link deliver the
/// messages in time. Then the standby link of the highest weight takes over: it sends all messages
/// that are not acknowledged, with the same numbers. The unstable link continues to carry the
/// stream, so that it can recover. When a link is stable, all active links of the same or a lower
/// weight go on standby.
#[derive(Debug)]
pub(super) struct Backup {
    min_stability: Duration,
    /// The delay that the peer's receiver applies.
    latency: AgreedTime,
    history: History,
    evaluated: Instant,
    switches: u64,
}

impl Backup {
    pub(super) fn new(min_stability: Duration) -> Self {
        Self {
            min_stability,
            latency: AgreedTime::default(),
            history: History::default(),
            evaluated: Instant::ORIGIN,
            switches: 0,
        }
    }

    /// The first link is established: the peer's receiver delays by `latency`.
    pub(super) fn start(&mut self, latency: AgreedTime) {
        self.latency = latency;
    }

    pub(super) const fn switches(&self) -> u64 {
        self.switches
    }

    /// Whether every message has arrived, or is too late.
    pub(super) fn is_flushed(&self) -> bool {
        self.history.first().is_none()
    }

    /// Takes a message of the stream; `evaluate` sends it.
    pub(super) fn push(&mut self, message: GroupMessage) {
        self.history.push(message);
    }

    /// Updates the states of the links, and gives the active ones the messages whose time has come.
    /// `next` is the number of the stream's next message.
    pub(super) fn evaluate(
        &mut self,
        now: Instant,
        next: SeqNo,
        links: &mut Links,
        actions: &mut Actions,
    ) {
        self.evaluated = now;
        self.forget(now, links);
        for link in links.values_mut().filter(|link| link.state.is_active()) {
            self.judge(now, link);
        }
        self.take_over(now, next, links);
        put_on_standby(now, links, actions);
        for (&id, link) in links.iter_mut().filter(|(_, link)| link.state.is_active()) {
            self.feed(now, next, id, link, actions);
        }
    }

    /// When `evaluate` is to be called next; `None` if no timer runs.
    pub(super) fn next(&self, links: &Links) -> Option<Instant> {
        let of_link = |link: &Link| {
            let state = match link.state {
                LinkState::Activating => {
                    Some((link.since + self.activation()).max(self.evaluated + CHECK_INTERVAL))
                }
                LinkState::Wary => {
                    Some((link.since + self.probation()).min(self.evaluated + CHECK_INTERVAL))
                }
                LinkState::Unstable => Some(self.evaluated + CHECK_INTERVAL),
                _ => None,
            };
            let silence = match link.state {
                LinkState::Unstable => None,
                _ => link.status.as_ref().and_then(|status| self.silent_at(status)),
            };
            state.into_iter().chain(silence).chain(link.catch_up).min()
        };
        links.values().filter(|link| link.state.is_active()).filter_map(of_link).min()
    }

    /// Drops messages that a link has acknowledged, and messages that could not arrive in time.
    fn forget(&mut self, now: Instant, links: &Links) {
        let mut transit = Duration::ZERO;
        for link in links.values() {
            let Some(status) = link.up_status() else { continue };
            if link.used {
                self.history.acknowledge(status.acknowledged);
            }
            transit = transit.max(status.rtt.smoothed);
        }
        self.history.drop_before(now - (self.latency.get() + transit));
    }

    fn judge(&self, now: Instant, link: &mut Link) {
        let Some(status) = &link.status else { return };
        let answered = status.last_response > link.since;
        let overdue = self.silent_at(status).is_some_and(|at| at <= now);
        let state = match link.state {
            _ if overdue => LinkState::Unstable,
            // A link without data gets no answer either.
            LinkState::Activating
                if now >= link.since + self.activation()
                    && (answered || status.waiting_since.is_none()) =>
            {
                LinkState::Stable
            }
            LinkState::Unstable if answered => LinkState::Wary,
            LinkState::Wary if now >= link.since + self.probation() => LinkState::Stable,
            unchanged => unchanged,
        };
        link.enter(now, state);
    }

    /// Activates the best standby link if its weight is higher than that of every active link that
    /// works, or if there is no such link.
    fn take_over(&mut self, now: Instant, next: SeqNo, links: &mut Links) {
        use LinkState::{Activating, Stable, Wary};
        let best = links
            .values()
            .filter(|link| matches!(link.state, Activating | Stable | Wary))
            .map(|link| link.weight)
            .max();
        let any_active = links.values().any(|link| link.state.is_active());
        // `rev` makes the first one win among equal weights.
        let idle = links
            .values_mut()
            .rev()
            .filter(|link| link.state == LinkState::Idle)
            .filter(|link| best.is_none_or(|best| link.weight > best))
            .max_by_key(|link| link.weight);
        let Some(link) = idle else { return };
        link.enter(now, Activating);
        link.cursor = self.history.first().unwrap_or(next);
        link.catch_up = (link.cursor != next).then_some(now);
        self.switches += u64::from(any_active || link.cursor != next);
    }

    /// Gives a link the messages whose time has come.
    fn feed(&self, now: Instant, next: SeqNo, id: LinkId, link: &mut Link, actions: &mut Actions) {
        while link.cursor.is_before(next) && link.catch_up.is_none_or(|at| at <= now) {
            let Some(message) = self.history.get(link.cursor) else {
                let first = self.history.first().filter(|first| first.is_after(link.cursor));
                link.cursor = first.unwrap_or(next);
                continue;
            };
            if !link.has_room() {
                link.catch_up = Some(now + CREDIT);
                return;
            }
            actions.push_back((id, LinkAction::Submit(message.clone())));
            link.cursor = link.cursor.next();
            link.used = true;
            if let Some(at) = &mut link.catch_up {
                let period = self.history.interval().unwrap_or_default() / CATCH_UP_RATE;
                *at = (*at).max(now - CREDIT) + period;
            }
            if let Some(status) = &mut link.status {
                status.waiting_since.get_or_insert(now);
                status.room = status.room.saturating_sub(1);
            }
        }
        if !link.cursor.is_before(next) {
            link.catch_up = None;
        }
    }

    fn silent_at(&self, status: &LinkStatus) -> Option<Instant> {
        status.silent_at(self.min_stability, self.latency.get())
    }

    fn activation(&self) -> Duration {
        self.latency.get().max(self.min_stability) + ACTIVATION_MARGIN
    }

    fn probation(&self) -> Duration {
        self.latency.get().max(self.min_stability) * PROBATION_LATENCIES
    }
}

/// Puts the active links that have no higher weight than the best stable one on standby. Unstable
/// links of a higher weight stay active, so that they can become stable.
fn put_on_standby(now: Instant, links: &mut Links, actions: &mut Actions) {
    // `rev` makes the first one win among equal weights.
    let stable = links.iter().rev().filter(|(_, link)| link.state == LinkState::Stable);
    let Some((&best, link)) = stable.max_by_key(|(_, link)| link.weight) else { return };
    let weight = link.weight;
    for (&id, link) in links.iter_mut() {
        if id != best && link.state.is_active() && link.weight <= weight {
            link.enter(now, LinkState::Idle);
            link.catch_up = None;
            actions.push_back((id, LinkAction::Silence));
        }
    }
}
