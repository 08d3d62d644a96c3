//! The timers of an established connection: what is done when they are due, and when they are set.

use punctual_units::Instant;

use super::Established;
use crate::config::Config;
use crate::connection::filtering::Filtering;
use crate::connection::path_updates;
use crate::connection::signals::ConnectionSignals;
use crate::connection::timer::{ConnectionTimer, TimerCause, TimerTable};

/// Handles the timers of a connection that are due.
#[derive(Debug)]
pub(super) struct DueTimers<'a> {
    pub(super) connection: &'a mut Established,
    pub(super) now: Instant,
    pub(super) config: &'a Config,
    pub(super) signals: &'a mut ConnectionSignals,
}

impl DueTimers<'_> {
    pub(super) fn handle(mut self) {
        if self.has_fired(ConnectionTimer::Deliver) {
            self.reschedule(TimerCause::DeliveryDue);
        }
        // As a rule, the delivery was the only one.
        if !self.connection.timers.is_due(self.now) {
            return;
        }
        if self.connection.is_live() {
            self.handle_lifetime();
        }
        // An idle connection has no others: those of its lifetime move no further timer.
        if self.connection.timers.is_due(self.now) || !self.connection.is_live() {
            self.handle_others();
            self.reschedule(TimerCause::Other);
        }
    }

    /// Handles the timers of keepalives, of the peer's silence and of path updates.
    fn handle_lifetime(&mut self) {
        let Established { lifetime, timers, pending, path_updates, .. } = &mut *self.connection;
        match lifetime.handle_timers(timers, self.now, self.config.peer_idle_timeout()) {
            Ok(None) => {}
            // A keepalive is too short for the peer to challenge its address at once.
            Ok(Some(due)) if path_updates.is_some() => pending.path_probe |= due,
            Ok(Some(due)) => pending.keep_alive = due,
            Err(reason) => return self.connection.end(reason, self.signals),
        }
        if self.has_fired(ConnectionTimer::Quiet) {
            self.probe_path();
        }
    }

    /// No ACK was due for a while: either the stream pauses, or the peer sends to a path by which
    /// it no longer reaches this end, which only a packet from here shows it. After a packet of the
    /// peer no probe is needed; the next ACK starts the timer again.
    fn probe_path(&mut self) {
        let Established { lifetime, timers, pending, path_updates, .. } = &mut *self.connection;
        let Some(updates) = path_updates else { return };
        if self.now < lifetime.last_received() + path_updates::QUIET {
            return;
        }
        pending.path_probe = true;
        if let Some(pause) = updates.next_quiet() {
            timers.set(ConnectionTimer::Quiet, self.now + pause);
        }
    }

    fn handle_others(&mut self) {
        if self.has_fired(ConnectionTimer::Skip) {
            self.connection.receiver.skip_late(self.now);
        }
        if !self.connection.is_live() {
            // Only messages are still delivered; their timer is set again.
            self.connection.timers = TimerTable::default();
            return;
        }
        if self.has_fired(ConnectionTimer::Ack) {
            self.connection.pending.ack = true;
        }
        if self.has_fired(ConnectionTimer::Nak) {
            self.connection.receiver.repeat_nak(self.now, self.connection.rtt.estimate());
        }
        if self.has_fired(ConnectionTimer::FreshLoss) {
            self.connection.receiver.report_ripe_losses(self.now, self.connection.rtt.estimate());
        }
        if self.has_fired(ConnectionTimer::FilterPause) {
            let Established { receiver, filter, rtt, .. } = &mut *self.connection;
            let rtt = rtt.estimate();
            filter.iter_mut().for_each(|filter| filter.look_for_pause(receiver, self.now, rtt));
        }
        if self.has_fired(ConnectionTimer::SendDrop) {
            self.connection.sender.drop_late(self.now);
        }
        if self.has_fired(ConnectionTimer::Retransmit) {
            self.connection.sender.handle_timeout(self.now, self.connection.rtt.estimate());
        }
        if self.has_fired(ConnectionTimer::KeyRequest) {
            self.connection.keys.repeat_request();
        }
        if self.has_fired(ConnectionTimer::Linger) {
            self.connection.lifetime.begin_shutdown();
        }
    }

    fn has_fired(&mut self, timer: ConnectionTimer) -> bool {
        self.connection.timers.fired(timer, self.now)
    }

    fn reschedule(&mut self, cause: TimerCause) {
        self.connection.reschedule(self.now, cause, self.signals);
    }
}

/// Sets the timers of a connection, all except those of keepalives, the peer's silence and path
/// updates, and notes the events for the application.
#[derive(Debug)]
pub(super) struct Scheduling<'a> {
    pub(super) connection: &'a mut Established,
    pub(super) now: Instant,
    pub(super) signals: &'a mut ConnectionSignals,
}

impl Scheduling<'_> {
    /// Sets the timers that `cause` may have changed.
    #[inline]
    pub(super) fn follow(mut self, cause: TimerCause) {
        if matches!(cause, TimerCause::Other | TimerCause::Written)
            && !self.connection.lifetime.is_open()
        {
            self.connection.advance_closing(self.now, self.signals);
        }
        if matches!(cause, TimerCause::Other | TimerCause::Data) {
            self.schedule_receiver();
        }
        if matches!(
            cause,
            TimerCause::Other | TimerCause::Data | TimerCause::DeliveryDue | TimerCause::PeerHeard
        ) {
            self.schedule_delivery();
        }
        if matches!(cause, TimerCause::NakCopyWritten) && self.connection.lifetime.is_live() {
            self.schedule_nak();
        }
        if matches!(cause, TimerCause::Other | TimerCause::Written | TimerCause::Submitted) {
            self.schedule_sender();
        }
        if matches!(cause, TimerCause::Other | TimerCause::Written) {
            self.signals.writable |= self.connection.sender.becomes_writable();
        }
        if matches!(cause, TimerCause::Other) {
            self.signals.writable |= self.connection.peer_error.take_wake_up();
        }
    }

    /// Sets the timers of the receiving half, except for the delivery.
    fn schedule_receiver(&mut self) {
        if self.connection.lifetime.is_live() {
            self.schedule_nak();
            let Established { receiver, filter, rtt, timers, pending, keys, .. } =
                &mut *self.connection;
            let ack = if pending.ack { None } else { receiver.next_ack(self.now, rtt.timeout()) };
            timers.assign(ConnectionTimer::Ack, ack);
            timers.assign(ConnectionTimer::FreshLoss, receiver.next_ripe());
            timers.assign(
                ConnectionTimer::FilterPause,
                filter.as_deref().and_then(Filtering::next_look),
            );
            timers.assign(ConnectionTimer::KeyRequest, keys.next_request());
        }
        let Established { receiver, sender, timers, .. } = &mut *self.connection;
        self.signals.news |= receiver.has_bypassed() || sender.has_returned();
        timers.assign(ConnectionTimer::Skip, receiver.next_skip());
    }

    fn schedule_nak(&mut self) {
        let Established { receiver, rtt, timers, .. } = &mut *self.connection;
        timers.assign(ConnectionTimer::Nak, receiver.next_nak(self.now, rtt.estimate()));
    }

    /// Notes that a message is due, or sets the timer for the next one.
    fn schedule_delivery(&mut self) {
        let Established { receiver, timers, told_readable, .. } = &mut *self.connection;
        if *told_readable {
            return;
        }
        let next = receiver.next_delivery();
        let timer = if next.is_due(self.now) {
            *told_readable = true;
            self.signals.readable = true;
            // A driver that sets its alarm once for each message has set it for the second one by
            // the time that the application has read the first.
            receiver.second_delivery_after(self.now)
        } else {
            next.later_than(self.now)
        };
        timers.assign(ConnectionTimer::Deliver, timer);
    }

    /// Sets the timers of the sending half.
    fn schedule_sender(&mut self) {
        if !self.connection.is_live() {
            return;
        }
        let Established { sender, rtt, timers, .. } = &mut *self.connection;
        timers.assign(ConnectionTimer::Pace, sender.next_send().later_than(self.now));
        timers.assign(ConnectionTimer::SendDrop, sender.next_drop());
        timers.assign(ConnectionTimer::Retransmit, sender.next_timeout(rtt.timeout()));
    }
}
