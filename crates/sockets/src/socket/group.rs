//! Groups: one stream over several links.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use punctual::{CallId, Error, Group, GroupKind, GroupLink, LinkConnection, LinkId};
use punctual_blocking::{Events, now};

use super::connecting::{Connecting, SocketCaller, any_address, connect_code};
use super::link::{Carrier, GroupSlot, Link};
use super::members::{Changes, GroupMembers, MemberCall, MemberInfo, MemberPlace};
use super::{Socket, SocketState, Stage, State};
use crate::code::{Code, Failure};
use crate::library::Library;
use crate::options::{OptionNumber, Options};

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
    /// A number of the program's own; -1 for one of the library's.
    pub token: i32,
    /// Options of this link alone.
    pub options: Vec<(OptionNumber, crate::SocketOptionValue)>,
}

/// A call that was begun.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StartedCall {
    /// The number of the link's socket; -1 without one.
    pub id: i32,
    /// The token of the link.
    pub token: i32,
    /// The error; [`Code::Success`] without one.
    pub error: Code,
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

/// The number of a kind of groups.
pub(super) const fn kind_number(kind: GroupKind) -> i32 {
    match kind {
        GroupKind::Broadcast => BROADCAST,
        GroupKind::Backup => BACKUP,
        GroupKind::Balance => BALANCE,
    }
}

/// The last token that the library gave to a link for which the program had none.
static TOKENS: AtomicI32 = AtomicI32::new(1_000_000);

/// The links of a socket that is a group.
#[derive(Debug)]
pub(crate) struct GroupLinks<'a>(pub(super) &'a Socket);

impl GroupLinks<'_> {
    /// Calls over links of a group. If the calls of the group block, it waits for the first link.
    /// Returns the number of a link that is established, or of the last one that is called.
    pub(crate) fn connect(
        &self,
        calls: &[LinkCall],
        started: &mut Vec<StartedCall>,
    ) -> Result<i32, Failure> {
        if calls.is_empty() {
            return Err(Code::InvalidParameter.into());
        }
        let group = self.open()?;
        for call in calls {
            let token = match call.token {
                NONE => TOKENS.fetch_add(1, Ordering::Relaxed).max(0),
                token => token,
            };
            let begun = self.begin(&group, call, token);
            started.push(begun.map_or_else(
                |failure| StartedCall { id: -1, token, error: failure.code },
                |(id, token)| StartedCall { id, token, error: Code::Success },
            ));
        }
        let last = started.iter().rev().find(|call| call.error == Code::Success);
        let Some(&StartedCall { id: last, .. }) = last else {
            return Err(Code::ConnectionLost.into());
        };
        self.0.follow_phase();
        if !self.0.core.settings.receive_blocks() || self.0.state() == SocketState::Connected {
            return Ok(last);
        }
        SocketCaller(self.0).await_answer().map_err(|_| Failure::from(Code::ConnectionLost))?;
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
        let call = LinkCall { local, remote, weight: 0, token: NONE, options: Vec::new() };
        self.connect(&[call], &mut Vec::new())
    }

    /// The group of links, opened if it is not, or if it has lost all its links.
    fn open(&self) -> Result<Group, Failure> {
        let mut state = self.0.lock();
        let blocks = self.0.core.settings.receive_blocks();
        let State { stage, options, members, .. } = &mut *state;
        let members = members.as_mut().ok_or(Code::InvalidParameter)?;
        match (&*stage, members.slot()) {
            (Stage::Closed(_), _) => return Err(Code::InvalidSocket.into()),
            (Stage::Broken(_), _) | (_, None) => {}
            (_, Some(slot)) => return Ok(slot.get()),
        }
        let config = options.config().map_err(|_| Code::InvalidParameter)?;
        let library = self.0.library()?;
        let _runtime = library.runtime().enter();
        let opened = Group::open(members.kind, config).map_err(|_| Code::InvalidParameter)?;
        opened.watch(self.0.watcher());
        let (slot, before) = match members.slot() {
            Some(slot) => (slot.clone(), Some(slot.replace(opened.clone()))),
            None => (GroupSlot::new(opened.clone()), None),
        };
        members.set_slot(slot.clone());
        let forgotten = members.clear();
        let (carrier, remote) = (Carrier::Group(slot), any_address_of_v4());
        self.0.core.set_link(Link::new(carrier.clone()));
        self.0.core.note_mended();
        *stage = Stage::Connecting(Connecting { carrier, blocks, remote });
        drop(state);
        before.iter().for_each(Group::begin_close);
        forgotten.iter().for_each(|socket| socket.close_behind());
        self.0.core.note_opened();
        Ok(opened)
    }

    /// Begins the call over one link. Returns the number of its socket and its token.
    fn begin(&self, group: &Group, call: &LinkCall, token: i32) -> Result<(i32, i32), Failure> {
        let library = self.0.library()?;
        let is_named = call.token != NONE;
        let mut state = self.0.lock();
        let mut options = state.options.clone();
        for (number, value) in &call.options {
            options.set(*number, value.clone())?;
        }
        // Without options of its own, a link follows those of the group.
        let config = options.config().map_err(|_| Code::InvalidParameter)?;
        let config = (!call.options.is_empty()).then_some(config);
        let local = call.local.unwrap_or_else(|| any_address(call.remote));
        let port = options.port_config(local);
        let (remote, weight) = (call.remote, call.weight);
        let Some(members) = &mut state.members else { return Err(Code::InvalidParameter.into()) };
        let freed = match members.place(remote, is_named.then_some(token)) {
            MemberPlace::New => None,
            MemberPlace::Taken(id, token) => return Ok((id, token)),
            MemberPlace::Freed(id, socket) => Some((id, socket)),
        };
        drop(state);
        if let Some((id, failed)) = freed {
            group.end_call(id);
            failed.iter().for_each(|socket| socket.close_behind());
        }
        let link = GroupLink { remote, port, weight };
        let runtime = library.runtimes().for_port();
        let entered = runtime.enter();
        let mut state = self.0.lock();
        if matches!(state.stage, Stage::Closed(_)) {
            return Err(Code::InvalidSocket.into());
        }
        let (id, attempt) = group.begin_call(link, config);
        drop(entered);
        let socket = self.new_link(&library, &state.options);
        let Some(members) = &mut state.members else { return Err(Code::InvalidParameter.into()) };
        members.begin(MemberCall { id, remote, weight, token, is_named }, Arc::clone(&socket));
        drop(state);
        if let Some(this) = self.0.this.upgrade() {
            library.runtime().spawn(async move {
                let result = attempt.await.unwrap_or(Err(Error::Stopped));
                match result {
                    Ok(_) => this.follow_phase(),
                    Err(error) => GroupLinks(&this).note_failure(id, &error),
                }
            });
        }
        Ok((socket.id(), token))
    }

    /// A socket for a link of the group.
    fn new_link(&self, library: &Arc<Library>, options: &Options) -> Arc<Socket> {
        let socket = library.add_socket(options.clone(), false);
        socket.become_link(self.0.id());
        socket
    }

    /// Takes in that the first call over a link has failed.
    fn note_failure(&self, call: CallId, error: &Error) {
        let code = link_code(error);
        let mut state = self.0.lock();
        let hook = state.connect_hook.clone();
        let Some(members) = &mut state.members else { return };
        let Some((socket, remote, token)) = members.fail(call, code) else { return };
        let slot = members.slot().cloned();
        let failed = members.all_have_failed() && matches!(state.stage, Stage::Connecting(_));
        if failed {
            state.stage = Stage::Broken(now());
            state.failure = Some(Code::ConnectionLost.into());
            self.0.core.note_broken();
        }
        drop(state);
        socket.fail_as_link();
        if let (Some(hook), Ok(library)) = (hook, self.0.library()) {
            hook.run(library.runtime(), socket.id(), code, remote, Some(token));
        }
        if failed {
            if let Some(slot) = slot {
                slot.get().begin_close();
            }
            self.0.core.raise(Events::BROKEN);
        }
    }

    /// Takes over what has become of the links.
    pub(super) fn follow(&self) {
        let library = self.0.library().ok();
        let mut state = self.0.lock();
        let State { stage, options, members, .. } = &mut *state;
        let Some(members) = members.as_mut().filter(|_| !matches!(stage, Stage::Closed(_))) else {
            return;
        };
        let Some(slot) = members.slot() else { return };
        let present: Vec<LinkConnection> = slot.get().connections();
        let new = || library.as_ref().map(|library| self.new_link(library, options));
        let Changes { joined, lost } = members.follow(present, new);
        drop(state);
        for (socket, connection) in joined {
            socket.connect_as_link(connection);
        }
        if !lost.is_empty() {
            self.0.readiness().flash(self.0.id(), Events::UPDATE);
        }
        lost.iter().for_each(|socket| socket.follow_phase());
    }

    /// The links of the group.
    pub(crate) fn list(&self) -> Vec<MemberInfo> {
        self.follow();
        let mut state = self.0.lock();
        state.members.as_mut().map(GroupMembers::list).unwrap_or_default()
    }

    /// The socket of the first link that is established.
    pub(super) fn first(&self) -> Option<Arc<Socket>> {
        let state = self.0.lock();
        let mut sockets = state.members.as_ref()?.sockets();
        sockets.find(|socket| socket.is_link_up()).cloned()
    }

    /// A link is to be closed: the group does not call over it again.
    pub(crate) fn remove(&self, id: i32) {
        let mut state = self.0.lock();
        let Some(members) = &mut state.members else { return };
        let slot = members.slot().cloned();
        let Some((call, link)) = members.remove(id) else { return };
        drop(state);
        if let Some(group) = slot.map(|slot| slot.get()) {
            call.into_iter().for_each(|call| group.end_call(call));
            link.into_iter().for_each(|link| group.remove_link(link));
        }
        self.0.readiness().flash(self.0.id(), Events::UPDATE);
    }

    /// A link is being accepted, perhaps of this group: its socket is known at
    /// [`end_admission`](Self::end_admission) alone.
    pub(super) fn begin_admission(&self) {
        if let Some(members) = &mut self.0.lock().members {
            members.begin_admission();
        }
    }

    /// The link has been accepted, or not.
    pub(super) fn end_admission(&self) {
        if let Some(members) = &mut self.0.lock().members {
            members.end_admission();
        }
        self.0.follow_phase();
    }

    /// This link was accepted, with the socket that was made for it.
    pub(super) fn admit(&self, link: LinkId, remote: SocketAddr, socket: &Arc<Socket>) {
        socket.become_link(self.0.id());
        if let Some(members) = &mut self.0.lock().members {
            members.admit(link, remote, Arc::clone(socket));
        }
    }
}

/// Stands for a token that the program does not choose.
const NONE: i32 = -1;

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
mod tests;
