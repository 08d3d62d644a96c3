//! Callers that wait for the application's answer.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{Handshake, SocketId, Timestamp};

use super::applicant::Applicant;
use crate::event::Incoming;
use crate::handshake::derivation::DerivedKey;
use crate::ids::IncomingId;
use crate::path::PathId;

/// The time after which a caller that has not repeated its request is forgotten. Some never repeat
/// it.
const WAITING_TIMEOUT: Duration = Duration::from_secs(3);

/// The same for a caller that has repeated its request: it does so at least each 250 ms, unless it
/// has given up.
const REPEATING_TIMEOUT: Duration = Duration::from_secs(1);

/// Callers that wait for the application's answer, or for the key that it takes to accept them.
#[derive(Debug, Default)]
pub(super) struct WaitingCallers {
    next_id: u64,
    callers: BTreeMap<IncomingId, Waiting>,
    by_call: BTreeMap<(PathId, SocketId), IncomingId>,
    /// When callers may be forgotten. Entries of callers that are gone remain until then.
    expiry: BTreeSet<(Instant, IncomingId)>,
}

/// A caller that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) applicant: Applicant,
    /// The key for its request under its options, if it was derived already.
    pub(super) derived: Option<DerivedKey>,
    /// Whether the application has got [`Event::Incoming`](crate::Event::Incoming).
    pub(super) announced: bool,
    last_heard: Instant,
    repeats: bool,
}

impl WaitingCallers {
    pub(super) fn len(&self) -> usize {
        self.callers.len()
    }

    /// Adds a caller.
    pub(super) fn add(&mut self, now: Instant, applicant: Applicant) -> IncomingId {
        let id = IncomingId(self.next_id);
        self.next_id += 1;
        let socket_id = applicant.proposal.conclusion.socket_id;
        self.by_call.insert((applicant.path, socket_id), id);
        let waiting =
            Waiting { applicant, derived: None, announced: false, last_heard: now, repeats: false };
        self.callers.insert(id, waiting);
        self.expiry.insert((now + WAITING_TIMEOUT, id));
        id
    }

    pub(super) fn get(&self, id: IncomingId) -> Option<&Waiting> {
        self.callers.get(&id)
    }

    /// Removes a caller that is answered now.
    pub(super) fn take(&mut self, id: IncomingId) -> Option<Waiting> {
        let waiting = self.callers.remove(&id)?;
        let socket_id = waiting.applicant.proposal.conclusion.socket_id;
        self.by_call.remove(&(waiting.applicant.path, socket_id));
        Some(waiting)
    }

    /// A caller for the application; `None` if the application has got it already.
    pub(super) fn announce(&mut self, id: IncomingId) -> Option<Incoming> {
        let waiting = self.callers.get_mut(&id).filter(|waiting| !waiting.announced)?;
        waiting.announced = true;
        let Applicant { path, proposal, .. } = &waiting.applicant;
        Some(Incoming {
            id,
            path: *path,
            stream_id: proposal.request.stream_id().clone(),
            peer_version: proposal.request.peer_version(),
            peer_socket_id: proposal.conclusion.socket_id,
            encrypted: proposal.request.is_encrypted(),
            group: proposal.request.group(),
        })
    }

    /// Keeps a derived key for a caller. Returns the caller as in [`announce`](Self::announce).
    pub(super) fn learn(&mut self, id: IncomingId, derived: DerivedKey) -> Option<Incoming> {
        self.callers.get_mut(&id)?.derived = Some(derived);
        self.announce(id)
    }

    /// Whether the caller of this conclusion waits already. If so, its timeout starts again.
    pub(super) fn is_repeated(
        &mut self,
        now: Instant,
        path: PathId,
        timestamp: Timestamp,
        conclusion: &Handshake,
    ) -> bool {
        let Some(id) = self.find(path, conclusion) else { return false };
        let Some(waiting) = self.callers.get_mut(&id) else { return false };
        waiting.last_heard = now;
        if !std::mem::replace(&mut waiting.repeats, true) {
            self.expiry.insert((waiting.until(), id));
        }
        waiting.applicant.repeat(now, timestamp);
        true
    }

    /// The caller whose call a handshake belongs to.
    pub(super) fn find(&self, path: PathId, handshake: &Handshake) -> Option<IncomingId> {
        let id = *self.by_call.get(&(path, handshake.socket_id))?;
        self.callers.get(&id)?.applicant.is_of(path, handshake).then_some(id)
    }

    /// A caller that uses this path.
    pub(super) fn find_by_path(&self, path: PathId) -> Option<IncomingId> {
        let mut of_path = self.callers.iter().filter(|(_, it)| it.applicant.path == path);
        of_path.next().map(|(&id, _)| id)
    }

    /// All callers, except links of groups.
    pub(super) fn single(&self) -> impl Iterator<Item = (IncomingId, &Applicant)> {
        let single = self.callers.iter().filter(|(_, it)| !it.applicant.is_link());
        single.map(|(&id, waiting)| (id, &waiting.applicant))
    }

    /// When the next caller may be forgotten.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.expiry.first().map(|&(at, _)| at)
    }

    /// Removes callers that gave up, up to the next one that the application knows, which is
    /// returned.
    pub(super) fn expire(&mut self, now: Instant) -> Option<IncomingId> {
        while self.next_expiry()? <= now {
            let (_, id) = self.expiry.pop_first()?;
            let Some(waiting) = self.callers.get(&id) else { continue };
            let until = waiting.until();
            if now < until {
                self.expiry.insert((until, id));
            } else if self.take(id).is_some_and(|waiting| waiting.announced) {
                return Some(id);
            }
        }
        None
    }
}

impl Waiting {
    /// When its latest request came.
    pub(super) const fn last_heard(&self) -> Instant {
        self.last_heard
    }

    /// When it is forgotten, unless it repeats its request.
    fn until(&self) -> Instant {
        let timeout = if self.repeats { REPEATING_TIMEOUT } else { WAITING_TIMEOUT };
        self.last_heard + timeout
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{applicant, host};
    use super::*;

    const START: Instant = Instant::from_millis(9_000);

    fn with_one() -> (WaitingCallers, IncomingId, Handshake) {
        let mut waiting = WaitingCallers::default();
        let applicant = applicant(START, host(1), "");
        let conclusion = applicant.proposal.conclusion.clone();
        let id = waiting.add(START, applicant);
        (waiting, id, conclusion)
    }

    fn millis(millis: u64) -> Instant {
        START + Duration::from_millis(millis)
    }

    #[test]
    fn a_caller_that_repeats_its_request_waits_for_a_second_after_the_last() {
        let (mut waiting, id, conclusion) = with_one();
        waiting.announce(id);
        for repeat in [500, 1_400, 2_300, 3_200, 4_100] {
            assert_eq!(waiting.expire(millis(repeat)), None);
            let timestamp = Timestamp::default();
            assert!(waiting.is_repeated(millis(repeat), host(1), timestamp, &conclusion));
        }
        assert_eq!(waiting.expire(millis(5_099)), None);
        assert_eq!(waiting.expire(millis(5_100)), Some(id));
        assert_eq!((waiting.len(), waiting.expire(millis(9_000))), (0, None));
    }

    #[test]
    fn a_caller_that_never_repeats_its_request_waits_for_three_seconds() {
        let (mut waiting, id, _) = with_one();
        waiting.announce(id);
        assert_eq!(waiting.expire(millis(2_999)), None);
        assert_eq!(waiting.next_expiry(), Some(millis(3_000)));
        assert_eq!(waiting.expire(millis(3_000)), Some(id));
    }

    #[test]
    fn a_caller_that_the_application_does_not_know_is_forgotten_in_silence() {
        let (mut waiting, ..) = with_one();
        assert_eq!(waiting.expire(millis(3_000)), None);
        assert_eq!(waiting.len(), 0);
    }

    #[test]
    fn the_application_gets_a_caller_once() {
        let (mut waiting, id, _) = with_one();
        assert!(waiting.announce(id).is_some());
        assert!(waiting.announce(id).is_none());
    }

    #[test]
    fn a_caller_is_found_by_its_own_handshakes_only() {
        let (waiting, id, conclusion) = with_one();
        assert_eq!(waiting.find(host(1), &conclusion), Some(id));
        assert_eq!(waiting.find(host(2), &conclusion), None);
        let other = Handshake { isn: conclusion.isn.next(), ..conclusion };
        assert_eq!(waiting.find(host(1), &other), None);
    }
}
