//! The loop that drives a group: between the group, which decides, and the endpoints that hold its
//! links.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::RejectReason;

use super::{Group, GroupKind, LinkAction, LinkId, LinkState, Membership};
use crate::endpoint::{ConnectionId, Endpoint};
use crate::error::SendError;
use crate::event::{Message, Readiness, SendOptions};

/// Gives a [`GroupDriver`] the endpoints that hold its links.
pub trait LinkEndpoints {
    /// Leads to the connection of one link. The driver keeps one for each link.
    type Link;

    /// The time, by the clock that all endpoints of the group share.
    fn now(&self) -> Instant;

    /// Calls `work` once, with the endpoint that holds `link`, the time there, and the link's
    /// connection. `access` says whether the endpoint has something to transmit or to tell
    /// afterwards.
    fn with_endpoint<R>(
        &mut self,
        link: &Self::Link,
        access: LinkAccess,
        work: impl FnOnce(&mut Endpoint, Instant, ConnectionId) -> R,
    ) -> R;
}

/// For which purpose a [`GroupDriver`] calls an endpoint.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LinkAccess {
    /// To ask: the endpoint has nothing more to do than before.
    Query,
    /// To take received messages: the endpoint may acknowledge that it has room again.
    Receive,
    /// To submit a message: the endpoint transmits it when the pacer allows.
    Submit,
    /// To change how the link works: the endpoint may have to transmit and to tell events at once.
    Control,
}

/// Drives a [`Group`]: tells it how its links are, carries out its actions, and hands it received
/// messages. It has no socket and no clock; the endpoints come from a [`LinkEndpoints`].
///
/// - A link is made by [`add_link`](Self::add_link), carries the stream from
///   [`link_up`](Self::link_up) on, and no more after [`link_ended`](Self::link_ended).
/// - [`update`](Self::update) is called when a link has news
///   ([`Event::LinkNews`](crate::Event::LinkNews)) and at the time that
///   [`Group::poll_timeout`] names.
/// - [`send`](Self::send) and [`recv`](Self::recv) are the application's. `recv` has something when
///   a link says [`Event::Readable`](crate::Event::Readable), and at the time that
///   [`Group::next_delivery`] names.
/// - [`poll_drained`](Self::poll_drained) gives back each link from which nothing more comes.
///
/// After any of these calls, the endpoints are to be asked for datagrams, events and timeouts.
#[derive(Debug)]
pub struct GroupDriver<L> {
    group: Group,
    links: BTreeMap<LinkId, L>,
    /// Everything that was due at the links by this time has been handed to the group.
    collected: Instant,
    drained: VecDeque<DrainedLink<L>>,
}

/// A link that has ended, and from which everything that it received has been taken.
#[derive(Debug)]
pub struct DrainedLink<L> {
    /// The ID that it had in its group.
    pub id: LinkId,
    /// Its weight.
    pub weight: u16,
    /// Leads to its connection.
    pub link: L,
}

/// Why a connection did not become a link of its group.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum LinkUpError {
    /// The connection is not established, or its peer does not take it for a link.
    #[error("the connection is not established as a link")]
    NotEstablished,
    /// The peer counts it to another group than the other links.
    #[error("the link leads to another group: {0}")]
    OtherGroup(RejectReason),
}

impl<L> GroupDriver<L> {
    /// Drives a group that has no links yet.
    pub const fn new(group: Group) -> Self {
        Self { group, links: BTreeMap::new(), collected: Instant::ORIGIN, drained: VecDeque::new() }
    }

    /// The group, for what it can be asked.
    pub const fn group(&self) -> &Group {
        &self.group
    }

    /// The links that are being made, are established or have something left to deliver, in the
    /// order of their addition.
    pub fn links(&self) -> impl Iterator<Item = (LinkId, &L)> {
        self.links.iter().map(|(&id, link)| (id, link))
    }

    /// Leads to the connection of a link; `None` if the driver has given it back.
    pub fn link(&self, id: LinkId) -> Option<&L> {
        self.links.get(&id)
    }

    /// The first link for which `is_wanted` holds.
    pub fn find(&self, mut is_wanted: impl FnMut(&L) -> bool) -> Option<LinkId> {
        self.links.iter().find(|(_, link)| is_wanted(link)).map(|(&id, _)| id)
    }

    /// Makes a link of this weight: `make` calls the peer, or accepts a caller, with the membership
    /// that it is given.
    ///
    /// # Errors
    ///
    /// That of `make`; then there is no link.
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

    /// The handshake of a link is over: it carries the stream from now on.
    ///
    /// # Errors
    ///
    /// It cannot: its connection is to be closed.
    pub fn link_up(
        &mut self,
        endpoints: &mut impl LinkEndpoints<Link = L>,
        id: LinkId,
    ) -> Result<(), LinkUpError> {
        let terms = self.links.get(&id).and_then(|link| {
            endpoints.with_endpoint(link, LinkAccess::Query, |at, _, id| at.link_terms(id))
        });
        let terms = terms.ok_or(LinkUpError::NotEstablished)?;
        let up = self.group.link_up(endpoints.now(), id, &terms);
        self.carry_out(endpoints);
        up.map_err(LinkUpError::OtherGroup)
    }

    /// The connection of a link has ended, or the call for it has failed. What the link received
    /// before is still delivered.
    pub fn link_ended(&mut self, endpoints: &mut impl LinkEndpoints<Link = L>, id: LinkId) {
        self.group.link_down(endpoints.now(), id);
        let left = self.links.get(&id).and_then(|link| {
            endpoints.with_endpoint(link, LinkAccess::Query, |at, now, id| at.statistics(now, id))
        });
        if left.is_none_or(|left| left.receive_buffer_packets == 0) {
            self.drain(endpoints.now(), id);
        }
        self.carry_out(endpoints);
    }

    /// Removes a link, established or not. What it has not delivered is lost; its connection is to
    /// be closed.
    pub fn remove_link(
        &mut self,
        endpoints: &mut impl LinkEndpoints<Link = L>,
        id: LinkId,
    ) -> Option<L> {
        let link = self.links.remove(&id);
        self.group.remove_link(endpoints.now(), id);
        self.carry_out(endpoints);
        link
    }

    /// Tells the group how its links are, lets it do what is due, and carries out its actions.
    pub fn update(&mut self, endpoints: &mut impl LinkEndpoints<Link = L>) {
        let now = endpoints.now();
        let Self { group, links, .. } = self;
        let balances = group.kind() == GroupKind::Balance;
        let mut all = Vec::with_capacity(links.len());
        for (&id, link) in &*links {
            let (status, lost) = endpoints.with_endpoint(link, LinkAccess::Query, |at, _, id| {
                let lost = if balances { at.take_link_losses(id) } else { Vec::new() };
                (at.link_status(id), lost)
            });
            all.extend(status.map(|status| (id, status)));
            group.handle_losses(now, id, lost);
        }
        for (id, status) in all {
            group.update(id, status);
        }
        group.handle_timeout(now);
        self.carry_out(endpoints);
    }

    /// Sends a message of the stream, after an [`update`](Self::update).
    ///
    /// # Errors
    ///
    /// As [`Group::send`].
    pub fn send(
        &mut self,
        endpoints: &mut impl LinkEndpoints<Link = L>,
        payload: Bytes,
        options: SendOptions,
    ) -> Result<(), SendError> {
        self.update(endpoints);
        let sent = self.group.send(endpoints.now(), payload, options);
        self.carry_out(endpoints);
        sent
    }

    /// The next message of the stream that is due, if there is one.
    pub fn recv(&mut self, endpoints: &mut impl LinkEndpoints<Link = L>) -> Option<Message> {
        if self.collect_due(endpoints) { self.group.recv(self.collected) } else { None }
    }

    /// Whether the group is readable, writable or broken now. It can be asked at any time.
    ///
    /// The group is writable while a link that carries the stream has room. It is broken when links
    /// were established and none is any more; what they received may still be readable.
    pub fn readiness(&mut self, endpoints: &mut impl LinkEndpoints<Link = L>) -> Readiness {
        self.update(endpoints);
        Readiness {
            readable: self.collect_due(endpoints),
            writable: self.group.has_room(),
            broken: self.group.peer_group().is_some() && !self.group.is_up(),
        }
    }

    /// Hands what is due at the links to the group until it has a message that is due; whether it
    /// has one.
    fn collect_due(&mut self, endpoints: &mut impl LinkEndpoints<Link = L>) -> bool {
        let mut is_complete = false;
        loop {
            if self.group.next_delivery().is_some_and(|due| due <= self.collected) {
                return true;
            }
            if is_complete {
                return false;
            }
            // A message that falls due while the links are asked waits for the next round, since
            // another link, asked before, may have one that precedes it. No event tells of it
            // again, so that the last round is one that finds nothing.
            self.collected = endpoints.now();
            is_complete = !self.collect(endpoints);
        }
    }

    /// The next link that has ended and has nothing left to deliver. The driver has forgotten it,
    /// and its connection can be released.
    pub fn poll_drained(&mut self) -> Option<DrainedLink<L>> {
        self.drained.pop_front()
    }

    /// When the driver is to be called again if nothing happens before: for
    /// [`update`](Self::update) or for [`recv`](Self::recv).
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.group.poll_timeout().into_iter().chain(self.group.next_delivery()).min()
    }

    fn carry_out(&mut self, endpoints: &mut impl LinkEndpoints<Link = L>) {
        while let Some((id, action)) = self.group.poll_action() {
            let Some(link) = self.links.get(&id) else { continue };
            let access = match action {
                LinkAction::Submit(_) => LinkAccess::Submit,
                _ => LinkAccess::Control,
            };
            // A link without room, or one that has just ended, misses the message. The next
            // status tells the group.
            let _missed =
                endpoints.with_endpoint(link, access, |at, now, id| at.apply(now, id, action));
        }
    }

    /// Hands everything that is due at the links to the group; whether there was anything.
    fn collect(&mut self, endpoints: &mut impl LinkEndpoints<Link = L>) -> bool {
        let Self { group, links, .. } = self;
        let balances = group.kind() == GroupKind::Balance;
        let mut found = false;
        let mut drained = Vec::new();
        for (&id, link) in &*links {
            let messages = if balances {
                endpoints
                    .with_endpoint(link, LinkAccess::Receive, |at, _, id| at.take_link_messages(id))
            } else {
                Vec::new()
            };
            found |= !messages.is_empty();
            messages.into_iter().for_each(|message| group.handle_message(message));
            loop {
                match endpoints.with_endpoint(link, LinkAccess::Receive, Endpoint::recv) {
                    // The group had its payload before it was due.
                    Ok(Some(_)) if balances => {}
                    Ok(Some(message)) => {
                        group.handle_message(message);
                        found = true;
                    }
                    Ok(None) => break,
                    // Nothing more comes; but the group must have heard of the end before.
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
                self.drain(endpoints.now(), id);
            }
            self.carry_out(endpoints);
        }
        found
    }

    /// Forgets a link that has delivered everything, and keeps it for `poll_drained`.
    fn drain(&mut self, now: Instant, id: LinkId) {
        let weight = self.group.link_weight(id);
        self.group.remove_link(now, id);
        if let (Some(link), Some(weight)) = (self.links.remove(&id), weight) {
            self.drained.push_back(DrainedLink { id, weight, link });
        }
    }
}

/// Endpoints that one owner holds, at one time: nothing is locked, and nobody needs waking. Whoever
/// uses it asks all endpoints for datagrams, events and timeouts after each call of the driver.
#[derive(Debug)]
pub struct LocalEndpoints<'a> {
    /// The time at all endpoints.
    pub now: Instant,
    /// The endpoints that hold the links.
    pub endpoints: &'a mut [Endpoint],
}

impl LinkEndpoints for LocalEndpoints<'_> {
    /// The place of the endpoint, and the connection there.
    type Link = (usize, ConnectionId);

    fn now(&self) -> Instant {
        self.now
    }

    fn with_endpoint<R>(
        &mut self,
        &(index, id): &Self::Link,
        _access: LinkAccess,
        work: impl FnOnce(&mut Endpoint, Instant, ConnectionId) -> R,
    ) -> R {
        work(&mut self.endpoints[index], self.now, id)
    }
}

#[cfg(test)]
mod tests;
