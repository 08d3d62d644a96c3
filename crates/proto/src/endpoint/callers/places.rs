//! A limit on the callers that a listener has at a time.

use super::applicant::Applicant;
use super::waiting::WaitingCallers;
use crate::endpoint::connections::Connections;
use crate::ids::{ConnectionId, IncomingId};

/// The limit on the callers at a time, links of groups not counted; `None` for no limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places(pub(super) Option<usize>);

/// The place for a new caller.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Place {
    Free,
    None,
    /// That of a caller that waits for an answer.
    OfWaiting(IncomingId),
    /// That of a connection.
    OfConnection(ConnectionId),
}

impl Places {
    /// The place for this caller: if all are taken, that of an older caller of the same host and
    /// stream, which may be the same program before a restart.
    pub(super) fn find(
        self,
        applicant: &Applicant,
        waiting: &WaitingCallers,
        connections: &Connections,
    ) -> Place {
        let Some(limit) = self.0.filter(|_| !applicant.is_link()) else { return Place::Free };
        let mut taken = 0;
        let mut found = Place::None;
        let (host, stream_id) = (applicant.host, applicant.proposal.request.stream_id());
        for (id, other) in waiting.single() {
            taken += 1;
            if other.may_be(host, stream_id) {
                found = Place::OfWaiting(id);
            }
        }
        let callers = connections.callers();
        for (id, host, occupant) in callers.filter(|(.., it)| it.group.is_none()) {
            taken += 1;
            if applicant.may_be(host, occupant.stream_id) && found == Place::None {
                found = Place::OfConnection(id);
            }
        }
        match taken < limit {
            true => Place::Free,
            // Nothing to claim: every caller is refused.
            false if limit == 0 => Place::None,
            false => found,
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_units::Instant;

    use super::super::testing::{applicant, connected, host, link_applicant};
    use super::*;

    const NOW: Instant = Instant::from_millis(9_000);

    fn place(limit: usize, applicant: &Applicant, waiting: &WaitingCallers) -> Place {
        let (connections, _) = connected(NOW, host(1), "connected");
        Places(Some(limit)).find(applicant, waiting, &connections)
    }

    #[test]
    fn a_place_is_free_below_the_limit() {
        let mut waiting = WaitingCallers::default();
        waiting.add(NOW, applicant(NOW, host(1), "waiting"));
        let new = applicant(NOW, host(1), "new");
        assert_eq!(place(3, &new, &waiting), Place::Free);
        assert_eq!(place(2, &new, &waiting), Place::None);
    }

    #[test]
    fn a_caller_of_the_same_host_and_stream_has_the_place_of_the_older_one() {
        let mut waiting = WaitingCallers::default();
        let id = waiting.add(NOW, applicant(NOW, host(1), "waiting"));
        let find = |number, stream| place(2, &applicant(NOW, host(number), stream), &waiting);
        assert_eq!(find(1, "waiting"), Place::OfWaiting(id));
        assert_eq!(find(2, "waiting"), Place::None, "another host");
        assert!(matches!(find(1, "connected"), Place::OfConnection(_)));
        assert_eq!(find(2, "connected"), Place::None, "another host");
    }

    #[test]
    fn links_of_groups_take_no_place_and_need_none() {
        let mut waiting = WaitingCallers::default();
        waiting.add(NOW, link_applicant(NOW, host(1)));
        assert_eq!(place(2, &applicant(NOW, host(1), "new"), &waiting), Place::Free);
        assert_eq!(place(0, &link_applicant(NOW, host(2)), &waiting), Place::Free);
    }

    #[test]
    fn with_a_limit_of_zero_there_is_no_place_to_claim() {
        let new = applicant(NOW, host(1), "connected");
        assert_eq!(place(0, &new, &WaitingCallers::default()), Place::None);
    }
}
