//! The links of a group, as the program knows them.

use std::net::SocketAddr;
use std::sync::Arc;

use punctual::{CallId, GroupKind, LinkConnection, LinkId, LinkState, Socket as Connection};

use super::link::{GroupSlot, Link};
use super::{Socket, SocketState};
use crate::code::Code;

/// The state of a link of a group: libsrt's `SRT_MEMBERSTATUS`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(i32)]
pub enum MemberState {
    /// Not connected yet.
    Pending = 0,
    /// On standby, or connected without having carried anything yet.
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
    /// The number that the program or the library gave it; -1 for a link of the peer's.
    pub token: i32,
    /// The error of the call; [`Code::Success`] without one.
    pub error: Code,
}

/// The links of a group and the calls that make them.
#[derive(Debug)]
pub(super) struct GroupMembers {
    pub(super) kind: GroupKind,
    /// The group, once it was opened.
    slot: Option<GroupSlot>,
    members: Vec<GroupMember>,
    calls: Vec<MemberCall>,
    /// The links that are being accepted just now, and that only their thread can name.
    admissions: usize,
}

/// A link.
#[derive(Debug)]
struct GroupMember {
    socket: Arc<Socket>,
    /// The call that makes it; `None` for a link of the peer's.
    call: Option<CallId>,
    /// The link in the group, once it is established.
    link: Option<(LinkId, LinkState)>,
    remote: SocketAddr,
    weight: u16,
    token: i32,
    error: Option<Code>,
    /// Whether the library has called by itself, after the end of an earlier link.
    is_repeated: bool,
    /// Whether it has carried anything.
    has_run: bool,
}

/// A call, which the group repeats whenever its link has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberCall {
    pub(super) id: CallId,
    pub(super) remote: SocketAddr,
    pub(super) weight: u16,
    pub(super) token: i32,
    /// Whether the program has chosen the token.
    pub(super) is_named: bool,
}

/// The place that a link which the program calls finds.
#[derive(Debug)]
pub(super) enum MemberPlace {
    /// It is a further link.
    New,
    /// The library has called this link again already: it is the program's now. The number of its
    /// socket, and its token.
    Taken(i32, i32),
    /// The library would call it again, or does so now: this call ends. The socket of its last
    /// attempt, if it has failed.
    Freed(CallId, Option<Arc<Socket>>),
}

/// The changes of the links since the last look.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// Sockets of links that are established now, with their connections.
    pub(super) joined: Vec<(Arc<Socket>, Connection)>,
    /// Sockets of links that are not links any more.
    pub(super) lost: Vec<Arc<Socket>>,
}

impl GroupMembers {
    /// The links of a group of this kind that does not call yet.
    pub(super) const fn new(kind: GroupKind) -> Self {
        Self { kind, slot: None, members: Vec::new(), calls: Vec::new(), admissions: 0 }
    }

    /// The group, once it was opened.
    pub(super) const fn slot(&self) -> Option<&GroupSlot> {
        self.slot.as_ref()
    }

    /// The group is carried by this from now on.
    pub(super) fn set_slot(&mut self, slot: GroupSlot) {
        self.slot = Some(slot);
    }

    /// Forgets the links and calls of a group that has ended. Returns their sockets.
    pub(super) fn clear(&mut self) -> Vec<Arc<Socket>> {
        self.calls.clear();
        self.members.drain(..).map(|member| member.socket).collect()
    }

    /// The sockets of all links.
    pub(super) fn sockets(&self) -> impl Iterator<Item = &Arc<Socket>> {
        self.members.iter().map(|member| &member.socket)
    }

    /// The place of a link that the program calls, at this address and with this token; `None` for
    /// any.
    pub(super) fn place(&mut self, remote: SocketAddr, token: Option<i32>) -> MemberPlace {
        let is_same = |call: &MemberCall| {
            call.remote == remote && token.map_or(!call.is_named, |token| call.token == token)
        };
        let same: Vec<CallId> =
            self.calls.iter().filter(|call| is_same(call)).map(|call| call.id).collect();
        for id in same {
            let member = self.members.iter().position(|it| it.call == Some(id));
            match member.map(|index| &mut self.members[index]) {
                Some(member) if member.link.is_some() && member.is_repeated => {
                    member.is_repeated = false;
                    return MemberPlace::Taken(member.socket.id(), member.token);
                }
                // It is the program's, and established or on its way.
                Some(member) if member.error.is_none() => {}
                _ => {
                    self.calls.retain(|call| call.id != id);
                    let failed = member.map(|index| self.members.remove(index).socket);
                    return MemberPlace::Freed(id, failed);
                }
            }
        }
        MemberPlace::New
    }

    /// Adds a link that the program calls.
    pub(super) fn begin(&mut self, call: MemberCall, socket: Arc<Socket>) {
        self.calls.push(call);
        self.members.push(GroupMember::of(call, socket, false));
    }

    /// Removes a link. Returns its call and its name in the group.
    pub(super) fn remove(&mut self, id: i32) -> Option<(Option<CallId>, Option<LinkId>)> {
        let index = self.members.iter().position(|member| member.socket.id() == id)?;
        let GroupMember { call, link, .. } = self.members.remove(index);
        self.calls.retain(|it| Some(it.id) != call);
        Some((call, link.map(|(id, _)| id)))
    }

    /// Notes that the first attempt of a call has failed. Returns the link's socket, the peer's
    /// address and the token.
    pub(super) fn fail(
        &mut self,
        call: CallId,
        code: Code,
    ) -> Option<(Arc<Socket>, SocketAddr, i32)> {
        let mut members = self.members.iter_mut();
        let member = members.find(|it| it.call == Some(call) && it.link.is_none())?;
        member.error = Some(code);
        Some((Arc::clone(&member.socket), member.remote, member.token))
    }

    /// Whether no link can come any more: each has failed.
    pub(super) fn all_have_failed(&self) -> bool {
        self.members.iter().all(|member| member.error.is_some())
    }

    /// A link is accepted from now on until [`admit`](Self::admit) or
    /// [`end_admission`](Self::end_admission).
    pub(super) const fn begin_admission(&mut self) {
        self.admissions += 1;
    }

    pub(super) const fn end_admission(&mut self) {
        self.admissions -= 1;
    }

    /// Adds an accepted link, with the socket that the listener has made for it.
    pub(super) fn admit(&mut self, link: LinkId, remote: SocketAddr, socket: Arc<Socket>) {
        let link = Some((link, LinkState::Joining));
        self.members.push(GroupMember { link, ..GroupMember::of_peer(remote, socket) });
    }

    /// Takes over the present connections of the group. A link without a socket gets a `new` one.
    pub(super) fn follow(
        &mut self,
        present: Vec<LinkConnection>,
        new: impl Fn() -> Option<Arc<Socket>>,
    ) -> Changes {
        let mut changes = Changes::default();
        if self.admissions > 0 {
            return changes;
        }
        // The group still delivers what has come over a link that is gone.
        let present: Vec<_> =
            present.into_iter().filter(|it| it.state != LinkState::Gone).collect();
        let is_present = |link: LinkId| present.iter().any(|it| it.id == link);
        let lost = self.members.extract_if(.., |it| it.link.is_some_and(|it| !is_present(it.0)));
        changes.lost.extend(lost.map(|member| member.socket));
        for connection in present {
            let (id, state) = (connection.id, connection.state);
            let Some(member) = self.member_of(&connection, &mut changes.lost, &new) else {
                continue;
            };
            member.link = Some((id, state));
            member.weight = connection.weight;
            if !member.socket.is_link_up() {
                changes.joined.push((Arc::clone(&member.socket), connection.socket));
            }
        }
        changes
    }

    /// The member that a connection is; a failed one of the same call is lost.
    fn member_of(
        &mut self,
        connection: &LinkConnection,
        lost: &mut Vec<Arc<Socket>>,
        new: impl Fn() -> Option<Arc<Socket>>,
    ) -> Option<&mut GroupMember> {
        let is_known = |it: &GroupMember| it.link.is_some_and(|(id, _)| id == connection.id);
        let is_awaited =
            |it: &GroupMember| it.call.is_some() && it.call == connection.call && it.link.is_none();
        let index =
            self.members.iter().position(is_known).or_else(|| {
                self.members.iter().position(|it| is_awaited(it) && it.error.is_none())
            });
        if let Some(index) = index {
            return self.members.get_mut(index);
        }
        let failed = self.members.extract_if(.., |it| is_awaited(it));
        lost.extend(failed.map(|member| member.socket));
        let call = self.calls.iter().find(|call| Some(call.id) == connection.call);
        self.members.push(match call {
            Some(call) => GroupMember::of(*call, new()?, true),
            None => GroupMember::of_peer(connection.socket.peer_addr(), new()?),
        });
        self.members.last_mut()
    }

    /// Describes the links.
    pub(super) fn list(&mut self) -> Vec<MemberInfo> {
        self.members.iter_mut().map(GroupMember::info).collect()
    }
}

impl GroupMember {
    fn of(call: MemberCall, socket: Arc<Socket>, is_repeated: bool) -> Self {
        let MemberCall { id, remote, weight, token, .. } = call;
        Self { call: Some(id), weight, token, is_repeated, ..Self::of_peer(remote, socket) }
    }

    const fn of_peer(remote: SocketAddr, socket: Arc<Socket>) -> Self {
        Self {
            socket,
            call: None,
            link: None,
            remote,
            weight: 0,
            token: NO_TOKEN,
            error: None,
            is_repeated: false,
            has_run: false,
        }
    }

    fn info(&mut self) -> MemberInfo {
        let (socket, state) = match (self.link, self.error) {
            (None, Some(_)) => (SocketState::Broken, MemberState::Broken),
            (None, None) => (SocketState::Connecting, MemberState::Pending),
            (Some((_, LinkState::Joining)), _) => (self.socket.state(), MemberState::Idle),
            (Some((_, LinkState::Idle)), _) => (SocketState::Connected, MemberState::Idle),
            (Some(_), _) if self.has_run() => (SocketState::Connected, MemberState::Running),
            (Some(_), _) => (SocketState::Connected, MemberState::Idle),
        };
        MemberInfo {
            id: self.socket.id(),
            remote: self.remote,
            socket,
            weight: self.weight,
            state,
            token: self.token,
            error: self.error.unwrap_or(Code::Success),
        }
    }

    /// Whether it has carried anything, in either direction.
    fn has_run(&mut self) -> bool {
        if !self.has_run
            && let Some(statistics) = self.socket.link().map(Link::statistics)
        {
            self.has_run = statistics.packets_sent > 0 || statistics.packets_received > 0;
        }
        self.has_run
    }
}

/// The token of a link that the peer has called.
const NO_TOKEN: i32 = -1;
