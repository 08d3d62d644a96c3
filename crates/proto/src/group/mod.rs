//! Groups: one stream over several links (draft section 3.2.1.4; libsrt's socket groups).
//!
//! A link is an ordinary connection, possibly of another endpoint. A [`Group`] tells its links what
//! to send with which numbers, and merges what they deliver: each message once, in order, at its
//! time. It is a machine as an endpoint is: whoever drives it hands in what its links say of
//! themselves ([`LinkStatus`], [`LinkTerms`], messages) and the time, and carries out its
//! [`LinkAction`]s at the endpoints that hold the links.
//!
//! - [`Endpoint::connect_link`](crate::Endpoint::connect_link) and
//!   [`Endpoint::accept_link`](crate::Endpoint::accept_link) make a link of a
//!   [`Membership`] that the group writes.
//! - [`Endpoint::link_terms`](crate::Endpoint::link_terms) says what a new link agreed on, for
//!   [`Group::link_up`].
//! - [`Endpoint::link_status`](crate::Endpoint::link_status) says how a link is, for
//!   [`Group::update`].
//! - [`Endpoint::apply`](crate::Endpoint::apply) carries out an action.
//!
//! All links of a group count from the same start and share sequence numbers, message numbers and
//! the time base of the first one, so that a message is due at the same instant whichever link it
//! came by.

mod backup;
mod balance;
mod capacity;
mod distribution;
mod drift;
mod driver;
mod history;
mod link;
mod merger;

use std::time::Duration;

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::{GroupExtension, MsgNo, RejectReason, SeqNo};

use self::distribution::Distribution;
use self::drift::SharedDrift;
pub use self::driver::{
    DrainedLink, GroupDriver, LinkAccess, LinkEndpoints, LinkUpError, LocalEndpoints,
};
pub(crate) use self::link::GroupTimebase;
use self::link::{Actions, Link, Links};
pub use self::link::{
    GroupMessage, GroupOffer, LinkAction, LinkId, LinkState, LinkStatus, LinkTerms, Membership,
};
use self::merger::Merger;
use crate::error::SendError;
use crate::event::{Message, SendOptions};
use crate::statistics::Statistics;

/// Marks the ID of a group among socket IDs.
const GROUP_BIT: u32 = 1 << 30;

/// The kind of group that only this implementation knows. libsrt has 1 and 2, has planned two more,
/// and rejects every other.
const BALANCE: u8 = 80;

/// The kind of a group: how it uses its links \[grouptype\].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GroupKind {
    /// Every message goes over every link: nothing is lost while one of them carries it.
    Broadcast,
    /// One link carries the stream, that of the highest weight which is stable; another one takes
    /// over when it fails.
    Backup,
    /// Each message goes over one link, as much over each as it carries; what a link loses or does
    /// not deliver in its time goes over another one. Between two ends of this implementation.
    Balance,
}

impl GroupKind {
    /// The number of the kind in a handshake.
    pub(crate) const fn wire(self) -> u8 {
        match self {
            Self::Broadcast => 1,
            Self::Backup => 2,
            Self::Balance => BALANCE,
        }
    }

    pub(crate) const fn from_wire(kind: u8) -> Option<Self> {
        match kind {
            1 => Some(Self::Broadcast),
            2 => Some(Self::Backup),
            BALANCE => Some(Self::Balance),
            _ => None,
        }
    }
}

/// One stream over several links.
///
/// - links: [`add_link`](Self::add_link), [`membership`](Self::membership),
///   [`link_up`](Self::link_up), [`link_down`](Self::link_down), [`update`](Self::update)
/// - the application's: [`send`](Self::send), [`recv`](Self::recv)
/// - out: [`poll_action`](Self::poll_action), [`poll_timeout`](Self::poll_timeout) with
///   [`handle_timeout`](Self::handle_timeout)
///
/// After any call that takes `&mut self`, carry out every action.
#[derive(Debug)]
pub struct Group {
    id: u32,
    distribution: Distribution,
    /// The time that all links' timestamps count from.
    start: Instant,
    peer_group: Option<u32>,
    links: Links,
    next_link: u32,
    next_seq: SeqNo,
    first_msgno: MsgNo,
    next_msgno: MsgNo,
    timebase: Option<GroupTimebase>,
    merger: Merger,
    drift: SharedDrift,
    actions: Actions,
    counts: Counts,
}

/// How far the message number `a` is ahead of `b`; negative if it is behind.
fn message_distance(a: MsgNo, b: MsgNo) -> i64 {
    // 0 is no message's number.
    let span = i64::from(MsgNo::MAX.value());
    let ahead = (i64::from(a.value()) - i64::from(b.value())).rem_euclid(span);
    if ahead > span / 2 { ahead - span } else { ahead }
}

#[derive(Debug, Default)]
struct Counts {
    sent: u64,
    bytes_sent: u64,
    /// Bytes of the headers of a packet, by the path of the first link.
    packet_overhead: usize,
}

impl Group {
    /// A group without links. `random` makes its ID and its first sequence number; real use takes
    /// it from the system's randomness. `min_stability` is the least time without an answer after
    /// which a backup group holds a link for unstable (`groupminstabletimeo`).
    pub fn new(kind: GroupKind, min_stability: Duration, random: u64, now: Instant) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "each takes half of the chance")]
        let (for_id, for_isn) = ((random >> 32) as u32, random as u32);
        Self {
            // The low bits are a number from 1, so that no group has the ID of none.
            id: GROUP_BIT | (for_id % (GROUP_BIT - 1) + 1),
            distribution: Distribution::new(kind, min_stability),
            start: now,
            peer_group: None,
            links: Links::new(),
            next_link: 0,
            // The largest number may not stand in a handshake.
            next_seq: SeqNo::new(for_isn % SeqNo::MAX.value()),
            first_msgno: MsgNo::FIRST,
            next_msgno: MsgNo::FIRST,
            timebase: None,
            merger: Merger::default(),
            drift: SharedDrift::default(),
            actions: Actions::new(),
            counts: Counts::default(),
        }
    }

    /// The same before its first link, with another number than 1 for its first message: both ends
    /// of a balancing group must have the same one. It brings the wrap of the numbers near.
    #[must_use]
    pub const fn with_first_message(mut self, first: MsgNo) -> Self {
        self.first_msgno = first;
        self.next_msgno = first;
        self
    }

    /// The kind of the group.
    pub const fn kind(&self) -> GroupKind {
        self.distribution.kind()
    }

    /// This end's ID of the group.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// The peer's ID of the group; `None` before the first link is established.
    pub const fn peer_group(&self) -> Option<u32> {
        self.peer_group
    }

    /// A new link, which carries nothing before [`link_up`](Self::link_up). In a backup group the
    /// links are used in the order of their weights, highest first.
    pub fn add_link(&mut self, weight: u16) -> LinkId {
        let id = LinkId(self.next_link);
        self.next_link += 1;
        self.links.insert(id, Link::new(weight));
        id
    }

    /// Forgets a link; what it has not delivered is lost.
    pub fn remove_link(&mut self, now: Instant, id: LinkId) {
        self.link_down(now, id);
        self.links.remove(&id);
    }

    /// With what a call, or the answer to one, makes its connection a link of this group.
    pub fn membership(&self, id: LinkId) -> Membership {
        let isn = if self.next_seq == SeqNo::MAX { self.next_seq.next() } else { self.next_seq };
        Membership {
            extension: GroupExtension {
                group_id: self.id,
                kind: self.kind().wire(),
                flags: 0,
                weight: self.links.get(&id).map_or(0, |link| link.weight),
            },
            start: self.start,
            send_next: isn,
            peer_group: self.peer_group,
            timebase: self.timebase.clone().map(|timebase| GroupTimebase {
                receive_next: self.merger.next().unwrap_or(timebase.receive_next),
                ..timebase
            }),
        }
    }

    /// The link is established, on these terms. The first one settles the group's numbers, time
    /// base and latency.
    ///
    /// # Errors
    ///
    /// The link leads to another group than the others: it is to be closed.
    pub fn link_up(
        &mut self,
        now: Instant,
        id: LinkId,
        terms: &LinkTerms,
    ) -> Result<(), RejectReason> {
        if self.peer_group.is_some_and(|peer| peer != terms.peer_group) {
            self.link_down(now, id);
            return Err(RejectReason::GROUP);
        }
        self.peer_group = Some(terms.peer_group);
        match &self.timebase {
            None => {
                self.next_seq = terms.send_isn;
                self.counts.packet_overhead = terms.packet_overhead;
                match self.kind() {
                    GroupKind::Balance => self.merger.start_at_message(self.first_msgno),
                    _ => self.merger.start_at(terms.receive_isn),
                }
                self.distribution.start(terms.peer_latency);
                self.timebase = Some(GroupTimebase {
                    base: terms.base,
                    receive_next: terms.receive_isn,
                    receive_latency: terms.receive_latency,
                    drift: 0,
                });
            }
            Some(timebase) => {
                self.actions.push_back((id, LinkAction::Align(timebase.clone())));
            }
        }
        let Some(link) = self.links.get_mut(&id) else { return Ok(()) };
        link.state = self.distribution.link_up(id, terms);
        link.since = now;
        link.cursor = self.next_seq;
        link.max_payload = terms.max_payload;
        self.handle_timeout(now);
        Ok(())
    }

    /// The link's connection has ended, or will not come to be. What it received before may still
    /// be handed in.
    pub fn link_down(&mut self, now: Instant, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.state = LinkState::Gone;
        }
        self.distribution.link_down(now, id, &self.links, &mut self.actions);
        self.drift.forget(id);
        self.handle_timeout(now);
    }

    /// Takes the status of a link. [`handle_timeout`](Self::handle_timeout) acts on it.
    pub fn update(&mut self, id: LinkId, status: LinkStatus) {
        let Some(link) = self.links.get_mut(&id).filter(|link| link.state.is_up()) else { return };
        let drift = status.drift;
        link.max_payload = status.max_payload;
        self.distribution.update(id, &status);
        link.status = Some(status);
        let shared = self.drift.follow(id, drift);
        if let (Some(nanos), Some(timebase)) = (shared, &mut self.timebase) {
            timebase.drift = nanos;
            let up = self.links.iter().filter(|(_, link)| link.state.is_up());
            self.actions.extend(up.map(|(&id, _)| (id, LinkAction::SetDrift(nanos))));
        }
    }

    /// Does what is due at `now`, by what the links last said of themselves.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.distribution.evaluate(now, self.next_seq, &mut self.links, &mut self.actions);
    }

    /// When `handle_timeout` has something to do, after [`update`](Self::update)s; `None` for not
    /// before something happens.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.distribution.next(&self.links)
    }

    /// When [`recv`](Self::recv) has something that is here already; `None` if there is nothing.
    /// The links of other groups than balancing ones hand in nothing before its time.
    pub fn next_delivery(&self) -> Option<Instant> {
        self.merger.next_due()
    }

    /// The next action to be carried out at a link, if any.
    pub fn poll_action(&mut self) -> Option<(LinkId, LinkAction)> {
        self.actions.pop_front()
    }

    /// Takes a message for sending. It does not wait: a link of a broadcast group without room
    /// misses the message.
    ///
    /// # Errors
    ///
    /// No link is established, the message does not fit a packet, or all links that carry the
    /// stream are full; then the next of them that has room says
    /// [`Event::Writable`](crate::Event::Writable).
    pub fn send(
        &mut self,
        now: Instant,
        payload: Bytes,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let max = self.max_payload().ok_or(SendError::NotConnected)?;
        if payload.is_empty() || payload.len() > max {
            return Err(SendError::Size { size: payload.len(), max });
        }
        if !self.has_room() {
            let carriers: Vec<LinkId> = self.carriers().map(|(&id, _)| id).collect();
            self.actions.extend(carriers.into_iter().map(|id| (id, LinkAction::AwaitRoom)));
            return Err(SendError::Full);
        }
        self.counts.sent += 1;
        self.counts.bytes_sent += payload.len() as u64;
        let message = GroupMessage {
            seq: self.next_seq,
            msgno: self.next_msgno,
            origin: options.origin.map_or(now, |origin| origin.min(now)),
            expires: options.ttl.map(|ttl| now + ttl),
            in_order: options.in_order,
            payload,
        };
        self.next_seq = self.next_seq.next();
        self.next_msgno = self.next_msgno.next();
        self.distribution.submit(now, message, &mut self.links, &mut self.actions);
        Ok(())
    }

    /// Whether a link that carries the stream, or one that may, has room for a message, by what the
    /// links last said of themselves.
    pub fn has_room(&self) -> bool {
        self.carriers().any(|(_, link)| link.has_room())
    }

    /// Takes in a message that a link delivered at its time.
    pub fn handle_message(&mut self, message: Message) {
        self.merger.insert(message);
    }

    /// A link of a balancing group has given up these packets, which the peer reported lost
    /// ([`Endpoint::take_link_losses`](crate::Endpoint::take_link_losses)): what was in them goes
    /// over the best link.
    pub fn handle_losses(&mut self, now: Instant, id: LinkId, lost: Vec<SeqNo>) {
        for seq in lost {
            self.distribution.lose(now, id, seq, &self.links, &mut self.actions);
        }
    }

    /// The next message of the stream that is due at `now`. Everything that was due at the links by
    /// then must have been handed in.
    pub fn recv(&mut self, now: Instant) -> Option<Message> {
        self.merger.take(now)
    }

    /// The links that carry the stream, or those of which one will.
    fn carriers(&self) -> impl Iterator<Item = (&LinkId, &Link)> {
        let any = self.links.values().any(|link| link.state.is_active());
        let carries =
            move |link: &Link| if any { link.state.is_active() } else { link.state.is_up() };
        self.links.iter().filter(move |(_, link)| carries(link))
    }

    /// Whether a link is established.
    pub fn is_up(&self) -> bool {
        self.links.values().any(|link| link.state.is_up())
    }

    /// The links with their weights and states, in the order of their addition.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, u16, LinkState)> {
        self.links.iter().map(|(&id, link)| (id, link.weight, link.state))
    }

    /// How a link is; `None` if the group does not know it, or has removed it.
    pub fn link_state(&self, id: LinkId) -> Option<LinkState> {
        self.links.get(&id).map(|link| link.state)
    }

    /// The weight of a link; `None` if the group does not know it, or has removed it.
    pub fn link_weight(&self, id: LinkId) -> Option<u16> {
        self.links.get(&id).map(|link| link.weight)
    }

    /// How often another link took over in a backup group.
    pub const fn switches(&self) -> u64 {
        self.distribution.switches()
    }

    /// Largest payload of a message, bytes; `None` while no link is
    /// established.
    pub fn max_payload(&self) -> Option<usize> {
        let up = self.links.values().filter(|link| link.state.is_up());
        up.map(|link| link.max_payload).min()
    }

    /// The statistics of the stream as a whole, each message once: the fields that libsrt's groups
    /// fill, and the late copies as belated packets.
    pub fn statistics(&self, now: Instant) -> Statistics {
        let headers = |packets: u64| packets * self.counts.packet_overhead as u64;
        let received = self.merger.counts();
        let (receive_latency, drift) = self
            .timebase
            .as_ref()
            .map_or_else(Default::default, |it| (it.receive_latency, it.drift));
        Statistics {
            elapsed: now.saturating_since(self.start),
            packets_sent_unique: self.counts.sent,
            packets_retransmitted: self.distribution.resent(),
            bytes_sent_unique: self.counts.bytes_sent + headers(self.counts.sent),
            packets_received_unique: received.packets,
            bytes_received_unique: received.bytes + headers(received.packets),
            packets_receive_dropped: received.lost,
            packets_belated: received.copies,
            receive_latency,
            drift_micros: drift / 1_000,
            ..Statistics::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_numbers_are_compared_around_their_wrap() {
        let (first, last) = (MsgNo::FIRST, MsgNo::MAX);
        assert_eq!(message_distance(first.next(), first), 1);
        assert_eq!(message_distance(first, first.next()), -1);
        assert_eq!(message_distance(last.next(), last), 1, "0 is passed over");
        assert_eq!(message_distance(last, first), -1);
        assert_eq!(message_distance(first, first), 0);
    }
}
