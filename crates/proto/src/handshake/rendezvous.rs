//! Rendezvous: two ends that call each other at the same time, each from the port that the other
//! calls (draft section 4.3.2; where libsrt does otherwise, as libsrt does).
//!
//! Both wave until they hear each other. Their cookies then decide who is the initiator, who makes
//! the offer, and who is the responder, who answers it. From there on [`react`] is the protocol.

use std::cmp::Ordering;

use punctual_crypto::{KekCache, KeyLength};
use punctual_units::Instant;
use punctual_wire::{Handshake, HandshakeRequest, RejectReason, SeqNo, SocketId, Timestamp};

use self::Heard::{Agreement, Bare, Traffic, Wave, WithTerms};
use self::State::{Attention, Connected, Fine, Initiated, Waving};
use super::amplification_limit::{AmplificationLimit, Turn};
use super::keys::KeyTools;
use super::listener::rejection;
use super::repetition::Repetition;
use super::terms::{Blocks, FixedPart, Offer, Request, TimeBase, wire_mss, wire_window};
use super::{MAX_MSS, Negotiated, REPEAT, Step};
use crate::chance::Chance;
use crate::config::Config;
use crate::error::CloseReason;
use crate::path::PathId;

/// The connect timeout counts so many times: people do not start two ends at the same moment.
pub(crate) const TIMEOUT_FACTOR: u32 = 10;

/// How far a rendezvous has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Nothing heard of the peer yet.
    Waving,
    /// The peer waved.
    Attention,
    /// The first that was heard was a conclusion: the peer had heard us before.
    Fine,
    /// The responder has accepted the offer.
    Initiated,
    Connected,
}

/// What the peer says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Heard {
    Wave,
    /// A conclusion without HSREQ or HSRSP.
    Bare,
    /// A conclusion with HSREQ or HSRSP.
    WithTerms,
    Agreement,
    /// Anything that only an end sends for which the connection stands: data, a keepalive.
    Traffic,
}

/// What this end says then. Everything but the agreement is repeated until the state changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Say {
    Wave,
    /// A conclusion without extensions: the responder's, while it has no offer.
    Bare,
    /// A conclusion with the initiator's offer or the responder's answer.
    Terms,
    /// The initiator is content.
    Agreement,
    /// Nothing more than what is repeated anyway.
    Nothing,
    /// A rejection as [`RejectReason::ROGUE`]: the peer takes itself for what this end is.
    Refusal,
}

/// The state machine: for what is heard in a state, the next state and what is said, as an
/// initiator and as a responder. `None`: it is out of place, and ignored. libsrt refuses the
/// connection then, but late and doubled packets are no reason to.
///
/// An initiator must hear the answer to its offer: without it, it would not know the latency that
/// was agreed on. So where libsrt is content with an agreement alone, this one repeats its offer.
#[rustfmt::skip]
const fn react(state: State, heard: Heard) -> (Reaction, Reaction) {
    match (state, heard) {
        //                          the initiator                    the responder
        (Waving,    Wave)      => (to(Attention, Say::Terms),     to(Attention, Say::Bare)),
        (Waving,    Bare)      => (to(Fine,      Say::Terms),     to(Waving,    Say::Refusal)),
        (Waving,    WithTerms) => (to(Fine,      Say::Terms),     to(Fine,      Say::Terms)),
        (Attention, Wave)      => (to(Attention, Say::Terms),     to(Attention, Say::Bare)),
        (Attention, Bare)      => (to(Attention, Say::Terms),     to(Attention, Say::Bare)),
        (Attention, WithTerms) => (to(Connected, Say::Agreement), to(Initiated, Say::Terms)),
        (Attention, Agreement) => (to(Attention, Say::Terms),     to(Attention, Say::Bare)),
        (Fine,      Bare)      => (to(Fine,      Say::Terms),     to(Fine,      Say::Terms)),
        (Fine,      WithTerms) => (to(Connected, Say::Agreement), to(Fine,      Say::Terms)),
        (Fine,      Agreement) => (to(Fine,      Say::Terms),     to(Connected, Say::Nothing)),
        (Fine,      Traffic)   => (None,                          to(Connected, Say::Nothing)),
        (Initiated, Bare)      => (None,                          to(Initiated, Say::Terms)),
        (Initiated, WithTerms) => (None,                          to(Initiated, Say::Terms)),
        (Initiated, Agreement) => (None,                          to(Connected, Say::Nothing)),
        (Initiated, Traffic)   => (None,                          to(Connected, Say::Nothing)),
        (Waving, Agreement | Traffic) | (Attention, Traffic) | (Fine | Initiated, Wave)
        | (Connected, _)       => (None,                          None),
    }
}

/// The next state, and what is said.
type Reaction = Option<(State, Say)>;

const fn to(state: State, say: Say) -> Reaction {
    Some((state, say))
}

/// Which end makes the offer, by the sign of the wrapping difference of the cookies; `None` for a
/// draw. The draft compares them with 64 bits; peers do it with 32, and in a quarter of all pairs
/// that is another result. Of two cookies half the circle apart the greater signed one wins.
fn is_initiator(own: u32, peer: u32) -> Option<bool> {
    let (own, peer) = (own.cast_signed(), peer.cast_signed());
    match own.wrapping_sub(peer) {
        0 => None,
        i32::MIN => Some(own > peer),
        difference => Some(difference.cmp(&0) == Ordering::Greater),
    }
}

/// One end of a rendezvous, until the connection stands.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    socket_id: SocketId,
    isn: SeqNo,
    cookie: u32,
    state: State,
    /// What is repeated.
    say: Say,
    /// The peer, once it was heard.
    peer: Option<Peer>,
    /// When that was.
    met: Option<Instant>,
    amplification_limit: AmplificationLimit,
    chance: Chance,
}

#[derive(Debug)]
struct Peer {
    socket_id: SocketId,
    role: Role,
}

#[derive(Debug)]
enum Role {
    Initiator(Box<Offer>),
    Responder(Option<Box<Answer>>),
}

/// What a responder says to the offer.
#[derive(Debug)]
struct Answer {
    blocks: Blocks,
    /// Until the connection stands.
    negotiated: Option<Box<Negotiated>>,
    encryption: u16,
}

impl Rendezvous {
    /// `cookie` is any number but 0, which no end may draw.
    pub(crate) const fn new(socket_id: SocketId, isn: SeqNo, cookie: u32, chance: Chance) -> Self {
        let (state, say) = (Waving, Say::Wave);
        let (peer, met, amplification_limit) = (None, None, AmplificationLimit::new());
        Self { socket_id, isn, cookie, state, say, peer, met, amplification_limit, chance }
    }

    /// A handshake came in the peer's name, to the socket `dest`.
    pub(crate) fn hear(&mut self, handshake: &Handshake, dest: SocketId) {
        self.amplification_limit.hear(handshake.emitted_len(), dest == self.socket_id);
    }

    /// The handshake that is to be sent, and repeated, in this state, and to which socket.
    pub(crate) fn request(&self, config: &Config, path: PathId) -> (Handshake, SocketId) {
        let request = match self.say {
            Say::Wave => HandshakeRequest::WaveAHand,
            Say::Agreement => HandshakeRequest::Agreement,
            _ => HandshakeRequest::Conclusion,
        };
        let mut handshake = Handshake {
            version: 5,
            encryption: config.key_length().map_or(0, KeyLength::field),
            extension_field: 0,
            isn: self.isn,
            mss: wire_mss(config),
            flow_window: wire_window(config),
            request,
            socket_id: self.socket_id,
            cookie: self.cookie,
            peer_ip: path.peer_ip(),
            extensions: Vec::new(),
        };
        let Some(peer) = &self.peer else { return (handshake, SocketId::LISTENER) };
        if self.say == Say::Terms {
            match &peer.role {
                Role::Initiator(offer) => {
                    offer.blocks.write(&mut handshake);
                    handshake.encryption = offer.encryption();
                }
                Role::Responder(Some(answer)) => {
                    answer.blocks.write(&mut handshake);
                    handshake.encryption = answer.encryption;
                }
                Role::Responder(None) => {}
            }
        }
        (handshake, peer.socket_id)
    }

    /// Takes in a handshake of the peer's.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        handshake: &Handshake,
        config: &Config,
        path: PathId,
    ) -> Step {
        if let HandshakeRequest::Rejection(reason) = handshake.request {
            return Step::Failed(CloseReason::Rejected(reason), None);
        }
        let blocks = Blocks::read(handshake);
        let heard = match handshake.request {
            HandshakeRequest::WaveAHand => Wave,
            HandshakeRequest::Conclusion if blocks.hs_req.or(blocks.hs_rsp).is_some() => WithTerms,
            HandshakeRequest::Conclusion => Bare,
            HandshakeRequest::Agreement => Agreement,
            _ => return Step::Ignore,
        };
        if let Err(step) = self.meet(now, handshake, heard, config) {
            return step;
        }
        let Some((state, say)) = self.reaction(heard) else { return Step::Ignore };
        let base = TimeBase { arrival: now, timestamp };
        let took = match (say, heard) {
            (Say::Refusal, _) => Err(RejectReason::ROGUE),
            (_, WithTerms) => self.take_terms(state, blocks, handshake, base, config),
            _ => Ok(None),
        };
        match took {
            Ok(concluded) => self.enter(state, say, concluded, config, path),
            Err(reason) => refused(handshake, reason),
        }
    }

    /// A packet came that only a connected peer sends.
    pub(crate) fn handle_traffic(&mut self, config: &Config, path: PathId) -> Step {
        match self.reaction(Traffic) {
            Some((state, say)) => self.enter(state, say, None, config, path),
            None => Step::Ignore,
        }
    }

    /// The peer's socket if it may take the connection for standing.
    pub(crate) fn half_open_peer(&self) -> Option<SocketId> {
        let accepted = |peer: &&Peer| matches!(peer.role, Role::Responder(Some(_)));
        self.peer.as_ref().filter(accepted).map(|peer| peer.socket_id)
    }

    fn reaction(&self, heard: Heard) -> Option<(State, Say)> {
        let (initiator, responder) = react(self.state, heard);
        match self.peer.as_ref()?.role {
            Role::Initiator(_) => initiator,
            Role::Responder(_) => responder,
        }
    }

    /// Notes who the peer is. One with another socket ID is another peer, the old one started
    /// anew: so does this end then.
    fn meet(
        &mut self,
        now: Instant,
        handshake: &Handshake,
        heard: Heard,
        config: &Config,
    ) -> Result<(), Step> {
        if self.peer.as_ref().is_some_and(|peer| peer.socket_id == handshake.socket_id) {
            return Ok(());
        }
        if heard == Agreement || handshake.socket_id == SocketId::LISTENER {
            return Err(Step::Ignore);
        }
        if !self.amplification_limit.meets_new_peer()
            && self.met.is_some_and(|at| now < at + REPEAT)
        {
            return Err(Step::Ignore);
        }
        if handshake.version != 5 {
            // SRT before 1.3.0: its rendezvous is another one.
            return Err(refused(handshake, RejectReason::VERSION));
        }
        if handshake.mss > MAX_MSS || handshake.cookie == 0 {
            return Err(refused(handshake, RejectReason::ROGUE));
        }
        let role = match is_initiator(self.cookie, handshake.cookie) {
            Some(true) => {
                let peers = KeyLength::from_field(handshake.encryption);
                let length = config.key_length().or(peers);
                Role::Initiator(Box::new(Offer::new(config, length, &mut self.chance)))
            }
            Some(false) => Role::Responder(None),
            None => return Err(refused(handshake, RejectReason::RENDEZVOUS_COOKIE)),
        };
        (self.state, self.say) = (Waving, Say::Wave);
        self.met = Some(now);
        self.peer = Some(Peer { socket_id: handshake.socket_id, role });
        Ok(())
    }

    /// Takes in an offer or an answer: what it concludes, if this end is to be connected by it.
    fn take_terms(
        &mut self,
        next: State,
        blocks: Blocks,
        handshake: &Handshake,
        base: TimeBase,
        config: &Config,
    ) -> Result<Option<Box<Negotiated>>, RejectReason> {
        let fixed = FixedPart {
            // Each end has its own.
            cookie: self.cookie ^ handshake.cookie,
            ..FixedPart::new(handshake, self.isn, base, config)
        };
        match self.peer.as_mut().map(|peer| &mut peer.role) {
            Some(Role::Initiator(offer)) if next == Connected => {
                Ok(Some(Box::new(offer.conclude(&blocks, fixed, config)?)))
            }
            Some(Role::Responder(Some(answer))) => {
                if let Some(negotiated) = &mut answer.negotiated {
                    negotiated.fixed.base.refine(base.arrival, base.timestamp);
                }
                Ok(None)
            }
            Some(Role::Responder(place @ None)) => {
                // Neither end is the listener, who may complete what the other wants.
                let own = config.packet_filter();
                if blocks.filter.as_deref().is_some_and(|peer| !own.is_empty() && peer != own) {
                    return Err(RejectReason::FILTER);
                }
                let (chance, cache) = (&mut self.chance, &mut KekCache::default());
                let mut tools = KeyTools { chance, cache };
                let request = Request::check(blocks, config)?;
                if request.group().is_some() {
                    return Err(RejectReason::GROUP);
                }
                let (blocks, negotiated) = request.accept(fixed, config, &mut tools)?;
                let encryption = negotiated.cipher().map_or(0, |(_, length)| length.field());
                let negotiated = Some(Box::new(negotiated));
                *place = Some(Box::new(Answer { blocks, negotiated, encryption }));
                Ok(None)
            }
            Some(Role::Initiator(_)) | None => Ok(None),
        }
    }

    fn enter(
        &mut self,
        state: State,
        say: Say,
        concluded: Option<Box<Negotiated>>,
        config: &Config,
        path: PathId,
    ) -> Step {
        self.state = state;
        if state != Connected {
            self.say = say;
            let (answer, _) = self.request(config, path);
            return match self.amplification_limit.turn(answer.emitted_len()) {
                // Whoever was heard by the peer is answered by it.
                Turn::Now => {
                    Step::Request(self.amplification_limit.is_heard().then_some(Repetition::EARLY))
                }
                Turn::InAdvance => Step::RequestInAdvance,
            };
        }
        let answered = self.peer.as_mut().and_then(|peer| match &mut peer.role {
            Role::Responder(Some(answer)) => answer.negotiated.take(),
            Role::Responder(None) | Role::Initiator(_) => None,
        });
        let Some(negotiated) = concluded.or(answered) else { return Step::Ignore };
        self.say = Say::Agreement;
        let (agreement, _) = self.request(config, path);
        let final_handshake =
            super::FinalHandshake { handshake: Box::new(agreement), due: say != Say::Nothing };
        Step::Connected(negotiated, Some(final_handshake))
    }
}

fn refused(handshake: &Handshake, reason: RejectReason) -> Step {
    Step::Refused(reason, Box::new(rejection(handshake, reason)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_contest_is_decided_by_the_wrapping_difference() {
        // From a field log: the end with the first cookie was libsrt's initiator.
        assert_eq!(is_initiator((-1_480_577_720_i32).cast_unsigned(), 811_599_203), Some(true));
        assert_eq!(is_initiator(811_599_203, (-1_480_577_720_i32).cast_unsigned()), Some(false));
        assert_eq!(is_initiator(2, 1), Some(true));
        assert_eq!(is_initiator(7, 7), None);
        // Half the circle apart, where the difference has no sign of its own.
        assert_eq!(is_initiator(1, 0x8000_0001), Some(true));
        assert_eq!(is_initiator(0x8000_0001, 1), Some(false));
    }

    proptest! {
        #[test]
        fn two_cookies_that_differ_make_one_initiator(own: u32, peer: u32) {
            let (here, there) = (is_initiator(own, peer), is_initiator(peer, own));
            prop_assert_eq!(here.is_none(), own == peer);
            prop_assert_eq!(here, there.map(|other| !other));
        }
    }
}
