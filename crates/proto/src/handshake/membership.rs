//! Links of groups in handshakes: the values that a connection gets from its group instead of its
//! own handshake.

use punctual_units::Instant;
use punctual_wire::{GroupExtension, RejectReason, SeqNo};

use super::Negotiated;
use super::terms::{Blocks, TimeBase};
use crate::agreed_time::AgreedTime;
use crate::group_offer::{GroupKind, GroupOffer};

/// The data that makes a connection a link of a group: see
/// [`Group::membership`](crate::Group::membership).
#[derive(Clone, Debug)]
pub struct Membership {
    pub(crate) extension: GroupExtension,
    /// The instant from which timestamps count.
    pub(crate) start: Instant,
    /// The sequence number of the group's next message.
    pub(crate) send_next: SeqNo,
    pub(crate) peer_group: Option<u32>,
    /// The time base of the first link; `None` before it is established.
    pub(crate) timebase: Option<GroupTimebase>,
}

/// The time base, latency and drift that all links of a group share since its first link was
/// established, and the next sequence number to be delivered.
#[derive(Clone, Debug)]
pub struct GroupTimebase {
    pub(crate) base: TimeBase,
    /// The next sequence number to be delivered.
    pub(crate) receive_next: SeqNo,
    pub(crate) receive_latency: AgreedTime,
    /// The correction for the peer's clock, nanoseconds.
    pub(crate) drift: i64,
}

impl Membership {
    /// Checks the answer to a call with this membership, and completes the terms.
    pub(crate) fn conclude(
        &self,
        answer: &Blocks,
        negotiated: &mut Negotiated,
    ) -> Result<(), RejectReason> {
        self.join(&self.check(answer)?, negotiated);
        Ok(())
    }

    fn check(&self, peer: &Blocks) -> Result<GroupOffer, RejectReason> {
        let peer = GroupOffer::check(peer.group.as_ref().ok_or(RejectReason::GROUP)?)?;
        self.check_offer(&peer).map(|()| peer)
    }

    /// Completes the answer to a caller that becomes a link, and the terms.
    pub(crate) fn respond(
        &self,
        offer: &GroupOffer,
        answer: &mut Blocks,
        negotiated: &mut Negotiated,
    ) -> Result<(), RejectReason> {
        self.check_offer(offer)?;
        self.join(offer, negotiated);
        answer.group = Some(GroupExtension { weight: offer.weight, ..self.extension });
        Ok(())
    }

    /// Whether the link belongs to a balancing group.
    pub(crate) const fn balances(&self) -> bool {
        self.extension.kind == GroupKind::Balance.wire()
    }

    /// Checks that the link leads to the same group as the other links, of this group's kind.
    fn check_offer(&self, peer: &GroupOffer) -> Result<(), RejectReason> {
        let other = self.peer_group.is_some_and(|group| group != peer.peer_group);
        if other || peer.kind.wire() != self.extension.kind {
            return Err(RejectReason::GROUP);
        }
        Ok(())
    }

    /// Replaces the terms that come from the group instead of the link's own handshake.
    fn join(&self, peer: &GroupOffer, negotiated: &mut Negotiated) {
        negotiated.peer_group = Some(peer.peer_group);
        if let Some(timebase) = &self.timebase {
            if !self.balances() {
                negotiated.fixed.send_isn = self.send_next;
                negotiated.fixed.receive_isn = timebase.receive_next;
            }
            negotiated.fixed.base = timebase.base;
            negotiated.latency.receive = timebase.receive_latency.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group_offer::GROUP_BIT;

    #[test]
    fn a_call_accepts_only_an_answer_from_the_peers_group() {
        let block = |group_id, kind| GroupExtension { group_id, kind, flags: 0, weight: 0 };
        let id = GROUP_BIT | 5;
        let mut membership = Membership {
            extension: block(id - 1, 1),
            start: Instant::ORIGIN,
            send_next: SeqNo::default(),
            peer_group: None,
            timebase: None,
        };
        let take = |membership: &Membership, group| {
            membership.check(&Blocks { group, ..Blocks::default() }).map(|it| it.peer_group)
        };
        assert_eq!(take(&membership, Some(block(id, 1))), Ok(id));
        assert_eq!(take(&membership, None), Err(RejectReason::GROUP));
        assert_eq!(take(&membership, Some(block(5, 1))), Err(RejectReason::GROUP));
        assert_eq!(take(&membership, Some(block(id, 2))), Err(RejectReason::GROUP));
        membership.peer_group = Some(id + 1);
        assert_eq!(take(&membership, Some(block(id, 1))), Err(RejectReason::GROUP));
    }
}
