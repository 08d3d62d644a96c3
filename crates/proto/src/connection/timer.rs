//! The timers of an established connection.

use punctual_units::Instant;

/// The reason for which an established connection is woken up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ConnectionTimer {
    /// Send an ACK.
    Ack,
    /// Send NAKs again for packets that are still missing.
    Nak,
    /// Send NAKs for packets that are missing for longer than reordering explains.
    FreshLoss,
    /// Look whether the stream pauses, so that the packet filter rebuilds nothing more.
    FilterPause,
    /// The next message is due for the application.
    Deliver,
    /// Give up the packets missing before a message that is due.
    Skip,
    /// The pacer lets the next packet out.
    Pace,
    /// The oldest message in the send buffer is too late, or a message's TTL ends.
    SendDrop,
    /// The retransmission timeout: no ACK has come for long.
    Retransmit,
    /// Send a keepalive.
    KeepAlive,
    /// Show the peer by which path it reaches this end.
    Quiet,
    /// The peer has been silent for the idle timeout.
    Idle,
    /// Announce a key, or repeat an announcement without an answer.
    KeyRequest,
    /// The time for buffered messages after a close is over.
    Linger,
}

/// The reason to set timers again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TimerCause {
    /// A data packet arrived, or an ACK, a NAK or a key message was written.
    Data,
    /// The timer of the next delivery fired.
    DeliveryDue,
    /// A control packet arrived that changes nothing but perhaps the traced drift of the peer's
    /// clock, as each may: a keepalive, a probe of the path, or the copy of a NAK.
    PeerHeard,
    /// The copy of a NAK was written.
    NakCopyWritten,
    /// The application submitted a message.
    Submitted,
    /// All packets were written that can be sent now. Control packets have set the timers of the
    /// receiving half.
    Written,
    /// Anything else: every timer may have changed.
    Other,
}

const COUNT: usize = ConnectionTimer::Linger as usize + 1;

/// The due time of each timer; `NEVER` for one that is stopped. Plain instants, because the least
/// of them is computed after each packet.
#[derive(Debug)]
pub(crate) struct TimerTable([Instant; COUNT]);

/// The end of the clock, to which no timer is set.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl Default for TimerTable {
    fn default() -> Self {
        Self([NEVER; COUNT])
    }
}

impl TimerTable {
    pub(crate) const fn set(&mut self, timer: ConnectionTimer, at: Instant) {
        self.0[timer as usize] = at;
    }

    pub(crate) const fn stop(&mut self, timer: ConnectionTimer) {
        self.0[timer as usize] = NEVER;
    }

    pub(crate) const fn assign(&mut self, timer: ConnectionTimer, at: Option<Instant>) {
        self.0[timer as usize] = match at {
            Some(at) => at,
            None => NEVER,
        };
    }

    /// When the timer is due; `None` for one that is stopped.
    pub(crate) fn at(&self, timer: ConnectionTimer) -> Option<Instant> {
        Some(self.0[timer as usize]).filter(|&at| at != NEVER)
    }

    /// Whether the timer was due at `now`; if so it is stopped, and the log says at trace level
    /// which timer woke the connection up.
    pub(crate) fn fired(&mut self, timer: ConnectionTimer, now: Instant) -> bool {
        let at = self.0[timer as usize];
        let fired = at <= now && at != NEVER;
        if fired {
            self.0[timer as usize] = NEVER;
            tracing::trace!(?timer, late = ?(now - at), "timer");
        }
        fired
    }

    /// When the first timer is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        let first = self.0.iter().fold(NEVER, |first, &at| first.min(at));
        (first != NEVER).then_some(first)
    }

    /// Whether a timer is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.next().is_some_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_once() {
        let mut table = TimerTable::default();
        table.set(ConnectionTimer::Linger, Instant::from_millis(5));
        table.set(ConnectionTimer::Ack, Instant::from_millis(3));
        assert_eq!(table.next(), Some(Instant::from_millis(3)));
        assert!(!table.fired(ConnectionTimer::Ack, Instant::from_millis(2)));
        assert!(table.fired(ConnectionTimer::Ack, Instant::from_millis(3)));
        assert!(!table.fired(ConnectionTimer::Ack, Instant::from_millis(4)));
        assert_eq!(table.next(), Some(Instant::from_millis(5)));
    }
}
