//! Waiting callers that may be older callers after a restart.
//!
//! An application that serves one stream at a time answers the next caller when the older one has
//! ended. If both may be the same program before and after a restart, the older one ends as soon as
//! it has been silent for longer than a live peer ever is. Callers that the application answers at
//! once end nobody, nor does anybody
//! with [`EndpointConfig::keep_silent_callers`](crate::EndpointConfig::keep_silent_callers).

use std::collections::BTreeMap;

use punctual_units::Instant;

use super::applicant::Applicant;
use super::claims::{FIRST_LOOK, LONGEST_WAY};
use crate::connection::{Occupant, SILENCE_OF_THE_DEAD};
use crate::ids::{ConnectionId, IncomingId};
use crate::path::Host;

/// The waiting callers that may be older ones.
#[derive(Debug)]
pub(super) struct Successions {
    waiting: Vec<Succession>,
    /// Whether a caller that waits says nothing about older ones.
    are_off: bool,
}

/// A waiting caller, and when to check whether older ones are silent.
#[derive(Debug)]
pub(super) struct Succession {
    caller: IncomingId,
    /// `None` when it is over.
    look: Option<Instant>,
    /// A program that has ended before the call is silent for long by then.
    until: Instant,
}

impl Successions {
    /// None yet; with `are_off`, callers wait for other reasons than older ones.
    pub(super) fn new(are_off: bool) -> Self {
        Self { waiting: Vec::new(), are_off }
    }

    /// A caller waits from now on.
    pub(super) fn add(&mut self, now: Instant, caller: IncomingId) {
        if self.are_off {
            return;
        }
        let until = now + SILENCE_OF_THE_DEAD + LONGEST_WAY;
        self.waiting.push(Succession { caller, look: Some(now + FIRST_LOOK), until });
    }

    /// When the next one is to be checked.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.waiting.iter().filter_map(|succession| succession.look).min()
    }

    /// Removes the next one that is to be checked now.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Succession> {
        let is_due = |succession: &Succession| succession.look.is_some_and(|look| look <= now);
        self.waiting.iter().position(is_due).map(|at| self.waiting.swap_remove(at))
    }

    /// Checks it again later, unless it is over.
    pub(super) fn resume(&mut self, succession: Succession) {
        if succession.look.is_some() {
            self.waiting.push(succession);
        }
    }
}

impl Succession {
    /// The caller that waits.
    pub(super) const fn caller(&self) -> IncomingId {
        self.caller
    }

    /// The connections among those of all `callers` that may belong to this applicant before a
    /// restart, and have been silent for too long: those of its host and stream, except its own
    /// group's. A link of a group is silent only if all links of the group are.
    pub(super) fn decide<'a>(
        &mut self,
        now: Instant,
        applicant: &Applicant,
        callers: impl Iterator<Item = (ConnectionId, Host, Occupant<'a>)>,
    ) -> Vec<ConnectionId> {
        let group = applicant.group();
        let mut heard: BTreeMap<u32, Instant> = BTreeMap::new();
        let mut rivals = Vec::new();
        for (id, host, occupant) in callers {
            let Occupant { stream_id, group: of, last_received, .. } = occupant;
            if let Some(of) = of {
                let newest = heard.entry(of).or_insert(last_received);
                *newest = last_received.max(*newest);
            }
            if applicant.may_be(host, stream_id) && (of.is_none() || of != group) {
                rivals.push((id, of, last_received));
            }
        }
        let dead_from = |(_, of, last_received): &(_, Option<u32>, Instant)| {
            let newest = of.and_then(|of| heard.get(&of)).unwrap_or(last_received);
            *newest + SILENCE_OF_THE_DEAD
        };
        let (dead, alive): (Vec<_>, Vec<_>) =
            rivals.into_iter().partition(|rival| dead_from(rival) <= now);
        let next = alive.iter().map(dead_from).filter(|&at| at <= self.until);
        self.look = next.min();
        dead.into_iter().map(|(id, ..)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::testing::{applicant, connected, host, link_applicant};
    use super::*;
    use crate::stream_id::RawStreamId;

    const START: Instant = Instant::from_millis(9_000);
    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The milliseconds after which the only older caller is ended for this applicant, if it is.
    fn ended_after(
        applicant: &Applicant,
        group: Option<u32>,
        heard: impl Fn(Instant) -> Instant,
    ) -> Option<u128> {
        let mut successions = Successions::new(false);
        successions.add(START, IncomingId(1));
        let (id, of, stream_id) = (
            connected(START, host(1), "").1,
            Host::Ip([192, 0, 2, 1].into()),
            RawStreamId::default(),
        );
        while let Some(now) = successions.next_look() {
            let mut succession = successions.take_due(now).expect("it is due");
            let stream_id = &stream_id;
            let occupant = Occupant { stream_id, group, last_received: heard(now), rtt: MS(40) };
            let dead = succession.decide(now, applicant, [(id, of, occupant)].into_iter());
            successions.resume(succession);
            if !dead.is_empty() {
                return Some((now - START).as_millis());
            }
        }
        None
    }

    #[test]
    fn a_silent_caller_of_the_same_host_and_stream_ends() {
        let silent = |_| START - MS(300);
        let same = applicant(START, host(1), "");
        assert_eq!(ended_after(&same, None, silent), Some(900));
        assert_eq!(ended_after(&same, None, |_| START + MS(200)), Some(1_400), "was on its way");
        assert_eq!(ended_after(&same, Some(7), silent), Some(900), "it was a link of a group");
        assert_eq!(ended_after(&applicant(START, host(2), ""), None, silent), None);
        assert_eq!(ended_after(&applicant(START, host(1), "another"), None, silent), None);
    }

    #[test]
    fn a_caller_that_is_heard_again_stays() {
        let same = applicant(START, host(1), "");
        assert_eq!(ended_after(&same, None, |now| now - MS(200)), None);
    }

    #[test]
    fn the_links_of_another_group_end_but_not_those_of_the_same_one() {
        let link = link_applicant(START, host(1));
        let own = link.group();
        assert!(own.is_some());
        assert_eq!(ended_after(&link, own, |_| START - MS(300)), None);
        assert_eq!(ended_after(&link, own.map(|it| it ^ 1), |_| START), Some(1_200));
    }

    #[test]
    fn a_group_lives_while_one_of_its_links_is_heard() {
        let new = applicant(START, host(1), "");
        let stream_id = &RawStreamId::default();
        let id = connected(START, host(1), "").1;
        let occupant = |group, age| {
            let last_received = START - MS(age);
            let occupant = Occupant { stream_id, group: Some(group), last_received, rtt: MS(40) };
            (id, new.host, occupant)
        };
        let mut succession = Succession { caller: IncomingId(1), look: None, until: START };
        let links = [occupant(7, 2_000), occupant(7, 100), occupant(8, 2_000)];
        assert_eq!(succession.decide(START, &new, links.into_iter()).len(), 1);
    }
}
