//! Calls that ended a short time ago.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{SeqNo, SocketId};

use crate::path::PathId;

/// One call: the caller's address, its socket ID and its first sequence number.
pub(in crate::endpoint) type Call = (PathId, SocketId, SeqNo);

/// Calls that their callers have ended. A conclusion of such a call is late: the network reordered
/// it, or it waited here while the rest of the connection was served. It must not become a new
/// connection, whose caller would never be heard.
#[derive(Debug, Default)]
pub(super) struct Departed {
    /// The latest call of each caller.
    calls: BTreeMap<(PathId, SocketId), SeqNo>,
    /// The same calls and when they ended, the oldest first.
    order: VecDeque<(Instant, Call)>,
}

impl Departed {
    /// Remembers a call that its caller has ended.
    pub(super) fn insert(&mut self, now: Instant, call: Call) {
        self.forget_before(now);
        if self.order.len() == CAPACITY {
            self.forget_oldest();
        }
        let (path, socket_id, isn) = call;
        if self.calls.insert((path, socket_id), isn) != Some(isn) {
            self.order.push_back((now, call));
        }
    }

    /// Whether the caller ended this call a short time ago.
    pub(super) fn contains(&mut self, now: Instant, call: &Call) -> bool {
        self.forget_before(now);
        let (path, socket_id, isn) = *call;
        self.calls.get(&(path, socket_id)) == Some(&isn)
    }

    fn forget_before(&mut self, now: Instant) {
        while self.order.front().is_some_and(|&(ended, _)| ended + MEMORY <= now) {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some((_, (path, socket_id, isn))) = self.order.pop_front() else { return };
        if self.calls.get(&(path, socket_id)) == Some(&isn) {
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
        let mut departed = Departed::default();
        departed.insert(START, call(1));
        assert!(departed.contains(START + Duration::from_millis(2_999), &call(1)));
        assert!(!departed.contains(START, &call(2)));
        assert!(!departed.contains(START + MEMORY, &call(1)));
        assert!(departed.calls.is_empty());
    }

    #[test]
    fn the_oldest_calls_make_room() {
        let mut departed = Departed::default();
        for number in 0..10_000 {
            departed.insert(START, call(number));
        }
        assert_eq!(departed.calls.len(), CAPACITY);
        assert_eq!(departed.order.len(), CAPACITY);
        assert!(departed.contains(START, &call(9_999)));
        assert!(!departed.contains(START, &call(0)));
    }
}
