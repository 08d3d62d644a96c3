use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::backup::Backup;
use super::balance::Balance;
use super::link::{
    Actions, GroupMessage, LinkAction, LinkId, LinkState, LinkStatus, LinkTerms, Links,
};
use crate::agreed_time::AgreedTime;
use crate::group_offer::GroupKind;

/// The rule by which a group distributes its stream over its links, with the state of that rule.
#[derive(Debug)]
pub(super) enum Distribution {
    Broadcast,
    Backup(Backup),
    Balance(Balance),
}

impl Distribution {
    pub(super) fn new(kind: GroupKind, min_stability: Duration) -> Self {
        match kind {
            GroupKind::Broadcast => Self::Broadcast,
            GroupKind::Backup => Self::Backup(Backup::new(min_stability)),
            GroupKind::Balance => Self::Balance(Balance::new(min_stability)),
        }
    }

    pub(super) const fn kind(&self) -> GroupKind {
        match self {
            Self::Broadcast => GroupKind::Broadcast,
            Self::Backup(_) => GroupKind::Backup,
            Self::Balance(_) => GroupKind::Balance,
        }
    }

    /// The first link is established: the peer's receiver delays by `latency`.
    pub(super) fn start(&mut self, latency: AgreedTime) {
        match self {
            Self::Broadcast => {}
            Self::Backup(backup) => backup.start(latency),
            Self::Balance(balance) => balance.start(latency),
        }
    }

    /// A link is established. Returns its first state.
    pub(super) fn link_up(&mut self, id: LinkId, terms: &LinkTerms) -> LinkState {
        match self {
            Self::Broadcast => LinkState::Stable,
            Self::Backup(_) => LinkState::Idle,
            Self::Balance(balance) => {
                balance.add(id, terms.send_isn, terms.packet_overhead);
                LinkState::Stable
            }
        }
    }

    /// A link has ended.
    pub(super) fn link_down(
        &mut self,
        now: Instant,
        id: LinkId,
        links: &Links,
        actions: &mut Actions,
    ) {
        if let Self::Balance(balance) = self {
            balance.remove(now, id, links, actions);
        }
    }

    /// Takes in the status of a link; [`evaluate`](Self::evaluate) acts on it.
    pub(super) fn update(&mut self, id: LinkId, status: &LinkStatus) {
        if let Self::Balance(balance) = self {
            balance.update(id, status);
        }
    }

    /// A link has given up packet `seq`, which the peer reported lost.
    pub(super) fn lose(
        &mut self,
        now: Instant,
        id: LinkId,
        seq: SeqNo,
        links: &Links,
        actions: &mut Actions,
    ) {
        if let Self::Balance(balance) = self {
            balance.lose(now, id, seq, links, actions);
        }
    }

    /// Sends a message of the stream over the link or links whose turn it is.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        message: GroupMessage,
        links: &mut Links,
        actions: &mut Actions,
    ) {
        match self {
            Self::Broadcast => {
                for (&id, _) in links.iter().filter(|(_, link)| link.state.is_up()) {
                    actions.push_back((id, LinkAction::Submit(message.clone())));
                }
            }
            Self::Backup(backup) => {
                let next = message.seq.next();
                backup.push(message);
                backup.evaluate(now, next, links, actions);
            }
            Self::Balance(balance) => balance.push(now, message, links, actions),
        }
    }

    /// Updates the states of the links by their status, and carries out what is due at `now`.
    /// `next` is the number of the stream's next message.
    pub(super) fn evaluate(
        &mut self,
        now: Instant,
        next: SeqNo,
        links: &mut Links,
        actions: &mut Actions,
    ) {
        match self {
            Self::Broadcast => {}
            Self::Backup(backup) => backup.evaluate(now, next, links, actions),
            Self::Balance(balance) => balance.evaluate(now, links, actions),
        }
    }

    /// When [`evaluate`](Self::evaluate) is to be called next; `None` if no timer runs.
    pub(super) fn next(&self, links: &Links) -> Option<Instant> {
        match self {
            Self::Broadcast => None,
            Self::Backup(backup) => backup.next(links),
            Self::Balance(balance) => balance.next(links),
        }
    }

    /// Whether every message has arrived, or is too late.
    pub(super) fn is_flushed(&self) -> bool {
        match self {
            Self::Broadcast => true,
            Self::Backup(backup) => backup.is_flushed(),
            Self::Balance(balance) => balance.is_flushed(),
        }
    }

    /// The number of times that another link took over in a backup group; 0 in other groups.
    pub(super) const fn switches(&self) -> u64 {
        match self {
            Self::Backup(backup) => backup.switches(),
            Self::Broadcast | Self::Balance(_) => 0,
        }
    }

    /// The number of transmissions in a balancing group beyond the first of each message.
    pub(super) const fn resent(&self) -> u64 {
        match self {
            Self::Balance(balance) => balance.resent(),
            Self::Broadcast | Self::Backup(_) => 0,
        }
    }
}
