//! Streams over several links: the groups at both ends, driven as a real application's are.

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    CloseReason, ConnectionId, Group, GroupDriver, Incoming, LinkState, SendError, SendOptions,
};
use punctual_units::Instant;

use super::World;
use crate::agenda::Source;
use crate::host::Use;
use crate::seeds::{Purpose, derive};
use crate::stream::bond::{Bond, GroupHosts, Member};
use crate::stream::{End, GroupLink, Transport};

const BOTH: [End; 2] = [End::Sender, End::Receiver];

impl World {
    /// Calls over all links of a stream's group.
    pub(super) fn start_group(&mut self, index: usize) {
        let stream = &self.streams[index];
        let Transport::Group { kind, sender, receiver, .. } = &stream.config.transport else {
            return;
        };
        let ends = [(sender, stream.from, 0), (receiver, stream.to, 1)];
        let groups = ends.map(|(config, host, number)| {
            let local = self.hosts[host].clock.local(self.now);
            let random = derive(self.seed, Purpose::Group, 2 * index + number);
            Group::new(*kind, config.group_min_stability(), random, local)
        });
        let bond = Bond::new(groups, stream.config.links());
        let count = bond.links.len();
        self.streams[index].bond = Some(Box::new(bond));
        for link in 0..count {
            self.call_link(index, link);
        }
    }

    fn call_link(&mut self, index: usize, link: usize) {
        let Self { hosts, streams, now, .. } = self;
        let stream = &mut streams[index];
        let Some((config, _, caller)) = stream.config.transport.calling_and_called() else {
            return;
        };
        let Some(bond) = &mut stream.bond else { return };
        let slot = &mut bond.links[link];
        slot.calls += 1;
        slot.call_at = None;
        let GroupLink { from, to, weight } = slot.defined;
        let (calling, called) = match caller {
            End::Sender => (from.index(), to.index()),
            End::Receiver => (to.index(), from.index()),
        };
        let remote = hosts[called].address;
        let host = &mut hosts[calling];
        let local = host.clock.local(*now);
        let config = config.clone().with_group_connect(true);
        let path = host.machine.path_to(local, remote);
        let endpoint = host.machine.srt();
        let made = bond.end_mut(caller).add_link(local, weight, |membership| {
            let id = endpoint.connect_link(local, path, config, membership);
            id.map(|id| Member { link, host: calling, id })
        });
        let group = bond.end(caller);
        if let Some(&Member { id, .. }) = made.ok().and_then(|made| group.link(made)) {
            self.expect(calling, called, id, Use { stream: index, link });
        }
    }

    /// A caller wants to be a link of a stream's group.
    pub(super) fn accept_link(&mut self, host: usize, incoming: &Incoming, purpose: Use) {
        let Use { stream: index, link } = purpose;
        let Self { hosts, streams, now, .. } = self;
        let stream = &mut streams[index];
        let Some((_, config, caller)) = stream.config.transport.calling_and_called() else {
            return;
        };
        let (Some(bond), Some(offer)) = (&mut stream.bond, incoming.group) else { return };
        let at = &mut hosts[host];
        let local = at.clock.local(*now);
        let group = bond.end_mut(caller.other());
        let config = config.clone().with_group_connect(true);
        let accepted = group.add_link(local, offer.weight, |membership| {
            let id = at.machine.srt().accept_link(local, incoming.id, Some(config), membership);
            id.map(|id| Member { link, host, id })
        });
        if let Some(&Member { id, .. }) = accepted.ok().and_then(|made| group.link(made)) {
            at.streams.insert(id, purpose);
            self.link_is_up(index, host, id);
        }
    }

    /// A link's handshake is over.
    pub(super) fn link_is_up(&mut self, index: usize, host: usize, id: ConnectionId) {
        let end = self.end_at(index, host);
        self.with_group(index, end, |group, hosts| {
            let Some(link) = group.find(|it| (it.host, it.id) == (host, id)) else { return };
            // A link of another group is of no use.
            if group.link_up(hosts, link).is_err() {
                hosts.hosts[host].machine.srt().close(hosts.local, id);
            }
        });
        if end == End::Sender && self.streams[index].sending.begun().is_none() {
            self.begin(index);
        }
        self.plan_group(index, end);
    }

    /// Hands a message to a stream's group.
    pub(super) fn submit_to_group(
        &mut self,
        index: usize,
        payload: Bytes,
    ) -> Result<(), SendError> {
        let sent = self.with_group(index, End::Sender, |group, hosts| {
            group.send(hosts, payload, SendOptions::default())
        });
        self.plan_group(index, End::Sender);
        sent.unwrap_or(Err(SendError::NotConnected))
    }

    /// A link has something to read, or something for its group.
    pub(super) fn link_has_news(&mut self, index: usize, host: usize) {
        let end = self.end_at(index, host);
        self.update_and_read(index, end);
    }

    /// A link's connection has ended.
    pub(super) fn link_ended(
        &mut self,
        index: usize,
        host: usize,
        id: ConnectionId,
        reason: CloseReason,
    ) {
        let end = self.end_at(index, host);
        let ended = self.with_group(index, end, |group, hosts| {
            let id = group.find(|it| (it.host, it.id) == (host, id))?;
            let link = group.link(id)?.link;
            group.link_ended(hosts, id);
            let is_up = group.group().is_up();
            let joins = group.group().links().any(|(.., state)| state == LinkState::Joining);
            Some((link, is_up || joins))
        });
        let Some(Some((link, goes_on))) = ended else { return };
        let is_caller = self.is_caller(index, end);
        let stream = &mut self.streams[index];
        if goes_on
            && is_caller
            && let Some(bond) = &mut stream.bond
        {
            bond.links[link].call_at = Some(self.now + PAUSE);
        }
        if !goes_on {
            stream.end(reason);
            self.agenda.set(Source::Stream(index), None);
        }
        self.update_and_read(index, end);
    }

    /// A group's timer has fired: that of the sender of stream n is number 2n, that of its receiver
    /// 2n + 1.
    pub(super) fn run_group(&mut self, number: usize) {
        let (index, end) = (number / 2, BOTH[number % 2]);
        self.update_and_read(index, end);
        if self.is_caller(index, end) {
            self.call_again(index, end);
        }
        self.plan_group(index, end);
        self.drain_touched();
    }

    fn call_again(&mut self, index: usize, end: End) {
        let now = self.now;
        let Some(bond) = &mut self.streams[index].bond else { return };
        let is_up = bond.end(end).group().is_up();
        let mut due = Vec::new();
        for (number, link) in bond.links.iter_mut().enumerate() {
            if link.call_at.take_if(|at| *at <= now).is_some() && is_up {
                due.push(number);
            }
        }
        for link in due {
            self.call_link(index, link);
        }
    }

    /// Reads the due messages at one end of a group, and runs the group's timers.
    fn update_and_read(&mut self, index: usize, end: End) {
        self.read_group(index, end);
        self.with_group(index, end, |group, hosts| group.update(hosts));
        self.plan_group(index, end);
    }

    /// Reads everything that is due at one end of a group, and releases the connections from which
    /// nothing more comes.
    fn read_group(&mut self, index: usize, end: End) {
        let mut messages = Vec::new();
        self.with_group(index, end, |group, hosts| {
            messages.extend(std::iter::from_fn(|| group.recv(hosts)));
            while let Some(drained) = group.poll_drained() {
                let Member { host, id, .. } = drained.link;
                let host = &mut hosts.hosts[host];
                host.machine.srt().release(hosts.local, id);
                host.streams.remove(&id);
            }
        });
        let local = self.hosts[self.host_of(index, end)].clock.local(self.now);
        for message in messages {
            self.streams[index].receiving.take(self.now, local, &message);
        }
    }

    /// Calls `work` with the driver of one end of a stream's group and the hosts of that end;
    /// `None` if the stream has no group.
    fn with_group<R>(
        &mut self,
        index: usize,
        end: End,
        work: impl FnOnce(&mut GroupDriver<Member>, &mut GroupHosts<'_>) -> R,
    ) -> Option<R> {
        let host = self.host_of(index, end);
        let Self { hosts, streams, touched, now, .. } = self;
        let bond = streams[index].bond.as_mut()?;
        let local = hosts[host].clock.local(*now);
        Some(work(bond.end_mut(end), &mut GroupHosts { hosts, touched, local }))
    }

    /// Sets when a group wants to look at its links next, or calls over one again.
    fn plan_group(&mut self, index: usize, end: End) {
        let stream = &self.streams[index];
        let Some(bond) = &stream.bond else { return };
        let group = bond.end(end);
        let clock = &self.hosts[self.host_of(index, end)].clock;
        let timer = group.poll_timeout().map(|local| clock.world(local));
        let calls = bond.next_call().filter(|_| self.is_caller(index, end));
        let next: Option<Instant> = timer.into_iter().chain(calls).min();
        let number = 2 * index + end as usize;
        self.agenda.set(Source::Group(number), next.map(|at| at.max(self.now)));
    }

    /// One of the hosts of an end: they have one clock.
    fn host_of(&self, index: usize, end: End) -> usize {
        match end {
            End::Sender => self.streams[index].from,
            End::Receiver => self.streams[index].to,
        }
    }

    /// The end of a stream that a host belongs to.
    fn end_at(&self, index: usize, host: usize) -> End {
        let bond = self.streams[index].bond.as_ref();
        let mut links = bond.into_iter().flat_map(|bond| &bond.links);
        if links.any(|link| link.defined.from.index() == host) {
            End::Sender
        } else {
            End::Receiver
        }
    }

    fn is_caller(&self, index: usize, end: End) -> bool {
        self.streams[index].config.transport.ends().is_some_and(|(.., caller)| caller == end)
    }
}

/// The pause between a link's end and the next call.
const PAUSE: Duration = Duration::from_secs(1);
