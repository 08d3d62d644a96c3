//! The links that a group calls again after their end.

use std::collections::BTreeMap;

use punctual_proto::LinkId;

/// Names a call that is repeated whenever its link has ended.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct CallId(u64);

/// The calls of a group, each with the links that it has made one after the other. A link that ends
/// is called again under a new [`LinkId`]; its earlier IDs remain valid names of the call.
#[derive(Debug, Default)]
pub(super) struct GroupCalls {
    next: u64,
    links: BTreeMap<CallId, Vec<LinkId>>,
}

impl GroupCalls {
    /// Adds a call, which has no link yet.
    pub(super) fn begin(&mut self) -> CallId {
        let id = CallId(self.next);
        self.next += 1;
        self.links.insert(id, Vec::new());
        id
    }

    /// Records that the call has made this link. Returns whether the call is still wanted.
    pub(super) fn made(&mut self, call: CallId, link: LinkId) -> bool {
        let links = self.links.get_mut(&call);
        links.map(|links| links.push(link)).is_some()
    }

    /// Whether the call is to be repeated when its link ends: the user has not removed it.
    pub(super) fn wants(&self, call: CallId) -> bool {
        self.links.contains_key(&call)
    }

    /// The call that has made this link.
    pub(super) fn of(&self, link: LinkId) -> Option<CallId> {
        self.links.iter().find(|(_, links)| links.contains(&link)).map(|it| *it.0)
    }

    /// Removes a call: it is not repeated. Returns its present link.
    pub(super) fn end(&mut self, call: CallId) -> Option<LinkId> {
        self.links.remove(&call)?.last().copied()
    }

    /// Removes the call of a link, named by its present ID or an earlier one: it is not called
    /// again. Returns its present ID.
    pub(super) fn remove(&mut self, link: LinkId) -> LinkId {
        self.of(link).and_then(|call| self.end(call)).unwrap_or(link)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_proto::{Group, GroupKind};
    use punctual_units::Instant;

    use super::*;

    fn ids<const N: usize>() -> [LinkId; N] {
        let least = Duration::from_millis(60);
        let mut group = Group::new(GroupKind::Broadcast, least, 1, Instant::ORIGIN);
        std::array::from_fn(|_| group.add_link(0))
    }

    #[test]
    fn a_link_that_ended_is_still_wanted() {
        let [first, second] = ids();
        let mut calls = GroupCalls::default();
        let call = calls.begin();
        assert!(calls.made(call, first) && calls.made(call, second));
        assert!(calls.wants(call));
    }

    #[test]
    fn a_link_is_removed_by_its_present_and_by_its_earlier_ids() {
        let [first, second, other] = ids();
        for name in [first, second] {
            let mut calls = GroupCalls::default();
            let (call, stays) = (calls.begin(), calls.begin());
            calls.made(call, first);
            calls.made(stays, other);
            calls.made(call, second);
            assert_eq!(calls.remove(name), second);
            assert!(!calls.wants(call) && calls.wants(stays));
            assert!(!calls.made(call, second), "a call in progress makes no link");
        }
    }

    #[test]
    fn a_call_that_ends_names_its_present_link() {
        let [first, second, other] = ids();
        let mut calls = GroupCalls::default();
        let (call, unanswered) = (calls.begin(), calls.begin());
        calls.made(call, first);
        calls.made(call, second);
        assert_eq!([first, second, other].map(|it| calls.of(it)), [Some(call), Some(call), None]);
        assert_eq!((calls.end(call), calls.end(unanswered)), (Some(second), None));
        assert!(!calls.wants(call) && !calls.wants(unanswered));
        assert_eq!((calls.of(second), calls.end(call)), (None, None));
    }

    #[test]
    fn a_link_that_the_peer_called_has_a_single_id() {
        let [theirs] = ids();
        assert_eq!(GroupCalls::default().remove(theirs), theirs);
    }
}
