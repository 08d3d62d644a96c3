use punctual_crypto::KeyLength;
use punctual_units::Instant;
use punctual_wire::{
    HS_MAGIC, Handshake, HandshakeRequest, RejectReason, SeqNo, SocketId, Timestamp,
};

use super::repetition::{Repetition, Requests};
use super::terms::{Blocks, FixedPart, Offer, TimeBase, wire_mss, wire_window};
use super::{MAX_MSS, Negotiated, Step};
use crate::chance::Chance;
use crate::config::Config;
use crate::error::CloseReason;
use crate::handshake::membership::Membership;
use crate::path::Path;

/// The extension field of an induction request: a datagram socket, as in UDT.
const UDT_DATAGRAM: u16 = 2;

/// The caller's side of the handshake, until the connection is established.
#[derive(Debug)]
pub(crate) struct Caller {
    socket_id: SocketId,
    isn: SeqNo,
    phase: CallPhase,
    chance: Chance,
    membership: Option<Box<Membership>>,
}

#[derive(Debug)]
enum CallPhase {
    Induction(Requests),
    Conclusion { cookie: u32, offer: Box<Offer> },
}

impl Caller {
    pub(crate) fn new(socket_id: SocketId, isn: SeqNo, chance: Chance) -> Self {
        let phase = CallPhase::Induction(Requests::default());
        Self { socket_id, isn, phase, chance, membership: None }
    }

    /// A caller whose connection becomes a link of a group.
    pub(crate) fn of_link(socket_id: SocketId, membership: Membership, chance: Chance) -> Self {
        let isn = membership.send_next;
        Self { membership: Some(Box::new(membership)), ..Self::new(socket_id, isn, chance) }
    }

    /// The membership, if the connection becomes a link of a group.
    pub(crate) fn membership(&self) -> Option<&Membership> {
        self.membership.as_deref()
    }

    /// The request to be sent or repeated now.
    pub(crate) fn request(&mut self, now: Instant, config: &Config, path: &Path) -> Handshake {
        let mark = match &mut self.phase {
            CallPhase::Induction(requests) => requests.send(now),
            CallPhase::Conclusion { .. } => 0,
        };
        match &self.phase {
            CallPhase::Induction(_) => self.induction(mark, config, path),
            CallPhase::Conclusion { cookie, offer } => {
                self.conclusion(*cookie, offer, config, path)
            }
        }
    }

    /// Whether the listener has answered the induction.
    pub(crate) const fn is_induced(&self) -> bool {
        matches!(self.phase, CallPhase::Conclusion { .. })
    }

    /// The rejection that informs the listener that this end has given up; `None` if the listener
    /// cannot have seen a conclusion.
    pub(crate) fn withdrawal(&self, config: &Config, path: &Path) -> Option<Box<Handshake>> {
        let CallPhase::Conclusion { cookie, .. } = self.phase else { return None };
        Some(Box::new(Handshake {
            version: 5,
            extension_field: 0,
            request: HandshakeRequest::Rejection(RejectReason::CLOSE),
            cookie,
            ..self.induction(0, config, path)
        }))
    }

    /// Takes in the listener's answer.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        answer: &Handshake,
        config: &Config,
        path: &Path,
    ) -> Step {
        match (&mut self.phase, answer.request) {
            (_, HandshakeRequest::Rejection(reason)) => {
                Step::Failed(CloseReason::Rejected(reason), None)
            }
            (CallPhase::Induction(requests), HandshakeRequest::Induction) => {
                let mark = wire_window(config).checked_sub(answer.flow_window);
                let rtt = requests.round_trip(now, mark);
                self.induced(answer, config, rtt.map_or(Repetition::EARLY, Repetition::after))
            }
            // The answer to a repeated induction. The cookie of the first one is still valid.
            (CallPhase::Conclusion { .. }, HandshakeRequest::Induction) => Step::Ignore,
            (CallPhase::Conclusion { offer, .. }, HandshakeRequest::Conclusion) => {
                let base = TimeBase { arrival: now, timestamp };
                let fixed = FixedPart::new(
                    answer,
                    self.isn,
                    base,
                    path.mss(config.mss(), config.payload_size()),
                );
                match conclude(offer, self.membership.as_deref(), fixed, answer, config) {
                    Ok(negotiated) => Step::Connected(Box::new(negotiated), None),
                    Err(reason) => {
                        Step::Failed(CloseReason::Incompatible(reason), Some(answer.socket_id))
                    }
                }
            }
            _ => Step::Ignore,
        }
    }

    fn induced(&mut self, answer: &Handshake, config: &Config, pace: Repetition) -> Step {
        let incompatible = |reason| Step::Failed(CloseReason::Incompatible(reason), None);
        if answer.version < 5 {
            // A listener before SRT 1.3.0, or UDT.
            return incompatible(RejectReason::VERSION);
        }
        if answer.extension_field != HS_MAGIC || answer.mss > MAX_MSS {
            return incompatible(RejectReason::ROGUE);
        }
        let preferred = KeyLength::from_field(answer.encryption);
        let mut offer = Box::new(Offer::new(config, preferred, &mut self.chance));
        if let Some(membership) = self.membership() {
            offer.join(membership.extension);
        }
        self.phase = CallPhase::Conclusion { cookie: answer.cookie, offer };
        Step::Request(Some(pace))
    }

    fn induction(&self, mark: u32, config: &Config, path: &Path) -> Handshake {
        Handshake {
            version: 4,
            encryption: 0,
            extension_field: UDT_DATAGRAM,
            isn: self.isn,
            mss: wire_mss(config, path),
            // The mark is subtracted here: the listener returns the value, and uses the flow window
            // of the conclusion.
            flow_window: wire_window(config).saturating_sub(mark),
            request: HandshakeRequest::Induction,
            socket_id: self.socket_id,
            cookie: 0,
            peer_ip: path.id.peer_ip(),
            extensions: Vec::new(),
        }
    }

    fn conclusion(&self, cookie: u32, offer: &Offer, config: &Config, path: &Path) -> Handshake {
        let mut conclusion = Handshake {
            version: 5,
            encryption: offer.encryption(),
            extension_field: 0,
            request: HandshakeRequest::Conclusion,
            cookie,
            ..self.induction(0, config, path)
        };
        offer.blocks.write(&mut conclusion);
        conclusion
    }
}

fn conclude(
    offer: &mut Offer,
    membership: Option<&Membership>,
    fixed: FixedPart,
    answer: &Handshake,
    config: &Config,
) -> Result<Negotiated, RejectReason> {
    if answer.version != 5 || answer.mss > MAX_MSS {
        return Err(RejectReason::ROGUE);
    }
    let blocks = Blocks::read(answer);
    let mut negotiated = offer.conclude(&blocks, fixed, config)?;
    if let Some(membership) = membership {
        membership.conclude(&blocks, &mut negotiated)?;
    }
    Ok(negotiated)
}
