//! The ways in which an endpoint connects: by a call or a rendezvous, or by accepting a caller.

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::connections::Connections;
use crate::chance::Chance;
use crate::config::Config;
use crate::connection::Connection;
use crate::error::ConnectError;
use crate::handshake::caller::Caller;
use crate::handshake::membership::Membership;
use crate::handshake::rendezvous::Rendezvous;
use crate::ids::ConnectionId;
use crate::path::PathId;

/// An attempt to connect, for [`Endpoint::connect`](crate::Endpoint::connect): a call with these
/// options, unless it is made by [`link`](Self::link) or [`rendezvous`](Self::rendezvous).
#[derive(Debug)]
pub struct Attempt<'a> {
    config: Config,
    way: Way<'a>,
}

#[derive(Debug)]
enum Way<'a> {
    Call,
    Link(&'a Membership),
    Rendezvous,
}

/// The terms on which a caller is accepted, for [`Endpoint::accept`](crate::Endpoint::accept): the
/// listener's configuration (`None`) or another one, as a single connection unless it is made by
/// [`link`](Self::link).
#[derive(Debug)]
pub struct Acceptance<'a> {
    pub(super) config: Option<Config>,
    pub(super) membership: Option<&'a Membership>,
}

impl<'a> Attempt<'a> {
    /// Calls the listener for a link of a group.
    pub const fn link(config: Config, membership: &'a Membership) -> Self {
        Self { config, way: Way::Link(membership) }
    }

    /// Meets the other end, which meets this one: both call at about the same time, each from the
    /// port that the other calls, and neither listens. So a connection passes two firewalls or
    /// address translators that let out calls only.
    ///
    /// It waits for the other end ten times as long as a call waits for an answer
    /// ([`connect_timeout`](Config::connect_timeout)). The endpoint may listen, call and meet
    /// others at the same time.
    pub const fn rendezvous(config: Config) -> Self {
        Self { config, way: Way::Rendezvous }
    }

    /// Begins the attempt by `path`. There is room for the connection.
    pub(super) fn begin(
        self,
        now: Instant,
        path: PathId,
        chance: &mut Chance,
        connections: &mut Connections,
    ) -> Result<ConnectionId, ConnectError> {
        let Self { config, way } = self;
        if matches!(way, Way::Rendezvous) {
            let earlier = connections.rendezvous_by(path);
            if earlier.and_then(|id| connections.get(id)).is_some_and(Connection::is_meeting) {
                return Err(ConnectError::RendezvousUnderWay(path));
            }
        }
        let by = connections.path(path);
        let socket_id = connections.draw_socket_id(chance);
        Ok(match way {
            Way::Call => {
                let isn = draw_isn(chance);
                let caller = Caller::new(socket_id, isn, chance.fork());
                let connection = Connection::call(now, by, caller, socket_id, config);
                connections.insert(now, connection, None)
            }
            Way::Link(membership) => {
                let caller = Caller::of_link(socket_id, membership.clone(), chance.fork());
                let mut connection = Connection::call(now, by, caller, socket_id, config);
                connection.join_group(membership);
                connections.insert(now, connection, None)
            }
            Way::Rendezvous => {
                let cookie = chance.number().max(1);
                let isn = draw_isn(chance);
                let rendezvous = Rendezvous::new(socket_id, isn, cookie, chance.fork());
                let connection = Connection::rendezvous(now, by, rendezvous, socket_id, config);
                connections.insert_rendezvous(now, connection, path)
            }
        })
    }
}

impl From<Config> for Attempt<'_> {
    fn from(config: Config) -> Self {
        Self { config, way: Way::Call }
    }
}

impl<'a> Acceptance<'a> {
    /// As a link of a group. The caller's request must be one for a link
    /// ([`Incoming::group`](crate::Incoming::group)).
    pub const fn link(config: Option<Config>, membership: &'a Membership) -> Self {
        Self { config, membership: Some(membership) }
    }
}

impl From<Option<Config>> for Acceptance<'_> {
    fn from(config: Option<Config>) -> Self {
        Self { config, membership: None }
    }
}

/// A first sequence number: any except the largest, which is invalid in a handshake.
fn draw_isn(chance: &mut Chance) -> SeqNo {
    SeqNo::new(chance.number() % SeqNo::MAX.value())
}
