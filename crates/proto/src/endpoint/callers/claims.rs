//! Claims of new callers on the places of older ones.
//!
//! A new caller is refused when all places are taken, unless a caller of the same host and stream
//! has one of them: it may be the same program after a restart. Then the new caller waits. It is
//! refused when a packet of the older one arrives, and takes its place when the older one has been
//! silent for longer than a live peer ever is.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{Handshake, Timestamp};

use super::applicant::Applicant;
use crate::connection::{Occupant, SILENCE_OF_THE_DEAD};
use crate::ids::ConnectionId;
use crate::path::PathId;

/// The first pause before an older caller is checked; each later one is twice as long.
pub(super) const FIRST_LOOK: Duration = Duration::from_millis(10);
/// The longest pause between two checks.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The time within which packets in flight from a peer that has ended arrive.
pub(super) const LONGEST_WAY: Duration = Duration::from_millis(250);

/// Callers that may get the place of an older one, at most one for each connection.
#[derive(Debug, Default)]
pub(super) struct Claims(Vec<Claim>);

/// A caller that may get the place of a connection.
#[derive(Debug)]
struct Claim {
    rival: ConnectionId,
    applicant: Applicant,
    since: Instant,
    look: Instant,
    pause: Duration,
}

/// The decision on a claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ClaimDecision {
    /// The older caller has left its place.
    Vacant,
    /// The older caller lives, and keeps its place.
    Refused,
    /// The older caller has been silent for too long; its connection ends.
    Evict(ConnectionId),
}

impl Claims {
    /// Adds a claim on the place of `rival`. Returns the caller that had a claim on it before.
    pub(super) fn add(
        &mut self,
        now: Instant,
        rival: ConnectionId,
        applicant: Applicant,
    ) -> Option<Applicant> {
        let older = self.0.iter().position(|claim| claim.rival == rival);
        let older = older.map(|at| self.0.swap_remove(at).applicant);
        let (look, pause) = (now + FIRST_LOOK, FIRST_LOOK);
        self.0.push(Claim { rival, applicant, since: now, look, pause });
        older
    }

    /// Whether the caller of this conclusion has a claim already.
    pub(super) fn is_repeated(
        &mut self,
        now: Instant,
        path: PathId,
        timestamp: Timestamp,
        conclusion: &Handshake,
    ) -> bool {
        let mut claims = self.0.iter_mut();
        let Some(claim) = claims.find(|claim| claim.applicant.is_of(path, conclusion)) else {
            return false;
        };
        claim.applicant.repeat(now, timestamp);
        true
    }

    /// Forgets the claim of a caller that has given up.
    pub(super) fn withdraw(&mut self, path: PathId, withdrawal: &Handshake) {
        self.0.retain(|claim| !claim.applicant.is_of(path, withdrawal));
    }

    /// When the next claim is to be checked.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.0.iter().map(|claim| claim.look).min()
    }

    /// Checks the claims that are due, and removes the next one that is decided. `occupant` is the
    /// caller that has a connection, if the connection is open.
    pub(super) fn decide<'a>(
        &mut self,
        now: Instant,
        occupant: impl Fn(ConnectionId) -> Option<Occupant<'a>>,
    ) -> Option<(Applicant, ClaimDecision)> {
        while let Some(due) = self.0.iter().position(|claim| claim.look <= now) {
            let mut claim = self.0.swap_remove(due);
            match claim.check(now, occupant(claim.rival)) {
                Some(decision) => return Some((claim.applicant, decision)),
                None => self.0.push(claim),
            }
        }
        None
    }
}

impl Claim {
    /// The decision, if there is one yet; otherwise the claim is checked again later.
    fn check(&mut self, now: Instant, occupant: Option<Occupant<'_>>) -> Option<ClaimDecision> {
        let Some(Occupant { last_received, rtt, .. }) = occupant else {
            return Some(ClaimDecision::Vacant);
        };
        if last_received > self.since + rtt.min(LONGEST_WAY) {
            return Some(ClaimDecision::Refused);
        }
        let silent_from = last_received + SILENCE_OF_THE_DEAD;
        if now >= silent_from {
            return Some(ClaimDecision::Evict(self.rival));
        }
        self.look = (now + self.pause).min(silent_from);
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{applicant, connected, host};
    use super::*;
    use crate::stream_id::RawStreamId;

    const START: Instant = Instant::from_millis(9_000);
    const RTT: Duration = Duration::from_millis(40);

    fn rival() -> ConnectionId {
        connected(START, host(1), "").1
    }

    /// The decision on a claim from `START` on, and its time, if the older caller was last heard at
    /// `last_received`.
    fn decision(last_received: Option<Instant>) -> (ClaimDecision, Duration) {
        let mut claims = Claims::default();
        assert!(claims.add(START, rival(), applicant(START, host(1), "")).is_none());
        let stream_id = &RawStreamId::default();
        let occupant = last_received.map(|last_received| Occupant {
            stream_id,
            group: None,
            last_received,
            rtt: RTT,
        });
        while let Some(now) = claims.next_look() {
            if let Some((_, decision)) = claims.decide(now, |_| occupant) {
                return (decision, now - START);
            }
        }
        unreachable!("a claim is decided");
    }

    #[test]
    fn a_silent_caller_is_evicted_after_more_than_a_second() {
        let last_received = START - Duration::from_millis(300);
        let expected = (ClaimDecision::Evict(rival()), Duration::from_millis(900));
        assert_eq!(decision(Some(last_received)), expected);
    }

    #[test]
    fn a_packet_that_was_in_flight_does_not_save_a_caller() {
        let (decided, _) = decision(Some(START + RTT));
        assert_eq!(decided, ClaimDecision::Evict(rival()));
    }

    #[test]
    fn a_caller_that_sends_after_that_keeps_its_place() {
        let heard = START + RTT + Duration::from_millis(1);
        assert_eq!(decision(Some(heard)), (ClaimDecision::Refused, FIRST_LOOK));
    }

    #[test]
    fn the_place_of_a_connection_that_has_ended_is_vacant() {
        assert_eq!(decision(None), (ClaimDecision::Vacant, FIRST_LOOK));
    }

    #[test]
    fn of_two_claims_on_a_place_the_newer_one_counts() {
        let mut claims = Claims::default();
        let [older, newer] = [1, 2].map(|port| applicant(START, host(port), ""));
        assert!(claims.add(START, rival(), older).is_none());
        let replaced = claims.add(START, rival(), newer);
        assert_eq!(replaced.map(|applicant| applicant.path), Some(host(1)));
        let decided = claims.decide(START + FIRST_LOOK, |_| None);
        assert_eq!(decided.map(|(applicant, _)| applicant.path), Some(host(2)));
        assert_eq!(claims.next_look(), None);
    }

    #[test]
    fn a_withdrawn_claim_is_forgotten() {
        let mut claims = Claims::default();
        let applicant = applicant(START, host(1), "");
        let conclusion = applicant.proposal.conclusion.clone();
        claims.add(START, rival(), applicant);
        let timestamp = Timestamp::default();
        assert!(claims.is_repeated(START, host(1), timestamp, &conclusion));
        claims.withdraw(host(2), &conclusion);
        assert!(claims.next_look().is_some(), "another caller's withdrawal");
        claims.withdraw(host(1), &conclusion);
        assert!(!claims.is_repeated(START, host(1), timestamp, &conclusion));
    }
}
