//! The time of the machine in the time of quinn.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use punctual_units::Instant;
use quinn_proto::TimeSource;

/// Translates between [`Instant`] and quinn's instants. quinn compares instants only with each
/// other, so that any epoch gives the same behaviour.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    epoch: std::time::Instant,
    /// The newest instant that was translated, for tokens.
    newest: Arc<AtomicU64>,
}

impl Clock {
    pub(crate) fn new(epoch: std::time::Instant) -> Self {
        Self { epoch, newest: Arc::default() }
    }

    pub(crate) fn to_quinn(&self, now: Instant) -> std::time::Instant {
        let nanos = (now - Instant::ORIGIN).as_nanos();
        self.newest.fetch_max(u64::try_from(nanos).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.epoch + (now - Instant::ORIGIN)
    }

    pub(crate) fn instant(&self, at: std::time::Instant) -> Instant {
        Instant::ORIGIN + at.saturating_duration_since(self.epoch)
    }
}

/// The time that an endpoint writes into the tokens for its peers, and compares them with: that of
/// its driver, so that runs of one seed are the same.
impl TimeSource for Clock {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(self.newest.load(Ordering::Relaxed))
    }
}
