//! Rendezvous: both ends call each other.

use punctual_units::Instant;
use punctual_wire::{Handshake, HandshakeRequest};

use super::{ConnectionId, Endpoint};
use crate::config::Config;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::handshake::rendezvous::Rendezvous;
use crate::path::PathId;

impl Endpoint {
    /// Meets the end at `path`, which meets this one: both call at about the same time, each from
    /// the port that the other calls, and neither listens. So a connection passes two firewalls or
    /// address translators that let out calls only. [`Event::Connected`](crate::Event::Connected)
    /// or [`Event::Closed`](crate::Event::Closed) follows.
    ///
    /// It waits for the other end ten times as long as a call waits for an answer
    /// ([`connect_timeout`](Config::connect_timeout)). The endpoint may listen, call and meet
    /// others at the same time.
    ///
    /// # Errors
    ///
    /// The address cannot be called, a rendezvous with it is under way already, or the endpoint is
    /// full.
    pub fn rendezvous(
        &mut self,
        now: Instant,
        path: impl Into<PathId>,
        config: Config,
    ) -> Result<ConnectionId, ConnectError> {
        let path = path.into();
        self.check_callable(path)?;
        if self
            .connections
            .of_rendezvous(path)
            .is_some_and(|at| self.connections[at].connection.is_meeting())
        {
            return Err(ConnectError::RendezvousUnderWay(path));
        }
        let socket_id = self.draw_socket_id();
        let cookie = self.chance.number().max(1);
        let isn = self.draw_isn();
        let rendezvous = Rendezvous::new(socket_id, isn, cookie, self.chance.fork());
        let connection =
            Connection::rendezvous(now, self.paths.get(path), rendezvous, socket_id, config);
        let id = self.insert(now, connection, None);
        self.connections.set_rendezvous(id.index(), path);
        Ok(id)
    }

    /// The rendezvous that a handshake to the listener's socket ID belongs to. Calls by the same
    /// path go to the listener, if there is one.
    pub(super) fn find_rendezvous(
        &self,
        now: Instant,
        path: PathId,
        handshake: &Handshake,
    ) -> Option<usize> {
        let index = self.connections.of_rendezvous(path)?;
        let is_call = match handshake.request {
            HandshakeRequest::Induction => true,
            HandshakeRequest::Conclusion => self.listener.verifies(now, path, handshake.cookie),
            _ => false,
        };
        (!is_call).then_some(index)
    }
}
