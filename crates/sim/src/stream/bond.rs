//! The groups at both ends of a stream over several links.

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    Acceptance, Attempt, Config, Connection, ConnectionGuard, ConnectionId, Group, GroupDriver,
    Incoming, LinkAccess, LinkConnections, LinkId, LinkState, SendError, SendOptions,
};
use punctual_units::Instant;

use super::receiving::Receiving;
use super::{End, GroupLinkConfig, LinkOutcome, StreamConfig, Transport};
use crate::agenda::Source;
use crate::ground::{Ground, Hosts};
use crate::host::Use;
use crate::seeds::{Purpose, derive};

/// Both ends of a stream over several links, driven as a real application's are.
#[derive(Debug)]
pub(crate) struct Bond {
    /// The number of its stream.
    stream: usize,
    /// One host of the sending and one of the receiving end. The hosts of an end have one clock.
    hosts: [usize; 2],
    /// The end that calls.
    caller: End,
    /// The options of the end that calls and of the one that listens, for each link.
    configs: [Config; 2],
    /// The sender's and the receiver's.
    ends: [GroupDriver<Member>; 2],
    links: Vec<BondLink>,
}

/// A connection that is a link of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    /// The link's number in its stream.
    link: usize,
    host: usize,
    id: ConnectionId,
}

/// A link as its stream defines it, and what became of its calls.
#[derive(Debug)]
struct BondLink {
    defined: GroupLinkConfig,
    calls: u64,
    /// When it is called again, if it has ended.
    call_at: Option<Instant>,
}

impl Bond {
    /// The groups of stream number `stream` of the world with this seed, before any call; `None` if
    /// the stream has no groups.
    pub(super) fn new(
        config: &StreamConfig,
        stream: usize,
        seed: u64,
        ground: &Ground,
    ) -> Option<Self> {
        let Transport::Group { kind, sender, receiver, .. } = &config.transport else {
            return None;
        };
        let (calling, called, caller) = config.transport.calling_and_called()?;
        let hosts = [config.from.index(), config.to.index()];
        let group = |config: &Config, number| {
            let random = derive(seed, Purpose::Group, 2 * stream + number);
            let local = ground.local(hosts[number]);
            GroupDriver::new(Group::new(*kind, config.group_min_stability(), random, local))
        };
        let link = |defined| BondLink { defined, calls: 0, call_at: None };
        Some(Self {
            stream,
            hosts,
            caller,
            configs: [calling, called].map(|it| it.clone().with_group_connect(true)),
            ends: [group(sender, 0), group(receiver, 1)],
            links: config.links().map(link).collect(),
        })
    }

    /// The group of one end.
    pub(super) fn end(&self, end: End) -> &GroupDriver<Member> {
        &self.ends[end as usize]
    }

    /// The end that a host belongs to.
    pub(super) fn end_at(&self, host: usize) -> End {
        let is_sender = self.links.iter().any(|link| link.defined.from.index() == host);
        if is_sender { End::Sender } else { End::Receiver }
    }

    /// Calls over all links.
    pub(super) fn call_all(&mut self, ground: &mut Ground) {
        for link in 0..self.links.len() {
            self.call(ground, link);
        }
    }

    fn call(&mut self, ground: &mut Ground, link: usize) {
        let slot = &mut self.links[link];
        slot.calls += 1;
        slot.call_at = None;
        let GroupLinkConfig { from, to, weight } = slot.defined;
        let (calling, called) = match self.caller {
            End::Sender => (from.index(), to.index()),
            End::Receiver => (to.index(), from.index()),
        };
        let (local, remote) = (ground.local(calling), ground.hosts.get(called).address);
        let machine = &mut ground.hosts.get_mut(calling).machine;
        let path = machine.path_to(local, remote);
        let config = self.configs[0].clone();
        let group = &mut self.ends[self.caller as usize];
        let made = group.add_link(local, weight, |membership| {
            let id = machine.srt().connect(local, path, Attempt::link(config, membership));
            id.map(|id| Member { link, host: calling, id })
        });
        if let Some(&Member { id, .. }) = made.ok().and_then(|made| group.link(made)) {
            ground.expect(calling, called, id, Use { stream: self.stream, link });
        }
    }

    /// A caller wants to be a link. Returns its connection, if it is accepted.
    pub(super) fn accept(
        &mut self,
        ground: &mut Ground,
        host: usize,
        incoming: &Incoming,
        purpose: Use,
    ) -> Option<ConnectionId> {
        let (link, offer) = (purpose.link, incoming.group?);
        let local = ground.local(host);
        let at = ground.hosts.get_mut(host);
        let config = self.configs[1].clone();
        let group = &mut self.ends[self.caller.other() as usize];
        let accepted = group.add_link(local, offer.weight, |membership| {
            let acceptance = Acceptance::link(Some(config), membership);
            let id = at.machine.srt().accept(local, incoming.id, acceptance);
            id.map(|id| Member { link, host, id })
        });
        let id = group.link(accepted.ok()?)?.id;
        at.streams.insert(id, purpose);
        Some(id)
    }

    /// A link's handshake is over. Returns the end that it was at, which is to be
    /// [planned](Self::plan).
    pub(super) fn link_up(&mut self, ground: &mut Ground, host: usize, id: ConnectionId) -> End {
        let end = self.end_at(host);
        self.drive(ground, end, |group, hosts| {
            let Some(link) = group.find(|it| (it.host, it.id) == (host, id)) else { return };
            // A link of another group is of no use.
            if group.link_up(hosts, link).is_err()
                && let Some(mut connection) = hosts.connection(host, id)
            {
                connection.close();
            }
        });
        end
    }

    /// Hands a message to the sender's group.
    pub(super) fn send(&mut self, ground: &mut Ground, payload: Bytes) -> Result<(), SendError> {
        let options = SendOptions::default();
        let sent =
            self.drive(ground, End::Sender, |group, hosts| group.send(hosts, payload, options));
        self.plan(ground, End::Sender);
        sent
    }

    /// A link's connection has ended. Returns whether the group goes on; `None` if the connection
    /// is no link of it.
    pub(super) fn link_ended(
        &mut self,
        ground: &mut Ground,
        host: usize,
        id: ConnectionId,
    ) -> Option<bool> {
        let end = self.end_at(host);
        let (link, goes_on) = self.drive(ground, end, |group, hosts| {
            let id = group.find(|it| (it.host, it.id) == (host, id))?;
            let link = group.link(id)?.link;
            group.link_ended(hosts, id);
            let is_up = group.group().is_up();
            let joins = group.group().links().any(|(.., state)| state == LinkState::Joining);
            Some((link, is_up || joins))
        })?;
        if goes_on && end == self.caller {
            self.links[link].call_at = Some(ground.now() + PAUSE);
        }
        Some(goes_on)
    }

    /// The timer of one end has fired.
    pub(super) fn run(&mut self, ground: &mut Ground, end: End, receiving: &mut Receiving) {
        self.update(ground, end, receiving);
        if end == self.caller {
            self.call_again(ground);
        }
        self.plan(ground, end);
    }

    /// Calls over the links whose pause is over.
    fn call_again(&mut self, ground: &mut Ground) {
        let is_up = self.end(self.caller).group().is_up();
        let mut due = Vec::new();
        for (number, link) in self.links.iter_mut().enumerate() {
            if link.call_at.take_if(|at| *at <= ground.now()).is_some() && is_up {
                due.push(number);
            }
        }
        due.into_iter().for_each(|link| self.call(ground, link));
    }

    /// Reads the due messages at one end, and runs the group's timers.
    pub(super) fn update(&mut self, ground: &mut Ground, end: End, receiving: &mut Receiving) {
        self.read(ground, end, receiving);
        self.drive(ground, end, |group, hosts| group.update(hosts));
        self.plan(ground, end);
    }

    /// Reads everything that is due at one end, and releases the connections from which nothing
    /// more comes.
    fn read(&mut self, ground: &mut Ground, end: End, receiving: &mut Receiving) {
        let now = ground.now();
        self.drive(ground, end, |group, hosts| {
            while let Some(message) = group.recv(hosts) {
                receiving.take(now, hosts.local, &message);
            }
            while let Some(drained) = group.poll_drained() {
                let Member { host, id, .. } = drained.link;
                if let Some(connection) = hosts.connection(host, id) {
                    connection.release();
                }
                hosts.hosts.get_mut(host).streams.remove(&id);
            }
        });
    }

    /// Calls `work` with the driver and the hosts of one end.
    fn drive<R>(
        &mut self,
        ground: &mut Ground,
        end: End,
        work: impl FnOnce(&mut GroupDriver<Member>, &mut GroupHosts<'_>) -> R,
    ) -> R {
        let local = ground.local(self.hosts[end as usize]);
        work(&mut self.ends[end as usize], &mut GroupHosts { hosts: &mut ground.hosts, local })
    }

    /// Sets when the group of one end wants to look at its links next, or calls over one again.
    pub(super) fn plan(&self, ground: &mut Ground, end: End) {
        let clock = &ground.hosts.get(self.hosts[end as usize]).clock;
        let timer = self.end(end).poll_timeout().map(|local| clock.world(local));
        let calls = self.links.iter().filter_map(|link| link.call_at);
        let call = calls.min().filter(|_| end == self.caller);
        let next = timer.into_iter().chain(call).min().map(|at| at.max(ground.now()));
        ground.time.set(Source::Group(2 * self.stream + end as usize), next);
    }

    /// The links as they are now, with the statistics of their last connections.
    pub(super) fn outcomes(&self, ground: &Ground) -> Vec<LinkOutcome> {
        let outcome = |(number, link): (usize, &BondLink)| {
            let [sender, receiver] = [End::Sender, End::Receiver].map(|end| {
                let last = last_of(self.end(end), number);
                last.and_then(|(_, it)| ground.statistics_of(it.host, it.id)).unwrap_or_default()
            });
            let state = state_of(self.end(End::Sender), number);
            LinkOutcome { state, calls: link.calls, sender, receiver }
        };
        self.links.iter().enumerate().map(outcome).collect()
    }
}

/// The hosts of one end of a group, for its driver.
struct GroupHosts<'a> {
    hosts: &'a mut Hosts,
    /// The time on the clock that the end's hosts share.
    local: Instant,
}

impl GroupHosts<'_> {
    fn connection(&mut self, host: usize, id: ConnectionId) -> Option<ConnectionGuard<'_>> {
        self.hosts.get_mut(host).machine.srt().connection(self.local, id)
    }
}

impl LinkConnections for GroupHosts<'_> {
    type Link = Member;

    fn now(&self) -> Instant {
        self.local
    }

    fn with_connection<R>(
        &mut self,
        link: &Member,
        access: LinkAccess,
        work: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        if access != LinkAccess::Query {
            self.hosts.touch(link.host);
        }
        Some(work(&mut *self.connection(link.host, link.id)?))
    }
}

/// The last connection of a link.
fn last_of(end: &GroupDriver<Member>, link: usize) -> Option<(LinkId, &Member)> {
    end.links().filter(|(_, member)| member.link == link).last()
}

/// How a link is at this end.
fn state_of(end: &GroupDriver<Member>, link: usize) -> LinkState {
    let id = last_of(end, link).map(|(id, _)| id);
    id.and_then(|id| end.group().link_state(id)).unwrap_or(LinkState::Gone)
}

/// The pause between a link's end and the next call.
const PAUSE: Duration = Duration::from_secs(1);
