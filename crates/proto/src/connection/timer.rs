use punctual_units::Instant;

/// The reason for which a connection is woken up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Timer {
    /// Repeat the handshake request.
    Handshake,
    /// Give up connecting.
    ConnectTimeout,
    /// Send an ACK.
    Ack,
    /// Report the packets that are still missing.
    Nak,
    /// Report losses that reordering no longer explains.
    FreshLoss,
    /// The next message is due for the application.
    Deliver,
    /// Give up the packets missing before a message that is due.
    Skip,
    /// The pacer lets the next packet out.
    Pace,
    /// The oldest message in the send buffer is too late, or a message's TTL ends.
    SendDrop,
    /// Nothing acknowledged for long: send again what is in flight.
    Retransmit,
    /// Nothing sent for a second: say that this end lives.
    KeepAlive,
    /// The peer may not know any more where this end is.
    Quiet,
    /// The peer may be gone.
    Idle,
    /// Announce a key, again if it was not answered.
    KeyRequest,
    /// Closing takes too long.
    Linger,
}

const COUNT: usize = Timer::Linger as usize + 1;

/// When each timer of a connection is due; `NEVER` for one that is stopped. Plain instants, because
/// the first of them is asked for after each packet.
#[derive(Debug)]
pub(crate) struct TimerTable([Instant; COUNT]);

/// The end of the clock, which no timer is set to.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl Default for TimerTable {
    fn default() -> Self {
        Self([NEVER; COUNT])
    }
}

impl TimerTable {
    pub(crate) const fn set(&mut self, timer: Timer, at: Instant) {
        self.0[timer as usize] = at;
    }

    pub(crate) const fn stop(&mut self, timer: Timer) {
        self.0[timer as usize] = NEVER;
    }

    pub(crate) const fn assign(&mut self, timer: Timer, at: Option<Instant>) {
        self.0[timer as usize] = match at {
            Some(at) => at,
            None => NEVER,
        };
    }

    /// When the timer is due; `None` for one that is stopped.
    pub(crate) fn at(&self, timer: Timer) -> Option<Instant> {
        Some(self.0[timer as usize]).filter(|&at| at != NEVER)
    }

    /// Whether the timer was due at `now`; if so it is stopped, and the log says at trace level
    /// which timer woke the connection up.
    pub(crate) fn fired(&mut self, timer: Timer, now: Instant) -> bool {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_once() {
        let mut table = TimerTable::default();
        table.set(Timer::Linger, Instant::from_millis(5));
        table.set(Timer::Ack, Instant::from_millis(3));
        assert_eq!(table.next(), Some(Instant::from_millis(3)));
        assert!(!table.fired(Timer::Ack, Instant::from_millis(2)));
        assert!(table.fired(Timer::Ack, Instant::from_millis(3)));
        assert!(!table.fired(Timer::Ack, Instant::from_millis(4)));
        assert_eq!(table.next(), Some(Instant::from_millis(5)));
    }
}
