//! Groups: one stream over several links.

use std::net::SocketAddr;

use punctual::{Error, Group, GroupKind, GroupLink, LinkId, LinkReport, LinkState};

use super::connecting::{Caller, Connecting, any_address, connect_code};
use super::link::{Carrier, Link};
use super::{Socket, SocketState, Stage, State};
use crate::code::{Code, Failure};
use crate::events::Events;
use crate::options::OptionNumber;
use crate::readiness::now;

/// libsrt's number of broadcast groups.
const BROADCAST: i32 = 1;
/// libsrt's number of backup groups.
const BACKUP: i32 = 2;
/// The number of balancing groups, which libsrt does not have.
const BALANCE: i32 = 1_000;

/// A link that a group is to call over.
#[derive(Clone, Debug)]
pub struct LinkCall {
    /// This end's address; `None` for any.
    pub local: Option<SocketAddr>,
    /// The listener to call.
    pub remote: SocketAddr,
    /// The weight of the link.
    pub weight: u16,
    /// A number of the program's own; -1 for none.
    pub token: i32,
    /// Options of this link alone.
    pub options: Vec<(OptionNumber, crate::Value)>,
}

/// The state of a link of a group: libsrt's `SRT_MEMBERSTATUS`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum MemberState {
    /// Not connected yet.
    Pending = 0,
    /// On standby.
    Idle = 1,
    /// Carries the stream.
    Running = 2,
    /// Failed, or has ended.
    Broken = 3,
}

/// A link of a group.
#[derive(Clone, Debug)]
pub struct MemberInfo {
    /// The number of its socket.
    pub id: i32,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The state of its socket.
    pub socket: SocketState,
    /// The weight of the link.
    pub weight: u16,
    /// The state of the link.
    pub state: MemberState,
    /// The program's own number; -1 for none.
    pub token: i32,
    /// The error of the call; [`Code::Success`] without one.
    pub error: Code,
}

/// The links of a group, with their numbers.
#[derive(Debug)]
pub(super) struct Members {
    kind: GroupKind,
    group: Option<Group>,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    id: i32,
    link: Option<LinkId>,
    remote: SocketAddr,
    weight: u16,
    token: i32,
    error: Option<Code>,
}

impl Members {
    /// The links of a group of this kind that does not call yet.
    pub(super) const fn new(kind: GroupKind) -> Self {
        Self { kind, group: None, members: Vec::new() }
    }

    /// The group, once it was opened.
    pub(super) const fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// The number of the kind of the group.
    pub(super) const fn kind_number(&self) -> i32 {
        match self.kind {
            GroupKind::Broadcast => BROADCAST,
            GroupKind::Backup => BACKUP,
            GroupKind::Balance => BALANCE,
        }
    }

    /// Adds a link that is called. Returns the numbers of the calls that failed before and are
    /// repeated by it: a program that calls again and again needs to know of the last failure
    /// alone.
    fn add(&mut self, member: Member) -> Vec<i32> {
        let (remote, token) = (member.remote, member.token);
        let is_repeated = |it: &mut Member| {
            let failed = it.link.is_none() && it.error.is_some();
            failed && it.remote == remote && it.token == token
        };
        let repeated = self.members.extract_if(.., is_repeated).map(|it| it.id).collect();
        self.members.push(member);
        repeated
    }

    /// Removes a link. Returns its number in the group, if it has one; `None` if it is unknown.
    fn remove(&mut self, id: i32) -> Option<Option<LinkId>> {
        let index = self.members.iter().position(|member| member.id == id)?;
        Some(self.members.remove(index).link)
    }

    /// Notes the result of a call. Returns the peer's address and the token of the link.
    fn note(
        &mut self,
        id: i32,
        link: Option<LinkId>,
        error: Option<Code>,
    ) -> Option<(SocketAddr, i32)> {
        if let Some(link) = link {
            self.assign(id, link);
        }
        let member = self.members.iter_mut().find(|it| it.id == id)?;
        member.error = error;
        Some((member.remote, member.token))
    }

    /// Takes over the reports of all links of the group. A link that called this end gets a
    /// `number`. Returns the links that are there, and the numbers of the links that have
    /// ended: they are gone, as in libsrt.
    fn follow(
        &mut self,
        mut reports: Vec<LinkReport>,
        number: impl Fn() -> Option<i32>,
    ) -> (Vec<MemberInfo>, Vec<i32>) {
        for report in &reports {
            if self.find(report).is_none()
                && let Some(id) = number()
            {
                let (link, remote) = (Some(report.id), report.remote);
                let weight = report.weight;
                self.members.push(Member { id, link, remote, weight, token: -1, error: None });
            }
        }
        let (mut infos, mut ended) = (Vec::new(), Vec::new());
        self.members.retain(|member| {
            let report = reports.iter().position(|it| Some(it.id) == member.link);
            let report = report.map(|index| reports.swap_remove(index));
            let is_there = report.is_some() || member.link.is_none();
            if is_there {
                infos.push(member.info(report.as_ref()));
            } else {
                ended.push(member.id);
            }
            is_there
        });
        (infos, ended)
    }

    /// Whether no link can come any more: each has failed.
    fn all_have_failed(&self) -> bool {
        self.members.iter().all(|member| member.error.is_some())
    }

    /// Notes the link of a member. A report may have come before, and was taken for another member
    /// with the same address: they change places.
    fn assign(&mut self, id: i32, link: LinkId) {
        let Some(member) = self.members.iter_mut().find(|it| it.id == id) else { return };
        let guessed = member.link.replace(link);
        let other = self.members.iter_mut().find(|it| it.id != id && it.link == Some(link));
        if let Some(other) = other {
            other.link = guessed;
        }
    }

    /// The member that a report is about.
    fn find(&mut self, report: &LinkReport) -> Option<&mut Member> {
        let by_link = self.members.iter().position(|it| it.link == Some(report.id));
        let is_candidate = |it: &Member| it.link.is_none() && it.remote == report.remote;
        let index = by_link.or_else(|| self.members.iter().position(is_candidate))?;
        let member = &mut self.members[index];
        member.link = Some(report.id);
        Some(member)
    }
}

/// The kind of a group by its number.
pub(crate) const fn kind(number: i32) -> Option<GroupKind> {
    match number {
        BROADCAST => Some(GroupKind::Broadcast),
        BACKUP => Some(GroupKind::Backup),
        BALANCE => Some(GroupKind::Balance),
        _ => None,
    }
}

/// The links of a socket that is a group.
#[derive(Debug)]
pub(crate) struct GroupLinks<'a>(pub(super) &'a Socket);

impl GroupLinks<'_> {
    /// Calls over links of a group. If the calls of the group block, it waits for the first link.
    /// Returns the number of a link that is established, or of the last one that is called.
    pub(crate) fn connect(
        &self,
        calls: &[LinkCall],
        started: &mut Vec<(i32, Code)>,
    ) -> Result<i32, Failure> {
        if calls.is_empty() {
            return Err(Code::InvalidParameter.into());
        }
        let group = self.open()?;
        for call in calls {
            let begun = self.begin(&group, call);
            started.push(begun.map_or_else(|failure| (-1, failure.code), |id| (id, Code::Success)));
        }
        let last = started.iter().rev().find(|(_, code)| *code == Code::Success);
        let Some(&(last, _)) = last else { return Err(Code::ConnectionLost.into()) };
        self.0.follow_phase();
        if !self.0.core.settings.receive_blocks() || self.0.core.link().is_some() {
            return Ok(last);
        }
        Caller(self.0).await_answer().map_err(|_| Failure::from(Code::ConnectionLost))?;
        let members = self.list();
        let up = members.iter().find(|member| member.socket == SocketState::Connected);
        Ok(up.map_or(last, |member| member.id))
    }

    /// Calls over one link: see [`connect`](Self::connect).
    pub(crate) fn connect_one(
        &self,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> Result<i32, Failure> {
        let call = LinkCall { local, remote, weight: 0, token: -1, options: Vec::new() };
        self.connect(&[call], &mut Vec::new())
    }

    /// The group of links, opened if it is not.
    fn open(&self) -> Result<Group, Failure> {
        let mut state = self.0.lock();
        let blocks = self.0.core.settings.receive_blocks();
        let State { stage, options, members, .. } = &mut *state;
        let members = members.as_mut().ok_or(Code::InvalidParameter)?;
        match (&*stage, &members.group) {
            (Stage::Closed(_), _) => return Err(Code::InvalidSocket.into()),
            (_, Some(group)) => return Ok(group.clone()),
            _ => {}
        }
        let config = options.config().map_err(|_| Code::InvalidParameter)?;
        let library = self.0.library()?;
        let _runtime = library.runtime().enter();
        let opened = Group::open(members.kind, config).map_err(|_| Code::InvalidParameter)?;
        opened.watch(self.0.watcher());
        members.group = Some(opened.clone());
        let (carrier, remote) = (Carrier::Group(opened.clone()), any_address_of_v4());
        *stage = Stage::Connecting(Connecting { carrier, blocks, remote });
        drop(state);
        self.0.core.note_opened();
        Ok(opened)
    }

    /// Begins the call over one link. Returns its number.
    fn begin(&self, group: &Group, call: &LinkCall) -> Result<i32, Failure> {
        let library = self.0.library()?;
        let id = library.reserve_number(self.0.core.id());
        let mut state = self.0.lock();
        let mut options = state.options.clone();
        for (number, value) in &call.options {
            options.set(*number, value.clone())?;
        }
        let local = call.local.unwrap_or_else(|| any_address(call.remote));
        let link = GroupLink {
            remote: call.remote,
            port: options.port_config(local),
            weight: call.weight,
        };
        let (remote, weight, token) = (call.remote, call.weight, call.token);
        let Some(members) = &mut state.members else { return Err(Code::InvalidParameter.into()) };
        let repeated = members.add(Member { id, link: None, remote, weight, token, error: None });
        drop(state);
        library.forget_links(repeated);
        let runtime = library.runtimes().for_port();
        let entered = runtime.enter();
        let attempt = group.add_link(link);
        drop(entered);
        if let Some(this) = self.0.this.upgrade() {
            library.runtime().spawn(async move {
                let result = attempt.await.unwrap_or(Err(Error::Stopped));
                GroupLinks(&this).note(id, result);
            });
        }
        Ok(id)
    }

    /// Takes in the result of the first call over a link.
    fn note(&self, id: i32, result: Result<LinkId, Error>) {
        let mut state = self.0.lock();
        let hook = state.connect_hook.clone();
        let Some(members) = &mut state.members else { return };
        let code = result.as_ref().err().map(link_code);
        let Some((remote, token)) = members.note(id, result.ok(), code) else { return };
        let all_failed = members.all_have_failed();
        let group = members.group.clone();
        let failed = all_failed && matches!(state.stage, Stage::Connecting(_));
        if failed {
            state.stage = Stage::Broken(now());
            state.failure = Some(Code::ConnectionLost.into());
        }
        drop(state);
        if let (Some(code), Some(hook), Ok(library)) = (code, hook, self.0.library()) {
            hook.run(&library, id, code, remote, Some(token));
        }
        if failed {
            if let Some(group) = group {
                group.begin_close();
            }
            self.0.core.raise(Events::BROKEN);
        }
    }

    /// The links of the group.
    pub(crate) fn list(&self) -> Vec<MemberInfo> {
        let group = self.0.core.link().and_then(Link::group).cloned();
        let mut state = self.0.lock();
        let Some(members) = &mut state.members else { return Vec::new() };
        let group = group.or_else(|| members.group.clone());
        let reports = group.map(|group| group.links()).unwrap_or_default();
        let library = self.0.library().ok();
        let number = || library.as_ref().map(|library| library.reserve_number(self.0.id()));
        let (infos, ended) = members.follow(reports, number);
        drop(state);
        if let Some(library) = library {
            library.forget_links(ended);
        }
        infos
    }

    /// Closes a link; the group does not call over it again.
    pub(crate) fn close(&self, id: i32) {
        let group = self.0.core.link().and_then(Link::group).cloned();
        let mut state = self.0.lock();
        let Some(members) = &mut state.members else { return };
        let group = group.or_else(|| members.group.clone());
        let Some(link) = members.remove(id) else { return };
        drop(state);
        if let Ok(library) = self.0.library() {
            library.forget_links([id]);
        }
        if let (Some(group), Some(link)) = (group, link) {
            group.remove_link(link);
        }
    }

    /// The state of a link's socket.
    pub(crate) fn state(&self, id: i32) -> SocketState {
        let member = self.list().into_iter().find(|member| member.id == id);
        member.map_or(SocketState::Nonexistent, |member| member.socket)
    }
}

impl Member {
    fn info(&self, report: Option<&LinkReport>) -> MemberInfo {
        let (socket, state) = match (report.map(|report| report.state), self.error) {
            (Some(LinkState::Gone), _) => (SocketState::Broken, MemberState::Broken),
            (Some(LinkState::Joining), _) | (None, None) => {
                (SocketState::Connecting, MemberState::Pending)
            }
            (Some(LinkState::Idle), _) => (SocketState::Connected, MemberState::Idle),
            (Some(_), _) => (SocketState::Connected, MemberState::Running),
            (None, Some(_)) => (SocketState::Broken, MemberState::Broken),
        };
        MemberInfo {
            id: self.id,
            remote: report.map_or(self.remote, |report| report.remote),
            socket,
            weight: self.weight,
            state,
            token: self.token,
            error: self.error.unwrap_or(Code::Success),
        }
    }
}

/// The error of a link that could not be made.
fn link_code(error: &Error) -> Code {
    match error {
        Error::Closed(reason) => connect_code(reason),
        _ => Code::ConnectSetup,
    }
}

/// A group has no address of its own.
fn any_address_of_v4() -> SocketAddr {
    (std::net::Ipv4Addr::UNSPECIFIED, 0).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::{any_port, assert_fails, listener, receive, send, set, until};
    use crate::{Library, Value};

    /// Options of both ends: links join a group, and messages are due at once.
    const OPTIONS: [(OptionNumber, i32); 2] =
        [(OptionNumber::GROUPCONNECT, 1), (OptionNumber::LATENCY, 0)];

    fn call(remote: SocketAddr, weight: u16, token: i32) -> LinkCall {
        LinkCall { local: None, remote, weight, token, options: Vec::new() }
    }

    #[test]
    fn a_call_that_is_repeated_replaces_the_one_that_failed() {
        let mut members = Members::new(GroupKind::Broadcast);
        let remote = any_port();
        let called = |id, token| Member { id, link: None, remote, weight: 0, token, error: None };
        assert_eq!(members.add(called(1, 7)), []);
        assert_eq!(members.note(1, None, Some(Code::NoServer)), Some((remote, 7)));
        assert!(members.all_have_failed());
        assert_eq!(members.add(called(2, 8)), [], "another link");
        assert_eq!(members.add(called(3, 7)), [1]);
        assert_eq!((members.remove(1), members.remove(3)), (None, Some(None)));
        let (infos, ended) = members.follow(Vec::new(), || None);
        assert_eq!((infos.len(), infos[0].id, ended), (1, 2, vec![]));
    }

    /// A group of this kind that calls over each of these links.
    fn calling(library: &Arc<Library>, kind: i32, calls: &[LinkCall]) -> i32 {
        let group = library.create_group(kind).unwrap();
        set(library, group, &[(OptionNumber::LATENCY, 0), (OptionNumber::CONNTIMEO, 300)]);
        library.connect_links(group, calls, &mut Vec::new()).unwrap();
        group
    }

    fn until_all_are(library: &Library, group: i32, states: &[MemberState]) -> Vec<MemberInfo> {
        until("the links have their states", || {
            let mut members = library.members(group).unwrap();
            members.sort_by_key(|member| member.token);
            let is_so = members.iter().map(|it| it.state).eq(states.iter().copied());
            is_so.then_some(members)
        })
    }

    #[test]
    fn a_message_over_two_links_of_a_broadcast_group_arrives_once() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &OPTIONS);
        let links = [1, 2].map(|token| call(waiting.address, 0, token));
        let group = calling(&library, BROADCAST, &links);
        let members = until_all_are(&library, group, &[MemberState::Running; 2]);
        assert_eq!(members.iter().map(|it| it.token).collect::<Vec<_>>(), [1, 2]);
        assert!(members.iter().all(|it| library.group_of(it.id) == Ok(group)));
        let (accepted, _) = library.accept(waiting.id).unwrap();
        assert!(Library::is_group_number(accepted));
        for text in [&b"one"[..], b"two", b"three"] {
            send(&library, group, text);
            assert_eq!(receive(&library, accepted).unwrap(), text);
        }
        set(&library, accepted, &[(OptionNumber::RCVSYN, 0)]);
        assert_fails(receive(&library, accepted), Code::AgainReceive);
        library.close(group);
        until("the other end hears of it", || {
            (library.state(accepted) == SocketState::Broken).then_some(())
        });
        assert_fails(library.members(group), Code::InvalidParameter);
        library.shut_down();
    }

    #[test]
    fn a_backup_group_sends_over_the_link_with_the_larger_weight() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &OPTIONS);
        let links = [(1, 1), (2, 2)].map(|(weight, token)| call(waiting.address, weight, token));
        let group = calling(&library, BACKUP, &links);
        let (accepted, _) = library.accept(waiting.id).unwrap();
        until("the better link runs alone", || {
            send(&library, group, b"on time");
            let members = library.members(group).unwrap();
            let state = |token| members.iter().find(|it| it.token == token).map(|it| it.state);
            let is_so =
                state(1) == Some(MemberState::Idle) && state(2) == Some(MemberState::Running);
            is_so.then_some(())
        });
        assert_eq!(receive(&library, accepted).unwrap(), b"on time");
        library.shut_down();
    }

    #[test]
    fn a_link_that_fails_leaves_the_others_and_reports_its_error_once() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &OPTIONS);
        let silent = std::net::UdpSocket::bind(any_port()).unwrap();
        let silent = silent.local_addr().unwrap();
        let links = [call(waiting.address, 0, 1), call(silent, 0, 2)];
        let group = calling(&library, BROADCAST, &links);
        let states = [MemberState::Running, MemberState::Broken];
        let members = until_all_are(&library, group, &states);
        assert_eq!(members[1].error, Code::NoServer);
        // Further calls of the same link take the place of the one that failed.
        library.connect_links(group, &[call(silent, 0, 2)], &mut Vec::new()).unwrap();
        let members = until_all_are(&library, group, &states);
        assert_eq!(members.len(), 2);
        library.shut_down();
    }

    #[test]
    fn a_group_of_which_every_link_fails_is_broken() {
        let library = Library::start().unwrap();
        let silent = std::net::UdpSocket::bind(any_port()).unwrap();
        let group = library.create_group(BROADCAST).unwrap();
        set(&library, group, &[(OptionNumber::CONNTIMEO, 100)]);
        let mut started = Vec::new();
        let links = [call(silent.local_addr().unwrap(), 0, 1)];
        assert_fails(library.connect_links(group, &links, &mut started), Code::ConnectionLost);
        assert_eq!(library.state(group), SocketState::Broken);
        assert_eq!(started.len(), 1);
        library.shut_down();
    }

    #[test]
    fn a_group_is_neither_bound_nor_does_it_listen() {
        let library = Library::start().unwrap();
        let group = library.create_group(BROADCAST).unwrap();
        assert_fails(library.bind(group, any_port()), Code::InvalidParameter);
        assert_fails(library.listen(group, 1), Code::InvalidSocket);
        assert_fails(library.accept(group), Code::InvalidSocket);
        assert_fails(library.meet(group, any_port(), any_port()), Code::InvalidSocket);
        assert_eq!(library.create_group(7).unwrap_err().code, Code::InvalidParameter);
        library.shut_down();
    }

    #[test]
    fn an_option_can_be_set_while_a_group_is_connected() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &OPTIONS);
        let group = calling(&library, BROADCAST, &[call(waiting.address, 0, 1)]);
        let (accepted, _) = library.accept(waiting.id).unwrap();
        for id in [group, accepted] {
            library.set_option(id, OptionNumber::MAXBW, Value::Long(1_000_000)).unwrap();
            assert!(library.statistics(id, true).is_ok());
        }
        library.shut_down();
    }

    #[test]
    fn a_group_that_is_closed_before_it_is_connected_calls_no_more() {
        let library = Library::start().unwrap();
        let silent = std::net::UdpSocket::bind(any_port()).unwrap();
        let group = library.create_group(BROADCAST).unwrap();
        set(&library, group, &[(OptionNumber::RCVSYN, 0), (OptionNumber::CONNTIMEO, 60_000)]);
        let links = [call(silent.local_addr().unwrap(), 0, 1)];
        library.connect_links(group, &links, &mut Vec::new()).unwrap();
        let socket = library.find(group).unwrap();
        let inner = socket.lock().members.as_ref().and_then(Members::group).cloned().unwrap();
        library.close(group);
        until("its calls are given up", || {
            matches!(inner.phase(), punctual::Phase::Closed(_)).then_some(())
        });
        library.shut_down();
    }

    #[test]
    fn a_group_that_has_ended_gives_all_that_it_has() {
        let library = Library::start().unwrap();
        let waiting = listener(&library, &OPTIONS);
        let group = calling(&library, BROADCAST, &[call(waiting.address, 0, 1)]);
        let (accepted, _) = library.accept(waiting.id).unwrap();
        // More than one look at the group takes, so that a look meets its end.
        for _ in 0..200 {
            send(&library, group, b"on time");
        }
        let mut received = 0;
        library.close(group);
        while receive(&library, accepted).is_ok() {
            received += 1;
        }
        assert!(received <= 200);
        until("it is broken", || (library.state(accepted) == SocketState::Broken).then_some(()));
        library.shut_down();
    }
}
