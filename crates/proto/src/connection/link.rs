//! A connection as a link of a group.

use punctual_units::Instant;
use punctual_wire::SeqNo;

use super::established::{Cause, Established};
use super::{Connection, State};
use crate::error::SendError;
use crate::event::Message;
use crate::group::{LinkAction, LinkStatus, LinkTerms, Membership};

/// The configuration of a connection as a link of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupLinkConfig {
    /// The group's correction for the peer's clock, nanoseconds.
    drift: i64,
    /// Whether the group gives each link other messages.
    balances: bool,
}

impl Connection {
    /// Makes it a link of a group from now on: it counts from the group's start, and the group
    /// gives numbers to messages and corrects for the drift of the peer's clock.
    pub(crate) fn join_group(&mut self, membership: &Membership) {
        self.start = membership.start;
        let drift = membership.timebase.as_ref().map_or(0, |timebase| timebase.drift);
        let group_link = GroupLinkConfig { drift, balances: membership.balances() };
        self.link = Some(group_link);
        if let State::Established(live) = &mut self.state {
            live.join_group(group_link);
        }
    }

    /// The messages that arrived for a balancing group.
    pub(crate) fn take_early(&mut self) -> Vec<Message> {
        match &mut self.state {
            State::Established(live) => live.receiver.take_bypassed(),
            State::Handshaking(_) | State::Failed(_) => Vec::new(),
        }
    }

    /// The packets that were lost and that the group sends again.
    pub(crate) fn take_returned(&mut self) -> Vec<SeqNo> {
        match &mut self.state {
            State::Established(live) => live.sender.take_returned(),
            State::Handshaking(_) | State::Failed(_) => Vec::new(),
        }
    }

    pub(crate) fn link_terms(&self) -> Option<LinkTerms> {
        let State::Established(live) = &self.state else { return None };
        let negotiated = &live.negotiated;
        Some(LinkTerms {
            peer_group: negotiated.peer_group?,
            send_isn: negotiated.fixed.send_isn,
            receive_isn: negotiated.fixed.receive_isn,
            base: negotiated.fixed.base,
            receive_latency: negotiated.latency.receive,
            peer_latency: negotiated.latency.peer,
            max_payload: negotiated.max_payload(&self.config, &self.path),
            packet_overhead: self.path.properties.packet_overhead(),
        })
    }

    pub(crate) fn link_status(&self) -> Option<LinkStatus> {
        let State::Established(live) = &self.state else { return None };
        Some(LinkStatus {
            acknowledged: live.sender.acknowledged(),
            last_response: live.sender.last_response(),
            waiting_since: live.sender.waiting_since(),
            room: live.sender.room(),
            max_payload: live.negotiated.max_payload(&self.config, &self.path),
            rtt: live.rtt.estimate(),
            drift: live.receiver.traced_drift(),
        })
    }

    pub(crate) fn apply(&mut self, now: Instant, action: LinkAction) -> Result<(), SendError> {
        let State::Established(live) = &mut self.state else {
            return Err(SendError::NotConnected);
        };
        let result = live.apply(now, action);
        live.reschedule(now, Cause::Other, &mut self.timers, &mut self.signals);
        result
    }
}

impl Established {
    pub(super) fn join_group(&mut self, group_link: GroupLinkConfig) {
        self.receiver.share_drift(group_link.drift);
        if group_link.balances {
            self.receiver.bypass_to_group();
            self.sender.return_losses();
        }
    }

    fn apply(&mut self, now: Instant, action: LinkAction) -> Result<(), SendError> {
        match action {
            LinkAction::Submit(message) => {
                if let Some(reason) = self.phase.refuses_sending() {
                    return Err(SendError::Closed(reason));
                }
                if !self.sender.submit_numbered(now, message) {
                    return Err(SendError::Full);
                }
                self.last.submitted = now;
            }
            LinkAction::AwaitRoom => self.sender.await_room(),
            LinkAction::Silence => {
                self.sender.forget_all(now);
                self.pending.idle = self.is_live();
            }
            LinkAction::Align(timebase) => {
                self.negotiated.latency.receive = timebase.receive_latency;
                self.receiver.align(&timebase);
            }
            LinkAction::SetDrift(nanos) => self.receiver.set_drift(nanos),
        }
        Ok(())
    }
}
