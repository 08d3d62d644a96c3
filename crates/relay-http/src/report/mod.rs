//! The relay's reports: plain data with units in the names.
//!
//! Rates are in bits a second (`_bps`), times of the network in milliseconds (`_ms`), as SRT's
//! statistics have them. Points in time are RFC 3339 in UTC.

mod connection;
mod event;
mod server;
mod stream;
mod traffic;

use serde::{Serialize, Serializer};
use std::time::SystemTime;

pub use connection::{
    ConnectionReport, ConnectionRole, GroupReport, LatencyReport, LinkReport, LinkState,
    SrtStatistics,
};
pub use event::{Event, EventKind, RefusalReport};
pub use server::{
    ConfigProblem, HealthReport, HookTally, ListenerReport, ReloadReport, ServerReport,
};
pub use stream::{
    ForwardReport, RecordingReport, RecordingState, SourceKind, SourceReport, StreamReport,
    StreamState, TrackKind, TrackReport, ViewerCount,
};
pub use traffic::{DURATION_BOUNDS_S, DurationCounts, StreamHealth, Tally, Traffic};

/// A point in time: RFC 3339 in UTC with milliseconds, `2026-01-02T03:04:05.678Z`.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Timestamp(jiff::Timestamp);

impl From<SystemTime> for Timestamp {
    /// A time that no calendar has becomes the epoch.
    fn from(time: SystemTime) -> Self {
        Self(jiff::Timestamp::try_from(time).unwrap_or_default())
    }
}

impl Timestamp {
    /// Seconds since 1970, with milliseconds.
    pub fn unix_seconds(self) -> f64 {
        self.0.as_duration().as_secs_f64()
    }
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl utoipa::PartialSchema for Timestamp {
    fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
        use utoipa::openapi::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .into()
    }
}

impl utoipa::ToSchema for Timestamp {}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn times_are_rfc_3339_with_milliseconds() {
        let at = |millis| Timestamp::from(UNIX_EPOCH + Duration::from_millis(millis)).to_string();
        assert_eq!(at(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(1_735_689_599_999), "2024-12-31T23:59:59.999Z");
        assert_eq!(at(1_735_689_599_100), "2024-12-31T23:59:59.100Z");
    }
}
