use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{GroupExtension, MsgNo, RejectReason, SeqNo};

use super::{GROUP_BIT, GroupKind};
use crate::handshake::Negotiated;
use crate::handshake::terms::{Blocks, TimeBase};

/// How much later than data an ACK is sent.
const ACK: Duration = Duration::from_millis(10);

/// Names a link of a group. Never used again for another link of it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub(super) u32);

/// What a link of a group does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkState {
    /// Its connection is not established yet.
    Joining,
    /// It is on standby: only keepalives go over it.
    Idle,
    /// It carries the stream since a moment ago, and has to prove itself.
    Activating,
    /// It carries the stream, and the peer answers.
    Stable,
    /// It carries the stream, but the peer does not answer over it.
    Unstable,
    /// The peer answers again after it did not.
    Wary,
    /// Its connection has ended.
    Gone,
}

impl LinkState {
    /// Whether the connection is established.
    pub const fn is_up(self) -> bool {
        !matches!(self, Self::Joining | Self::Gone)
    }

    /// Whether messages go over it.
    pub const fn is_active(self) -> bool {
        self.is_up() && !matches!(self, Self::Idle)
    }
}

/// What makes a connection a link of a group. Written by
/// [`Group::membership`](super::Group::membership).
#[derive(Clone, Debug)]
pub struct Membership {
    pub(crate) extension: GroupExtension,
    /// What timestamps count from.
    pub(crate) start: Instant,
    /// The number that the next message of the group will have.
    pub(crate) send_next: SeqNo,
    pub(crate) peer_group: Option<u32>,
    /// What the first link settled, if there was one.
    pub(crate) timebase: Option<GroupTimebase>,
}

/// The time base, latency and drift that the first link of a group settled for all links, and the
/// number that is delivered next.
#[derive(Clone, Debug)]
pub struct GroupTimebase {
    pub(crate) base: TimeBase,
    /// The number that is delivered next.
    pub(crate) receive_next: SeqNo,
    pub(crate) receive_latency: Duration,
    /// The correction for the peer's clock, nanoseconds.
    pub(crate) drift: i64,
}

impl Membership {
    /// Takes in the answer to a call with this membership.
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

    /// Writes the answer to a caller that is to be a link.
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

    /// Whether the link is one of a balancing group.
    pub(crate) const fn balances(&self) -> bool {
        self.extension.kind == GroupKind::Balance.wire()
    }

    /// All links lead to one group of the peer's, of this group's kind.
    fn check_offer(&self, peer: &GroupOffer) -> Result<(), RejectReason> {
        let other = self.peer_group.is_some_and(|group| group != peer.peer_group);
        if other || peer.kind.wire() != self.extension.kind {
            return Err(RejectReason::GROUP);
        }
        Ok(())
    }

    /// Replaces what a link has from the group instead of from its own handshake.
    fn join(&self, peer: &GroupOffer, negotiated: &mut Negotiated) {
        negotiated.peer_group = Some(peer.peer_group);
        if let Some(timebase) = &self.timebase {
            if !self.balances() {
                negotiated.fixed.send_isn = self.send_next;
                negotiated.fixed.receive_isn = timebase.receive_next;
            }
            negotiated.fixed.base = timebase.base;
            negotiated.latency.receive = timebase.receive_latency;
        }
    }
}

/// A caller's wish to be a link of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GroupOffer {
    /// The peer's ID of the group.
    pub peer_group: u32,
    /// What it does with its links.
    pub kind: GroupKind,
    /// The link's weight.
    pub weight: u16,
}

impl GroupOffer {
    /// Checks what a caller asks for: a kind that exists, an ID of a group, and no synchronisation
    /// by message numbers.
    pub(crate) fn check(extension: &GroupExtension) -> Result<Self, RejectReason> {
        let kind = GroupKind::from_wire(extension.kind).ok_or(RejectReason::GROUP)?;
        let is_group = extension.group_id & GROUP_BIT != 0 && extension.group_id >> 31 == 0;
        if !is_group || extension.flags & 1 != 0 {
            return Err(RejectReason::GROUP);
        }
        Ok(Self { peer_group: extension.group_id, kind, weight: extension.weight })
    }
}

/// A message with its numbers: those that it has on every link, but in a balancing group the
/// sequence number is the link's own.
#[derive(Clone, Debug)]
pub struct GroupMessage {
    pub(crate) seq: SeqNo,
    pub(crate) msgno: MsgNo,
    pub(crate) origin: Instant,
    pub(crate) expires: Option<Instant>,
    pub(crate) in_order: bool,
    pub(crate) payload: Bytes,
}

/// What is to be done at a link.
#[derive(Clone, Debug)]
pub enum LinkAction {
    /// Send this message.
    Submit(GroupMessage),
    /// Say [`Event::Writable`](crate::Event::Writable) when there is room.
    AwaitRoom,
    /// Forget what waits to be sent or acknowledged, and tell the peer that the link is idle.
    Silence,
    /// Deliver by the group's time base instead of the link's own.
    Align(GroupTimebase),
    /// Correct deliveries for the drift of the peer's clock by so many nanoseconds.
    SetDrift(i64),
}

/// The terms of a new link.
#[derive(Clone, Debug)]
pub struct LinkTerms {
    pub(crate) peer_group: u32,
    pub(crate) send_isn: SeqNo,
    pub(crate) receive_isn: SeqNo,
    pub(crate) base: TimeBase,
    pub(crate) receive_latency: Duration,
    pub(crate) peer_latency: Duration,
    pub(crate) max_payload: usize,
    /// Bytes of the headers of a packet by its path.
    pub(crate) packet_overhead: usize,
}

/// How a link is.
#[derive(Clone, Debug)]
pub struct LinkStatus {
    /// All numbers before this one have been acknowledged over this link.
    pub(crate) acknowledged: SeqNo,
    /// When the peer last answered to data, by an ACK or a NAK.
    pub(crate) last_response: Instant,
    /// Since when there is something to acknowledge without a pause; `None` if there is nothing.
    pub(crate) waiting_since: Option<Instant>,
    /// How many more messages the send buffer takes.
    pub(crate) room: usize,
    /// Largest payload that the path carries now, bytes.
    pub(crate) max_payload: usize,
    pub(crate) rtt: Rtt,
    /// What this link takes for the drift of the peer's clock, nanoseconds.
    pub(crate) drift: i64,
}

impl LinkStatus {
    /// When a link whose data waits for an answer is unstable without one.
    pub(super) fn silent_at(&self, min_stability: Duration, latency: Duration) -> Option<Instant> {
        // What takes over must still arrive in time; libsrt waits for a whole latency at most.
        let in_time = latency.saturating_sub(self.rtt.smoothed + ACK);
        let most = in_time.max(min_stability);
        let usual = self.rtt.smoothed * 2 + self.rtt.variance * 4;
        let since = self.waiting_since?.max(self.last_response);
        Some(since + usual.clamp(min_stability, most))
    }
}

/// The links of a group.
pub(super) type Links = BTreeMap<LinkId, Link>;
/// Actions that the group's driver is to carry out, in their order.
pub(super) type Actions = VecDeque<(LinkId, LinkAction)>;

/// A link as the group keeps it.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) weight: u16,
    pub(super) state: LinkState,
    /// When the state began.
    pub(super) since: Instant,
    /// The number of the next message that this link is to be given.
    pub(super) cursor: SeqNo,
    /// While the link is behind the stream: when it is given the next message.
    pub(super) catch_up: Option<Instant>,
    /// Whether it was ever given a message. Until then it has acknowledged nothing, although its
    /// numbers begin where the stream was when it was called.
    pub(super) used: bool,
    pub(super) max_payload: usize,
    pub(super) status: Option<LinkStatus>,
}

impl Link {
    pub(super) fn new(weight: u16) -> Self {
        Self {
            weight,
            state: LinkState::Joining,
            since: Instant::ORIGIN,
            cursor: SeqNo::default(),
            catch_up: None,
            used: false,
            max_payload: 0,
            status: None,
        }
    }

    /// What the link last said of itself, if it stands.
    pub(super) fn up_status(&self) -> Option<&LinkStatus> {
        self.status.as_ref().filter(|_| self.state.is_up())
    }

    /// Whether its send buffer takes a message.
    pub(super) fn has_room(&self) -> bool {
        self.status.as_ref().is_none_or(|status| status.room > 0)
    }

    pub(super) fn enter(&mut self, now: Instant, state: LinkState) {
        if self.state != state {
            self.state = state;
            self.since = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Group;
    use super::*;

    #[test]
    fn a_call_takes_only_the_answer_of_the_peers_group() {
        let group = Group::new(GroupKind::Broadcast, Duration::from_millis(60), 9, Instant::ORIGIN);
        let mut membership = group.membership(LinkId(0));
        let block = |group_id, kind| GroupExtension { group_id, kind, flags: 0, weight: 0 };
        let take = |membership: &Membership, group| {
            membership.check(&Blocks { group, ..Blocks::default() }).map(|it| it.peer_group)
        };
        let id = GROUP_BIT | 5;
        assert_eq!(take(&membership, Some(block(id, 1))), Ok(id));
        assert_eq!(take(&membership, None), Err(RejectReason::GROUP));
        assert_eq!(take(&membership, Some(block(5, 1))), Err(RejectReason::GROUP));
        assert_eq!(take(&membership, Some(block(id, 2))), Err(RejectReason::GROUP));
        membership.peer_group = Some(id + 1);
        assert_eq!(take(&membership, Some(block(id, 1))), Err(RejectReason::GROUP));
    }
}
