use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{GroupExtension, MsgNo, RejectReason, SeqNo};

use super::{GROUP_BIT, GroupKind};
use crate::handshake::Negotiated;
use crate::handshake::terms::{Blocks, TimeBase};

/// The longest time from a data packet to its ACK.
const ACK: Duration = Duration::from_millis(10);

/// The ID of a link in its group. A group uses each ID once.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub(super) u32);

/// The state of a link of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkState {
    /// Its connection is not established yet.
    Joining,
    /// It is on standby: only keepalives are sent over it.
    Idle,
    /// It has just begun to carry the stream, and is not known to be stable yet.
    Activating,
    /// It carries the stream, and the peer answers.
    Stable,
    /// It carries the stream, but the peer does not answer over it.
    Unstable,
    /// It carries the stream, and the peer answers again after a silence. It becomes stable if it
    /// answers for some latencies.
    Wary,
    /// Its connection has ended.
    Gone,
}

impl LinkState {
    /// Whether the connection is established.
    pub const fn is_up(self) -> bool {
        !matches!(self, Self::Joining | Self::Gone)
    }

    /// Whether it carries the stream.
    pub const fn is_active(self) -> bool {
        self.is_up() && !matches!(self, Self::Idle)
    }
}

/// The data that makes a connection a link of a group: see
/// [`Group::membership`](super::Group::membership).
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
    pub(crate) receive_latency: Duration,
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
            negotiated.latency.receive = timebase.receive_latency;
        }
    }
}

/// A caller's request to become a link of a group.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GroupOffer {
    /// The peer's ID of the group.
    pub peer_group: u32,
    /// The kind of the group.
    pub kind: GroupKind,
    /// The link's weight.
    pub weight: u16,
}

impl GroupOffer {
    /// Checks the request: the kind must be known, the ID must be that of a group, and
    /// synchronisation by message numbers is not supported.
    pub(crate) fn check(extension: &GroupExtension) -> Result<Self, RejectReason> {
        let kind = GroupKind::from_wire(extension.kind).ok_or(RejectReason::GROUP)?;
        let is_group = extension.group_id & GROUP_BIT != 0 && extension.group_id >> 31 == 0;
        if !is_group || extension.flags & 1 != 0 {
            return Err(RejectReason::GROUP);
        }
        Ok(Self { peer_group: extension.group_id, kind, weight: extension.weight })
    }
}

/// A message with its numbers. They are the same on every link; only in a balancing group the
/// sequence number belongs to one link.
#[derive(Clone, Debug)]
pub struct GroupMessage {
    pub(crate) seq: SeqNo,
    pub(crate) msgno: MsgNo,
    pub(crate) origin: Instant,
    pub(crate) expires: Option<Instant>,
    pub(crate) in_order: bool,
    pub(crate) payload: Bytes,
}

/// An action that the driver carries out at a link.
#[derive(Clone, Debug)]
pub enum LinkAction {
    /// Send the message.
    Submit(GroupMessage),
    /// Report [`Event::Writable`](crate::Event::Writable) when the send buffer has room.
    AwaitRoom,
    /// Empty the send buffer, and inform the peer that the link is on standby.
    Silence,
    /// Deliver by the group's time base instead of the link's own.
    Align(GroupTimebase),
    /// Correct the time of deliveries for this drift of the peer's clock, nanoseconds.
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
    /// Bytes of the headers of a packet on its path.
    pub(crate) packet_overhead: usize,
}

impl LinkTerms {
    /// The terms of a connection with this room and overhead of a packet; `None` if it is no link.
    pub(crate) fn new(
        negotiated: &Negotiated,
        max_payload: usize,
        packet_overhead: usize,
    ) -> Option<Self> {
        Some(Self {
            peer_group: negotiated.peer_group?,
            send_isn: negotiated.fixed.send_isn,
            receive_isn: negotiated.fixed.receive_isn,
            base: negotiated.fixed.base,
            receive_latency: negotiated.latency.receive,
            peer_latency: negotiated.latency.peer,
            max_payload,
            packet_overhead,
        })
    }
}

/// The status of a link.
#[derive(Clone, Debug)]
pub struct LinkStatus {
    /// All numbers before this one have been acknowledged over this link.
    pub(crate) acknowledged: SeqNo,
    /// When the last ACK or NAK came from the peer.
    pub(crate) last_response: Instant,
    /// Since when there have always been unacknowledged packets; `None` if there are none.
    pub(crate) waiting_since: Option<Instant>,
    /// The number of further messages that fit the send buffer.
    pub(crate) room: usize,
    /// The largest payload that the path carries now, bytes.
    pub(crate) max_payload: usize,
    pub(crate) rtt: Rtt,
    /// The link's estimate of the drift of the peer's clock, nanoseconds.
    pub(crate) drift: i64,
}

impl LinkStatus {
    /// When the link becomes unstable unless the peer answers; `None` if no data waits for an ACK.
    pub(super) fn silent_at(&self, min_stability: Duration, latency: Duration) -> Option<Instant> {
        // Messages that another link repeats must still arrive in time. libsrt waits for a whole
        // latency at most.
        let in_time = latency.saturating_sub(self.rtt.smoothed + ACK);
        let most = in_time.max(min_stability);
        let usual = self.rtt.smoothed * 2 + self.rtt.variance * 4;
        let since = self.waiting_since?.max(self.last_response);
        Some(since + usual.clamp(min_stability, most))
    }
}

/// The links of a group.
pub(super) type Links = BTreeMap<LinkId, Link>;
/// The actions for the group's driver, in order.
pub(super) type Actions = VecDeque<(LinkId, LinkAction)>;

/// The group's record of a link.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) weight: u16,
    pub(super) state: LinkState,
    /// When the state began.
    pub(super) since: Instant,
    /// The sequence number of the next message for this link.
    pub(super) cursor: SeqNo,
    /// While the link catches up with the stream: when it gets the next message.
    pub(super) catch_up: Option<Instant>,
    /// Whether the link has ever got a message. Before that its acknowledged number means nothing:
    /// it is the position of the stream when the link was made.
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

    /// The last status, if the link is established.
    pub(super) fn up_status(&self) -> Option<&LinkStatus> {
        self.status.as_ref().filter(|_| self.state.is_up())
    }

    /// Whether its send buffer has room for a message.
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
    fn a_call_accepts_only_an_answer_from_the_peers_group() {
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
