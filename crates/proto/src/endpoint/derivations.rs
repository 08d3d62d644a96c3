use std::collections::{BTreeMap, VecDeque};

use punctual_crypto::{Kek, KekCache, KeyLength, Passphrase, Salt};
use punctual_units::Instant;

use super::Endpoint;
use super::allowance::Allowance;
use crate::config::Config;
use crate::event::{Event, IncomingId};
use crate::path::{Host, PathId};

/// The derivation of a key from a passphrase, which a caller's request needs: some 200 µs of work
/// that whoever drives an endpoint does elsewhere, so that connections need not wait for it.
#[derive(Clone, Debug)]
pub struct KeyDerivation {
    caller: IncomingId,
    passphrase: Passphrase,
    salt: Salt,
    length: KeyLength,
}

/// The result of a [`KeyDerivation`].
#[derive(Clone, Debug)]
pub struct DerivedKey {
    caller: IncomingId,
    passphrase: Passphrase,
    salt: Salt,
    kek: Kek,
}

impl KeyDerivation {
    pub(crate) const fn new(
        caller: IncomingId,
        passphrase: Passphrase,
        salt: Salt,
        length: KeyLength,
    ) -> Self {
        Self { caller, passphrase, salt, length }
    }

    /// Does the work.
    pub fn run(self) -> DerivedKey {
        let Self { caller, passphrase, salt, length } = self;
        let kek = Kek::derive(&passphrase, &salt, length);
        DerivedKey { caller, passphrase, salt, kek }
    }
}

impl DerivedKey {
    /// Keeps the key for whoever asks for it next.
    pub(crate) fn store(self, cache: &mut KekCache) {
        cache.insert(&self.passphrase, &self.salt, self.kek);
    }
}

/// Callers whose keys are to be derived before anybody hears of them: one after the other, so many
/// a second, and of one address no more than a share of those that wait.
#[derive(Debug)]
pub(crate) struct Derivations {
    /// `None` where keys are derived as callers are accepted.
    allowance: Option<Allowance>,
    queue: VecDeque<(IncomingId, Host)>,
    /// How many wait, by their network.
    waiting: BTreeMap<Host, usize>,
    running: Option<IncomingId>,
}

impl Derivations {
    pub(crate) fn new(now: Instant, per_second: Option<u32>) -> Self {
        Self {
            allowance: per_second.map(|limit| Allowance::new(now, limit, BURST)),
            queue: VecDeque::new(),
            waiting: BTreeMap::new(),
            running: None,
        }
    }

    /// Whether keys are derived before callers are told of.
    pub(crate) const fn is_wanted(&self) -> bool {
        self.allowance.is_some()
    }

    /// Whether another caller from `path` may wait.
    pub(crate) fn has_room(&self, path: PathId) -> bool {
        let of_network = self.waiting.get(&path.host().network()).copied().unwrap_or_default();
        self.queue.len() < QUEUE && of_network < OF_NETWORK
    }

    pub(crate) fn push(&mut self, caller: IncomingId, path: PathId) {
        let network = path.host().network();
        self.queue.push_back((caller, network));
        *self.waiting.entry(network).or_default() += 1;
    }

    /// When the next one may begin; `None` if none waits, or the end of another one is waited for.
    pub(crate) fn next(&self) -> Option<Instant> {
        let idle = self.running.is_none() && !self.queue.is_empty();
        self.allowance.as_ref().filter(|_| idle).map(Allowance::next)
    }

    /// The next caller, if its turn has come. Those that `is_there` says are gone cost nothing.
    fn pop(&mut self, now: Instant, is_there: impl Fn(IncomingId) -> bool) -> Option<IncomingId> {
        while self.running.is_none()
            && let Some(&(caller, network)) = self.queue.front()
        {
            let is_there = is_there(caller);
            if is_there && !self.allowance.as_mut()?.take(now, 0) {
                return None;
            }
            self.queue.pop_front();
            self.leave(network);
            if is_there {
                self.running = Some(caller);
                return Some(caller);
            }
        }
        None
    }

    fn leave(&mut self, network: Host) {
        if let Some(waiting) = self.waiting.get_mut(&network) {
            *waiting -= 1;
            if *waiting == 0 {
                self.waiting.remove(&network);
            }
        }
    }

    fn ended(&mut self, caller: IncomingId) {
        self.running.take_if(|running| *running == caller);
    }
}

impl Endpoint {
    /// The next key to be derived for a caller, one at a time, where
    /// [`EndpointConfig::key_derivations`](crate::EndpointConfig::key_derivations) asks for that.
    /// Its [result](KeyDerivation::run) goes to [`handle_derived_key`](Self::handle_derived_key),
    /// whenever it is there. [`poll_timeout`](Self::poll_timeout) tells when there is one.
    pub fn poll_key_derivation(&mut self, now: Instant) -> Option<KeyDerivation> {
        let listener = &self.listener;
        let caller = self.derivations.pop(now, |caller| listener.get(caller).is_some())?;
        let waiting = self.listener.get(caller)?;
        let job = waiting.proposal.key_derivation(caller, &waiting.config);
        if job.is_none() {
            // Its key message is not sound: accepting it tells that.
            self.derivations.ended(caller);
            if let Some(incoming) = self.listener.announce(caller) {
                self.events.push_back(Event::Incoming(incoming));
            }
        }
        job
    }

    /// Takes in a key that was derived; the caller is told of, if it still waits.
    pub fn handle_derived_key(&mut self, derived: DerivedKey) {
        let caller = derived.caller;
        self.derivations.ended(caller);
        if let Some(incoming) = self.listener.learn(caller, derived) {
            self.events.push_back(Event::Incoming(incoming));
        }
    }

    /// The key that accepting a caller with this configuration takes, if it was not derived yet.
    /// Without it [`accept`](Self::accept) derives it.
    pub fn key_derivation_for(&self, id: IncomingId, config: &Config) -> Option<KeyDerivation> {
        let waiting = self.listener.get(id)?;
        let job = waiting.proposal.key_derivation(id, config)?;
        let derived = waiting.derived.as_ref();
        let is_known = derived.is_some_and(|known| known.passphrase == job.passphrase)
            || self.keks.contains(&job.passphrase, &job.salt, job.length);
        (!is_known).then_some(job)
    }
}

/// Derivations that may follow each other at once.
const BURST: u32 = 32;
/// Callers that wait for one.
const QUEUE: usize = 256;
/// Those of them that come from one network.
const OF_NETWORK: usize = 64;

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use std::time::Duration;

    use super::*;

    const START: Instant = Instant::from_millis(4_000);

    fn from(host: u8) -> PathId {
        SocketAddr::from(([192, 0, 2, host], 9_000)).into()
    }

    fn filled(hosts: u8) -> Derivations {
        let mut derivations = Derivations::new(START, Some(500));
        let mut number = 0;
        for host in 0..hosts {
            for _ in 0..1_000 {
                if derivations.has_room(from(host)) {
                    derivations.push(IncomingId(number), from(host));
                    number += 1;
                }
            }
        }
        derivations
    }

    #[test]
    fn few_callers_wait_and_fewer_of_one_address() {
        assert_eq!(filled(1).queue.len(), OF_NETWORK);
        assert_eq!(filled(20).queue.len(), QUEUE);
        let mut derivations = filled(1);
        assert!(derivations.has_room(from(2)));
        derivations.pop(START, |_| true);
        assert!(derivations.has_room(from(0)));
    }

    #[test]
    fn one_key_is_derived_at_a_time_and_so_many_a_second() {
        let mut derivations = filled(20);
        let mut derived = 0;
        for millis in 0..2_000 {
            let now = START + Duration::from_millis(millis);
            while let Some(caller) = derivations.pop(now, |_| true) {
                assert_eq!(derivations.pop(now, |_| true), None);
                assert_eq!(derivations.next(), None);
                derivations.ended(caller);
                derived += 1;
                derivations.push(IncomingId(1_000_000 + millis), from(7));
            }
        }
        assert!((980..=1_000 + usize::try_from(BURST).unwrap()).contains(&derived), "{derived}");
    }

    #[test]
    fn callers_that_gave_up_cost_nothing() {
        let mut derivations = filled(20);
        let last = derivations.queue.back().unwrap().0;
        assert_eq!(derivations.pop(START, |caller| caller == last), Some(last));
        assert_eq!(derivations.waiting, BTreeMap::new());
    }
}
