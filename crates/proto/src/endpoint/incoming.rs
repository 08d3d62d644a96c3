//! The listener: callers that wait for the application's answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{
    Control, ControlPacket, Handshake, HandshakeRequest, RejectReason, SocketId, Timestamp,
};

use super::{DerivedKey, Endpoint};
use crate::config::Config;
use crate::error::CloseReason;
use crate::event::{Event, Incoming, IncomingId};
use crate::handshake::cookie::CookieKey;
use crate::handshake::listener::{Proposal, induction_response, rejection};
use crate::path::PathId;

/// The time after which a caller that has not repeated its request is forgotten. Some never repeat
/// it.
const WAITING_TIMEOUT: Duration = Duration::from_secs(3);

/// The same for a caller that has repeated its request: it does so at least each 250 ms, unless it
/// has given up.
const REPEATING_TIMEOUT: Duration = Duration::from_secs(1);

/// The listener's side of an endpoint: callers that wait for the application's answer.
#[derive(Debug)]
pub(crate) struct Listener {
    config: Option<Config>,
    cookies: CookieKey,
    backlog: usize,
    next_id: u64,
    waiting: BTreeMap<IncomingId, Waiting>,
    by_caller: BTreeMap<(PathId, SocketId), IncomingId>,
    expiry: BTreeSet<(Instant, IncomingId)>,
}

/// A caller that waits.
#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) path: PathId,
    pub(crate) proposal: Proposal,
    pub(crate) config: Config,
    /// The key for its request under `config`, if it was derived already.
    pub(crate) derived: Option<DerivedKey>,
    /// Whether the application has got [`Event::Incoming`].
    announced: bool,
    last_heard: Instant,
    repeats: bool,
}

impl Waiting {
    /// When it is forgotten, unless it repeats its request.
    fn until(&self) -> Instant {
        let timeout = if self.repeats { REPEATING_TIMEOUT } else { WAITING_TIMEOUT };
        self.last_heard + timeout
    }
}

impl Listener {
    pub(crate) fn new(key: [u8; 16], now: Instant, backlog: usize) -> Self {
        Self {
            config: None,
            cookies: CookieKey::new(key, now),
            backlog,
            next_id: 0,
            waiting: BTreeMap::new(),
            by_caller: BTreeMap::new(),
            expiry: BTreeSet::new(),
        }
    }

    pub(crate) fn listen(&mut self, config: Option<Config>) {
        self.config = config;
    }

    pub(crate) const fn config(&self) -> Option<&Config> {
        self.config.as_ref()
    }

    /// Whether this listener made the cookie for `path`.
    pub(crate) fn verifies(&self, now: Instant, path: PathId, cookie: u32) -> bool {
        self.cookies.verify(now, path, cookie)
    }

    /// See [`CookieKey::nonces`].
    pub(crate) fn nonces(&self, now: Instant, path: PathId, purpose: [u64; 2]) -> [u64; 2] {
        self.cookies.nonces(now, path, purpose)
    }

    /// A caller that waits.
    pub(crate) fn get(&self, id: IncomingId) -> Option<&Waiting> {
        self.waiting.get(&id)
    }

    /// Keeps a derived key for a caller that waits. Returns the caller as in
    /// [`announce`](Self::announce).
    pub(crate) fn learn(&mut self, id: IncomingId, derived: DerivedKey) -> Option<Incoming> {
        let waiting = self.waiting.get_mut(&id)?;
        waiting.derived = Some(derived);
        self.announce(id)
    }

    /// A caller for the application; `None` if the application has got it already.
    pub(crate) fn announce(&mut self, id: IncomingId) -> Option<Incoming> {
        let waiting = self.waiting.get_mut(&id).filter(|waiting| !waiting.announced)?;
        waiting.announced = true;
        let Waiting { path, proposal, .. } = waiting;
        Some(Incoming {
            id,
            path: *path,
            stream_id: proposal.request.stream_id().to_owned(),
            peer_version: proposal.request.peer_version(),
            peer_socket_id: proposal.conclusion.socket_id,
            encrypted: proposal.request.is_encrypted(),
            group: proposal.request.group(),
        })
    }

    /// A waiting caller that uses this path.
    pub(crate) fn find_by_path(&self, path: PathId) -> Option<IncomingId> {
        let mut of_path = self.waiting.iter().filter(|(_, waiting)| waiting.path == path);
        of_path.next().map(|(&id, _)| id)
    }

    /// Removes a caller that is answered now.
    pub(crate) fn take(&mut self, id: IncomingId) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id)?;
        self.by_caller.remove(&(waiting.path, waiting.proposal.conclusion.socket_id));
        Some(waiting)
    }

    /// When the next caller may be forgotten.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.expiry.first().map(|&(at, _)| at)
    }

    /// Removes a caller that gave up, if the application knows it.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<IncomingId> {
        while self.next_expiry()? <= now {
            let (_, id) = self.expiry.pop_first()?;
            let Some(waiting) = self.waiting.get(&id) else { continue };
            let until = waiting.until();
            if now >= until {
                if self.take(id).is_some_and(|waiting| waiting.announced) {
                    return Some(id);
                }
                continue;
            }
            self.expiry.insert((until, id));
        }
        None
    }

    /// Whether the caller waits already. If so, its timeout starts again.
    fn waits(
        &mut self,
        now: Instant,
        path: PathId,
        timestamp: Timestamp,
        conclusion: &Handshake,
    ) -> bool {
        let Some(id) = self.by_caller.get(&(path, conclusion.socket_id)) else { return false };
        let Some(waiting) = self.waiting.get_mut(id) else { return false };
        if !waiting.proposal.is_repeated_by(conclusion) {
            return false;
        }
        waiting.last_heard = now;
        if !std::mem::replace(&mut waiting.repeats, true) {
            self.expiry.insert((waiting.until(), *id));
        }
        waiting.proposal.base.refine(now, timestamp);
        true
    }

    /// The caller that withdraws its call, if it waits.
    fn withdraw(&self, path: PathId, withdrawal: &Handshake) -> Option<IncomingId> {
        let id = *self.by_caller.get(&(path, withdrawal.socket_id))?;
        let gave_up = self.waiting.get(&id)?.proposal.is_repeated_by(withdrawal);
        gave_up.then_some(id)
    }

    /// Callers that wait for an answer, except links of groups.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (IncomingId, &Waiting)> {
        let single = self.waiting.iter().filter(|(_, it)| it.proposal.request.group().is_none());
        single.map(|(&id, waiting)| (id, waiting))
    }

    fn admit(
        &mut self,
        now: Instant,
        path: PathId,
        proposal: Proposal,
        config: Config,
    ) -> IncomingId {
        let id = IncomingId(self.next_id);
        self.next_id += 1;
        self.by_caller.insert((path, proposal.conclusion.socket_id), id);
        let waiting = Waiting {
            path,
            proposal,
            config,
            derived: None,
            announced: false,
            last_heard: now,
            repeats: false,
        };
        self.waiting.insert(id, waiting);
        self.expiry.insert((now + WAITING_TIMEOUT, id));
        id
    }
}

impl Endpoint {
    /// Takes in a handshake addressed to the listener.
    pub(crate) fn handle_listener_handshake(
        &mut self,
        now: Instant,
        path: PathId,
        timestamp: Timestamp,
        handshake: Handshake,
    ) {
        match handshake.request {
            HandshakeRequest::Induction => {
                let Some(config) = &self.listener.config else {
                    // The peer calls where this end meets it by rendezvous.
                    if self.connections.of_rendezvous(path).is_some() {
                        self.refuse(path, &handshake, RejectReason::ROGUE);
                    }
                    return;
                };
                let cookie = self.listener.cookies.generate(now, path);
                let response = induction_response(&handshake, cookie, path, config);
                self.answer(path, timestamp, handshake.socket_id, response);
            }
            HandshakeRequest::Conclusion => {
                if self.listener.verifies(now, path, handshake.cookie) {
                    self.handle_conclusion(now, path, timestamp, handshake);
                }
            }
            HandshakeRequest::Rejection(_) => {
                if self.listener.verifies(now, path, handshake.cookie) {
                    self.handle_withdrawal(now, path, &handshake);
                }
            }
            // There is no rendezvous by this path.
            HandshakeRequest::WaveAHand
            | HandshakeRequest::Agreement
            | HandshakeRequest::Unknown(_) => {}
        }
    }

    pub(crate) fn refuse(&mut self, path: PathId, handshake: &Handshake, reason: RejectReason) {
        let dest = handshake.socket_id;
        if handshake.version == 4 && handshake.request == HandshakeRequest::Conclusion {
            // SRT before 1.3.0 does not know rejections, but it knows SHUTDOWN, by which libsrt
            // refuses it, too.
            self.say(path, Timestamp::default(), dest, Control::Shutdown);
            return;
        }
        self.answer(path, Timestamp::default(), dest, rejection(handshake, reason));
    }

    /// Takes in a conclusion. Callers repeat it until they have an answer, which may be lost, so
    /// that a repetition gets the same answer as the first one, also after listening has stopped.
    fn handle_conclusion(
        &mut self,
        now: Instant,
        path: PathId,
        timestamp: Timestamp,
        conclusion: Handshake,
    ) {
        if let Some(index) = self.connections.of_caller(path, conclusion.socket_id) {
            let slot = &mut self.connections[index];
            if slot.caller.is_some_and(|(_, _, isn)| isn == conclusion.isn) {
                slot.connection.repeat_response(&conclusion);
                self.settle(now, index);
                return;
            }
        }
        if self.listener.waits(now, path, timestamp, &conclusion)
            || self.claims.waits(now, path, timestamp, &conclusion)
            || self.departed.contains(now, &(path, conclusion.socket_id, conclusion.isn))
        {
            return;
        }
        let Some(config) = self.listener.config.clone() else { return };
        if !self.admission.admits(now, path) {
            return;
        }
        if self.listener.waiting.len() >= self.listener.backlog {
            self.refuse(path, &conclusion, RejectReason::BACKLOG);
            return;
        }
        match Proposal::check(now, timestamp, conclusion, &config) {
            Ok(proposal) => self.place(now, path, proposal, config),
            Err((conclusion, reason)) => self.turn_away(path, &conclusion, reason),
        }
    }

    /// Forgets a caller that waits.
    pub(super) fn dismiss(&mut self, id: IncomingId) -> Option<Waiting> {
        let waiting = self.listener.take(id)?;
        if waiting.announced {
            self.events.push_back(Event::IncomingGone(id));
        }
        Some(waiting)
    }

    /// Refuses a caller without asking the application, which gets an event.
    pub(super) fn turn_away(&mut self, path: PathId, conclusion: &Handshake, reason: RejectReason) {
        self.refuse(path, conclusion, reason);
        self.events.push_back(Event::CallerRefused(path, reason));
    }

    /// A caller withdraws its call, by a rejection of its own conclusion. Only callers of this
    /// implementation do so; other listeners take the rejection for an invalid conclusion.
    fn handle_withdrawal(&mut self, now: Instant, path: PathId, withdrawal: &Handshake) {
        self.departed.insert(now, (path, withdrawal.socket_id, withdrawal.isn));
        if let Some(index) = self.connections.of_caller(path, withdrawal.socket_id) {
            let slot = &mut self.connections[index];
            if slot.caller.is_some_and(|(_, _, isn)| isn == withdrawal.isn) {
                slot.connection.abandon(CloseReason::Withdrawn);
                self.settle(now, index);
                return;
            }
        }
        if let Some(gone) = self.listener.withdraw(path, withdrawal) {
            self.dismiss(gone);
        }
        self.claims.withdraw(path, withdrawal);
    }

    /// Admits a caller. The application gets it at once, or when its key was derived. If too many
    /// callers wait for their keys, this one is ignored until it repeats its request.
    pub(super) fn admit(&mut self, now: Instant, path: PathId, proposal: Proposal, config: Config) {
        let waits_for_key = self.derivations.is_wanted()
            && proposal.request.is_encrypted()
            && config.passphrase().is_some();
        if waits_for_key && !self.derivations.has_room(path) {
            return;
        }
        let id = self.listener.admit(now, path, proposal, config);
        if waits_for_key {
            self.derivations.push(id, path);
        } else if let Some(incoming) = self.listener.announce(id) {
            self.events.push_back(Event::Incoming(incoming));
        }
    }

    fn answer(&mut self, path: PathId, timestamp: Timestamp, dest: SocketId, handshake: Handshake) {
        self.say(path, timestamp, dest, Control::Handshake(Box::new(handshake)));
    }

    pub(super) fn say(
        &mut self,
        path: PathId,
        timestamp: Timestamp,
        dest: SocketId,
        control: Control<'_>,
    ) {
        let mut datagram = Vec::new();
        ControlPacket { timestamp, dest, control }.emit(&mut datagram);
        self.outbox.reply(path, datagram);
    }
}
