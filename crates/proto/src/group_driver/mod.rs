//! Drives a group: mediates between the group, which decides, and the endpoints that hold its
//! links.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::RejectReason;

use crate::connection::Connection;
use crate::endpoint::Endpoint;
use crate::error::SendError;
use crate::event::{Message, Readiness, SendOptions};
use crate::group::{Group, LinkAction, LinkId, LinkState};
use crate::group_offer::GroupKind;
use crate::handshake::membership::Membership;
use crate::ids::ConnectionId;

/// Gives a [`GroupDriver`] access to the connections of its links.
pub trait LinkConnections {
    /// Identifies the connection of one link. The driver keeps one for each link.
    type Link;

    /// The time, by the clock that all endpoints of the group share.
    fn now(&self) -> Instant;

    /// Calls `work` once, with the connection of `link`; `None` if it was released. `access`
    /// indicates whether its endpoint may have datagrams to transmit or events to deliver
    /// afterwards.
    fn with_connection<R>(
        &mut self,
        link: &Self::Link,
        access: LinkAccess,
        work: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R>;
}

/// The purpose for which a [`GroupDriver`] uses a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkAccess {
    /// Reads a state. The endpoint has nothing new to do.
    Query,
    /// Takes received messages. The endpoint may announce room in the receive buffer.
    Receive,
    /// Submits a message. The endpoint transmits it when the pacer allows.
    Submit,
    /// Changes how the link works. The endpoint may have to transmit and to deliver events at once.
    Control,
}

/// Drives a [`Group`]: passes it the status of its links and received messages, and carries out its
/// actions. It has no socket and no clock; the connections come from a [`LinkConnections`].
///
/// - A link is made by [`add_link`](Self::add_link). It carries the stream from
///   [`link_up`](Self::link_up) until [`link_ended`](Self::link_ended).
/// - [`update`](Self::update) is to be called at each [`Event::LinkNews`](crate::Event::LinkNews),
///   and at the time that [`Group::poll_timeout`] returns.
/// - [`send`](Self::send) and [`recv`](Self::recv) are for the application. `recv` may return a
///   message after an [`Event::Readable`](crate::Event::Readable) of a link, and at the time that
///   [`Group::next_delivery`] returns.
/// - [`poll_drained`](Self::poll_drained) returns each link that has ended and delivered
///   everything.
/// - [`close`](Self::close) ends the stream. Updates go on until [`is_closed`](Self::is_closed).
///
/// After any of these calls, the datagrams, events and timeouts of the endpoints are to be polled.
#[derive(Debug)]
pub struct GroupDriver<L> {
    group: Group,
    links: BTreeMap<LinkId, L>,
    /// All messages that were due on the links by this time have been handed to the group.
    collected: Instant,
    drained: VecDeque<DrainedLink<L>>,
    closing: GroupClosing,
}

/// How far the end of a stream is.
#[derive(Clone, Copy, Debug)]
enum GroupClosing {
    /// It was not asked for.
    No,
    /// The links stay open until the peer has every message, until then at most.
    Until(Instant),
    /// The links were closed.
    Done,
}

/// A link that has ended, and from which all received messages have been taken.
#[derive(Debug)]
pub struct DrainedLink<L> {
    /// The ID that it had in its group.
    pub id: LinkId,
    /// Its weight.
    pub weight: u16,
    /// Identifies its connection.
    pub link: L,
}

/// The reason why a connection did not become a link of its group.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LinkUpError {
    /// The connection is not established, or its handshake did not make it a link.
    #[error("the connection is not established as a link")]
    NotEstablished,
    /// The link leads to another group of the peer's than the other links.
    #[error("the link leads to another group: {0}")]
    OtherGroup(RejectReason),
}

impl<L> GroupDriver<L> {
    /// A driver of `group`, which has no links yet.
    pub const fn new(group: Group) -> Self {
        Self {
            group,
            links: BTreeMap::new(),
            collected: Instant::ORIGIN,
            drained: VecDeque::new(),
            closing: GroupClosing::No,
        }
    }

    /// The group, for reading its state.
    pub const fn group(&self) -> &Group {
        &self.group
    }

    /// The links that are connecting, are established or still have messages to deliver, in the
    /// order in which they were added.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &L)> {
        self.links.iter().map(|(&id, link)| (id, link))
    }

    /// The connection of a link; `None` if it has been removed or drained.
    pub fn link(&self, id: LinkId) -> Option<&L> {
        self.links.get(&id)
    }

    /// The first link for which `is_wanted` holds.
    pub fn find(&self, mut is_wanted: impl FnMut(&L) -> bool) -> Option<LinkId> {
        self.links.iter().find(|(_, link)| is_wanted(link)).map(|(&id, _)| id)
    }

    /// Adds a link of this weight. `make` calls the peer, or accepts a caller, with the given
    /// membership.
    ///
    /// # Errors
    ///
    /// The error of `make`. No link is added then.
    pub fn add_link<E>(
        &mut self,
        now: Instant,
        weight: u16,
        make: impl FnOnce(&Membership) -> Result<L, E>,
    ) -> Result<LinkId, E> {
        let id = self.group.add_link(weight);
        match make(&self.group.membership(id)) {
            Ok(link) => {
                self.links.insert(id, link);
                Ok(id)
            }
            Err(error) => {
                self.group.remove_link(now, id);
                Err(error)
            }
        }
    }

    /// Notes that a link's handshake is complete: the link carries the stream from now on.
    ///
    /// # Errors
    ///
    /// See [`LinkUpError`]. The caller has to close the connection.
    pub fn link_up(
        &mut self,
        connections: &mut impl LinkConnections<Link = L>,
        id: LinkId,
    ) -> Result<(), LinkUpError> {
        let terms = self.links.get(&id).and_then(|link| {
            connections
                .with_connection(link, LinkAccess::Query, |connection| connection.link_terms())
        });
        let terms = terms.flatten().ok_or(LinkUpError::NotEstablished)?;
        let up = self.group.link_up(connections.now(), id, &terms);
        self.carry_out(connections);
        up.map_err(LinkUpError::OtherGroup)
    }

    /// Notes that the connection of a link has ended, or that its handshake has failed. Messages
    /// that the link received before are still delivered.
    pub fn link_ended(&mut self, connections: &mut impl LinkConnections<Link = L>, id: LinkId) {
        self.group.link_down(connections.now(), id);
        let now = connections.now();
        let left = self.links.get(&id).and_then(|link| {
            connections.with_connection(link, LinkAccess::Query, |it| it.statistics(now))
        });
        if left.is_none_or(|left| left.receive_buffer_packets == 0) {
            self.drain(connections.now(), id);
        }
        self.carry_out(connections);
    }

    /// Removes a link, established or not. Messages that it has not delivered are lost. The caller
    /// has to close its connection.
    pub fn remove_link(
        &mut self,
        connections: &mut impl LinkConnections<Link = L>,
        id: LinkId,
    ) -> Option<L> {
        let link = self.links.remove(&id);
        self.group.remove_link(connections.now(), id);
        self.carry_out(connections);
        link
    }

    /// Ends the stream: the group takes no more messages. The links stay open while the group may
    /// have to send a message over another link, at most until `until`. Then they are closed, each
    /// with the linger of its connection, or at once if the time is over.
    pub fn close(&mut self, connections: &mut impl LinkConnections<Link = L>, until: Instant) {
        self.closing = match self.closing {
            GroupClosing::No => GroupClosing::Until(until),
            GroupClosing::Until(before) => GroupClosing::Until(before.min(until)),
            GroupClosing::Done => {
                // The links may still be waiting for the peer to play the end of the stream.
                if connections.now() >= until {
                    self.close_links(connections, false);
                }
                GroupClosing::Done
            }
        };
        self.update(connections);
    }

    /// Whether [`close`](Self::close) has closed the links: the group has nothing left to do.
    pub const fn is_closed(&self) -> bool {
        matches!(self.closing, GroupClosing::Done)
    }

    /// Passes the status of the links to the group, lets it do what is due, and carries out its
    /// actions.
    pub fn update(&mut self, connections: &mut impl LinkConnections<Link = L>) {
        let now = connections.now();
        let Self { group, links, .. } = self;
        let balances = group.kind() == GroupKind::Balance;
        let mut all = Vec::with_capacity(links.len());
        for (&id, link) in &*links {
            let report = connections.with_connection(link, LinkAccess::Query, |connection| {
                let lost = if balances { connection.take_link_losses() } else { Vec::new() };
                (connection.link_status(), lost)
            });
            let Some((status, lost)) = report else { continue };
            all.extend(status.map(|status| (id, status)));
            group.handle_losses(now, id, lost);
        }
        for (id, status) in all {
            group.update(id, status);
        }
        group.handle_timeout(now);
        self.carry_out(connections);
        self.advance_closing(connections);
    }

    /// Closes the links if the stream is to end, and the group has nothing left to send over
    /// another link or the time is over.
    fn advance_closing(&mut self, connections: &mut impl LinkConnections<Link = L>) {
        let GroupClosing::Until(until) = self.closing else { return };
        let in_time = connections.now() < until;
        if in_time && !self.group.is_flushed() {
            return;
        }
        self.closing = GroupClosing::Done;
        self.close_links(connections, in_time);
    }

    fn close_links(&self, connections: &mut impl LinkConnections<Link = L>, in_good_order: bool) {
        for link in self.links.values() {
            connections.with_connection(link, LinkAccess::Control, |connection| {
                if in_good_order { connection.close() } else { connection.abort() }
            });
        }
    }

    /// Sends a message of the stream, after an [`update`](Self::update).
    ///
    /// # Errors
    ///
    /// As [`Group::send`]; [`SendError::NotConnected`] after [`close`](Self::close).
    pub fn send(
        &mut self,
        connections: &mut impl LinkConnections<Link = L>,
        payload: Bytes,
        options: SendOptions,
    ) -> Result<(), SendError> {
        if !matches!(self.closing, GroupClosing::No) {
            return Err(SendError::NotConnected);
        }
        self.update(connections);
        let sent = self.group.send(connections.now(), payload, options);
        self.carry_out(connections);
        sent
    }

    /// The next message of the stream that is due; `None` if none is.
    pub fn recv(&mut self, connections: &mut impl LinkConnections<Link = L>) -> Option<Message> {
        if self.collect_due(connections) { self.group.recv(self.collected) } else { None }
    }

    /// Whether the group is readable, writable or broken now. May be called at any time.
    ///
    /// The group is writable while a link that carries the stream has room. It is broken when links
    /// were established and none is any more; messages that they received may still be readable.
    pub fn readiness(&mut self, connections: &mut impl LinkConnections<Link = L>) -> Readiness {
        self.update(connections);
        Readiness {
            readable: self.collect_due(connections),
            writable: self.group.has_room(),
            broken: self.group.peer_group().is_some() && !self.group.is_up(),
        }
    }

    /// Hands messages that are due on the links to the group, until it has one that is due. Returns
    /// whether it has one.
    fn collect_due(&mut self, connections: &mut impl LinkConnections<Link = L>) -> bool {
        let mut is_complete = false;
        loop {
            if self.group.next_delivery().is_some_and(|due| due <= self.collected) {
                return true;
            }
            if is_complete {
                return false;
            }
            // A message that becomes due during a round waits for the next round, since a link that
            // was polled earlier in the round may hold a message that precedes it. No further event
            // announces such a message, so the rounds end only with one that finds nothing.
            self.collected = connections.now();
            is_complete = !self.collect(connections);
        }
    }

    /// Returns the next link that has ended and delivered everything, and forgets it. Its
    /// connection can be released.
    pub fn poll_drained(&mut self) -> Option<DrainedLink<L>> {
        self.drained.pop_front()
    }

    /// The time at which [`update`](Self::update) or [`recv`](Self::recv) is to be called, if no
    /// event comes before; `None` if no timer runs.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.next_update().into_iter().chain(self.group.next_delivery()).min()
    }

    /// The time at which [`update`](Self::update) is to be called, if no event comes before; `None`
    /// if no timer runs.
    pub fn next_update(&self) -> Option<Instant> {
        let close = match self.closing {
            GroupClosing::Until(until) => Some(until),
            GroupClosing::No | GroupClosing::Done => None,
        };
        self.group.poll_timeout().into_iter().chain(close).min()
    }

    fn carry_out(&mut self, connections: &mut impl LinkConnections<Link = L>) {
        while let Some((id, action)) = self.group.poll_action() {
            let Some(link) = self.links.get(&id) else { continue };
            let access = match action {
                LinkAction::Submit(_) => LinkAccess::Submit,
                _ => LinkAccess::Control,
            };
            // A full link, or one that has just ended, misses the message. Its next status informs
            // the group.
            let _missed =
                connections.with_connection(link, access, |connection| connection.apply(action));
        }
    }

    /// Hands all messages that are due on the links to the group. Returns whether there were any.
    fn collect(&mut self, connections: &mut impl LinkConnections<Link = L>) -> bool {
        let Self { group, links, .. } = self;
        let balances = group.kind() == GroupKind::Balance;
        let mut found = false;
        let mut drained = Vec::new();
        for (&id, link) in &*links {
            let messages = if balances {
                let take = Connection::take_link_messages;
                connections.with_connection(link, LinkAccess::Receive, take).unwrap_or_default()
            } else {
                Vec::new()
            };
            found |= !messages.is_empty();
            messages.into_iter().for_each(|message| group.handle_message(message));
            loop {
                let received =
                    connections.with_connection(link, LinkAccess::Receive, Connection::recv);
                match received.unwrap_or(Ok(None)) {
                    // `take_link_messages` has already handed it to the group.
                    Ok(Some(_)) if balances => {}
                    Ok(Some(message)) => {
                        group.handle_message(message);
                        found = true;
                    }
                    Ok(None) => break,
                    // The link has delivered everything. It is drained once the group knows of its
                    // end.
                    Err(_) => {
                        if group.link_state(id) == Some(LinkState::Gone) {
                            drained.push(id);
                        }
                        break;
                    }
                }
            }
        }
        if !drained.is_empty() {
            for id in drained {
                self.drain(connections.now(), id);
            }
            self.carry_out(connections);
        }
        found
    }

    /// Moves a link that has delivered everything to `drained`.
    fn drain(&mut self, now: Instant, id: LinkId) {
        let weight = self.group.link_weight(id);
        self.group.remove_link(now, id);
        if let (Some(link), Some(weight)) = (self.links.remove(&id), weight) {
            self.drained.push_back(DrainedLink { id, weight, link });
        }
    }
}

/// Endpoints that one owner holds, all at the same time: they need no lock and no wake-up. The
/// owner polls datagrams, events and timeouts of all endpoints after each call of the driver.
#[derive(Debug)]
pub struct LocalEndpoints<'a> {
    /// The time at all endpoints.
    pub now: Instant,
    /// The endpoints that hold the links.
    pub endpoints: &'a mut [Endpoint],
}

impl LinkConnections for LocalEndpoints<'_> {
    /// The index of the endpoint, and the connection there.
    type Link = (usize, ConnectionId);

    fn now(&self) -> Instant {
        self.now
    }

    fn with_connection<R>(
        &mut self,
        &(index, id): &Self::Link,
        _access: LinkAccess,
        work: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        Some(work(&mut *self.endpoints[index].connection(self.now, id)?))
    }
}

#[cfg(test)]
mod tests;
