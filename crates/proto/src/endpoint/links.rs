//! Connections that are links of a group.

use std::net::SocketAddr;

use punctual_units::Instant;

use super::{ConnectionId, Endpoint};
use crate::config::Config;
use crate::connection::Connection;
use crate::error::{AcceptError, ConnectError, SendError};
use crate::event::IncomingId;
use crate::group::{LinkAction, LinkStatus, LinkTerms, Membership};
use crate::handshake::caller::Caller;

impl Endpoint {
    /// Calls the listener at `remote` for a link of a group, as [`connect`](Self::connect) does for
    /// a connection of its own.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect).
    pub fn connect_link(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        config: Config,
        membership: &Membership,
    ) -> Result<ConnectionId, ConnectError> {
        self.check_callable(remote)?;
        let socket_id = self.draw_socket_id();
        let caller = Caller::of_link(socket_id, membership.clone(), self.chance.fork());
        let mut connection = Connection::call(now, remote, caller, socket_id, config);
        connection.enlist(membership);
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

    /// What a link agreed on with its peer; `None` before it stands, and for what is no link.
    pub fn link_terms(&self, id: ConnectionId) -> Option<LinkTerms> {
        self.connections[self.index(id)?].connection.link_terms()
    }

    /// How a link is; `None` before it stands.
    pub fn link_status(&self, id: ConnectionId) -> Option<LinkStatus> {
        self.connections[self.index(id)?].connection.link_status()
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
