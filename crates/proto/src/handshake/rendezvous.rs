//! Rendezvous: two ends call each other at the same time, each from the port that the other one
//! calls (draft section 4.3.2; where libsrt differs from it, as in libsrt).
//!
//! Both ends send wave-a-hand requests until they hear each other. Then their cookies decide which
//! end is the initiator, which makes the offer, and which is the responder, which answers it.
//! [`react`] is the protocol from there on.

use std::cmp::Ordering;

use punctual_crypto::{KekCache, KeyLength};
use punctual_units::Instant;
use punctual_wire::{Handshake, HandshakeRequest, RejectReason, SeqNo, SocketId, Timestamp};

use self::ReceivedHandshake::{Agreement, Bare, Traffic, Wave, WithTerms};
use self::RendezvousState::{Attention, Connected, Fine, Initiated, Waving};
use super::amplification_limit::{AmplificationLimit, SendTime};
use super::keys::KeyTools;
use super::listener::rejection;
use super::repetition::Repetition;
use super::terms::{Blocks, FixedPart, Offer, Request, TimeBase, wire_mss, wire_window};
use super::{MAX_MSS, Negotiated, REPEAT, Step};
use crate::chance::Chance;
use crate::config::Config;
use crate::error::CloseReason;
use crate::path::Path;

/// The connect timeout is multiplied by this factor, since two ends are rarely started at the same
/// moment.
pub(crate) const TIMEOUT_FACTOR: u32 = 10;

/// The state of a rendezvous (draft section 4.3.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RendezvousState {
    /// Nothing was received from the peer yet.
    Waving,
    /// A wave-a-hand request came from the peer.
    Attention,
    /// The first handshake from the peer was a conclusion: the peer had received one of this end
    /// before.
    Fine,
    /// The responder has accepted the offer.
    Initiated,
    Connected,
}

/// A packet from the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ReceivedHandshake {
    Wave,
    /// A conclusion without HSREQ or HSRSP.
    Bare,
    /// A conclusion with HSREQ or HSRSP.
    WithTerms,
    Agreement,
    /// A packet that only an established end sends: data or a keepalive.
    Traffic,
}

/// The reply of this end. It is repeated until the state changes, unless it is the agreement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Reply {
    Wave,
    /// A conclusion without extensions: that of a responder without an offer.
    Bare,
    /// A conclusion with the initiator's offer or the responder's answer.
    Terms,
    /// The initiator's confirmation.
    Agreement,
    /// Nothing beyond the repetitions.
    Nothing,
    /// A rejection with [`RejectReason::ROGUE`]: the peer claims the role of this end.
    Refusal,
}

/// The state machine: the next state and the reply to a packet, as an initiator and as a responder.
/// `None` if the packet does not fit the state: it is ignored. libsrt rejects the connection then,
/// although late and duplicate packets do not justify it.
///
/// An initiator needs the answer to its offer, since it does not know the agreed latency without
/// it. So where libsrt accepts an agreement alone, this end repeats its offer.
#[rustfmt::skip]
const fn react(state: RendezvousState, received: ReceivedHandshake) -> (Reaction, Reaction) {
    match (state, received) {
        //                          the initiator                      the responder
        (Waving,    Wave)      => (to(Attention, Reply::Terms),     to(Attention, Reply::Bare)),
        (Waving,    Bare)      => (to(Fine,      Reply::Terms),     to(Waving,    Reply::Refusal)),
        (Waving,    WithTerms) => (to(Fine,      Reply::Terms),     to(Fine,      Reply::Terms)),
        (Attention, Wave)      => (to(Attention, Reply::Terms),     to(Attention, Reply::Bare)),
        (Attention, Bare)      => (to(Attention, Reply::Terms),     to(Attention, Reply::Bare)),
        (Attention, WithTerms) => (to(Connected, Reply::Agreement), to(Initiated, Reply::Terms)),
        (Attention, Agreement) => (to(Attention, Reply::Terms),     to(Attention, Reply::Bare)),
        (Fine,      Bare)      => (to(Fine,      Reply::Terms),     to(Fine,      Reply::Terms)),
        (Fine,      WithTerms) => (to(Connected, Reply::Agreement), to(Fine,      Reply::Terms)),
        (Fine,      Agreement) => (to(Fine,      Reply::Terms),     to(Connected, Reply::Nothing)),
        (Fine,      Traffic)   => (None,                            to(Connected, Reply::Nothing)),
        (Initiated, Bare)      => (None,                            to(Initiated, Reply::Terms)),
        (Initiated, WithTerms) => (None,                            to(Initiated, Reply::Terms)),
        (Initiated, Agreement) => (None,                            to(Connected, Reply::Nothing)),
        (Initiated, Traffic)   => (None,                            to(Connected, Reply::Nothing)),
        (Waving, Agreement | Traffic) | (Attention, Traffic) | (Fine | Initiated, Wave)
        | (Connected, _)       => (None,                            None),
    }
}

/// The next state and the reply.
type Reaction = Option<(RendezvousState, Reply)>;

const fn to(state: RendezvousState, reply: Reply) -> Reaction {
    Some((state, reply))
}

/// Whether this end is the initiator, by the sign of the wrapping difference of the cookies; `None`
/// if they are equal. The draft compares them with 64 bits, but peers use 32 bits, which gives
/// another result for a quarter of all pairs. If they differ by half the range, the greater signed
/// one wins.
fn is_initiator(own: u32, peer: u32) -> Option<bool> {
    let (own, peer) = (own.cast_signed(), peer.cast_signed());
    match own.wrapping_sub(peer) {
        0 => None,
        i32::MIN => Some(own > peer),
        difference => Some(difference.cmp(&0) == Ordering::Greater),
    }
}

/// One end of a rendezvous, until the connection is established.
#[derive(Debug)]
pub(crate) struct Rendezvous {
    socket_id: SocketId,
    isn: SeqNo,
    cookie: u32,
    state: RendezvousState,
    /// The handshake that is repeated.
    reply: Reply,
    /// The peer; `None` before its first handshake.
    peer: Option<RendezvousPeer>,
    /// When its first handshake was processed.
    peer_since: Option<Instant>,
    amplification_limit: AmplificationLimit,
    chance: Chance,
}

#[derive(Debug)]
struct RendezvousPeer {
    socket_id: SocketId,
    role: RendezvousRole,
}

#[derive(Debug)]
enum RendezvousRole {
    Initiator(Box<Offer>),
    Responder(Option<Box<RendezvousAnswer>>),
}

/// The responder's answer to the offer.
#[derive(Debug)]
struct RendezvousAnswer {
    blocks: Blocks,
    /// Taken out when the connection is established.
    negotiated: Option<Box<Negotiated>>,
    encryption: u16,
}

impl Rendezvous {
    /// A rendezvous before anything was received. `cookie` must not be 0.
    pub(crate) const fn new(socket_id: SocketId, isn: SeqNo, cookie: u32, chance: Chance) -> Self {
        let (state, reply) = (Waving, Reply::Wave);
        let (peer, peer_since, amplification_limit) = (None, None, AmplificationLimit::new());
        Self { socket_id, isn, cookie, state, reply, peer, peer_since, amplification_limit, chance }
    }

    /// A handshake came from the peer's address, to the socket `dest`.
    pub(crate) fn handle_handshake(&mut self, handshake: &Handshake, dest: SocketId) {
        self.amplification_limit.receive(handshake.emitted_len(), dest == self.socket_id);
    }

    /// The handshake that is sent and repeated in this state, and its destination socket.
    pub(crate) fn request(&self, config: &Config, path: &Path) -> (Handshake, SocketId) {
        let request = match self.reply {
            Reply::Wave => HandshakeRequest::WaveAHand,
            Reply::Agreement => HandshakeRequest::Agreement,
            _ => HandshakeRequest::Conclusion,
        };
        let mut handshake = Handshake {
            version: 5,
            encryption: config.key_length().map_or(0, KeyLength::field),
            extension_field: 0,
            isn: self.isn,
            mss: wire_mss(config, path),
            flow_window: wire_window(config),
            request,
            socket_id: self.socket_id,
            cookie: self.cookie,
            peer_ip: path.id.peer_ip(),
            extensions: Vec::new(),
        };
        let Some(peer) = &self.peer else { return (handshake, SocketId::LISTENER) };
        if self.reply == Reply::Terms {
            match &peer.role {
                RendezvousRole::Initiator(offer) => {
                    offer.blocks.write(&mut handshake);
                    handshake.encryption = offer.encryption();
                }
                RendezvousRole::Responder(Some(answer)) => {
                    answer.blocks.write(&mut handshake);
                    handshake.encryption = answer.encryption;
                }
                RendezvousRole::Responder(None) => {}
            }
        }
        (handshake, peer.socket_id)
    }

    /// Handles a handshake of the peer.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        handshake: &Handshake,
        config: &Config,
        path: &Path,
    ) -> Step {
        if let HandshakeRequest::Rejection(reason) = handshake.request {
            return Step::Failed(CloseReason::Rejected(reason), None);
        }
        let blocks = Blocks::read(handshake);
        let received = match handshake.request {
            HandshakeRequest::WaveAHand => Wave,
            HandshakeRequest::Conclusion if blocks.hs_req.or(blocks.hs_rsp).is_some() => WithTerms,
            HandshakeRequest::Conclusion => Bare,
            HandshakeRequest::Agreement => Agreement,
            _ => return Step::Ignore,
        };
        if let Err(step) = self.note_peer(now, handshake, received, config) {
            return step;
        }
        let Some((state, reply)) = self.reaction(received) else { return Step::Ignore };
        let base = TimeBase { arrival: now, timestamp };
        let result = match (reply, received) {
            (Reply::Refusal, _) => Err(RejectReason::ROGUE),
            (_, WithTerms) => self.take_terms(state, blocks, handshake, base, config, path),
            _ => Ok(None),
        };
        match result {
            Ok(concluded) => self.enter(state, reply, concluded, config, path),
            Err(reason) => refused(handshake, reason),
        }
    }

    /// Handles a packet that only an established peer sends.
    pub(crate) fn handle_traffic(&mut self, config: &Config, path: &Path) -> Step {
        match self.reaction(Traffic) {
            Some((state, reply)) => self.enter(state, reply, None, config, path),
            None => Step::Ignore,
        }
    }

    /// The peer's socket ID if the peer may consider the connection established.
    pub(crate) fn half_open_peer(&self) -> Option<SocketId> {
        let accepted =
            |peer: &&RendezvousPeer| matches!(peer.role, RendezvousRole::Responder(Some(_)));
        self.peer.as_ref().filter(accepted).map(|peer| peer.socket_id)
    }

    fn reaction(&self, received: ReceivedHandshake) -> Option<(RendezvousState, Reply)> {
        let (initiator, responder) = react(self.state, received);
        match self.peer.as_ref()?.role {
            RendezvousRole::Initiator(_) => initiator,
            RendezvousRole::Responder(_) => responder,
        }
    }

    /// Notes the peer. A peer with another socket ID is a restarted one: this end then starts over
    /// too.
    fn note_peer(
        &mut self,
        now: Instant,
        handshake: &Handshake,
        received: ReceivedHandshake,
        config: &Config,
    ) -> Result<(), Step> {
        if self.peer.as_ref().is_some_and(|peer| peer.socket_id == handshake.socket_id) {
            return Ok(());
        }
        if received == Agreement || handshake.socket_id == SocketId::LISTENER {
            return Err(Step::Ignore);
        }
        if !self.amplification_limit.admits_new_peer()
            && self.peer_since.is_some_and(|at| now < at + REPEAT)
        {
            return Err(Step::Ignore);
        }
        if handshake.version != 5 {
            // SRT before 1.3.0 has a different rendezvous.
            return Err(refused(handshake, RejectReason::VERSION));
        }
        if handshake.mss > MAX_MSS || handshake.cookie == 0 {
            return Err(refused(handshake, RejectReason::ROGUE));
        }
        let role = match is_initiator(self.cookie, handshake.cookie) {
            Some(true) => {
                let peers = KeyLength::from_field(handshake.encryption);
                let length = config.key_length().or(peers);
                RendezvousRole::Initiator(Box::new(Offer::new(config, length, &mut self.chance)))
            }
            Some(false) => RendezvousRole::Responder(None),
            None => return Err(refused(handshake, RejectReason::RENDEZVOUS_COOKIE)),
        };
        (self.state, self.reply) = (Waving, Reply::Wave);
        self.peer_since = Some(now);
        self.peer = Some(RendezvousPeer { socket_id: handshake.socket_id, role });
        Ok(())
    }

    /// Handles an offer or an answer. Returns the terms if this end becomes established by it.
    fn take_terms(
        &mut self,
        next: RendezvousState,
        blocks: Blocks,
        handshake: &Handshake,
        base: TimeBase,
        config: &Config,
        path: &Path,
    ) -> Result<Option<Box<Negotiated>>, RejectReason> {
        let fixed = FixedPart {
            // Each end has its own cookie.
            cookie: self.cookie ^ handshake.cookie,
            ..FixedPart::new(
                handshake,
                self.isn,
                base,
                path.mss(config.mss(), config.payload_size()),
            )
        };
        match self.peer.as_mut().map(|peer| &mut peer.role) {
            Some(RendezvousRole::Initiator(offer)) if next == Connected => {
                Ok(Some(Box::new(offer.conclude(&blocks, fixed, config)?)))
            }
            Some(RendezvousRole::Responder(Some(answer))) => {
                if let Some(negotiated) = &mut answer.negotiated {
                    negotiated.fixed.base.refine(base.arrival, base.timestamp);
                }
                Ok(None)
            }
            Some(RendezvousRole::Responder(place @ None)) => {
                // Neither end is a listener, which could complete the other's filter.
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
                *place = Some(Box::new(RendezvousAnswer { blocks, negotiated, encryption }));
                Ok(None)
            }
            Some(RendezvousRole::Initiator(_)) | None => Ok(None),
        }
    }

    fn enter(
        &mut self,
        state: RendezvousState,
        reply: Reply,
        concluded: Option<Box<Negotiated>>,
        config: &Config,
        path: &Path,
    ) -> Step {
        self.state = state;
        if state != Connected {
            self.reply = reply;
            let (answer, _) = self.request(config, path);
            return match self.amplification_limit.send_time(answer.emitted_len()) {
                // A peer that hears this end will answer soon.
                SendTime::Now => Step::Request(
                    self.amplification_limit.is_validated().then_some(Repetition::EARLY),
                ),
                SendTime::InAdvance => Step::RequestInAdvance,
            };
        }
        let answered = self.peer.as_mut().and_then(|peer| match &mut peer.role {
            RendezvousRole::Responder(Some(answer)) => answer.negotiated.take(),
            RendezvousRole::Responder(None) | RendezvousRole::Initiator(_) => None,
        });
        let Some(negotiated) = concluded.or(answered) else { return Step::Ignore };
        self.reply = Reply::Agreement;
        let (agreement, _) = self.request(config, path);
        let final_handshake =
            super::FinalHandshake { handshake: Box::new(agreement), due: reply != Reply::Nothing };
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
    fn the_wrapping_difference_of_the_cookies_decides_the_roles() {
        // From a log: the end with the first cookie was libsrt's initiator.
        assert_eq!(is_initiator((-1_480_577_720_i32).cast_unsigned(), 811_599_203), Some(true));
        assert_eq!(is_initiator(811_599_203, (-1_480_577_720_i32).cast_unsigned()), Some(false));
        assert_eq!(is_initiator(2, 1), Some(true));
        assert_eq!(is_initiator(7, 7), None);
        // Half the range apart, where the sign of the difference is the same for both ends.
        assert_eq!(is_initiator(1, 0x8000_0001), Some(true));
        assert_eq!(is_initiator(0x8000_0001, 1), Some(false));
    }

    proptest! {
        #[test]
        fn of_two_different_cookies_exactly_one_makes_an_initiator(own: u32, peer: u32) {
            let (here, there) = (is_initiator(own, peer), is_initiator(peer, own));
            prop_assert_eq!(here.is_none(), own == peer);
            prop_assert_eq!(here, there.map(|other| !other));
        }
    }
}
