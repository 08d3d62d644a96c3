//! Control packets that wait to be written, except those of the two halves.

use punctual_wire::{AckNo, Control};

use super::path_updates;
use crate::error::PeerError;

/// Control packets that wait to be written.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one packet that waits or does not")]
pub(super) struct Pending {
    pub(super) ack_ack: Option<AckNo>,
    pub(super) ack: bool,
    /// The answer to the peer's challenge.
    pub(super) path_answer: Option<path_updates::Body>,
    pub(super) path_probe: bool,
    /// The error that this end reports.
    pub(super) error: Option<PeerError>,
    /// A keepalive that says that this link of a group goes idle.
    pub(super) idle: bool,
    pub(super) keep_alive: bool,
}

impl Pending {
    /// Whether any packet waits.
    pub(super) const fn any(&self) -> bool {
        self.ack
            || self.keep_alive
            || self.idle
            || self.path_probe
            || self.error.is_some()
            || self.ack_ack.is_some()
            || self.path_answer.is_some()
    }

    /// Takes the next of the packets that all others precede.
    pub(super) fn take_last(&mut self) -> Option<Control<'static>> {
        if let Some(error) = self.error.take() {
            Some(Control::PeerError(error.code()))
        } else if std::mem::take(&mut self.idle) {
            Some(Control::KeepAliveIdle)
        } else if std::mem::take(&mut self.path_probe) {
            Some(Control::Extension { command: path_updates::PROBE, body: &[0; 16] })
        } else if std::mem::take(&mut self.keep_alive) {
            Some(Control::KeepAlive)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keepalive_is_the_last_packet() {
        let mut pending = Pending { idle: true, keep_alive: true, ..Pending::default() };
        pending.error = Some(PeerError::FILE);
        pending.path_probe = true;
        let taken: Vec<_> = std::iter::from_fn(|| pending.take_last()).collect();
        assert!(matches!(
            taken[..],
            [
                Control::PeerError(_),
                Control::KeepAliveIdle,
                Control::Extension { command: path_updates::PROBE, .. },
                Control::KeepAlive
            ]
        ));
        assert!(!pending.any());
    }
}
