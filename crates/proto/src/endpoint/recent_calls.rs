//! Calls that ended a short time ago.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{SeqNo, SocketId};

use crate::path::PathId;

/// One call: the caller's address, its socket ID and its first sequence number.
pub(super) type Call = (PathId, SocketId, SeqNo);

/// The latest calls that have ended without a connection, or with one that is gone, and what is
/// known of each. A conclusion of such a call is late: the network reordered it, or its caller
/// repeated it before it heard of the end. It must not become a new call.
#[derive(Debug)]
pub(super) struct RecentCalls<T> {
    /// The latest call of each caller.
    calls: BTreeMap<(PathId, SocketId), (SeqNo, T)>,
    /// The same calls and when they ended, the oldest first.
    order: VecDeque<(Instant, Call)>,
}

impl<T> Default for RecentCalls<T> {
    fn default() -> Self {
        Self { calls: BTreeMap::new(), order: VecDeque::new() }
    }
}

impl<T: Copy> RecentCalls<T> {
    /// Remembers a call that has ended.
    pub(super) fn insert(&mut self, now: Instant, call: Call, known: T) {
        self.forget_before(now);
        if self.order.len() == CAPACITY {
            self.forget_oldest();
        }
        let (path, socket_id, isn) = call;
        let before = self.calls.insert((path, socket_id), (isn, known));
        if before.is_none_or(|(before, _)| before != isn) {
            self.order.push_back((now, call));
        }
    }

    /// The knowledge of this call, if it ended a short time ago.
    pub(super) fn get(&mut self, now: Instant, call: &Call) -> Option<T> {
        self.forget_before(now);
        let (path, socket_id, isn) = *call;
        let (latest, known) = *self.calls.get(&(path, socket_id))?;
        (latest == isn).then_some(known)
    }

    fn forget_before(&mut self, now: Instant) {
        while self.order.front().is_some_and(|&(ended, _)| ended + MEMORY <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, (path, socket_id, isn))) = self.order.pop_front() else { return };
        if self.calls.get(&(path, socket_id)).is_some_and(|it| it.0 == isn) {
            self.calls.remove(&(path, socket_id));
        }
    }
}

/// The time for which a call is remembered: longer than a handshake takes to arrive.
const MEMORY: Duration = Duration::from_secs(3);

/// The number of calls that are remembered.
const CAPACITY: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_millis(9_000);

    fn call(number: u32) -> Call {
        let path = PathId::numbered(1);
        (path, SocketId::new(number), SeqNo::new(7))
    }

    #[test]
    fn a_call_is_remembered_for_three_seconds() {
        let mut recent = RecentCalls::default();
        recent.insert(START, call(1), 'a');
        assert_eq!(recent.get(START + Duration::from_millis(2_999), &call(1)), Some('a'));
        assert_eq!(recent.get(START, &call(2)), None);
        assert_eq!(recent.get(START + MEMORY, &call(1)), None);
        assert!(recent.calls.is_empty());
    }

    #[test]
    fn the_oldest_calls_make_room() {
        let mut recent = RecentCalls::default();
        for number in 0..10_000 {
            recent.insert(START, call(number), number);
        }
        assert_eq!(recent.calls.len(), CAPACITY);
        assert_eq!(recent.order.len(), CAPACITY);
        assert_eq!(recent.get(START, &call(9_999)), Some(9_999));
        assert_eq!(recent.get(START, &call(0)), None);
    }
}
