//! The lifetime of an established connection: keepalives, the peer's silence, and closing.

use std::time::Duration;

use punctual_units::Instant;

use super::timer::{ConnectionTimer, TimerTable};
use crate::error::CloseReason;

/// A keepalive is sent when nothing else was for this time (draft section 3.2.3).
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// Keepalives are sent at the multiples of this time, so that all idle connections of a port, and
/// those of its peer on the same machine, have theirs in a few wake-ups instead of one for each.
const KEEP_ALIVE_GRID: Duration = Duration::from_millis(100);

/// The silence after which a peer is taken for dead when its host calls again: a live peer sends a
/// keepalive each second.
pub(crate) const SILENCE_OF_THE_DEAD: Duration = Duration::from_millis(1_200);

/// Copies of SHUTDOWN at the end of an orderly close. Nothing answers a SHUTDOWN, and a peer that
/// gets none waits for its idle timeout and reports a failure; libsrt sends one.
pub(super) const SHUTDOWNS: u8 = 3;

/// The time that an application at the other end may need to read a message that is due. libsrt's
/// applications stop reading when SHUTDOWN arrives.
const READING_TIME: Duration = Duration::from_millis(100);

/// The phase of an established connection, and the times of the last packets and messages.
#[derive(Debug)]
pub(super) struct Lifetime {
    phase: Phase,
    /// Copies of SHUTDOWN that are still to be sent.
    shutdowns: u8,
    /// Whether the peer has called again since its last packet.
    peer_called: bool,
    last_received: Instant,
    last_sent: Instant,
    /// `None` before the first message.
    last_submitted: Option<Instant>,
}

#[derive(Debug)]
enum Phase {
    Open,
    /// The application has closed the connection; buffered messages may go out until then.
    Closing {
        until: Instant,
    },
    /// A SHUTDOWN has arrived; the application does not know yet.
    PeerLeft,
    Ended(CloseReason),
}

/// The next step of a connection that is not open any more.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Closing {
    /// None for the time being.
    None,
    /// The peer has left: the connection ends.
    PeerLeft,
    /// SHUTDOWN is sent at this time.
    Lingers(Instant),
    /// SHUTDOWN is sent now.
    ShutsDown,
}

impl Lifetime {
    /// A connection that was established at `now`.
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            phase: Phase::Open,
            shutdowns: 0,
            peer_called: false,
            last_received: now,
            last_sent: now,
            last_submitted: None,
        }
    }

    /// A packet arrived from the peer. Returns when the one before it did.
    pub(super) const fn note_received(&mut self, now: Instant) -> Instant {
        self.peer_called = false;
        std::mem::replace(&mut self.last_received, now)
    }

    pub(super) const fn last_received(&self) -> Instant {
        self.last_received
    }

    /// The peer has begun a new connection from where it had this one. If it stays silent, it has
    /// been restarted. Returns when that is certain.
    pub(super) fn note_peer_called(&mut self) -> Instant {
        self.peer_called = true;
        self.last_received + SILENCE_OF_THE_DEAD
    }

    /// A packet was sent.
    pub(super) const fn note_sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    /// The application submitted a message.
    pub(super) const fn note_submitted(&mut self, now: Instant) {
        self.last_submitted = Some(now);
    }

    pub(super) const fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    /// Whether the connection still handles and sends packets: it is open or closing.
    pub(super) const fn is_live(&self) -> bool {
        !matches!(self.phase, Phase::Ended(_))
    }

    /// Why the connection has ended, if it has.
    pub(super) const fn end_reason(&self) -> Option<&CloseReason> {
        match &self.phase {
            Phase::Ended(reason) => Some(reason),
            Phase::Open | Phase::Closing { .. } | Phase::PeerLeft => None,
        }
    }

    /// Why the application can send no more, if it cannot.
    pub(super) fn send_error(&self) -> Option<CloseReason> {
        match &self.phase {
            Phase::Open => None,
            Phase::Closing { .. } => Some(CloseReason::Local),
            Phase::PeerLeft => Some(CloseReason::Peer),
            Phase::Ended(reason) => Some(reason.clone()),
        }
    }

    /// Whether a keepalive is due, and when to ask next.
    pub(super) fn keep_alive(&self, now: Instant) -> (bool, Instant) {
        let is_due = now >= keep_alive_after(self.last_sent);
        let since = if is_due { now } else { self.last_sent };
        (is_due, keep_alive_after(since))
    }

    /// The time after which the peer is taken for gone if nothing more arrives; an error with the
    /// reason if that has passed.
    pub(super) fn idle_deadline(
        &self,
        now: Instant,
        timeout: Duration,
    ) -> Result<Instant, CloseReason> {
        let silence = now - self.last_received;
        if self.peer_called {
            return match silence >= SILENCE_OF_THE_DEAD {
                true => Err(CloseReason::Replaced),
                false => Ok(self.last_received + SILENCE_OF_THE_DEAD),
            };
        }
        if silence >= timeout {
            return Err(CloseReason::Idle(silence));
        }
        Ok(self.last_received + timeout)
    }

    /// Handles the timers of the peer's silence and of keepalives, and sets them again. Returns
    /// whether a keepalive is due, if its timer has fired; an error if the peer has been silent for
    /// too long.
    pub(super) fn handle_timers(
        &self,
        timers: &mut TimerTable,
        now: Instant,
        idle_timeout: Duration,
    ) -> Result<Option<bool>, CloseReason> {
        if timers.fired(ConnectionTimer::Idle, now) {
            timers.set(ConnectionTimer::Idle, self.idle_deadline(now, idle_timeout)?);
        }
        if !timers.fired(ConnectionTimer::KeepAlive, now) {
            return Ok(None);
        }
        let (is_due, next) = self.keep_alive(now);
        timers.set(ConnectionTimer::KeepAlive, next);
        // A peer that was heard needs no wake-up of its own for the check of its silence.
        if let Ok(deadline) = self.idle_deadline(now, idle_timeout) {
            timers.set(ConnectionTimer::Idle, deadline);
        }
        Ok(Some(is_due))
    }

    /// A SHUTDOWN has arrived.
    pub(super) fn note_peer_left(&mut self) {
        self.phase = Phase::PeerLeft;
    }

    /// The application closes; buffered messages may go out until `until`. Returns whether the
    /// connection was open.
    pub(super) fn close(&mut self, until: Instant) -> bool {
        let was_open = self.is_open();
        if was_open {
            self.phase = Phase::Closing { until };
        }
        was_open
    }

    /// Buffered messages are no longer waited for. Returns whether the connection is closing.
    pub(super) const fn stop_lingering(&mut self, now: Instant) -> bool {
        if let Phase::Closing { until } = &mut self.phase {
            *until = now;
            return true;
        }
        false
    }

    pub(super) fn end(&mut self, reason: CloseReason) {
        self.phase = Phase::Ended(reason);
    }

    /// The next step towards the end. SHUTDOWN is sent when the last message has been delivered at
    /// the other end. `is_flushed`: all messages were acknowledged. `transit` is the time from
    /// their submission to their delivery there.
    pub(super) fn closing(&mut self, now: Instant, is_flushed: bool, transit: Duration) -> Closing {
        match self.phase {
            Phase::PeerLeft => Closing::PeerLeft,
            Phase::Closing { until } if self.shutdowns == 0 => {
                let read = self.last_submitted.map_or(now, |it| it + transit + READING_TIME);
                let at = if is_flushed { until.min(read) } else { until };
                if at > now {
                    return Closing::Lingers(at);
                }
                self.begin_shutdown();
                Closing::ShutsDown
            }
            Phase::Open | Phase::Closing { .. } | Phase::Ended(_) => Closing::None,
        }
    }

    /// SHUTDOWN is to be sent.
    pub(super) const fn begin_shutdown(&mut self) {
        self.shutdowns = SHUTDOWNS;
    }

    /// Whether a copy of SHUTDOWN is to be sent.
    pub(super) const fn shutdown_is_due(&self) -> bool {
        self.shutdowns > 0
    }

    /// A copy of SHUTDOWN was sent. Returns whether it was the last one.
    pub(super) const fn note_shutdown_sent(&mut self) -> bool {
        self.shutdowns -= 1;
        self.shutdowns == 0
    }
}

/// When a keepalive is due after a packet that was sent at `sent`: up to a tenth of a second before
/// the second is over.
fn keep_alive_after(sent: Instant) -> Instant {
    (sent + KEEP_ALIVE).last_multiple_of(KEEP_ALIVE_GRID)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSIT: Duration = Duration::from_millis(140);

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn a_keepalive_is_due_a_second_after_the_last_packet() {
        let mut lifetime = Lifetime::new(at(0));
        lifetime.note_sent(at(300));
        assert_eq!(lifetime.keep_alive(at(1_000)), (false, at(1_300)));
        assert_eq!(lifetime.keep_alive(at(1_300)), (true, at(2_300)));
    }

    #[test]
    fn keepalives_of_all_connections_are_due_at_the_same_times() {
        for established in 0..100 {
            let lifetime = Lifetime::new(at(4_200 + established));
            let (is_due, first) = lifetime.keep_alive(at(4_300));
            assert_eq!((is_due, first), (false, at(5_200)), "established at {established}");
            // The machine was late.
            assert_eq!(lifetime.keep_alive(at(5_203)), (true, at(6_200)));
        }
    }

    #[test]
    fn a_keepalive_puts_off_the_check_of_a_peer_that_was_heard() {
        let (mut lifetime, mut timers) = (Lifetime::new(at(0)), TimerTable::default());
        timers.set(ConnectionTimer::KeepAlive, at(1_000));
        timers.set(ConnectionTimer::Idle, at(5_000));
        let idle = Duration::from_secs(5);
        assert_eq!(lifetime.handle_timers(&mut timers, at(999), idle), Ok(None));
        lifetime.note_received(at(900));
        assert_eq!(lifetime.handle_timers(&mut timers, at(1_000), idle), Ok(Some(true)));
        let set = [ConnectionTimer::KeepAlive, ConnectionTimer::Idle].map(|timer| timers.at(timer));
        assert_eq!(set, [Some(at(2_000)), Some(at(5_900))]);
        let gone = lifetime.handle_timers(&mut timers, at(5_900), idle);
        assert_eq!(gone, Err(CloseReason::Idle(idle)));
    }

    #[test]
    fn a_peer_that_is_silent_for_the_idle_timeout_is_gone() {
        let mut lifetime = Lifetime::new(at(0));
        assert_eq!(lifetime.note_received(at(400)), at(0));
        let timeout = Duration::from_secs(5);
        assert_eq!(lifetime.idle_deadline(at(5_000), timeout).ok(), Some(at(5_400)));
        let gone = lifetime.idle_deadline(at(5_400), timeout);
        assert!(matches!(gone, Err(CloseReason::Idle(silence)) if silence == timeout));
    }

    #[test]
    fn a_silent_peer_that_calls_again_is_gone_after_more_than_a_second() {
        let timeout = Duration::from_secs(5);
        let mut lifetime = Lifetime::new(at(0));
        lifetime.note_received(at(400));
        assert_eq!(lifetime.note_peer_called(), at(1_600));
        assert_eq!(lifetime.idle_deadline(at(1_599), timeout).ok(), Some(at(1_600)));
        assert_eq!(lifetime.idle_deadline(at(1_600), timeout), Err(CloseReason::Replaced));
        lifetime.note_received(at(1_600));
        assert_eq!(lifetime.idle_deadline(at(3_000), timeout).ok(), Some(at(6_600)), "it lives");
    }

    #[test]
    fn a_close_waits_until_the_last_message_has_been_read() {
        let mut lifetime = Lifetime::new(at(0));
        lifetime.note_submitted(at(50));
        lifetime.close(at(3_000));
        assert!(!lifetime.is_open() && lifetime.is_live());
        assert_eq!(lifetime.closing(at(60), false, TRANSIT), Closing::Lingers(at(3_000)));
        assert_eq!(lifetime.closing(at(60), true, TRANSIT), Closing::Lingers(at(290)));
        assert_eq!(lifetime.closing(at(290), true, TRANSIT), Closing::ShutsDown);
        assert_eq!(lifetime.closing(at(290), true, TRANSIT), Closing::None);
        let sent =
            (1..).take_while(|_| lifetime.shutdown_is_due() && !lifetime.note_shutdown_sent());
        assert_eq!(sent.count() + 1, usize::from(SHUTDOWNS));
    }

    #[test]
    fn a_close_waits_for_nothing_if_nothing_was_ever_sent() {
        let mut lifetime = Lifetime::new(at(0));
        lifetime.close(at(3_000));
        assert_eq!(lifetime.closing(at(1), true, TRANSIT), Closing::ShutsDown);
    }

    #[test]
    fn an_aborted_close_waits_for_nothing() {
        let mut lifetime = Lifetime::new(at(0));
        assert!(!lifetime.stop_lingering(at(1)) && lifetime.is_open());
        assert!(lifetime.close(at(3_000)) && lifetime.stop_lingering(at(2)));
        assert!(!lifetime.close(at(9_000)), "it is closing already");
        assert_eq!(lifetime.closing(at(2), false, TRANSIT), Closing::ShutsDown);
    }

    #[test]
    fn each_phase_says_why_the_application_can_send_no_more() {
        let mut lifetime = Lifetime::new(at(0));
        assert!(lifetime.send_error().is_none());
        lifetime.close(at(9));
        assert!(matches!(lifetime.send_error(), Some(CloseReason::Local)));
        lifetime.note_peer_left();
        assert!(matches!(lifetime.send_error(), Some(CloseReason::Peer)));
        assert_eq!(lifetime.closing(at(1), true, TRANSIT), Closing::PeerLeft);
        lifetime.end(CloseReason::Withdrawn);
        assert!(matches!(lifetime.send_error(), Some(CloseReason::Withdrawn)));
        assert!(matches!(lifetime.end_reason(), Some(CloseReason::Withdrawn)));
    }
}
