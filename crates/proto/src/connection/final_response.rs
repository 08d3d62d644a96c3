//! The last handshake that this end sent, repeated to a peer that did not get it.

use punctual_wire::{Handshake, HandshakeRequest};

use crate::handshake::FinalHandshake;

/// Turns in which agreements and data packets alternate: of each three turns, the last one is for
/// data. The peer's first answer ends them, usually much sooner.
const AGREEMENTS: u8 = 150;

/// The conclusion response of a listener, or the agreement of a rendezvous; a caller has none.
#[derive(Debug)]
pub(super) struct FinalResponse {
    handshake: Option<Box<Handshake>>,
    is_due: bool,
    /// Turns that are left. libsrt's responder (1.5.1) ends the connection if data reach it before
    /// the agreement does, so that two agreements precede each data packet while nothing shows that
    /// the peer has one.
    agreements: u8,
}

impl FinalResponse {
    pub(super) fn new(last: Option<FinalHandshake>) -> Self {
        let (handshake, is_due) = last.map_or((None, false), |it| (Some(it.handshake), it.due));
        let agrees = is_due
            && handshake.as_ref().is_some_and(|it| it.request == HandshakeRequest::Agreement);
        Self { handshake, is_due, agreements: if agrees { AGREEMENTS } else { 0 } }
    }

    /// Whether a handshake of this kind shows that the peer did not get the response.
    pub(super) fn is_asked_for(&self, request: HandshakeRequest) -> bool {
        self.handshake.as_ref().is_some_and(|response| match request {
            HandshakeRequest::Conclusion => true,
            HandshakeRequest::WaveAHand => response.request == HandshakeRequest::Agreement,
            _ => false,
        })
    }

    /// Sends the response once more.
    pub(super) const fn repeat(&mut self) {
        self.is_due = self.handshake.is_some();
    }

    /// A packet other than a handshake or data shows that the peer has the response.
    pub(super) const fn is_received(&mut self) {
        self.agreements = 0;
    }

    /// Whether an agreement may still precede data.
    pub(super) const fn precedes_data(&self) -> bool {
        self.agreements > 0
    }

    /// Data may go out: decides whether another agreement goes ahead of them.
    #[cold]
    pub(super) const fn go_ahead_of_data(&mut self) {
        self.agreements -= 1;
        // Two agreements, then data.
        if !self.agreements.is_multiple_of(3) {
            self.repeat();
        }
    }

    pub(super) const fn is_due(&self) -> bool {
        self.is_due
    }

    /// The response, if it is to be sent now.
    pub(super) fn take(&mut self) -> Option<&Handshake> {
        std::mem::take(&mut self.is_due).then_some(self.handshake.as_deref()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use punctual_wire::SocketId;

    use super::*;
    use crate::connection::testing::handshake;

    fn response(request: HandshakeRequest, due: bool) -> FinalResponse {
        let handshake = Box::new(handshake(request, SocketId::new(7)));
        FinalResponse::new(Some(FinalHandshake { handshake, due }))
    }

    #[test]
    fn of_three_turns_two_are_of_agreements_until_the_peer_answers() {
        let mut agreement = response(HandshakeRequest::Agreement, true);
        assert!(agreement.take().is_some() && agreement.take().is_none());
        let turns = |agreement: &mut FinalResponse| {
            agreement.go_ahead_of_data();
            agreement.take().is_some()
        };
        let sent: Vec<bool> = (0..6).map(|_| turns(&mut agreement)).collect();
        assert_eq!(sent, [true, true, false, true, true, false]);
        agreement.is_received();
        assert!(!agreement.precedes_data());
    }

    #[test]
    fn a_conclusion_response_is_repeated_on_request_alone() {
        let mut conclusion = response(HandshakeRequest::Conclusion, false);
        assert!(!conclusion.is_due() && !conclusion.precedes_data());
        assert!(conclusion.is_asked_for(HandshakeRequest::Conclusion));
        assert!(!conclusion.is_asked_for(HandshakeRequest::WaveAHand));
        conclusion.repeat();
        assert!(conclusion.take().is_some());
    }

    #[test]
    fn a_caller_has_no_response_to_repeat() {
        let mut none = FinalResponse::new(None);
        none.repeat();
        assert!(!none.is_due() && !none.is_asked_for(HandshakeRequest::Conclusion));
    }
}
