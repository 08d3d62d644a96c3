//! The peer's report that it cannot take a file (PEERERROR), for the application.

use crate::error::PeerError;

/// The last error that the peer reported. The application gets it once, when it sends. An
/// application that waits for room is woken up, so that it sends.
#[derive(Debug, Default)]
pub(super) struct PeerErrorReport {
    error: Option<PeerError>,
    wake_up_pending: bool,
    error_pending: bool,
}

impl PeerErrorReport {
    /// The peer reported an error.
    pub(super) const fn note(&mut self, error: PeerError) {
        *self = Self { error: Some(error), wake_up_pending: true, error_pending: true };
    }

    /// The last error that the peer reported.
    pub(super) const fn last(&self) -> Option<PeerError> {
        self.error
    }

    /// Whether an application that waits for room is to be woken up; `true` once for each error.
    pub(super) const fn take_wake_up(&mut self) -> bool {
        std::mem::replace(&mut self.wake_up_pending, false)
    }

    /// The error for an application that sends; once for each error.
    pub(super) fn take_error(&mut self) -> Option<PeerError> {
        self.error.filter(|_| std::mem::take(&mut self.error_pending))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_wakes_the_application_up_once_and_fails_one_send() {
        let mut report = PeerErrorReport::default();
        assert!(!report.take_wake_up() && report.take_error().is_none());
        report.note(PeerError::FILE);
        assert!(report.take_wake_up() && !report.take_wake_up());
        assert_eq!(report.take_error(), Some(PeerError::FILE));
        assert_eq!((report.take_error(), report.last()), (None, Some(PeerError::FILE)));
    }
}
