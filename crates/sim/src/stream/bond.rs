//! The groups at both ends of a stream over several links.

use punctual_proto::{ConnectionId, Group, LinkId, LinkState};
use punctual_units::Instant;

use super::{End, GroupLink};

/// Both ends of a stream over several links.
#[derive(Debug)]
pub(crate) struct Bond {
    /// The sender's and the receiver's.
    ends: [GroupEnd; 2],
    pub(crate) links: Vec<BondLink>,
}

/// One end: its group, and which connections are its links.
#[derive(Debug)]
pub(crate) struct GroupEnd {
    pub(crate) machine: Group,
    /// Those that stand, are being made, or have something left to deliver.
    pub(crate) members: Vec<Member>,
}

/// A connection that is a link of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// The link's number in its stream.
    pub(crate) link: usize,
    pub(crate) host: usize,
    pub(crate) id: ConnectionId,
    /// The link's name in its group. A link that is called again has another one.
    pub(crate) name: LinkId,
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
        Self {
            ends: ends.map(|machine| GroupEnd { machine, members: Vec::new() }),
            links: links.map(link).collect(),
        }
    }

    pub(crate) fn end(&self, end: End) -> &GroupEnd {
        &self.ends[end as usize]
    }

    pub(crate) fn end_mut(&mut self, end: End) -> &mut GroupEnd {
        &mut self.ends[end as usize]
    }

    /// When the next link is called again.
    pub(crate) fn next_call(&self) -> Option<Instant> {
        self.links.iter().filter_map(|link| link.call_at).min()
    }
}

impl GroupEnd {
    /// The name of the link with this connection.
    pub(crate) fn name_of(&self, host: usize, id: ConnectionId) -> Option<LinkId> {
        let member = self.members.iter().find(|it| (it.host, it.id) == (host, id));
        member.map(|member| member.name)
    }

    /// The last connection of a link.
    pub(crate) fn last_of(&self, link: usize) -> Option<&Member> {
        self.members.iter().rfind(|member| member.link == link)
    }

    /// What this end does with a link.
    pub(crate) fn state_of(&self, link: usize) -> LinkState {
        let name = self.last_of(link).map(|member| member.name);
        let mut links = self.machine.links();
        let found = name.and_then(|name| links.find(|(id, ..)| *id == name));
        found.map_or(LinkState::Gone, |(.., state)| state)
    }
}
