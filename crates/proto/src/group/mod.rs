//! Groups: one stream over several links (draft section 3.2.1.4; libsrt's socket groups).
//!
//! A link is an ordinary connection; the links of a group may belong to different endpoints. A
//! [`Group`] decides which messages each link sends and with which numbers, and merges the messages
//! that the links deliver: each once, in order, when it is due. Like an endpoint it does no I/O:
//! its driver passes it the status and the terms of the links ([`LinkStatus`], [`LinkTerms`]),
//! their messages and the time, and carries out its [`LinkAction`]s at the endpoints that hold the
//! links.
//!
//! - [`Attempt::link`](crate::Attempt::link) and [`Acceptance::link`](crate::Acceptance::link) make
//!   a connection a link, by a [`Membership`] that the group writes.
//! - [`Connection::link_terms`](crate::Connection::link_terms) returns the terms of a new link, for
//!   [`Group::link_up`].
//! - [`Connection::link_status`](crate::Connection::link_status) returns the status of a link, for
//!   [`Group::update`].
//! - [`Connection::apply`](crate::Connection::apply) carries out an action.
//!
//! All links of a group share the sequence numbers, the message numbers, the start of the
//! timestamps and the time base of the first link, so that a message is due at the same instant on
//! every link.

mod backup;
mod balance;
mod capacity;
mod distribution;
mod drift;
mod history;
mod link;
mod merger;

use std::time::Duration;

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::{GroupExtension, MsgNo, RejectReason, SeqNo};

use self::distribution::Distribution;
use self::drift::SharedDrift;
use self::link::{Actions, Link, Links};
pub use self::link::{GroupMessage, LinkAction, LinkId, LinkState, LinkStatus, LinkTerms};
use self::merger::Merger;
use crate::error::SendError;
use crate::event::{Message, SendOptions};
use crate::group_offer::{GROUP_BIT, GroupKind};
use crate::handshake::membership::{GroupTimebase, Membership};
use crate::statistics::Statistics;

/// One stream over several links.
///
/// - For the links: [`add_link`](Self::add_link), [`membership`](Self::membership),
///   [`link_up`](Self::link_up), [`link_down`](Self::link_down), [`update`](Self::update).
/// - For the application: [`send`](Self::send), [`recv`](Self::recv).
/// - For the driver: [`poll_action`](Self::poll_action), and [`poll_timeout`](Self::poll_timeout)
///   with [`handle_timeout`](Self::handle_timeout).
///
/// After any call that takes `&mut self`, the driver carries out every action.
#[derive(Debug)]
pub struct Group {
    id: u32,
    distribution: Distribution,
    /// The instant from which the timestamps of all links count.
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
    counts: GroupCounts,
}

/// The number of messages from `b` to `a` around the wrap; negative if `a` is before `b`.
fn message_distance(a: MsgNo, b: MsgNo) -> i64 {
    // Message numbers go from 1 to the maximum.
    let span = i64::from(MsgNo::MAX.value());
    let ahead = (i64::from(a.value()) - i64::from(b.value())).rem_euclid(span);
    if ahead > span / 2 { ahead - span } else { ahead }
}

#[derive(Debug, Default)]
struct GroupCounts {
    sent: u64,
    bytes_sent: u64,
    /// Bytes of the headers of a packet on the path of the first link.
    packet_overhead: usize,
}

impl Group {
    /// A group without links. Its ID and its first sequence number are made from `random`, which
    /// must come from a secure random generator in real use. In a backup group, a link that leaves
    /// data unanswered for `min_stability` or longer may be unstable (`groupminstabletimeo`).
    pub fn new(kind: GroupKind, min_stability: Duration, random: u64, now: Instant) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "each takes half of the bits")]
        let (for_id, for_isn) = ((random >> 32) as u32, random as u32);
        Self {
            // The low bits are never all zero, since that is not a valid ID.
            id: GROUP_BIT | (for_id % (GROUP_BIT - 1) + 1),
            distribution: Distribution::new(kind, min_stability),
            start: now,
            peer_group: None,
            links: Links::new(),
            next_link: 0,
            // The largest number is not allowed in a handshake.
            next_seq: SeqNo::new(for_isn % SeqNo::MAX.value()),
            first_msgno: MsgNo::FIRST,
            next_msgno: MsgNo::FIRST,
            timebase: None,
            merger: Merger::default(),
            drift: SharedDrift::default(),
            actions: Actions::new(),
            counts: GroupCounts::default(),
        }
    }

    /// Sets the number of the first message, which is 1 by default. To be called before the first
    /// link is added. Both ends of a balancing group must use the same number. Tests use it to
    /// start near the wrap of the numbers.
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

    /// Adds a link, which carries messages after [`link_up`](Self::link_up). A backup group prefers
    /// links of higher weight.
    pub fn add_link(&mut self, weight: u16) -> LinkId {
        let id = LinkId(self.next_link);
        self.next_link += 1;
        self.links.insert(id, Link::new(weight));
        id
    }

    /// Removes a link. Messages that it has received but not delivered are lost.
    pub fn remove_link(&mut self, now: Instant, id: LinkId) {
        self.link_down(now, id);
        self.links.remove(&id);
    }

    /// The membership that makes a connection a link of this group, when it is called or accepted.
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

    /// Notes that a link is established on these terms. The first link determines the numbers, the
    /// time base and the latency of the group.
    ///
    /// # Errors
    ///
    /// [`RejectReason::GROUP`] if the link leads to another group of the peer's than the other
    /// links. The caller has to close it.
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
                self.distribution.start(terms.peer_latency.clone());
                self.timebase = Some(GroupTimebase {
                    base: terms.base,
                    receive_next: terms.receive_isn,
                    receive_latency: terms.receive_latency.clone(),
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

    /// Notes that the link's connection has ended, or that its handshake has failed. Messages that
    /// it received before may still be handed in.
    pub fn link_down(&mut self, now: Instant, id: LinkId) {
        if let Some(link) = self.links.get_mut(&id) {
            link.state = LinkState::Gone;
        }
        self.distribution.link_down(now, id, &self.links, &mut self.actions);
        self.drift.forget(id);
        self.handle_timeout(now);
    }

    /// Takes in the status of a link. [`handle_timeout`](Self::handle_timeout) acts on it.
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

    /// Carries out everything that is due at `now`, by the last status of the links.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.distribution.evaluate(now, self.next_seq, &mut self.links, &mut self.actions);
    }

    /// The next time at which `handle_timeout` is to be called, after [`update`](Self::update)s;
    /// `None` if no timer runs.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.distribution.next(&self.links)
    }

    /// The time at which the first message in the group is due for [`recv`](Self::recv); `None` if
    /// the group holds no message. Links hand in their messages when they are due, except those of
    /// balancing groups, which hand them in at once.
    pub fn next_delivery(&self) -> Option<Instant> {
        self.merger.next_due()
    }

    /// The next action for a link; `None` if there is none.
    pub fn poll_action(&mut self) -> Option<(LinkId, LinkAction)> {
        self.actions.pop_front()
    }

    /// Sends a message over the links. It never blocks: a link of a broadcast group whose send
    /// buffer is full misses the message.
    ///
    /// # Errors
    ///
    /// [`SendError::NotConnected`] if no link is established, [`SendError::Size`] if the message is
    /// empty or does not fit a packet, [`SendError::Full`] if all links that carry the stream are
    /// full. In the last case, the first of these links that has room again reports
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
            origin: options.origin_at(now),
            expires: options.ttl.map(|ttl| now + ttl),
            in_order: options.in_order,
            payload,
        };
        self.next_seq = self.next_seq.next();
        self.next_msgno = self.next_msgno.next();
        self.distribution.submit(now, message, &mut self.links, &mut self.actions);
        Ok(())
    }

    /// The numbers that the next message gets: its sequence number and its message number.
    pub const fn next_message(&self) -> (SeqNo, MsgNo) {
        (self.next_seq, self.next_msgno)
    }

    /// Whether the send buffer of a link that carries the stream (or may, if no link does) has room
    /// for a message, by the last status of the links.
    pub fn has_room(&self) -> bool {
        self.carriers().any(|(_, link)| link.has_room())
    }

    /// Whether no message may still have to be sent over another link: every one has arrived, or
    /// could not arrive in time any more. In a broadcast group every link has every message.
    pub fn is_flushed(&self) -> bool {
        self.distribution.is_flushed() || !self.is_up()
    }

    /// Takes in a message that a link has delivered.
    pub fn handle_message(&mut self, message: Message) {
        self.merger.insert(message);
    }

    /// Takes in the packets that the peer reported lost on a link of a balancing group, and that
    /// the link has given up
    /// ([`Connection::take_link_losses`](crate::Connection::take_link_losses)). Their messages are
    /// sent over the best link.
    pub fn handle_losses(&mut self, now: Instant, id: LinkId, lost: Vec<SeqNo>) {
        for seq in lost {
            self.distribution.lose(now, id, seq, &self.links, &mut self.actions);
        }
    }

    /// The next message of the stream, if it is due at `now`. All messages that were due on the
    /// links by `now` must have been handed in before.
    pub fn recv(&mut self, now: Instant) -> Option<Message> {
        self.merger.take(now)
    }

    /// The active links; if none is active, all established ones, since one of them will become
    /// active.
    fn carriers(&self) -> impl Iterator<Item = (&LinkId, &Link)> {
        let any = self.links.values().any(|link| link.state.is_active());
        let carries =
            move |link: &Link| if any { link.state.is_active() } else { link.state.is_up() };
        self.links.iter().filter(move |(_, link)| carries(link))
    }

    /// Whether any link is established.
    pub fn is_up(&self) -> bool {
        self.links.values().any(|link| link.state.is_up())
    }

    /// The links with their weights and states, in the order in which they were added.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, u16, LinkState)> {
        self.links.iter().map(|(&id, link)| (id, link.weight, link.state))
    }

    /// The state of a link; `None` if the group does not have it (any more).
    pub fn link_state(&self, id: LinkId) -> Option<LinkState> {
        self.links.get(&id).map(|link| link.state)
    }

    /// The weight of a link; `None` if the group does not have it (any more).
    pub fn link_weight(&self, id: LinkId) -> Option<u16> {
        self.links.get(&id).map(|link| link.weight)
    }

    /// The number of times that another link took over in a backup group; 0 in other groups.
    pub const fn switches(&self) -> u64 {
        self.distribution.switches()
    }

    /// The largest payload of a message, bytes; `None` while no link is established.
    pub fn max_payload(&self) -> Option<usize> {
        let up = self.links.values().filter(|link| link.state.is_up());
        up.map(|link| link.max_payload).min()
    }

    /// The statistics of the stream as a whole, where each message counts once: the fields that
    /// libsrt fills for a group. Copies that arrived over further links count as belated packets.
    pub fn statistics(&self, now: Instant) -> Statistics {
        let headers = |packets: u64| packets * self.counts.packet_overhead as u64;
        let received = self.merger.counts();
        let (receive_latency, drift) = self
            .timebase
            .as_ref()
            .map_or_else(Default::default, |it| (it.receive_latency.get(), it.drift));
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
        assert_eq!(message_distance(last.next(), last), 1, "0 is skipped");
        assert_eq!(message_distance(last, first), -1);
        assert_eq!(message_distance(first, first), 0);
    }
}
