//! An established connection: routes packets, timers and the application's calls to the parts that
//! own the state.

mod link_side;
mod timers;
mod writer;

use std::time::Duration;

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{
    Ack, AckNo, Control, DataHeader, Handshake, HandshakeRequest, SocketId, Timestamp,
};

use self::link_side::LinkSide;
use self::timers::{DueTimers, Scheduling};
use self::writer::Writer;
use super::filtering::{ArrivedPacket, Filtering};
use super::final_response::FinalResponse;
use super::keys::Keys;
use super::lifetime::{Closing, Lifetime};
use super::output::Output;
use super::packet_room::PacketRoom;
use super::path_updates::{self, PathUpdates};
use super::peer_error::PeerErrorReport;
use super::pending::Pending;
use super::recv::ReceiveHalf;
use super::rtt::RttTracker;
use super::send::{SendHalf, Verdict};
use super::signals::ConnectionSignals;
use super::timer::{ConnectionTimer, TimerCause, TimerTable};
use crate::config::Config;
use crate::crypt;
use crate::error::{CloseReason, PeerError, RecvError, SendError};
use crate::event::ConnectionInfo;
use crate::group::{LinkStatus, LinkTerms};
#[cfg(test)]
use crate::handshake::Latency;
use crate::handshake::{FinalHandshake, Negotiated};
use crate::path::{Path, PathId};
use crate::statistics::Statistics;
use crate::stream_id::RawStreamId;
use crate::wake_up::WakeUp;

/// An established connection, from the end of the handshake until it is released.
#[derive(Debug)]
pub(super) struct Established {
    sender: SendHalf,
    receiver: ReceiveHalf,
    rtt: RttTracker,
    filter: Option<Box<Filtering>>,
    lifetime: Lifetime,
    timers: TimerTable,
    pending: Pending,
    negotiated: Negotiated,
    room: PacketRoom,
    response: FinalResponse,
    keys: Keys,
    /// The peer's paths, if both ends support path updates.
    path_updates: Option<Box<PathUpdates>>,
    peer_error: PeerErrorReport,
    /// Whether the application knows that a message is due and has not yet read it.
    told_readable: bool,
}

/// The caller that has a connection of a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Occupant<'a> {
    pub(crate) stream_id: &'a RawStreamId,
    /// The caller's group, if the connection is a link of one.
    pub(crate) group: Option<u32>,
    pub(crate) last_received: Instant,
    pub(crate) rtt: Duration,
}

/// The effect of a control packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Effect {
    /// It is invalid, and was ignored.
    Invalid,
    /// The peer was heard, and nothing else changed.
    None,
    /// A timer may have moved, or the packet needs an answer.
    Change,
}

impl Established {
    /// A connection that was established at `now`. `own` is this end's socket ID.
    pub(super) fn new(
        now: Instant,
        path: &Path,
        own: SocketId,
        config: &Config,
        mut negotiated: Negotiated,
        final_handshake: Option<FinalHandshake>,
    ) -> Self {
        let lifetime = Lifetime::new(now);
        let mut timers = TimerTable::default();
        timers.set(ConnectionTimer::KeepAlive, lifetime.keep_alive(now).1);
        timers.set(ConnectionTimer::Idle, now + config.peer_idle_timeout());
        Self {
            sender: SendHalf::new(config, &negotiated, path.properties.packet_overhead(), now),
            receiver: ReceiveHalf::new(config, &negotiated, path, now),
            rtt: RttTracker::new(config.rtt_algorithm()),
            filter: negotiated
                .filter
                .map(|fec| Box::new(Filtering::new(&fec, negotiated.fixed.receive_isn))),
            lifetime,
            timers,
            pending: Pending::default(),
            room: PacketRoom::new(&negotiated, config, path),
            response: FinalResponse::new(final_handshake),
            keys: Keys::new(negotiated.crypt.take()),
            path_updates: negotiated
                .path_update
                .then(|| Box::new(PathUpdates::new(own, &negotiated))),
            negotiated,
            peer_error: PeerErrorReport::default(),
            told_readable: false,
        }
    }

    /// The peer's socket ID.
    pub(super) const fn peer(&self) -> SocketId {
        self.negotiated.fixed.peer_socket_id
    }

    /// Whether the connection still handles and sends packets: it is open or closing.
    pub(super) const fn is_live(&self) -> bool {
        self.lifetime.is_live()
    }

    /// The caller of a connection that is not about to end.
    pub(super) fn occupant(&self) -> Option<Occupant<'_>> {
        self.lifetime.is_open().then(|| Occupant {
            stream_id: &self.negotiated.stream_id,
            group: self.negotiated.peer_group,
            last_received: self.lifetime.last_received(),
            rtt: self.rtt.estimate().smoothed,
        })
    }

    /// Takes over the options that may change while the connection is established.
    pub(super) fn follow_options(
        &mut self,
        now: Instant,
        config: &Config,
        signals: &mut ConnectionSignals,
    ) {
        self.sender.configure(config, &self.negotiated);
        self.receiver.configure(config, &self.negotiated);
        self.reschedule(now, TimerCause::Other, signals);
    }

    // The path.

    /// The peer's paths and the time that an answer takes, if both ends support path updates.
    pub(super) fn path_updates(&mut self) -> Option<(&mut PathUpdates, Duration)> {
        let wait = self.rtt.timeout();
        Some((self.path_updates.as_deref_mut().filter(|_| self.lifetime.is_live())?, wait))
    }

    /// Takes over the properties of the path, which have changed.
    pub(super) fn follow_path(
        &mut self,
        now: Instant,
        config: &Config,
        path: &Path,
        signals: &mut ConnectionSignals,
    ) {
        self.room = PacketRoom::new(&self.negotiated, config, path);
        self.sender.set_overhead(path.properties.packet_overhead());
        self.receiver.follow_path(path);
        self.reschedule(now, TimerCause::Other, signals);
    }

    /// The peer has moved from the path `from`. Control packets that were sent there since are
    /// lost, so that ACK and NAKs are repeated.
    pub(super) fn note_move(&mut self, now: Instant, from: PathId) {
        if let Some(updates) = &mut self.path_updates {
            updates.moved(now, from);
        }
        self.lifetime.note_received(now);
        self.pending.ack = true;
        self.receiver.repeat_nak(now, self.rtt.estimate());
    }

    // Packets of the peer.

    /// Takes in a data packet. Returns whether it may have moved a timer or needs an answer.
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: Bytes,
        signals: &mut ConnectionSignals,
    ) -> bool {
        let previous = self.lifetime.note_received(now);
        let rtt = self.rtt.estimate();
        let crypt = self.keys.crypt();
        let moved = if let Some(filter) = &mut self.filter {
            let arrival = ArrivedPacket { now, previous, header, payload };
            filter.handle_data(&mut self.receiver, crypt, arrival, rtt)
        } else {
            let size = payload.len();
            match crypt::open(crypt, header, payload) {
                Ok(payload) => self.receiver.handle_data(now, previous, header, payload, rtt),
                Err(why) => self.receiver.refuse(now, header, size, why),
            }
        };
        if moved && self.receiver.take_quick_ack() {
            self.pending.ack = true;
        }
        let moved =
            self.receiver.look_at_nak_timer(now, rtt) || moved || self.receiver.has_bypassed();
        if moved {
            self.reschedule(now, TimerCause::Data, signals);
        }
        moved
    }

    /// Takes in a control packet other than a handshake.
    pub(super) fn handle_control(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        control: &Control<'_>,
        signals: &mut ConnectionSignals,
    ) -> Effect {
        self.lifetime.note_received(now);
        self.response.is_received();
        let rtt = self.rtt.estimate();
        let mut cause = TimerCause::Other;
        let valid = match control {
            Control::Ack(ack) => self.handle_ack(now, ack, rtt),
            Control::Nak(list) => {
                let verdict = self.sender.handle_nak(now, timestamp, list, rtt);
                if verdict == Verdict::Duplicate {
                    cause = TimerCause::PeerHeard;
                }
                verdict != Verdict::Invalid
            }
            Control::AckAck(number) => self.handle_ack_ack(now, *number),
            Control::DropRequest(request) => self.receiver.handle_drop_request(request),
            Control::Shutdown => {
                self.lifetime.note_peer_left();
                true
            }
            Control::KeepAlive | Control::KeepAliveIdle | Control::CongestionWarning => {
                cause = TimerCause::PeerHeard;
                true
            }
            Control::Extension { command: path_updates::PROBE, .. } => {
                cause = TimerCause::PeerHeard;
                self.path_updates.is_some()
            }
            Control::Extension { command, body } => match self.keys.handle(*command, body) {
                Some(is_valid) => is_valid,
                None => self.handle_path_packet(*command, body),
            },
            Control::PeerError(code) => self.note_peer_error(PeerError::new(*code)),
            Control::Handshake(_) => false,
        };
        if valid {
            self.receiver.trace_drift(now, timestamp, self.rtt.latest());
        }
        if self.receiver.look_at_nak_timer(now, self.rtt.estimate()) {
            cause = TimerCause::Other;
        }
        let due = self.timers.next();
        self.reschedule(now, cause, signals);
        if !valid {
            Effect::Invalid
        } else if cause == TimerCause::PeerHeard && self.timers.next() == due && !signals.any() {
            Effect::None
        } else {
            Effect::Change
        }
    }

    /// A data packet of the peer is ignored: there is no memory for it.
    pub(super) fn ignore_data(&mut self, now: Instant) {
        self.lifetime.note_received(now);
        self.receiver.ignore();
    }

    /// Bytes of the packets that wait for the application.
    pub(super) fn held(&self) -> u64 {
        self.receiver.held()
    }

    fn handle_ack(&mut self, now: Instant, ack: &Ack, rtt: Rtt) -> bool {
        let verdict = self.sender.handle_ack(now, ack, rtt);
        if verdict == Verdict::Advanced
            && let Some(link) = ack.link()
        {
            let micros = |us: u32| Duration::from_micros(us.into());
            let (smoothed, variance) = (micros(link.rtt_us), micros(link.rtt_var_us));
            self.rtt.peer_reported(now, Rtt { smoothed, variance });
        }
        if verdict != Verdict::Invalid {
            self.pending.ack_ack = ack.number().or(self.pending.ack_ack);
        }
        verdict != Verdict::Invalid
    }

    fn handle_ack_ack(&mut self, now: Instant, number: AckNo) -> bool {
        let Some(sample) = self.receiver.handle_ack_ack(now, number) else { return false };
        self.rtt.ack_answered(now, number, sample);
        self.receiver.hurry_nak(now, self.rtt.estimate());
        true
    }

    /// Takes in a challenge or an answer that came by the peer's path; `false` for any other
    /// extension packet. An answer changes nothing here: the connection has moved already.
    fn handle_path_packet(&mut self, command: u16, body: &[u8]) -> bool {
        let Some(updates) = &self.path_updates else { return false };
        match command {
            path_updates::CHALLENGE => {
                let answer = updates.answer(body);
                self.pending.path_answer = answer.or(self.pending.path_answer);
                answer.is_some()
            }
            path_updates::ANSWER => true,
            _ => false,
        }
    }

    /// The peer repeats a handshake: it did not get this end's last one. Or a new program at the
    /// other end of a rendezvous waves: it may be the peer after a restart.
    pub(super) fn handle_handshake(&mut self, handshake: &Handshake) {
        let is_peer = handshake.socket_id == self.peer();
        if is_peer && self.is_live() && self.response.is_asked_for(handshake.request) {
            self.response.repeat();
        }
        let waves = handshake.request == HandshakeRequest::WaveAHand;
        if waves && !is_peer && self.lifetime.is_open() {
            self.timers.set(ConnectionTimer::Idle, self.lifetime.note_peer_called());
        }
    }

    /// The peer reports an error. `false` in live mode, which has no files.
    const fn note_peer_error(&mut self, error: PeerError) -> bool {
        let is_file = self.receiver.is_of_file();
        if is_file {
            self.peer_error.note(error);
        }
        is_file
    }

    // The application.

    /// The half that sends.
    pub(super) const fn sender(&mut self) -> &mut SendHalf {
        &mut self.sender
    }

    /// The half that sends, for reading.
    pub(super) const fn as_sender(&self) -> &SendHalf {
        &self.sender
    }

    /// The half that receives.
    pub(super) const fn receiver(&mut self) -> &mut ReceiveHalf {
        &mut self.receiver
    }

    /// Reports an error of this end to the peer, if the peer sends a file. Nothing acknowledges the
    /// report, and a second packet would be a second error to the peer, so that it is sent once, as
    /// in libsrt.
    pub(super) fn report_error(&mut self, error: PeerError) {
        if self.is_live() && self.receiver.is_of_file() {
            self.pending.error = Some(error);
        }
    }

    /// Fails if the application cannot send. An error that the peer reported comes first, once,
    /// also if the peer has left since.
    pub(super) fn check_sendable(&mut self) -> Result<(), SendError> {
        if let Some(error) = self.peer_error.take_error() {
            return Err(SendError::PeerError(error));
        }
        self.lifetime.send_error().map_or(Ok(()), |reason| Err(SendError::Closed(reason)))
    }

    /// Bytes of payload in a packet.
    pub(super) const fn packet_payload(&self) -> usize {
        self.room.payload
    }

    /// Bytes of the largest message.
    pub(super) fn max_message(&self, config: &Config) -> usize {
        let packets = self.sender.message_packets(self.negotiated.fixed.peer_flow_window);
        self.room.message(config, packets)
    }

    /// Whether a packet can be submitted now.
    pub(super) const fn has_room(&self) -> bool {
        self.lifetime.is_open() && self.sender.room() > 0
    }

    /// A message, or bytes of a stream, were submitted.
    pub(super) const fn note_submitted(&mut self, now: Instant) {
        self.lifetime.note_submitted(now);
    }

    /// Sets the timers that a submitted message may change.
    pub(super) fn schedule_after_send(&mut self, now: Instant, signals: &mut ConnectionSignals) {
        self.reschedule(now, TimerCause::Submitted, signals);
    }

    /// A message was read. Returns whether an ACK waits to be written.
    pub(super) fn note_read(&mut self) -> bool {
        if self.receiver.ack_is_urgent() {
            self.pending.ack = true;
        }
        self.pending.ack
    }

    /// No message is due until `next`, if one ever is.
    pub(super) fn note_unread(&mut self, now: Instant, next: WakeUp) -> Result<(), RecvError> {
        if let Some(reason) = self.lifetime.end_reason()
            && self.receiver.is_drained()
        {
            if *reason == CloseReason::Peer && self.receiver.is_truncated() {
                return Err(RecvError::Truncated);
            }
            return Err(RecvError::Closed(reason.clone()));
        }
        self.told_readable = false;
        self.timers.assign(ConnectionTimer::Deliver, next.instant(now));
        Ok(())
    }

    // A link of a group.

    /// The side that the group uses.
    pub(super) fn link(&mut self) -> LinkSide<'_> {
        LinkSide(self)
    }

    /// The terms of a link; `None` for a connection that is no link.
    pub(super) fn link_terms(&self, path: &Path) -> Option<LinkTerms> {
        let overhead = path.properties.packet_overhead();
        LinkTerms::new(&self.negotiated, self.room.payload, overhead)
    }

    /// The status of a link.
    pub(super) fn link_status(&self) -> LinkStatus {
        LinkStatus {
            acknowledged: self.sender.acknowledged(),
            last_response: self.sender.last_response(),
            waiting_since: self.sender.waiting_since(),
            room: self.sender.room(),
            max_payload: self.room.payload,
            rtt: self.rtt.estimate(),
            drift: self.receiver.traced_drift(),
        }
    }

    // Closing.

    /// The application closes; buffered messages may go out until `until`.
    pub(super) fn close_by(
        &mut self,
        now: Instant,
        until: Instant,
        signals: &mut ConnectionSignals,
    ) {
        if self.lifetime.close(until) {
            self.reschedule(now, TimerCause::Other, signals);
        }
    }

    /// The application closes, and buffered messages are not waited for.
    pub(super) fn close_now(&mut self, now: Instant, signals: &mut ConnectionSignals) {
        self.close_by(now, now, signals);
        if self.lifetime.stop_lingering(now) {
            self.reschedule(now, TimerCause::Other, signals);
        }
    }

    /// Ends the connection without a packet to the peer.
    pub(super) fn abandon(&mut self, reason: CloseReason, signals: &mut ConnectionSignals) {
        if self.is_live() {
            self.end(reason, signals);
        }
    }

    fn end(&mut self, reason: CloseReason, signals: &mut ConnectionSignals) {
        self.timers = TimerTable::default();
        self.receiver.end();
        signals.closed = Some(reason.clone());
        self.lifetime.end(reason);
    }

    /// Takes the next step of a connection whose end has begun.
    fn advance_closing(&mut self, now: Instant, signals: &mut ConnectionSignals) {
        let is_flushed = self.sender.is_empty();
        let transit = self.negotiated.latency.peer.get() + self.rtt.estimate().smoothed;
        match self.lifetime.closing(now, is_flushed, transit) {
            Closing::None => {}
            Closing::PeerLeft => self.end(CloseReason::Peer, signals),
            Closing::Lingers(until) => self.timers.set(ConnectionTimer::Linger, until),
            Closing::ShutsDown => self.timers.stop(ConnectionTimer::Linger),
        }
    }

    // Packets to the peer.

    /// Whether [`write_datagrams`](Self::write_datagrams) would write a packet now.
    pub(super) fn wants_to_write(&self, now: Instant) -> bool {
        self.is_live()
            && (self.has_control()
                || self.lifetime.shutdown_is_due()
                || self.receiver.nak_copy_is_due(now)
                || self.sender.next_send().is_due(now))
    }

    /// Whether a control packet other than SHUTDOWN waits to be written.
    fn has_control(&self) -> bool {
        self.response.is_due()
            || self.pending.any()
            || self.receiver.has_feedback()
            || self.sender.has_drop_request()
            || self.keys.has_message()
    }

    /// Writes datagrams as far as the batch has room, control packets first. Returns whether it
    /// still has. The batch takes out datagrams that are too long for the path.
    pub(super) fn write_datagrams(
        &mut self,
        out: &mut Output<'_>,
        signals: &mut ConnectionSignals,
    ) -> bool {
        Writer { connection: self, out, signals }.write_datagrams()
    }

    // Timers.

    /// When the first timer is due.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Whether a message is to be delivered at exactly this time.
    pub(super) fn delivers_at(&self, at: Instant) -> bool {
        self.timers.at(ConnectionTimer::Deliver) == Some(at)
    }

    /// Handles the timers that are due.
    pub(super) fn handle_timeout(
        &mut self,
        now: Instant,
        config: &Config,
        signals: &mut ConnectionSignals,
    ) {
        DueTimers { connection: self, now, config, signals }.handle();
    }

    /// Sets the timers that `cause` may have changed, and notes the events for the application.
    #[inline]
    fn reschedule(&mut self, now: Instant, cause: TimerCause, signals: &mut ConnectionSignals) {
        Scheduling { connection: self, now, signals }.follow(cause);
    }

    // Getters.

    /// The latencies, which a test changes.
    #[cfg(test)]
    pub(super) const fn latency(&self) -> &Latency {
        &self.negotiated.latency
    }

    pub(super) fn fill_info(&self, info: &mut ConnectionInfo, config: &Config) {
        self.negotiated.fill_info(info);
        info.connected = true;
        info.max_payload = self.max_message(config);
        info.rtt = self.rtt.estimate().smoothed;
        info.peer_error = self.peer_error.last();
        self.keys.fill_info(info);
    }

    pub(super) fn fill_statistics(&self, now: Instant, statistics: &mut Statistics) {
        let mss = self.negotiated.fixed.mss;
        statistics.mss = u32::try_from(mss).unwrap_or(u32::MAX);
        self.sender.fill_statistics(now, mss, statistics);
        self.receiver.fill_statistics(mss, statistics);
        statistics.packets_ignored += self.filter.as_ref().map_or(0, |filter| filter.ignored());
        statistics.peer_latency = self.negotiated.latency.peer.get();
        statistics.key_refreshes = self.keys.refreshes();
        statistics.rtt = self.rtt.estimate().smoothed;
        statistics.rtt_variance = self.rtt.estimate().variance;
        (statistics.rtt_samples, statistics.rtt_latest) = self.rtt.measured();
        statistics.path_changes = self.path_updates.as_ref().map_or(0, |updates| updates.changes());
    }
}
