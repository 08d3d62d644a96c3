//! Connections that are links of a group.

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::{ConnectionId, Endpoint};
use crate::config::Config;
use crate::connection::Connection;
use crate::error::{AcceptError, ConnectError, SendError};
use crate::event::{IncomingId, Message};
use crate::group::{LinkAction, LinkStatus, LinkTerms, Membership};
use crate::handshake::caller::Caller;
use crate::path::PathId;

impl Endpoint {
    /// Calls the listener at `path` for a link of a group, otherwise as [`connect`](Self::connect).
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn connect_link(
        &mut self,
        now: Instant,
        path: impl Into<PathId>,
        config: Config,
        membership: &Membership,
    ) -> Result<ConnectionId, ConnectError> {
        let path = path.into();
        self.check_callable(path)?;
        let socket_id = self.draw_socket_id();
        let caller = Caller::of_link(socket_id, membership.clone(), self.chance.fork());
        let mut connection = Connection::call(now, self.paths.get(path), caller, socket_id, config);
        connection.join_group(membership);
        Ok(self.insert(now, connection, None))
    }

    /// Accepts a waiting caller as a link of a group. Its request must be one for a link
    /// ([`Incoming::group`](crate::Incoming::group)).
    ///
    /// # Errors
    ///
    /// As [`accept`](Self::accept); also if the caller is no link, or one of another group.
    pub fn accept_link(
        &mut self,
        now: Instant,
        id: IncomingId,
        config: Option<Config>,
        membership: &Membership,
    ) -> Result<ConnectionId, AcceptError> {
        self.accept_as(now, id, config, Some(membership))
    }

    /// The terms of a link; `None` before it is established, and for a connection without group.
    pub fn link_terms(&self, id: ConnectionId) -> Option<LinkTerms> {
        self.connections[self.index(id)?].connection.link_terms()
    }

    /// The status of a link; `None` before it is established.
    pub fn link_status(&self, id: ConnectionId) -> Option<LinkStatus> {
        self.connections[self.index(id)?].connection.link_status()
    }

    /// The messages that arrived over a link of a balancing group, due or not, for
    /// [`Group::handle_message`](crate::Group::handle_message); none for any other link. Read
    /// messages of such a link by [`recv`](Self::recv) as well, which makes room in its buffer:
    /// those are empty.
    pub fn take_link_messages(&mut self, id: ConnectionId) -> Vec<Message> {
        let index = self.index(id);
        index.map(|index| self.connections[index].connection.take_bypassed()).unwrap_or_default()
    }

    /// The packets of a link of a balancing group that were reported lost and given up since the
    /// last call, for [`Group::handle_losses`](crate::Group::handle_losses).
    pub fn take_link_losses(&mut self, id: ConnectionId) -> Vec<SeqNo> {
        let index = self.index(id);
        index.map(|index| self.connections[index].connection.take_returned()).unwrap_or_default()
    }

    /// Carries out an action of the group at a link. A message for which there is no room is not
    /// sent by this link.
    ///
    /// # Errors
    ///
    /// There is no room, or the link is not established.
    pub fn apply(
        &mut self,
        now: Instant,
        id: ConnectionId,
        action: LinkAction,
    ) -> Result<(), SendError> {
        let index = self.index(id).ok_or(SendError::NotConnected)?;
        let result = self.connections[index].connection.apply(now, action);
        self.settle(now, index);
        result
    }
}
