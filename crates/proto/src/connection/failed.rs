//! A connection that was never established: why, and the last packets that its peer gets.

use punctual_wire::{Control, Handshake, HandshakeRequest, RejectReason, SocketId};

use super::lifetime::SHUTDOWNS;
use crate::error::CloseReason;

/// An attempt to connect that has failed.
#[derive(Debug)]
pub(super) struct Failed {
    reason: CloseReason,
    /// The peer's socket, if the peer may have established the connection.
    half_open_peer: Option<SocketId>,
    refusal: Option<RefusedHandshake>,
}

/// A handshake that ends the attempt for the peer as well.
#[derive(Debug)]
struct RefusedHandshake {
    handshake: Box<Handshake>,
    dest: SocketId,
    /// Copies that are still to be sent.
    due: u8,
}

impl Failed {
    /// The attempt failed; `half_open_peer` is the peer's socket, if the peer may have established
    /// the connection.
    pub(super) const fn new(reason: CloseReason, half_open_peer: Option<SocketId>) -> Self {
        Self { reason, half_open_peer, refusal: None }
    }

    /// This end refuses the peer, by `handshake`.
    pub(super) fn refused(reason: RejectReason, handshake: Box<Handshake>) -> Self {
        let dest = handshake.socket_id;
        let refusal = Some(RefusedHandshake { handshake, dest, due: 1 });
        Self { refusal, ..Self::new(CloseReason::Incompatible(reason), None) }
    }

    /// This end has given up a call. `withdrawal` announces it to the listener, several times,
    /// because there is no answer to it.
    pub(super) fn given_up(
        reason: CloseReason,
        half_open_peer: Option<SocketId>,
        withdrawal: Option<Box<Handshake>>,
    ) -> Self {
        let refusal = withdrawal.map(|handshake| RefusedHandshake {
            handshake,
            dest: SocketId::LISTENER,
            due: SHUTDOWNS,
        });
        Self { refusal, ..Self::new(reason, half_open_peer) }
    }

    pub(super) const fn reason(&self) -> &CloseReason {
        &self.reason
    }

    /// Takes in a handshake of the peer. If it shows that the peer did not get the refusal, the
    /// refusal is due again; returns whether it does.
    pub(super) fn handle_handshake(&mut self, handshake: &Handshake) -> bool {
        match &mut self.refusal {
            Some(refusal) if !matches!(handshake.request, HandshakeRequest::Rejection(_)) => {
                refusal.due = refusal.due.max(1);
                true
            }
            _ => false,
        }
    }

    /// Whether the refusal is to be sent now.
    pub(super) fn is_refusal_due(&self) -> bool {
        self.refusal.as_ref().is_some_and(|refusal| refusal.due > 0)
    }

    /// The refusal that is to be sent now, and its destination socket.
    pub(super) fn take_refusal(&mut self) -> Option<(Control<'static>, SocketId)> {
        let refusal = self.refusal.as_mut()?;
        refusal.due = refusal.due.checked_sub(1)?;
        Some((Control::Handshake(refusal.handshake.clone()), refusal.dest))
    }

    /// The packet that goes out when the connection is released: the refusal, or a SHUTDOWN for a
    /// peer that may have established the connection.
    pub(super) fn final_packet(&mut self) -> Option<(Control<'static>, SocketId)> {
        self.take_refusal().or_else(|| Some((Control::Shutdown, self.half_open_peer?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::testing::handshake;

    const PEER: SocketId = SocketId::new(7);

    #[test]
    fn a_refusal_is_repeated_to_a_peer_that_goes_on() {
        let conclusion = handshake(HandshakeRequest::Conclusion, PEER);
        let mut failed = Failed::refused(RejectReason::ROGUE, Box::new(conclusion.clone()));
        assert!(matches!(failed.take_refusal(), Some((Control::Handshake(_), PEER))));
        assert!(!failed.is_refusal_due() && failed.take_refusal().is_none());
        assert!(failed.handle_handshake(&conclusion) && failed.is_refusal_due());
        assert!(failed.take_refusal().is_some());
        let rejection = handshake(HandshakeRequest::Rejection(RejectReason::ROGUE), PEER);
        assert!(!failed.handle_handshake(&rejection) && !failed.is_refusal_due());
    }

    #[test]
    fn a_withdrawal_goes_to_the_listener_several_times() {
        let withdrawal = handshake(HandshakeRequest::Rejection(RejectReason::CLOSE), PEER);
        let mut failed = Failed::given_up(CloseReason::Local, None, Some(Box::new(withdrawal)));
        let sent = std::iter::from_fn(|| failed.take_refusal());
        assert!(sent.map(|(_, dest)| dest).eq([SocketId::LISTENER; SHUTDOWNS as usize]));
        assert!(failed.final_packet().is_none());
    }

    #[test]
    fn only_a_half_open_peer_is_sent_a_shutdown() {
        let mut failed = Failed::new(CloseReason::Local, Some(PEER));
        assert!(matches!(failed.final_packet(), Some((Control::Shutdown, PEER))));
        let mut failed = Failed::new(CloseReason::Local, None);
        assert!(failed.final_packet().is_none());
    }
}
