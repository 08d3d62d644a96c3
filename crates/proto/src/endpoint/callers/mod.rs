//! The listener's side of an endpoint: the handshakes of callers, up to their acceptance.

mod admission;
mod allowance;
mod applicant;
mod claims;
mod derivations;
mod places;
mod successions;
#[cfg(test)]
mod testing;
mod waiting;

use punctual_crypto::KekCache;
use punctual_units::Instant;
use punctual_wire::{Control, Handshake, HandshakeRequest, RejectReason, Timestamp};

use self::admission::Admission;
use self::applicant::Applicant;
use self::claims::{ClaimDecision, Claims};
use self::derivations::Derivations;
use self::places::{Place, Places};
use self::successions::Successions;
use self::waiting::{Waiting, WaitingCallers};
use super::connections::Connections;
use super::recent_calls::RecentCalls;
use super::{EndpointConfig, earlier};
use crate::chance::Chance;
use crate::config::Config;
use crate::connection::Connection;
use crate::error::AcceptError;
use crate::event::Event;
use crate::handshake::cookie::CookieKey;
use crate::handshake::derivation::{DerivedKey, KeyDerivation};
use crate::handshake::keys::KeyTools;
use crate::handshake::listener::{Proposal, induction_response, rejection};
use crate::handshake::membership::Membership;
use crate::ids::{ConnectionId, IncomingId};
use crate::path::PathId;

/// The listener: callers that are not accepted yet, and the limits on them.
///
/// It answers callers and reports them to the application by means of the endpoint's
/// [`Connections`].
#[derive(Debug)]
pub(super) struct Callers {
    /// The options of accepted connections, while the endpoint listens.
    config: Option<Config>,
    cookies: CookieKey,
    /// The largest number of waiting callers.
    backlog: usize,
    admission: Admission,
    waiting: WaitingCallers,
    places: Places,
    claims: Claims,
    successions: Successions,
    /// Calls that were refused, and why.
    refused: RecentCalls<RejectReason>,
    derivations: Derivations,
    /// The keys that follow from callers' passphrases.
    keks: KekCache,
}

impl Callers {
    /// A listener that does not listen yet. Its cookies are made with `key`.
    pub(super) fn new(config: &EndpointConfig, key: [u8; 16], now: Instant) -> Self {
        Self {
            config: None,
            cookies: CookieKey::new(key, now),
            backlog: config.backlog,
            admission: Admission::new(now, config.callers_per_second),
            waiting: WaitingCallers::default(),
            places: Places(config.max_callers),
            claims: Claims::default(),
            successions: Successions::new(config.keep_silent_callers),
            refused: RecentCalls::default(),
            derivations: Derivations::new(now, config.key_derivations),
            keks: KekCache::default(),
        }
    }

    /// Starts listening with these options for accepted connections; `None` stops listening.
    pub(super) fn listen(&mut self, config: Option<Config>) {
        self.config = config;
    }

    /// Limits the number of callers at a time from now on.
    pub(super) fn limit(&mut self, limit: Option<usize>) {
        self.places = Places(limit);
    }

    /// The key by which cookies are made.
    pub(super) const fn cookies(&self) -> &CookieKey {
        &self.cookies
    }

    /// Whether a handshake is that of a caller, not of the other end of a rendezvous.
    pub(super) fn is_call(&self, now: Instant, path: PathId, handshake: &Handshake) -> bool {
        match handshake.request {
            HandshakeRequest::Induction => true,
            HandshakeRequest::Conclusion => self.cookies.verify(now, path, handshake.cookie),
            _ => false,
        }
    }

    /// Takes in a handshake addressed to the listener.
    pub(super) fn handle_handshake(
        &mut self,
        now: Instant,
        path: PathId,
        timestamp: Timestamp,
        handshake: Handshake,
        connections: &mut Connections,
    ) {
        match handshake.request {
            HandshakeRequest::Induction => {
                let Some(config) = &self.config else {
                    // The peer calls where this end meets it by rendezvous.
                    if connections.rendezvous_by(path).is_some() {
                        refuse(path, &handshake, RejectReason::ROGUE, connections);
                    }
                    return;
                };
                let cookie = self.cookies.generate(now, path);
                let response = induction_response(&handshake, cookie, path, config);
                let response = Control::Handshake(Box::new(response));
                connections.reply(path, timestamp, handshake.socket_id, response);
            }
            HandshakeRequest::Conclusion => {
                if self.cookies.verify(now, path, handshake.cookie) {
                    self.handle_conclusion(now, path, timestamp, handshake, connections);
                }
            }
            HandshakeRequest::Rejection(_) => {
                if self.cookies.verify(now, path, handshake.cookie) {
                    self.handle_withdrawal(now, path, &handshake, connections);
                }
            }
            // There is no rendezvous by this path.
            HandshakeRequest::WaveAHand
            | HandshakeRequest::Agreement
            | HandshakeRequest::Unknown(_) => {}
        }
    }

    /// Forgets callers that gave up, and decides on callers that claim the place of another one.
    pub(super) fn handle_timeout(&mut self, now: Instant, connections: &mut Connections) {
        while let Some(gone) = self.waiting.expire(now) {
            connections.push_event(Event::IncomingGone(gone));
        }
        while let Some((applicant, decision)) =
            self.claims.decide(now, |rival| connections.get(rival)?.occupant())
        {
            match decision {
                ClaimDecision::Refused => {
                    self.turn_away(now, &applicant, connections);
                    continue;
                }
                ClaimDecision::Vacant => {}
                ClaimDecision::Evict(rival) => connections.evict(now, rival),
            }
            self.place(now, applicant, connections);
        }
        self.end_the_dead(now, connections);
    }

    /// Ends connections of silent callers that may be callers which wait now, before a restart.
    fn end_the_dead(&mut self, now: Instant, connections: &mut Connections) {
        while let Some(mut succession) = self.successions.take_due(now) {
            // An application that has answered needs no help.
            let Some(waiting) = self.waiting.get(succession.caller()) else { continue };
            let dead = succession.decide(now, &waiting.applicant, connections.callers());
            self.successions.resume(succession);
            dead.into_iter().for_each(|rival| connections.evict(now, rival));
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout), or
    /// [`poll_key_derivation`](Self::poll_key_derivation).
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let first = earlier(self.waiting.next_expiry(), self.derivations.next());
        earlier(first, earlier(self.claims.next_look(), self.successions.next_look()))
    }

    /// Accepts a waiting caller, as a link of a group if `membership` is given.
    ///
    /// # Errors
    ///
    /// The caller is gone, does not fit the configuration, or there are too many connections. In
    /// the last two cases the caller gets a rejection.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        id: IncomingId,
        config: Option<Config>,
        membership: Option<&Membership>,
        chance: &mut Chance,
        connections: &mut Connections,
    ) -> Result<ConnectionId, AcceptError> {
        let Waiting { applicant, derived, .. } = self.waiting.take(id).ok_or(AcceptError::Gone)?;
        if let Some(derived) = derived {
            derived.store(&mut self.keks);
        }
        let Applicant { path, proposal, config: default, .. } = applicant;
        let conclusion = &proposal.conclusion;
        let config = proposal.request.suit(config.unwrap_or(default));
        if let Err(limit) = connections.check_room() {
            self.refuse(now, path, conclusion, RejectReason::RESOURCE, connections);
            return Err(AcceptError::TooManyConnections(limit));
        }
        let socket_id = connections.draw_socket_id(chance);
        let mut tools = KeyTools { chance, cache: &mut self.keks };
        let by = connections.path(path);
        match proposal.accept(&config, socket_id, &by, membership, &mut tools) {
            Ok((response, negotiated)) => {
                let mut connection = Connection::accepted(now, by, config, negotiated, response);
                if let Some(membership) = membership {
                    connection.join_group(membership);
                }
                let caller = (path, conclusion.socket_id, conclusion.isn);
                Ok(connections.insert(now, connection, Some(caller)))
            }
            Err(reason) => {
                self.refuse(now, path, conclusion, reason, connections);
                Err(AcceptError::Incompatible(reason))
            }
        }
    }

    /// Rejects a waiting caller; nothing happens if it is gone.
    pub(super) fn reject(
        &mut self,
        id: IncomingId,
        reason: RejectReason,
        connections: &mut Connections,
    ) {
        if let Some(waiting) = self.waiting.take(id) {
            let (now, applicant) = (waiting.last_heard(), &waiting.applicant);
            let conclusion = &applicant.proposal.conclusion;
            self.refuse(now, applicant.path, conclusion, reason, connections);
        }
    }

    /// The next key to be derived for a caller, one at a time.
    pub(super) fn poll_key_derivation(
        &mut self,
        now: Instant,
        connections: &mut Connections,
    ) -> Option<KeyDerivation> {
        let waiting = &self.waiting;
        let caller = self.derivations.pop(now, |caller| waiting.get(caller).is_some())?;
        let Applicant { proposal, config, .. } = &waiting.get(caller)?.applicant;
        let job = proposal.key_derivation(caller, config);
        if job.is_none() {
            // Its key message is invalid: an attempt to accept it fails with the reason.
            self.derivations.ended(caller);
            self.announce(caller, connections);
        }
        job
    }

    /// Takes in a derived key, and reports its caller to the application.
    pub(super) fn handle_derived_key(
        &mut self,
        derived: DerivedKey,
        connections: &mut Connections,
    ) {
        let caller = derived.caller();
        self.derivations.ended(caller);
        if let Some(incoming) = self.waiting.learn(caller, derived) {
            connections.push_event(Event::Incoming(incoming));
        }
    }

    /// The key that accepting a caller with this configuration takes, if it was not derived yet.
    pub(super) fn key_derivation_for(
        &self,
        id: IncomingId,
        config: &Config,
    ) -> Option<KeyDerivation> {
        let waiting = self.waiting.get(id)?;
        let job = waiting.applicant.proposal.key_derivation(id, config)?;
        let is_known = job.is_known(waiting.derived.as_ref(), &self.keks);
        (!is_known).then_some(job)
    }

    /// Whether a waiting caller uses a path.
    pub(super) fn uses_path(&self, path: PathId) -> bool {
        self.waiting.find_by_path(path).is_some()
    }

    /// Forgets the waiting callers that use a path.
    pub(super) fn lose_path(&mut self, path: PathId, connections: &mut Connections) {
        while let Some(caller) = self.waiting.find_by_path(path) {
            self.dismiss(caller, connections);
        }
    }

    /// Takes in a conclusion. Callers repeat it until they have an answer, which may be lost, so
    /// that a repetition gets the same answer as the first one, also after listening has stopped.
    fn handle_conclusion(
        &mut self,
        now: Instant,
        path: PathId,
        timestamp: Timestamp,
        conclusion: Handshake,
        connections: &mut Connections,
    ) {
        if connections.repeat_response(now, path, &conclusion)
            || self.waiting.is_repeated(now, path, timestamp, &conclusion)
            || self.claims.is_repeated(now, path, timestamp, &conclusion)
            || connections.has_departed(now, path, &conclusion)
        {
            return;
        }
        if let Some(reason) = self.refused.get(now, &(path, conclusion.socket_id, conclusion.isn)) {
            refuse(path, &conclusion, reason, connections);
            return;
        }
        let Some(config) = self.config.clone() else { return };
        let host = connections.path(path).host();
        if !self.admission.admits(now, host) {
            return;
        }
        if self.waiting.len() >= self.backlog {
            refuse(path, &conclusion, RejectReason::BACKLOG, connections);
            return;
        }
        match Proposal::check(now, timestamp, conclusion, &config) {
            Ok(proposal) => {
                self.place(now, Applicant { path, host, proposal, config }, connections);
            }
            Err((conclusion, reason)) => {
                self.refuse(now, path, &conclusion, reason, connections);
                connections.push_event(Event::CallerRefused(path, reason));
            }
        }
    }

    /// A caller withdraws its call, by a rejection of its own conclusion. Only callers of this
    /// implementation do so; other listeners take the rejection for an invalid conclusion.
    fn handle_withdrawal(
        &mut self,
        now: Instant,
        path: PathId,
        withdrawal: &Handshake,
        connections: &mut Connections,
    ) {
        if connections.withdraw(now, path, withdrawal) {
            return;
        }
        if let Some(gone) = self.waiting.find(path, withdrawal) {
            self.dismiss(gone, connections);
        }
        self.claims.withdraw(path, withdrawal);
    }

    /// Finds a place for a caller whose handshake fits.
    fn place(&mut self, now: Instant, applicant: Applicant, connections: &mut Connections) {
        match self.places.find(&applicant, &self.waiting, connections) {
            Place::Free => self.admit(now, applicant, connections),
            Place::None => self.turn_away(now, &applicant, connections),
            Place::OfWaiting(older) => {
                if let Some(Waiting { applicant: older, .. }) = self.dismiss(older, connections) {
                    let conclusion = &older.proposal.conclusion;
                    let reason = RejectReason::BACKLOG;
                    self.refuse(now, older.path, conclusion, reason, connections);
                }
                self.admit(now, applicant, connections);
            }
            Place::OfConnection(rival) => {
                if let Some(older) = self.claims.add(now, rival, applicant) {
                    self.turn_away(now, &older, connections);
                }
            }
        }
    }

    /// Admits a caller. The application gets it at once, or when its key was derived. If too many
    /// callers wait for their keys, this one is ignored until it repeats its request.
    fn admit(&mut self, now: Instant, applicant: Applicant, connections: &mut Connections) {
        let host = applicant.host;
        let waits_for_key = self.derivations.is_wanted() && applicant.needs_key();
        if waits_for_key && !self.derivations.has_room(host) {
            return;
        }
        let id = self.waiting.add(now, applicant);
        self.successions.add(now, id);
        if waits_for_key {
            self.derivations.push(id, host);
        } else {
            self.announce(id, connections);
        }
    }

    /// Reports a caller to the application, if it does not know it yet.
    fn announce(&mut self, id: IncomingId, connections: &mut Connections) {
        if let Some(incoming) = self.waiting.announce(id) {
            connections.push_event(Event::Incoming(incoming));
        }
    }

    /// Refuses a caller for which there is no place, without asking the application, which gets an
    /// event.
    fn turn_away(&mut self, now: Instant, applicant: &Applicant, connections: &mut Connections) {
        let (path, reason) = (applicant.path, RejectReason::BACKLOG);
        self.refuse(now, path, &applicant.proposal.conclusion, reason, connections);
        connections.push_event(Event::CallerRefused(path, reason));
    }

    /// Refuses a call for good: if the caller repeats its conclusion, it gets the same answer.
    fn refuse(
        &mut self,
        now: Instant,
        path: PathId,
        conclusion: &Handshake,
        reason: RejectReason,
        connections: &mut Connections,
    ) {
        self.refused.insert(now, (path, conclusion.socket_id, conclusion.isn), reason);
        refuse(path, conclusion, reason, connections);
    }

    /// Forgets a caller that waits.
    fn dismiss(&mut self, id: IncomingId, connections: &mut Connections) -> Option<Waiting> {
        let waiting = self.waiting.take(id)?;
        if waiting.announced {
            connections.push_event(Event::IncomingGone(id));
        }
        Some(waiting)
    }
}

/// Sends a caller the reason why it was refused.
fn refuse(
    path: PathId,
    handshake: &Handshake,
    reason: RejectReason,
    connections: &mut Connections,
) {
    let is_old = handshake.version == 4 && handshake.request == HandshakeRequest::Conclusion;
    let refusal = if is_old {
        // SRT before 1.3.0 does not know rejections, but it knows SHUTDOWN, by which libsrt refuses
        // it, too.
        Control::Shutdown
    } else {
        Control::Handshake(Box::new(rejection(handshake, reason)))
    };
    connections.reply(path, Timestamp::default(), handshake.socket_id, refusal);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_wire::SocketId;

    use super::testing::{calling, conclusion, host, listening};
    use super::*;

    const NOW: Instant = Instant::from_millis(9_000);

    struct Port {
        callers: Callers,
        connections: Connections,
    }

    impl Port {
        fn new(config: &EndpointConfig, listening: Config) -> Self {
            let mut callers = Callers::new(config, [3; 16], NOW);
            callers.listen(Some(listening));
            Self { callers, connections: Connections::new(config) }
        }

        /// A handshake comes; `true` if it is answered.
        fn handle(&mut self, path: PathId, handshake: Handshake) -> bool {
            let timestamp = Timestamp::default();
            self.callers.handle_handshake(NOW, path, timestamp, handshake, &mut self.connections);
            let answer = self.connections.write_batch(NOW, 1, &mut Vec::new());
            assert!(answer.is_none_or(|answer| answer.path == path));
            answer.is_some()
        }

        /// A conclusion with the right cookie.
        fn conclusion(&self, path: PathId, config: &Config) -> Handshake {
            conclusion(NOW, path, config, self.callers.cookies().generate(NOW, path))
        }

        fn accept(&mut self, id: IncomingId) -> Result<ConnectionId, AcceptError> {
            let (chance, connections) = (&mut Chance::new([4; 32]), &mut self.connections);
            self.callers.accept(NOW, id, None, None, chance, connections)
        }

        fn incoming(&mut self) -> Option<IncomingId> {
            match self.connections.poll_event()? {
                Event::Incoming(incoming) => Some(incoming.id),
                other => panic!("{other:?}"),
            }
        }
    }

    fn config() -> EndpointConfig {
        EndpointConfig::new([1; 32])
    }

    #[test]
    fn an_induction_is_answered_only_while_the_endpoint_listens() {
        let mut port = Port::new(&config(), listening());
        let request = HandshakeRequest::Induction;
        let induction = Handshake { request, ..port.conclusion(host(1), &calling("")) };
        assert!(port.handle(host(1), induction.clone()));
        port.callers.listen(None);
        assert!(!port.handle(host(1), induction));
    }

    #[test]
    fn a_conclusion_counts_only_with_the_cookie_of_its_path() {
        let mut port = Port::new(&config(), listening());
        let conclusion = port.conclusion(host(1), &calling(""));
        port.handle(host(2), conclusion.clone());
        assert_eq!(port.incoming(), None);
        port.handle(host(1), conclusion);
        assert!(port.incoming().is_some());
    }

    #[test]
    fn a_repeated_conclusion_is_reported_once_and_accepted_once() {
        let mut port = Port::new(&config(), listening());
        let conclusion = port.conclusion(host(1), &calling(""));
        assert!(!port.handle(host(1), conclusion.clone()));
        let id = port.incoming().expect("a caller");
        assert!(!port.handle(host(1), conclusion.clone()));
        assert_eq!(port.incoming(), None);
        port.accept(id).expect("it fits");
        assert!(matches!(port.accept(id), Err(AcceptError::Gone)));
        assert!(port.handle(host(1), conclusion), "the response");
        assert_eq!(port.connections.count(), 1);
    }

    #[test]
    fn a_refused_conclusion_that_is_repeated_gets_the_same_answer() {
        let mut port = Port::new(&config(), listening());
        let conclusion = port.conclusion(host(1), &calling(""));
        port.handle(host(1), conclusion.clone());
        let id = port.incoming().expect("a caller");
        port.callers.reject(id, RejectReason::NOT_FOUND, &mut port.connections);
        let mut answer = Vec::new();
        port.connections.write_batch(NOW, 1, &mut answer).expect("a rejection");
        for _ in 0..3 {
            let (timestamp, repeated) = (Timestamp::default(), conclusion.clone());
            let Port { callers, connections } = &mut port;
            callers.handle_handshake(NOW, host(1), timestamp, repeated, connections);
            let mut again = Vec::new();
            connections.write_batch(NOW, 1, &mut again).expect("a rejection");
            assert_eq!(again, answer);
            assert_eq!(port.incoming(), None);
        }
        let other = Handshake { isn: conclusion.isn.next(), ..conclusion };
        port.handle(host(1), other);
        assert!(port.incoming().is_some(), "another call");
    }

    #[test]
    fn callers_beyond_the_backlog_and_the_connections_are_refused() {
        let limits = EndpointConfig { backlog: 1, max_connections: 0, ..config() };
        let mut port = Port::new(&limits, listening());
        let [first, second] = [1, 2].map(|it| port.conclusion(host(it), &calling("")));
        assert!(!port.handle(host(1), first));
        assert!(port.handle(host(2), second), "a rejection");
        let id = port.incoming().expect("a caller");
        assert!(matches!(port.accept(id), Err(AcceptError::TooManyConnections(0))));
        assert!(port.connections.has_datagrams(), "a rejection");
    }

    #[test]
    fn a_call_that_was_withdrawn_does_not_come_back() {
        let mut port = Port::new(&config(), listening());
        let conclusion = port.conclusion(host(1), &calling(""));
        port.handle(host(1), conclusion.clone());
        let id = port.incoming().expect("a caller");
        let request = HandshakeRequest::Rejection(RejectReason::CLOSE);
        port.handle(host(1), Handshake { request, ..conclusion.clone() });
        let event = port.connections.poll_event();
        assert!(matches!(event, Some(Event::IncomingGone(gone)) if gone == id));
        port.handle(host(1), conclusion);
        assert_eq!(port.incoming(), None);
    }

    #[test]
    fn the_application_gets_an_encrypted_caller_when_its_key_was_derived() {
        let phrase = |config: Config| config.with_passphrase("a long phrase").expect("it is long");
        let limits = EndpointConfig { key_derivations: Some(100), ..config() };
        let mut port = Port::new(&limits, phrase(listening()));
        let conclusion = port.conclusion(host(1), &phrase(calling("")));
        port.handle(host(1), conclusion);
        assert_eq!(port.incoming(), None);
        let derivation = port.callers.poll_key_derivation(NOW, &mut port.connections);
        let derived = derivation.expect("the key is wanted").run();
        port.callers.handle_derived_key(derived, &mut port.connections);
        let id = port.incoming().expect("a caller");
        assert!(port.callers.key_derivation_for(id, &phrase(listening())).is_none());
        port.accept(id).expect("it fits");
    }

    #[test]
    fn a_waiting_caller_ends_a_silent_one_unless_silent_ones_are_kept() {
        for is_kept in [false, true] {
            let limits = EndpointConfig { keep_silent_callers: is_kept, ..config() };
            let mut port = Port::new(&limits, listening());
            let older = port.conclusion(host(1), &calling("camera"));
            port.handle(host(1), older.clone());
            let id = port.incoming().expect("a caller");
            port.accept(id).expect("it fits");
            port.handle(host(1), Handshake { socket_id: SocketId::new(8), ..older });
            assert!(port.incoming().is_some(), "the application takes its time to decide");
            for millis in (0..1_500).step_by(10) {
                let now = NOW + Duration::from_millis(millis);
                port.callers.handle_timeout(now, &mut port.connections);
            }
            let event = port.connections.poll_event();
            let has_ended = matches!(event, Some(Event::Closed(..)));
            assert_eq!(has_ended, !is_kept, "{event:?}");
        }
    }

    #[test]
    fn a_caller_of_a_silent_stream_takes_its_place() {
        let limits = EndpointConfig { max_callers: Some(1), ..config() };
        let mut port = Port::new(&limits, listening());
        let older = port.conclusion(host(1), &calling("camera"));
        port.handle(host(1), older.clone());
        let id = port.incoming().expect("a caller");
        let older_id = port.accept(id).expect("it fits");
        let newer = Handshake { socket_id: SocketId::new(8), ..older };
        port.handle(host(1), newer);
        let later = NOW + Duration::from_millis(1_200);
        port.callers.handle_timeout(later, &mut port.connections);
        let event = port.connections.poll_event();
        assert!(matches!(event, Some(Event::Closed(id, _)) if id == older_id), "{event:?}");
        assert!(port.incoming().is_some());
    }
}
