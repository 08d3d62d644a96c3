use super::LinkId;

/// The drift of the peer's clock, the same for all links of a group.
///
/// Every link measures the drift since its own beginning and relative to the delay of its own path.
/// One link leads. When it ends, another one leads, and the drift continues from its last value:
/// the new leader's measurement at that moment is the offset.
#[derive(Debug, Default)]
pub(super) struct SharedDrift {
    leader: Option<(LinkId, i64)>,
    nanos: i64,
}

impl SharedDrift {
    /// A link has measured the drift `nanos`. Returns the drift for all links if it has changed.
    pub(super) fn follow(&mut self, id: LinkId, nanos: i64) -> Option<i64> {
        let &mut (leader, offset) = self.leader.get_or_insert((id, self.nanos - nanos));
        if leader != id {
            return None;
        }
        let before = std::mem::replace(&mut self.nanos, nanos + offset);
        (self.nanos != before).then_some(self.nanos)
    }

    /// The link has ended.
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
    fn the_drift_continues_from_its_last_value_under_another_leader() {
        let (a, b) = (LinkId(0), LinkId(1));
        let mut drift = SharedDrift::default();
        assert_eq!(drift.follow(a, 0), None);
        assert_eq!(drift.follow(b, 500), None, "b does not lead");
        assert_eq!(drift.follow(a, 300), Some(300));
        drift.forget(a);
        assert_eq!(drift.follow(b, 500), None, "a new leader changes nothing");
        assert_eq!(drift.follow(b, 520), Some(320));
    }
}
