//! The groups at both ends of a stream over several links.

use punctual_proto::{
    ConnectionId, Endpoint, Group, GroupDriver, LinkAccess, LinkEndpoints, LinkId, LinkState,
};
use punctual_units::Instant;

use super::{End, GroupLink};
use crate::host::Host;

/// Both ends of a stream over several links.
#[derive(Debug)]
pub(crate) struct Bond {
    /// The sender's and the receiver's.
    ends: [GroupDriver<Member>; 2],
    pub(crate) links: Vec<BondLink>,
}

/// A connection that is a link of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// The link's number in its stream.
    pub(crate) link: usize,
    pub(crate) host: usize,
    pub(crate) id: ConnectionId,
}

/// A link as its stream defines it, and what became of its calls.
#[derive(Debug)]
pub(crate) struct BondLink {
    pub(crate) defined: GroupLink,
    pub(crate) calls: u64,
    /// When it is called again, if it has ended.
    pub(crate) call_at: Option<Instant>,
}

impl Bond {
    pub(crate) fn new(ends: [Group; 2], links: impl Iterator<Item = GroupLink>) -> Self {
        let link = |defined| BondLink { defined, calls: 0, call_at: None };
        Self { ends: ends.map(GroupDriver::new), links: links.map(link).collect() }
    }

    pub(crate) fn end(&self, end: End) -> &GroupDriver<Member> {
        &self.ends[end as usize]
    }

    pub(crate) fn end_mut(&mut self, end: End) -> &mut GroupDriver<Member> {
        &mut self.ends[end as usize]
    }

    /// When the next link is called again.
    pub(crate) fn next_call(&self) -> Option<Instant> {
        self.links.iter().filter_map(|link| link.call_at).min()
    }
}

/// The hosts of one end of a group, for its driver.
pub(crate) struct GroupHosts<'a> {
    pub(crate) hosts: &'a mut [Host],
    /// The hosts whose endpoints may have something to transmit or to tell.
    pub(crate) touched: &'a mut Vec<usize>,
    /// The time on the clock that the end's hosts share.
    pub(crate) local: Instant,
}

impl LinkEndpoints for GroupHosts<'_> {
    type Link = Member;

    fn now(&self) -> Instant {
        self.local
    }

    fn with_endpoint<R>(
        &mut self,
        link: &Member,
        access: LinkAccess,
        work: impl FnOnce(&mut Endpoint, Instant, ConnectionId) -> R,
    ) -> R {
        if access != LinkAccess::Query && !self.touched.contains(&link.host) {
            self.touched.push(link.host);
        }
        work(self.hosts[link.host].machine.srt(), self.local, link.id)
    }
}

/// The last connection of a link.
pub(crate) fn last_of(end: &GroupDriver<Member>, link: usize) -> Option<(LinkId, &Member)> {
    end.links().filter(|(_, member)| member.link == link).last()
}

/// How a link is at this end.
pub(crate) fn state_of(end: &GroupDriver<Member>, link: usize) -> LinkState {
    let id = last_of(end, link).map(|(id, _)| id);
    id.and_then(|id| end.group().link_state(id)).unwrap_or(LinkState::Gone)
}
