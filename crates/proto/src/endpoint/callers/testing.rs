//! Callers for the unit tests of this folder.

use punctual_units::Instant;
use punctual_wire::Handshake;

use super::applicant::Applicant;
pub(super) use crate::endpoint::testing::{calling, conclusion, connected, host, listening};
use crate::endpoint::testing::{link_conclusion, proposal};
use crate::path::{Path, PathId};

/// The caller of a stream.
pub(super) fn applicant(now: Instant, path: PathId, stream_id: &str) -> Applicant {
    with_conclusion(now, path, conclusion(now, path, &calling(stream_id), 1))
}

/// A caller that wants to be a link of a group.
pub(super) fn link_applicant(now: Instant, path: PathId) -> Applicant {
    with_conclusion(now, path, link_conclusion(now, path))
}

fn with_conclusion(now: Instant, path: PathId, conclusion: Handshake) -> Applicant {
    let host = Path::usual(path).host();
    Applicant { path, host, proposal: proposal(now, conclusion), config: listening() }
}
