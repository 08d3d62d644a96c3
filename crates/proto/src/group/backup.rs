//! Which links of a backup group carry the stream.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::history::History;
use super::link::{Actions, Link, Links};
use super::{GroupMessage, LinkAction, LinkId, LinkState, LinkStatus};

/// Added to the latency for the time that a link has to prove itself in, as in libsrt.
const ACTIVATION_MARGIN: Duration = Duration::from_millis(50);
/// A link that answers again is watched for so many latencies before it counts as stable.
const WARY_LATENCIES: u32 = 4;
/// How often an unstable link is looked at.
const WATCH: Duration = Duration::from_millis(20);
/// A link that takes over is given what nobody acknowledged at this multiple of the stream's rate.
/// libsrt sends it all at once, which floods the very link that everything depends on.
const CATCH_UP_RATE: u32 = 2;
/// How much of its time for catching up a link may make up for.
const CREDIT: Duration = Duration::from_millis(10);

/// Which links of a backup group carry the stream: the stable one of the highest weight, and while
/// there is none, more.
///
/// A link is unstable when data waits for an answer, and none came for twice the round-trip time
/// and four times its variance, but 60 ms at least, and no longer than what is sent anew can still
/// arrive in time. Then the idle link of
/// the highest weight takes over: it is given what nobody has acknowledged, with its numbers. The
/// unstable link goes on carrying the stream too, so that it can show that it is well again. When a
/// link is stable, those that are no better fall silent.
#[derive(Debug)]
pub(super) struct Backup {
    min_stability: Duration,
    /// Delay that the peer's receiver applies.
    latency: Duration,
    history: History,
    evaluated: Instant,
    switches: u64,
}

impl Backup {
    pub(super) fn new(min_stability: Duration) -> Self {
        Self {
            min_stability,
            latency: Duration::ZERO,
            history: History::default(),
            evaluated: Instant::ORIGIN,
            switches: 0,
        }
    }

    /// The first link stands: the peer delays by `latency`.
    pub(super) const fn start(&mut self, latency: Duration) {
        self.latency = latency;
    }

    pub(super) const fn switches(&self) -> u64 {
        self.switches
    }

    /// Takes a message of the stream; `evaluate` sends it.
    pub(super) fn push(&mut self, message: GroupMessage) {
        self.history.push(message);
    }

    /// Judges the links, lets them take over and fall silent, and gives them what they are to send.
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
        silence(now, links, actions);
        for (&id, link) in links.iter_mut().filter(|(_, link)| link.state.is_active()) {
            self.feed(now, next, id, link, actions);
        }
    }

    /// When `evaluate` may come to another result.
    pub(super) fn next(&self, links: &Links) -> Option<Instant> {
        let of_link = |link: &Link| {
            let state = match link.state {
                LinkState::Activating => {
                    Some((link.since + self.activation()).max(self.evaluated + WATCH))
                }
                LinkState::Wary => Some((link.since + self.wary()).min(self.evaluated + WATCH)),
                LinkState::Unstable => Some(self.evaluated + WATCH),
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

    /// Lets go what a link acknowledged, and what the peer could not play any more.
    fn forget(&mut self, now: Instant, links: &Links) {
        let mut transit = Duration::ZERO;
        for link in links.values() {
            let Some(status) = link.up_status() else { continue };
            if link.used {
                self.history.acknowledge(status.acknowledged);
            }
            transit = transit.max(status.rtt.smoothed);
        }
        self.history.drop_before(now - (self.latency + transit));
    }

    fn judge(&self, now: Instant, link: &mut Link) {
        let Some(status) = &link.status else { return };
        let answered = status.last_response > link.since;
        let overdue = self.silent_at(status).is_some_and(|at| at <= now);
        let state = match link.state {
            _ if overdue => LinkState::Unstable,
            // Without data there is nothing to answer.
            LinkState::Activating
                if now >= link.since + self.activation()
                    && (answered || status.waiting_since.is_none()) =>
            {
                LinkState::Stable
            }
            LinkState::Unstable if answered => LinkState::Wary,
            LinkState::Wary if now >= link.since + self.wary() => LinkState::Stable,
            unchanged => unchanged,
        };
        link.enter(now, state);
    }

    /// Makes an idle link carry the stream if no other does well, or if it is better than those.
    fn take_over(&mut self, now: Instant, next: SeqNo, links: &mut Links) {
        use LinkState::{Activating, Stable, Wary};
        let best = links
            .values()
            .filter(|link| matches!(link.state, Activating | Stable | Wary))
            .map(|link| link.weight)
            .max();
        let any_active = links.values().any(|link| link.state.is_active());
        // Of equal weights the first one.
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

    /// Gives a link the messages whose turn it is.
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
        status.silent_at(self.min_stability, self.latency)
    }

    fn activation(&self) -> Duration {
        self.latency.max(self.min_stability) + ACTIVATION_MARGIN
    }

    fn wary(&self) -> Duration {
        self.latency.max(self.min_stability) * WARY_LATENCIES
    }
}

/// Silences the links that are no better than a stable one. Better ones that are not stable go on,
/// or they could not become so.
fn silence(now: Instant, links: &mut Links, actions: &mut Actions) {
    // Of equal weights the first one, as above.
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
