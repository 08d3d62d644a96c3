//! A caller of a listener before it is accepted.

use punctual_units::Instant;
use punctual_wire::{Handshake, Timestamp};

use crate::config::Config;
use crate::handshake::listener::Proposal;
use crate::path::{Host, PathId};
use crate::stream_id::RawStreamId;

/// A caller whose handshake fits the listener's options, and which was not accepted yet.
#[derive(Debug)]
pub(super) struct Applicant {
    pub(super) path: PathId,
    /// Where it calls from.
    pub(super) host: Host,
    pub(super) proposal: Proposal,
    /// The options of the listener when it called.
    pub(super) config: Config,
}

impl Applicant {
    /// Whether the handshake, which came by `path`, belongs to this call.
    pub(super) fn is_of(&self, path: PathId, handshake: &Handshake) -> bool {
        self.path == path && self.proposal.is_repeated_by(handshake)
    }

    /// The caller repeats its conclusion: a repetition that was faster gives a better time base.
    pub(super) fn repeat(&mut self, now: Instant, timestamp: Timestamp) {
        self.proposal.base.refine(now, timestamp);
    }

    /// Whether its connection is to be a link of a group.
    pub(super) fn is_link(&self) -> bool {
        self.group().is_some()
    }

    /// The caller's group, if its connection is to be a link of one.
    pub(super) fn group(&self) -> Option<u32> {
        self.proposal.request.group().map(|offer| offer.peer_group)
    }

    /// Whether it takes a key that is derived from a passphrase to accept it.
    pub(super) fn needs_key(&self) -> bool {
        self.proposal.request.is_encrypted() && self.config.passphrase().is_some()
    }

    /// Whether a caller of this host and with this stream ID may be the same program.
    pub(super) fn may_be(&self, host: Host, stream_id: &RawStreamId) -> bool {
        self.host == host && self.proposal.request.stream_id() == stream_id
    }
}
