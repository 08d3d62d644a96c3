//! Keys that are derived from passphrases outside the endpoint.

use std::collections::{BTreeMap, VecDeque};

use punctual_units::Instant;

use super::allowance::CallAllowance;
use crate::ids::IncomingId;
use crate::path::Host;

/// Callers whose keys are derived before the application gets them: one at a time, with a limit on
/// their rate, their number, and the number from one network.
#[derive(Debug)]
pub(super) struct Derivations {
    /// The limit on the rate; `None` where keys are derived as callers are accepted.
    allowance: Option<CallAllowance>,
    queue: VecDeque<(IncomingId, Host)>,
    /// The number of waiting callers, by network.
    waiting: BTreeMap<Host, usize>,
    running: Option<IncomingId>,
}

impl Derivations {
    pub(super) fn new(now: Instant, per_second: Option<u32>) -> Self {
        Self {
            allowance: per_second.map(|limit| CallAllowance::new(now, limit, BURST)),
            queue: VecDeque::new(),
            waiting: BTreeMap::new(),
            running: None,
        }
    }

    /// Whether keys are derived before the application gets callers.
    pub(super) const fn is_wanted(&self) -> bool {
        self.allowance.is_some()
    }

    /// Whether another caller from `host` may wait.
    pub(super) fn has_room(&self, host: Host) -> bool {
        let of_network = self.waiting.get(&host.network()).copied().unwrap_or_default();
        self.queue.len() < QUEUE && of_network < OF_NETWORK
    }

    pub(super) fn push(&mut self, caller: IncomingId, host: Host) {
        let network = host.network();
        self.queue.push_back((caller, network));
        *self.waiting.entry(network).or_default() += 1;
    }

    /// When the next derivation may begin; `None` if no caller waits, or while another one runs.
    pub(super) fn next(&self) -> Option<Instant> {
        let idle = self.running.is_none() && !self.queue.is_empty();
        self.allowance.as_ref().filter(|_| idle).map(CallAllowance::next)
    }

    /// The next caller, if a derivation may begin now. Callers for which `is_there` is false are
    /// skipped, and do not count against the limit.
    pub(super) fn pop(
        &mut self,
        now: Instant,
        is_there: impl Fn(IncomingId) -> bool,
    ) -> Option<IncomingId> {
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

    /// The derivation for this caller has ended.
    pub(super) fn ended(&mut self, caller: IncomingId) {
        self.running.take_if(|running| *running == caller);
    }
}

/// Derivations that may follow each other at once.
const BURST: u32 = 32;
/// Callers that may wait for a derivation.
const QUEUE: usize = 256;
/// Callers of one network that may wait.
const OF_NETWORK: usize = 64;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const START: Instant = Instant::from_millis(4_000);

    fn from(host: u8) -> Host {
        Host::Ip([192, 0, 2, host].into())
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
    fn one_key_is_derived_at_a_time_and_at_a_limited_rate() {
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
