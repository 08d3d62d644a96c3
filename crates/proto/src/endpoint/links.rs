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
    /// Calls the listener at `path` for a link of a group, as [`connect`](Self::connect) does for
    /// a connection of its own.
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

    /// Accepts a waiting caller as a link of a group. It must have asked for that
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

    /// How a link is; `None` before it stands.
    pub fn link_status(&self, id: ConnectionId) -> Option<LinkStatus> {
        self.connections[self.index(id)?].connection.link_status()
    }

    /// The messages that arrived over a link of a balancing group, due or not, for
    /// [`Group::handle_message`](crate::Group::handle_message); nothing for any other. Such a link
    /// is to be asked for messages as well ([`recv`](Self::recv)), which makes room: they are empty
    /// and of no use.
    pub fn take_link_messages(&mut self, id: ConnectionId) -> Vec<Message> {
        let index = self.index(id);
        index.map(|index| self.connections[index].connection.take_bypassed()).unwrap_or_default()
    }

    /// The packets of a link of a balancing group that were reported lost and given up since this
    /// was last asked, for [`Group::handle_losses`](crate::Group::handle_losses).
    pub fn take_link_losses(&mut self, id: ConnectionId) -> Vec<SeqNo> {
        let index = self.index(id);
        index.map(|index| self.connections[index].connection.take_returned()).unwrap_or_default()
    }

    /// Carries out what the group wants done at a link. A message for which there is no room is
    /// left out.
    ///
    /// # Errors
    ///
    /// There is no room, or the link does not stand.
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
