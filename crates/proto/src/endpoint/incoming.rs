use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{
    Control, ControlPacket, Handshake, HandshakeRequest, RejectReason, SocketId, Timestamp,
};

use super::Endpoint;
use crate::config::Config;
use crate::event::{Event, Incoming, IncomingId};
use crate::handshake::cookie::CookieJar;
use crate::handshake::listener::{Proposal, induction_response, rejection};

/// A caller that has not repeated its request for so long has given up.
const PATIENCE: Duration = Duration::from_secs(3);

/// The listener's side of an endpoint: callers that wait for the application's answer.
#[derive(Debug)]
pub(crate) struct Listener {
    config: Option<Config>,
    cookies: CookieJar,
    backlog: usize,
    next_id: u64,
    waiting: BTreeMap<IncomingId, Waiting>,
    by_caller: BTreeMap<(SocketAddr, SocketId), IncomingId>,
    expiry: VecDeque<(Instant, IncomingId)>,
}

/// A caller that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) remote: SocketAddr,
    pub(crate) proposal: Proposal,
    pub(crate) config: Config,
    last_heard: Instant,
}

impl Listener {
    pub(crate) fn new(key: [u8; 16], now: Instant, backlog: usize) -> Self {
        Self {
            config: None,
            cookies: CookieJar::new(key, now),
            backlog,
            next_id: 0,
            waiting: BTreeMap::new(),
            by_caller: BTreeMap::new(),
            expiry: VecDeque::new(),
        }
    }

    pub(crate) fn listen(&mut self, config: Option<Config>) {
        self.config = config;
    }

    pub(crate) const fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// Whether this listener made the cookie for `remote`.
    pub(crate) fn verifies(&self, now: Instant, remote: SocketAddr, cookie: u32) -> bool {
        self.cookies.verify(now, remote, cookie)
    }

    /// See [`CookieJar::nonces`].
    pub(crate) fn nonces(&self, now: Instant, remote: SocketAddr, purpose: [u64; 2]) -> [u64; 2] {
        self.cookies.nonces(now, remote, purpose)
    }

    /// The caller that is to be answered now.
    pub(crate) fn take(&mut self, id: IncomingId) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        self.by_caller.remove(&(waiting.remote, waiting.proposal.conclusion.socket_id));
        Some(waiting)
    }

    /// When the next caller's patience may be over.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.expiry.front().map(|&(at, _)| at)
    }

    /// A caller that gave up, if there is one.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<IncomingId> {
        while self.next_expiry()? <= now {
            let (_, id) = self.expiry.pop_front()?;
            let Some(waiting) = self.waiting.get(&id) else { continue };
            if now >= waiting.last_heard + PATIENCE {
                self.take(id);
                return Some(id);
            }
            self.expiry.push_back((now + PATIENCE, id));
        }
        None
    }

    /// Whether the caller waits already; its patience starts anew.
    fn waits(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        timestamp: Timestamp,
        conclusion: &Handshake,
    ) -> bool {
        let Some(id) = self.by_caller.get(&(remote, conclusion.socket_id)) else { return false };
        let Some(waiting) = self.waiting.get_mut(id) else { return false };
        if !waiting.proposal.is_repeated_by(conclusion) {
            return false;
        }
        waiting.last_heard = now;
        waiting.proposal.base.refine(now, timestamp);
        true
    }

    fn admit(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        proposal: Proposal,
        config: Config,
    ) -> Incoming {
        let id = IncomingId(self.next_id);
        self.next_id += 1;
        let incoming = Incoming {
            id,
            remote,
            stream_id: proposal.request.stream_id().to_owned(),
            peer_version: proposal.request.peer_version(),
            peer_socket_id: proposal.conclusion.socket_id,
            encrypted: proposal.request.is_encrypted(),
            group: proposal.request.group(),
        };
        self.by_caller.insert((remote, proposal.conclusion.socket_id), id);
        self.waiting.insert(id, Waiting { remote, proposal, config, last_heard: now });
        self.expiry.push_back((now + PATIENCE, id));
        incoming
    }
}

impl Endpoint {
    /// A handshake addressed to no socket: a caller knocks.
    pub(crate) fn handle_knock(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        timestamp: Timestamp,
        handshake: Handshake,
    ) {
        match handshake.request {
            HandshakeRequest::Induction => {
                let Some(config) = &self.listener.config else {
                    // Somebody calls where a rendezvous was agreed on: he should know.
                    if self.meetings.contains_key(&remote) {
                        self.refuse(remote, &handshake, RejectReason::ROGUE);
                    }
                    return;
                };
                let cookie = self.listener.cookies.bake(now, remote);
                let response = induction_response(&handshake, cookie, remote, config);
                self.answer(remote, timestamp, handshake.socket_id, response);
            }
            HandshakeRequest::Conclusion => {
                if self.listener.verifies(now, remote, handshake.cookie) {
                    self.handle_conclusion(now, remote, timestamp, handshake);
                }
            }
            // Nobody here has a rendezvous with them; or it is something else.
            HandshakeRequest::WaveAHand
            | HandshakeRequest::Agreement
            | HandshakeRequest::Rejection(_)
            | HandshakeRequest::Unknown(_) => {}
        }
    }

    pub(crate) fn refuse(
        &mut self,
        remote: SocketAddr,
        handshake: &Handshake,
        reason: RejectReason,
    ) {
        let dest = handshake.socket_id;
        if handshake.version == 4 && handshake.request == HandshakeRequest::Conclusion {
            // SRT before 1.3.0 knows no rejection, and would take it for an answer without a sense.
            // What it understands is the end of the connection, and so libsrt refuses it.
            self.say(remote, Timestamp::default(), dest, Control::Shutdown);
            return;
        }
        self.answer(remote, Timestamp::default(), dest, rejection(handshake, reason));
    }

    /// Callers repeat their conclusion each 250 ms, so repetitions are normal and get the same
    /// answer as the first, also when nobody listens any more: the answer may have been lost.
    fn handle_conclusion(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        timestamp: Timestamp,
        conclusion: Handshake,
    ) {
        if let Some(&index) = self.by_caller.get(&(remote, conclusion.socket_id)) {
            let slot = &mut self.connections[index];
            if slot.caller.is_some_and(|(_, _, isn)| isn == conclusion.isn) {
                slot.connection.repeat_response(&conclusion);
                self.settle(now, index);
                return;
            }
        }
        if self.listener.waits(now, remote, timestamp, &conclusion) {
            return;
        }
        let Some(config) = self.listener.config.clone() else { return };
        if self.listener.waiting.len() >= self.listener.backlog {
            self.refuse(remote, &conclusion, RejectReason::BACKLOG);
            return;
        }
        match Proposal::check(now, timestamp, conclusion, &config) {
            Ok(proposal) => {
                let incoming = self.listener.admit(now, remote, proposal, config);
                self.events.push_back(Event::Incoming(incoming));
            }
            Err((conclusion, reason)) => {
                self.refuse(remote, &conclusion, reason);
                self.events.push_back(Event::CallerRefused(remote, reason));
            }
        }
    }

    fn answer(
        &mut self,
        remote: SocketAddr,
        timestamp: Timestamp,
        dest: SocketId,
        handshake: Handshake,
    ) {
        self.say(remote, timestamp, dest, Control::Handshake(Box::new(handshake)));
    }

    fn say(
        &mut self,
        remote: SocketAddr,
        timestamp: Timestamp,
        dest: SocketId,
        control: Control<'_>,
    ) {
        let mut datagram = Vec::new();
        ControlPacket { timestamp, dest, control }.emit(&mut datagram);
        self.outbox.reply(remote, datagram);
    }
}
