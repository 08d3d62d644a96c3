//! Streams over several links: the groups at both ends, driven as a real application's are.

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    CloseReason, ConnectionId, Group, GroupKind, Incoming, LinkState, SendError, SendOptions,
};
use punctual_units::Instant;

use super::World;
use crate::agenda::Source;
use crate::chance::{Purpose, derive};
use crate::host::Use;
use crate::stream::bond::{Bond, GroupEnd, Member};
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
        let end = bond.end_mut(caller);
        let name = end.machine.add_link(weight);
        let membership = end.machine.membership(name);
        let config = config.clone().with_group_connect(true);
        match host.endpoint.connect_link(local, remote, config, &membership) {
            Ok(id) => {
                end.members.push(Member { link, host: calling, id, name });
                self.expect(calling, called, id, Use { stream: index, link });
            }
            Err(_) => end.machine.remove_link(local, name),
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
        let end = bond.end_mut(caller.other());
        let name = end.machine.add_link(offer.weight);
        let membership = end.machine.membership(name);
        let config = config.clone().with_group_connect(true);
        let accepted = at.endpoint.accept_link(local, incoming.id, Some(config), &membership);
        let Ok(id) = accepted else { return end.machine.remove_link(local, name) };
        end.members.push(Member { link, host, id, name });
        at.streams.insert(id, purpose);
        self.link_stands(index, host, id);
    }

    /// A link's handshake is over.
    pub(super) fn link_stands(&mut self, index: usize, host: usize, id: ConnectionId) {
        let end = self.end_at(index, host);
        let Self { hosts, streams, now, .. } = self;
        let Some(bond) = &mut streams[index].bond else { return };
        let group = bond.end_mut(end);
        let at = &mut hosts[host];
        let local = at.clock.local(*now);
        if let (Some(terms), Some(name)) = (at.endpoint.link_terms(id), group.name_of(host, id)) {
            // A link of another group is of no use.
            if group.machine.link_up(local, name, &terms).is_err() {
                at.endpoint.close(local, id);
            }
        }
        self.carry_out(index, end);
        if end == End::Sender && self.streams[index].connected_at.is_none() {
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
        self.look(index, End::Sender);
        let local = self.hosts[self.streams[index].from].clock.local(self.now);
        let Some(bond) = &mut self.streams[index].bond else { return Err(SendError::NotConnected) };
        let machine = &mut bond.end_mut(End::Sender).machine;
        let sent = machine.send(local, payload, SendOptions::default());
        self.carry_out(index, End::Sender);
        self.plan_group(index, End::Sender);
        sent
    }

    /// A link has something to read, or something for its group.
    pub(super) fn link_has_news(&mut self, index: usize, host: usize) {
        let end = self.end_at(index, host);
        self.look_and_read(index, end);
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
        let (now, stream) = (self.now, &mut self.streams[index]);
        let caller = stream.config.transport.ends().map(|(.., caller)| caller);
        let Some(bond) = &mut stream.bond else { return };
        let local = self.hosts[host].clock.local(now);
        let group = bond.end_mut(end);
        let Some(member) = group.members.iter().find(|it| (it.host, it.id) == (host, id)) else {
            return;
        };
        let (link, name) = (member.link, member.name);
        group.machine.link_down(local, name);
        let stands = group.machine.is_up();
        let joins = group.machine.links().any(|(.., state)| state == LinkState::Joining);
        if caller == Some(end) && (stands || joins) {
            bond.links[link].call_at = Some(now + PAUSE);
        }
        if !stands && !joins {
            stream.end(reason);
            self.agenda.set(Source::Stream(index), None);
        }
        self.look_and_read(index, end);
    }

    /// The time that a group asked for has come: that of the sender of stream n is number 2n, that
    /// of its receiver 2n + 1.
    pub(super) fn run_group(&mut self, number: usize) {
        let (index, end) = (number / 2, BOTH[number % 2]);
        self.look_and_read(index, end);
        if self.is_caller(index, end) {
            self.call_again(index, end);
        }
        self.plan_group(index, end);
        self.drain_touched();
    }

    fn call_again(&mut self, index: usize, end: End) {
        let now = self.now;
        let Some(bond) = &mut self.streams[index].bond else { return };
        let stands = bond.end(end).machine.is_up();
        let mut due = Vec::new();
        for (number, link) in bond.links.iter_mut().enumerate() {
            if link.call_at.take_if(|at| *at <= now).is_some() && stands {
                due.push(number);
            }
        }
        for link in due {
            self.call_link(index, link);
        }
    }

    fn look_and_read(&mut self, index: usize, end: End) {
        self.collect(index, end);
        self.look(index, end);
        self.plan_group(index, end);
    }

    /// Tells a group how its links are, and does what it wants.
    fn look(&mut self, index: usize, end: End) {
        let Self { hosts, streams, now, .. } = self;
        let Some(bond) = &mut streams[index].bond else { return };
        let GroupEnd { machine, members } = bond.end_mut(end);
        let Some(first) = members.first() else { return };
        let local = hosts[first.host].clock.local(*now);
        for member in members.iter() {
            let endpoint = &mut hosts[member.host].endpoint;
            if let Some(status) = endpoint.link_status(member.id) {
                machine.update(member.name, status);
            }
            if machine.kind() == GroupKind::Balance {
                let lost = endpoint.take_link_losses(member.id);
                machine.handle_losses(local, member.name, lost);
            }
        }
        machine.handle_timeout(local);
        self.carry_out(index, end);
    }

    fn carry_out(&mut self, index: usize, end: End) {
        let Self { hosts, streams, touched, now, .. } = self;
        let Some(bond) = &mut streams[index].bond else { return };
        let GroupEnd { machine, members } = bond.end_mut(end);
        while let Some((name, action)) = machine.poll_action() {
            let Some(member) = members.iter().find(|it| it.name == name) else { continue };
            let host = &mut hosts[member.host];
            let local = host.clock.local(*now);
            // A link without room misses the message; the group knows.
            let _ = host.endpoint.apply(local, member.id, action);
            if !touched.contains(&member.host) {
                touched.push(member.host);
            }
        }
    }

    /// Hands everything that is due at the links to the group, and reads what it makes of it. Links
    /// that have ended and delivered all are forgotten.
    fn collect(&mut self, index: usize, end: End) {
        let Self { hosts, streams, touched, now, .. } = self;
        let stream = &mut streams[index];
        let Some(bond) = &mut stream.bond else { return };
        let GroupEnd { machine, members } = bond.end_mut(end);
        let Some(first) = members.first() else { return };
        let local = hosts[first.host].clock.local(*now);
        let balances = machine.kind() == GroupKind::Balance;
        members.retain(|&Member { host, id, name, .. }| {
            let at = &mut hosts[host];
            for message in at.endpoint.take_link_messages(id) {
                machine.handle_message(name, message);
            }
            if !touched.contains(&host) {
                touched.push(host);
            }
            loop {
                match at.endpoint.recv(local, id) {
                    // The group has it already.
                    Ok(Some(_)) if balances => {}
                    Ok(Some(message)) => machine.handle_message(name, message),
                    Ok(None) => return true,
                    Err(_) => break,
                }
            }
            let mut links = machine.links();
            let gone = links.any(|(link, _, state)| link == name && state == LinkState::Gone);
            drop(links);
            if gone {
                machine.remove_link(local, name);
                at.endpoint.release(local, id);
                at.streams.remove(&id);
            }
            !gone
        });
        while let Some(message) = machine.recv(local) {
            stream.receiving.take(*now, local, &message);
        }
    }

    /// Sets when a group wants to look at its links next, or calls over one again.
    fn plan_group(&mut self, index: usize, end: End) {
        let stream = &self.streams[index];
        let Some(bond) = &stream.bond else { return };
        let group = bond.end(end);
        let timers = [group.machine.poll_timeout(), group.machine.next_delivery()];
        let clock = &self.hosts[self.host_of(index, end)].clock;
        let timers = timers.into_iter().flatten().map(|local| clock.world(local));
        let calls = bond.next_call().filter(|_| self.is_caller(index, end));
        let next: Option<Instant> = timers.chain(calls).min();
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

/// How long after its end a link is called again.
const PAUSE: Duration = Duration::from_secs(1);
