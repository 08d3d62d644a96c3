//! A limit on the callers that a listener has at a time.

use super::applicant::Applicant;
use super::waiting::WaitingCallers;
use crate::endpoint::connections::{ConnectionId, Connections};
use crate::event::IncomingId;

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
        let (host, stream_id) = (applicant.path.host(), applicant.proposal.request.stream_id());
        for (id, other) in waiting.single() {
            taken += 1;
            if other.may_be(host, stream_id) {
                found = Place::OfWaiting(id);
            }
        }
        for (id, path, occupant) in connections.callers() {
            taken += 1;
            let may_be_same = path.host() == host && occupant.stream_id == stream_id;
            if may_be_same && found == Place::None {
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
