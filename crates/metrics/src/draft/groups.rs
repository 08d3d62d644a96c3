//! Groups of which all payloads have arrived.

use std::collections::BTreeMap;

use super::stamp::Stamp;

/// Counts the groups that have arrived.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups {
    /// Groups that are not complete, by their number.
    open: BTreeMap<u64, Group>,
    newest: Option<u64>,
    received: u64,
    /// Groups that were forgotten before they were complete.
    given_up: u64,
}

/// Counts of groups.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct GroupCounts {
    /// Groups whose payloads have all arrived.
    pub received: u64,
    /// Groups of which some payloads arrived, and a later group has begun; falls when the rest
    /// arrives after all.
    pub incomplete: u64,
}

/// The part of a group that has arrived.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    first: Option<u64>,
    last: Option<u64>,
    payloads: u64,
}

impl Group {
    fn is_complete(self) -> bool {
        let span = self.first.zip(self.last).and_then(|(first, last)| last.checked_sub(first));
        span.is_some_and(|span| span.checked_add(1) == Some(self.payloads))
    }
}

impl Groups {
    /// Takes in a payload that has not arrived before.
    pub(super) fn submit(&mut self, stamp: &Stamp) {
        let group = self.open.entry(stamp.group).or_default();
        group.payloads += 1;
        if stamp.position.is_first() {
            group.first = Some(stamp.seq);
        }
        if stamp.position.is_last() {
            group.last = Some(stamp.seq);
        }
        if group.is_complete() {
            self.open.remove(&stamp.group);
            self.received += 1;
        }
        self.newest = self.newest.max(Some(stamp.group));
        if self.open.len() > MOST_OPEN {
            self.open.pop_first();
            self.given_up += 1;
        }
    }

    pub(super) fn counts(&self) -> GroupCounts {
        let passed = self.open.keys().filter(|&&group| Some(group) < self.newest).count();
        let incomplete = self.given_up + u64::try_from(passed).unwrap_or(u64::MAX);
        GroupCounts { received: self.received, incomplete }
    }
}

/// Groups that may still become complete.
const MOST_OPEN: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::super::stamp::Position;
    use super::*;

    fn stamp(seq: u64, position: Position, group: u64) -> Stamp {
        Stamp { seq, position, group, ntp: 0, monotonic_us: 0 }
    }

    fn counts(groups: &Groups) -> (u64, u64) {
        let GroupCounts { received, incomplete } = groups.counts();
        (received, incomplete)
    }

    #[test]
    fn a_group_is_received_when_its_last_missing_payload_arrives() {
        let mut groups = Groups::default();
        groups.submit(&stamp(0, Position::First, 0));
        groups.submit(&stamp(2, Position::Last, 0));
        assert_eq!(counts(&groups), (0, 0), "no later group has begun");
        groups.submit(&stamp(3, Position::Single, 1));
        assert_eq!(counts(&groups), (1, 1));
        groups.submit(&stamp(1, Position::Middle, 0));
        assert_eq!(counts(&groups), (2, 0));
    }

    #[test]
    fn groups_of_strangers_take_bounded_memory() {
        let mut groups = Groups::default();
        (0..10_000).for_each(|group| groups.submit(&stamp(group, Position::First, group)));
        assert_eq!(counts(&groups), (0, 9_999));
        assert!(groups.open.len() <= MOST_OPEN);
        groups.submit(&stamp(u64::MAX, Position::Last, 0));
        groups.submit(&stamp(0, Position::First, 0));
    }
}
