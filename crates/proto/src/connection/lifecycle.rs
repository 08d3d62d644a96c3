//! How a connection lives and ends: keepalives, silence, closing.

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{Control, ControlPacket, Handshake, HandshakeRequest, RejectReason, SocketId};

use super::established::{Cause, Established};
use super::timer::{Timer, TimerTable};
use super::{Connection, Signals, State, send};
use crate::config::Config;
use crate::error::CloseReason;

/// After so long without sending anything a keepalive goes out.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// The time that an application at the other end may need to read a message that is due. libsrt's
/// applications stop reading when SHUTDOWN arrives.
const READING_TIME: Duration = Duration::from_millis(100);

/// How often an orderly close says SHUTDOWN. It is not answered, and one that is lost leaves the
/// peer waiting until it takes this end for dead, which it tells as a failure; libsrt says it once.
const SHUTDOWNS: u8 = 3;

/// The handshake that refuses a peer.
#[derive(Debug)]
pub(crate) struct Refusal {
    handshake: Box<Handshake>,
    dest: SocketId,
    /// How often it is to be sent still.
    due: u8,
}

impl Refusal {
    pub(crate) const fn is_due(&self) -> bool {
        self.due > 0
    }
}

/// The caller that has a connection of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tenant<'a> {
    pub(crate) stream_id: &'a str,
    pub(crate) last_heard: Instant,
    pub(crate) round_trip: Duration,
}

/// How far an established connection has come.
#[derive(Clone, Debug)]
pub(crate) enum Phase {
    Open,
    /// The application closed; what is buffered may go out until then.
    Closing {
        until: Instant,
    },
    /// The peer said SHUTDOWN; the application is about to be told.
    PeerLeft,
    Ended(CloseReason),
}

impl Phase {
    pub(crate) fn refuses_sending(&self) -> Option<CloseReason> {
        match self {
            Self::Open => None,
            Self::Closing { .. } => Some(CloseReason::Local),
            Self::PeerLeft => Some(CloseReason::Peer),
            Self::Ended(reason) => Some(reason.clone()),
        }
    }
}

impl Connection {
    /// Ends a call that failed, or is given up. `peer` is its socket if the listener made one.
    pub(crate) fn fail(&mut self, reason: CloseReason, peer: Option<SocketId>) {
        self.timers = TimerTable::default();
        self.signals.closed = Some(reason.clone());
        self.unacknowledged_peer = peer;
        self.state = State::Failed(Box::new(reason));
    }

    /// Ends an attempt whose peer is told by `handshake` why it is refused.
    pub(crate) fn refuse(&mut self, reason: RejectReason, handshake: Box<Handshake>) {
        self.fail(CloseReason::Incompatible(reason), None);
        let dest = handshake.socket_id;
        self.refusal = Some(Refusal { handshake, dest, due: 1 });
    }

    /// Ends an attempt of its own accord; a listener that may have taken the call is told.
    pub(crate) fn give_up(&mut self, reason: CloseReason) {
        let State::Handshaking(calling) = &self.state else { return };
        let peer = calling.half_open_peer();
        let withdrawal = calling.withdrawal(&self.config, self.path.id);
        self.fail(reason, peer);
        let dest = SocketId::LISTENER;
        self.refusal = withdrawal.map(|handshake| Refusal { handshake, dest, due: SHUTDOWNS });
    }

    /// The peer goes on, unless it refuses in turn: it did not get the refusal.
    pub(crate) fn repeat_refusal(&mut self, handshake: &Handshake) {
        match &mut self.refusal {
            Some(refusal) if !matches!(handshake.request, HandshakeRequest::Rejection(_)) => {
                refusal.due = refusal.due.max(1);
            }
            _ => self.ignored += 1,
        }
    }

    /// The refusal that is to be sent now, and to which socket.
    pub(crate) fn due_refusal(&mut self) -> Option<(Box<Handshake>, SocketId)> {
        let refusal = self.refusal.as_mut()?;
        refusal.due = refusal.due.checked_sub(1)?;
        Some((refusal.handshake.clone(), refusal.dest))
    }

    /// Ends a connection that its peer has no more, without a word.
    pub(crate) fn abandon(&mut self, reason: CloseReason) {
        if let State::Established(live) = &mut self.state
            && live.is_live()
        {
            live.end(reason, &mut self.timers, &mut self.signals);
        }
    }

    /// The caller that has this connection, unless it belongs to a group or is about to end.
    pub(crate) fn tenant(&self) -> Option<Tenant<'_>> {
        match &self.state {
            State::Established(live)
                if matches!(live.phase, Phase::Open) && self.link.is_none() =>
            {
                Some(Tenant {
                    stream_id: &live.negotiated.stream_id,
                    last_heard: live.last.heard,
                    round_trip: live.rtt.estimate().smoothed,
                })
            }
            _ => None,
        }
    }

    /// Closes as the application wants: what is buffered may go out for `linger`.
    pub(crate) fn close(&mut self, now: Instant) {
        match &mut self.state {
            State::Handshaking(_) => {
                self.give_up(CloseReason::Local);
            }
            State::Established(live) => {
                if matches!(live.phase, Phase::Open) {
                    live.phase = Phase::Closing { until: now + self.config.linger() };
                    live.reschedule(now, Cause::Other, &mut self.timers, &mut self.signals);
                }
            }
            State::Failed(_) => {}
        }
    }

    /// Closes at once: what is buffered is not waited for.
    pub(crate) fn abort(&mut self, now: Instant) {
        self.close(now);
        if let State::Established(live) = &mut self.state
            && let Phase::Closing { until } = &mut live.phase
        {
            *until = now;
            live.reschedule(now, Cause::Other, &mut self.timers, &mut self.signals);
        }
    }

    /// The last packet of a connection that is forgotten: a refusal, or a SHUTDOWN if it was not
    /// closed.
    pub(crate) fn final_packet(&mut self, now: Instant) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.give_up(CloseReason::Local);
        if let Some((refusal, dest)) = self.due_refusal() {
            self.write_handshake(now, dest, refusal, &mut out);
            return Some(out);
        }
        let peer = match &self.state {
            State::Established(live) if live.is_live() => live.peer,
            State::Failed(_) => self.unacknowledged_peer?,
            State::Handshaking(_) | State::Established(_) => return None,
        };
        ControlPacket {
            timestamp: send::timestamp(self.start, now),
            dest: peer,
            control: Control::Shutdown,
        }
        .emit(&mut out);
        Some(out)
    }
}

impl Established {
    pub(crate) fn handle_timers(
        &mut self,
        now: Instant,
        timers: &mut TimerTable,
        config: &Config,
        signals: &mut Signals,
    ) {
        if timers.fired(Timer::Skip, now) {
            self.receiver.skip_late(now);
        }
        if !self.is_live() {
            // Only delivery is left to do; its timer is set anew.
            *timers = TimerTable::default();
            return;
        }
        if timers.fired(Timer::Idle, now) {
            let silence = now - self.last.heard;
            if silence >= config.peer_idle_timeout() {
                self.end(CloseReason::Idle(silence), timers, signals);
                return;
            }
            timers.set(Timer::Idle, self.last.heard + config.peer_idle_timeout());
        }
        if timers.fired(Timer::KeepAlive, now) {
            self.pending.keep_alive = now >= self.last.sent + KEEP_ALIVE;
            let since = if self.pending.keep_alive { now } else { self.last.sent };
            timers.set(Timer::KeepAlive, since + KEEP_ALIVE);
        }
        if timers.fired(Timer::Quiet, now) {
            self.look_at_quiet(now, timers);
        }
        if timers.fired(Timer::Ack, now) {
            self.pending.ack = true;
        }
        if timers.fired(Timer::Nak, now) {
            self.receiver.repeat_nak(now, self.rtt.estimate());
        }
        if timers.fired(Timer::FreshLoss, now) {
            self.receiver.report_ripe_losses(now, self.rtt.estimate());
        }
        if timers.fired(Timer::SendDrop, now) {
            self.sender.drop_late(now);
        }
        if timers.fired(Timer::Retransmit, now) {
            self.sender.handle_timeout(now, self.rtt.estimate());
        }
        if timers.fired(Timer::KeyRequest, now)
            && let Some(crypt) = &mut self.crypt
        {
            crypt.sealing.repeat_request();
        }
        if timers.fired(Timer::Linger, now) {
            self.pending.shutdowns = SHUTDOWNS;
        }
    }

    /// The stream has paused, or the peer sends to where this end is no more: only a packet from
    /// here can tell it. Heard since the last ACK, it knows; then the next ACK asks again.
    fn look_at_quiet(&mut self, now: Instant, timers: &mut TimerTable) {
        let Some(updates) = &mut self.path_updates else { return };
        if now < self.last.heard + super::path_updates::QUIET {
            return;
        }
        self.pending.path_probe = true;
        if let Some(pause) = updates.next_quiet() {
            timers.set(Timer::Quiet, now + pause);
        }
    }

    /// Moves the phase on: a peer that left is reported, a close that has nothing left to wait for
    /// says SHUTDOWN.
    pub(crate) fn settle_phase(
        &mut self,
        now: Instant,
        timers: &mut TimerTable,
        signals: &mut Signals,
    ) {
        match self.phase {
            Phase::PeerLeft => self.end(CloseReason::Peer, timers, signals),
            Phase::Closing { until } if self.pending.shutdowns == 0 => {
                let flushed = self.sender.is_empty();
                // SHUTDOWN comes when the last message has been read at the other end.
                let transit = self.negotiated.latency.peer + self.rtt.estimate().smoothed;
                let delivered = self.last.submitted + transit + READING_TIME;
                let at = if flushed { until.min(delivered) } else { until };
                if at <= now {
                    self.pending.shutdowns = SHUTDOWNS;
                    timers.stop(Timer::Linger);
                } else {
                    timers.set(Timer::Linger, at);
                }
            }
            Phase::Open | Phase::Closing { .. } | Phase::Ended(_) => {}
        }
    }

    /// SHUTDOWN is out: the close is complete.
    pub(crate) fn finish_close(&mut self, signals: &mut Signals) {
        self.phase = Phase::Ended(CloseReason::Local);
        self.receiver.end();
        signals.closed = Some(CloseReason::Local);
    }

    fn end(&mut self, reason: CloseReason, timers: &mut TimerTable, signals: &mut Signals) {
        *timers = TimerTable::default();
        self.receiver.end();
        signals.closed = Some(reason.clone());
        self.phase = Phase::Ended(reason);
    }
}
