//! A limit on the callers that a listener has at a time.
//!
//! A new caller is refused when all places are taken, unless a caller of the same host and stream
//! has one of them: it may be the same program after a restart. Then the new caller waits. It is
//! refused when a packet of the older one arrives, and takes its place when the older one has been
//! silent for longer than a live peer ever is.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{Control, Handshake, RejectReason, SocketId, Timestamp};

use super::{ConnectionId, Endpoint};
use crate::config::Config;
use crate::error::CloseReason;
use crate::event::IncomingId;
use crate::handshake::listener::Proposal;
use crate::path::PathId;

/// The silence after which a peer is taken for dead when its host calls again: a live peer sends a
/// keepalive each second.
const SILENCE: Duration = Duration::from_millis(1_200);

/// The first pause before an older caller is checked; each later one is twice as long.
const FIRST_LOOK: Duration = Duration::from_millis(10);
/// The longest pause between two checks.
const LONGEST_PAUSE: Duration = Duration::from_millis(50);

/// The time within which packets in flight from a peer that has ended arrive.
const LONGEST_WAY: Duration = Duration::from_millis(250);

/// Callers that may get the place of an older one, at most one for each connection.
#[derive(Debug, Default)]
pub(super) struct Claims(Vec<Claim>);

/// A caller that may get the place of a connection.
#[derive(Debug)]
struct Claim {
    rival: ConnectionId,
    path: PathId,
    proposal: Proposal,
    config: Config,
    since: Instant,
    look: Instant,
    pause: Duration,
}

/// The place for a new caller.
enum Place {
    Free,
    None,
    /// That of a caller that waits for an answer.
    OfWaiting(IncomingId),
    /// That of a connection.
    OfConnection(ConnectionId),
}

impl Claims {
    /// When the next claim is to be checked.
    pub(super) fn next_look(&self) -> Option<Instant> {
        self.0.iter().map(|claim| claim.look).min()
    }

    /// Whether the caller has a claim already.
    pub(super) fn waits(
        &mut self,
        now: Instant,
        path: PathId,
        timestamp: Timestamp,
        conclusion: &Handshake,
    ) -> bool {
        let Some(claim) = self.0.iter_mut().find(|claim| claim.is_of(path, conclusion)) else {
            return false;
        };
        claim.proposal.base.refine(now, timestamp);
        true
    }

    /// Forgets the claim of a caller that has given up.
    pub(super) fn withdraw(&mut self, path: PathId, withdrawal: &Handshake) {
        self.0.retain(|claim| !claim.is_of(path, withdrawal));
    }

    fn pop_due(&mut self, now: Instant) -> Option<Claim> {
        let due = self.0.iter().position(|claim| claim.look <= now)?;
        Some(self.0.swap_remove(due))
    }
}

impl Claim {
    fn is_of(&self, path: PathId, handshake: &Handshake) -> bool {
        self.path == path && self.proposal.is_repeated_by(handshake)
    }
}

impl Endpoint {
    /// Limits the number of callers at a time from now on, links of groups not counted: see
    /// [`EndpointConfig::max_callers`](crate::EndpointConfig::max_callers). Established connections
    /// are not touched.
    pub fn limit_callers(&mut self, limit: Option<usize>) {
        self.config.max_callers = limit;
    }

    /// When the next caller that claims the place of another one is to be checked.
    pub(super) fn next_claim(&self) -> Option<Instant> {
        self.claims.next_look()
    }

    /// Finds a place for a caller whose handshake fits.
    pub(super) fn place(&mut self, now: Instant, path: PathId, proposal: Proposal, config: Config) {
        match self.place_for(path, &proposal) {
            Place::Free => self.admit(now, path, proposal, config),
            Place::None => self.turn_away(path, &proposal.conclusion, RejectReason::BACKLOG),
            Place::OfWaiting(older) => {
                if let Some(older) = self.dismiss(older) {
                    self.refuse(older.path, &older.proposal.conclusion, RejectReason::BACKLOG);
                }
                self.admit(now, path, proposal, config);
            }
            Place::OfConnection(rival) => {
                if let Some(at) = self.claims.0.iter().position(|claim| claim.rival == rival) {
                    let older = self.claims.0.swap_remove(at);
                    self.turn_away(older.path, &older.proposal.conclusion, RejectReason::BACKLOG);
                }
                let (since, pause) = (now, FIRST_LOOK);
                let look = now + pause;
                self.claims.0.push(Claim { rival, path, proposal, config, since, look, pause });
            }
        }
    }

    fn place_for(&self, path: PathId, proposal: &Proposal) -> Place {
        let Some(limit) = self.config.max_callers else { return Place::Free };
        if proposal.request.group().is_some() {
            return Place::Free;
        }
        let stream = proposal.request.stream_id();
        let mut taken = 0;
        let mut found = Place::None;
        for (id, waiting) in self.listener.waiting() {
            taken += 1;
            let same = waiting.path.host() == path.host();
            if same && waiting.proposal.request.stream_id() == stream {
                found = Place::OfWaiting(id);
            }
        }
        for slot in self.connections.iter().filter(|slot| slot.caller.is_some()) {
            let Some(occupant) = slot.connection.occupant() else { continue };
            taken += 1;
            let same =
                slot.connection.path.id.host() == path.host() && occupant.stream_id == stream;
            if same && matches!(found, Place::None) {
                found = Place::OfConnection(slot.id);
            }
        }
        match taken < limit {
            true => Place::Free,
            // Nothing to claim: every caller is refused.
            false if limit == 0 => Place::None,
            false => found,
        }
    }

    /// Decides on the callers that claim the place of another one.
    pub(super) fn look_at_claims(&mut self, now: Instant) {
        while let Some(mut claim) = self.claims.pop_due(now) {
            let index = self.index(claim.rival);
            let occupant = index.and_then(|index| self.connections[index].connection.occupant());
            let (Some(index), Some(occupant)) = (index, occupant) else {
                self.place(now, claim.path, claim.proposal, claim.config);
                continue;
            };
            let silent_from = occupant.last_received + SILENCE;
            if occupant.last_received > claim.since + occupant.rtt.min(LONGEST_WAY) {
                self.turn_away(claim.path, &claim.proposal.conclusion, RejectReason::BACKLOG);
            } else if now >= silent_from {
                self.evict(now, index);
                self.place(now, claim.path, claim.proposal, claim.config);
            } else {
                claim.look = (now + claim.pause).min(silent_from);
                claim.pause = (2 * claim.pause).min(LONGEST_PAUSE);
                self.claims.0.push(claim);
            }
        }
    }

    /// Ends a connection whose peer has called again.
    fn evict(&mut self, now: Instant, index: usize) {
        let slot = &mut self.connections[index];
        let (path, timestamp) = (slot.connection.path.id, slot.connection.timestamp(now));
        let peer = slot.caller.map_or(SocketId::LISTENER, |(_, peer, _)| peer);
        slot.connection.abandon(CloseReason::Replaced);
        self.settle(now, index);
        // In case the older one is alive after all.
        self.say(path, timestamp, peer, Control::Shutdown);
    }
}
