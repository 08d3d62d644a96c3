//! A caller that was admitted.

use std::sync::Arc;
use std::time::Duration;

use punctual::Group;
use punctual_ends::{Connection, SrtEnd};
use punctual_relay_access::{Admitted, Call};
use punctual_relay_http::report::ConnectionRole;

use crate::connections::NewConnection;
use crate::group_calls::HeldGroup;
use crate::hub::HeldPlace;

/// A caller that was admitted, with what its connection needs.
pub(crate) struct AdmittedCall {
    pub(crate) admitted: Admitted,
    /// The stream ID without secrets.
    pub(crate) stream_id: String,
    /// Whether a publisher stands in for others.
    pub(crate) is_backup: bool,
    /// The latency that the relay asks for.
    pub(crate) latency: Duration,
    /// Its place among the connections of its address.
    _place: HeldPlace,
    /// Its group, if it is a link of one.
    group: Option<HeldGroup>,
}

impl AdmittedCall {
    /// A caller that has a place among the connections of its address.
    pub(crate) fn new(
        admitted: Admitted,
        call: &Call,
        latency: Duration,
        (place, group): (HeldPlace, Option<HeldGroup>),
    ) -> Self {
        let (stream_id, is_backup) = (call.shown().to_owned(), call.is_backup());
        Self { admitted, stream_id, is_backup, latency, _place: place, group }
    }

    /// Notes the group whose first link this is.
    pub(crate) fn is_connected_as(&self, group: &Group) {
        if let Some(held) = &self.group {
            held.connected(group);
        }
    }

    /// Describes the connection of this caller.
    pub(crate) fn describe(
        &self,
        connection: &Connection,
        role: ConnectionRole,
        protocol: &'static str,
    ) -> NewConnection {
        NewConnection {
            role,
            protocol,
            stream: self.admitted.stream().shared(),
            user: self.admitted.user().map(str::to_owned),
            address: connection.socket.as_ref().map_or_else(String::new, SrtEnd::peer),
            stream_id: self.stream_id.clone(),
            latency_wish_ms: u32::try_from(self.latency.as_millis()).unwrap_or(u32::MAX),
            end: connection.socket.clone(),
            traffic: Arc::clone(&connection.traffic),
            admitted: Some(self.admitted.clone()),
        }
    }
}
