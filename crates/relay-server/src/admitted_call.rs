//! A caller that was admitted.

use std::time::Duration;

use punctual_relay_access::Admitted;

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
}

impl AdmittedCall {
    /// A caller that has a place among the connections of its address.
    pub(crate) fn new(
        admitted: Admitted,
        stream_id: String,
        is_backup: bool,
        latency: Duration,
        place: HeldPlace,
    ) -> Self {
        Self { admitted, stream_id, is_backup, latency, _place: place }
    }
}
