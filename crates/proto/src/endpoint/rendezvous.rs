use std::net::SocketAddr;

use punctual_units::Instant;
use punctual_wire::{Handshake, HandshakeRequest};

use super::{ConnectionId, Endpoint};
use crate::config::Config;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::handshake::rendezvous::Rendezvous;

impl Endpoint {
    /// Meets the end at `remote`, which meets this one: both call at about the same time, each from
    /// the port that the other calls, and neither listens. So a connection passes two firewalls or
    /// address translators that let out calls only. [`Event::Connected`](crate::Event::Connected)
    /// or [`Event::Closed`](crate::Event::Closed) follows.
    ///
    /// It waits ten times as long for the other end as a call does for an answer
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
        remote: SocketAddr,
        config: Config,
    ) -> Result<ConnectionId, ConnectError> {
        self.check_callable(remote)?;
        if self
            .meetings
            .get(&remote)
            .is_some_and(|&at| self.connections[at].connection.is_meeting())
        {
            return Err(ConnectError::RendezvousUnderWay(remote));
        }
        let socket_id = self.draw_socket_id();
        let cookie = self.chance.number().max(1);
        let isn = self.draw_isn();
        let rendezvous = Rendezvous::new(socket_id, isn, cookie, self.chance.fork());
        let connection = Connection::rendezvous(now, remote, rendezvous, socket_id, config);
        let id = self.insert(now, connection, None);
        self.meetings.insert(remote, id.index);
        self.connections[id.index].rendezvous_with = Some(remote);
        Ok(id)
    }

    /// The rendezvous that a handshake to no socket in particular is meant for. Calls from the same
    /// address go to the listener, if there is one.
    pub(super) fn find_rendezvous(
        &self,
        now: Instant,
        remote: SocketAddr,
        handshake: &Handshake,
    ) -> Option<usize> {
        let index = *self.meetings.get(&remote)?;
        let is_call = match handshake.request {
            HandshakeRequest::Induction => true,
            HandshakeRequest::Conclusion => self.listener.verifies(now, remote, handshake.cookie),
            _ => false,
        };
        (!is_call).then_some(index)
    }
}
