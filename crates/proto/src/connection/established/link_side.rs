//! An established connection as a link of a group.

use punctual_units::Instant;

use super::Established;
use crate::connection::signals::ConnectionSignals;
use crate::connection::timer::TimerCause;
use crate::error::SendError;
use crate::group::LinkAction;

/// The side of a connection that its group uses.
#[derive(Debug)]
pub(in crate::connection) struct LinkSide<'a>(pub(super) &'a mut Established);

impl LinkSide<'_> {
    /// The group corrects for the drift of the peer's clock from now on, `drift` nanoseconds at
    /// first.
    pub(in crate::connection) fn share_drift(&mut self, drift: i64) {
        self.0.receiver.share_drift(drift);
    }

    /// The group gives each link other messages: messages and losses go to the group.
    pub(in crate::connection) fn balance(&mut self) {
        self.0.receiver.bypass_to_group();
        self.0.sender.return_losses();
    }

    /// Carries out an action of the group.
    pub(in crate::connection) fn apply(
        &mut self,
        now: Instant,
        action: LinkAction,
        signals: &mut ConnectionSignals,
    ) -> Result<(), SendError> {
        let result = match action {
            LinkAction::Submit(message) => match self.0.lifetime.send_error() {
                Some(reason) => Err(SendError::Closed(reason)),
                None if self.0.sender.submit_numbered(now, message) => {
                    self.0.lifetime.note_submitted(now);
                    Ok(())
                }
                None => Err(SendError::Full),
            },
            LinkAction::AwaitRoom => {
                self.0.sender.await_room();
                Ok(())
            }
            LinkAction::Silence => {
                self.0.sender.forget_all(now);
                self.0.pending.idle = self.0.is_live();
                Ok(())
            }
            LinkAction::Align(timebase) => {
                self.0.negotiated.latency.receive = timebase.receive_latency.clone();
                self.0.receiver.align(&timebase);
                Ok(())
            }
            LinkAction::SetDrift(nanos) => {
                self.0.receiver.set_drift(nanos);
                Ok(())
            }
        };
        self.0.reschedule(now, TimerCause::Other, signals);
        result
    }
}
