//! The states of a connection.

use punctual_units::Instant;

use super::established::Established;
use super::failed::Failed;
use super::handshaking::Handshaking;
use crate::error::SendError;

/// The state of a connection.
#[derive(Debug)]
pub(super) enum State {
    Handshaking(Box<Handshaking>),
    Established(Box<Established>),
    Failed(Box<Failed>),
}

impl State {
    /// The established connection, if it is one.
    pub(super) fn established(&mut self) -> Option<&mut Established> {
        match self {
            Self::Established(live) => Some(live),
            Self::Handshaking(_) | Self::Failed(_) => None,
        }
    }

    /// The established connection, if its application can send.
    pub(super) fn sendable(&mut self) -> Result<&mut Established, SendError> {
        match self {
            Self::Handshaking(_) => Err(SendError::NotConnected),
            Self::Failed(failed) => Err(SendError::Closed(failed.reason().clone())),
            Self::Established(live) => live.check_sendable().map(|()| &mut **live),
        }
    }

    /// When a timer is due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self {
            Self::Handshaking(calling) => Some(calling.next_timeout()),
            Self::Established(live) => live.next_timeout(),
            Self::Failed(_) => None,
        }
    }

    /// Whether a packet would be written now.
    pub(super) fn wants_to_write(&self, now: Instant) -> bool {
        match self {
            Self::Handshaking(calling) => calling.is_request_due(),
            Self::Established(live) => live.wants_to_write(now),
            Self::Failed(failed) => failed.is_refusal_due(),
        }
    }

    /// Whether the connection has ended or failed.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Handshaking(_) => false,
            Self::Established(live) => !live.is_live(),
            Self::Failed(_) => true,
        }
    }
}
