//! The clock of the day.

use std::time::SystemTime;

/// The time of the day now: for people, files and programs. Nothing is timed by it.
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

/// The time of the day at an instant of the relay's clock.
pub(crate) fn at(instant: punctual::Instant) -> SystemTime {
    now() - punctual::now().saturating_since(instant)
}
