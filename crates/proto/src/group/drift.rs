use super::LinkId;

/// One correction for the peer's clock for all links of a group.
///
/// Every link measures the drift since its own beginning, against the delay of its own path. One
/// of them leads. When another one must follow it, what that one shows then is its beginning, so
/// that the correction goes on where it was.
#[derive(Debug, Default)]
pub(super) struct SharedDrift {
    leader: Option<(LinkId, i64)>,
    nanos: i64,
}

impl SharedDrift {
    /// A link takes the drift for `nanos`; the correction for all, if it is another one now.
    pub(super) fn follow(&mut self, id: LinkId, nanos: i64) -> Option<i64> {
        let &mut (leader, offset) = self.leader.get_or_insert((id, self.nanos - nanos));
        if leader != id {
            return None;
        }
        let before = std::mem::replace(&mut self.nanos, nanos + offset);
        (self.nanos != before).then_some(self.nanos)
    }

    /// The link is gone.
    pub(super) fn forget(&mut self, id: LinkId) {
        if self.leader.is_some_and(|(leader, _)| leader == id) {
            self.leader = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_correction_goes_on_where_it_was_when_another_link_leads() {
        let (a, b) = (LinkId(0), LinkId(1));
        let mut drift = SharedDrift::default();
        assert_eq!(drift.follow(a, 0), None);
        assert_eq!(drift.follow(b, 500), None, "b does not lead");
        assert_eq!(drift.follow(a, 300), Some(300));
        drift.forget(a);
        assert_eq!(drift.follow(b, 500), None, "nothing changes by the change of the leader");
        assert_eq!(drift.follow(b, 520), Some(320));
    }
}
