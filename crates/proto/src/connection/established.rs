use std::time::Duration;

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{AckNo, Control, DataHeader, Handshake, KeyFlag, SocketId, Timestamp};

use super::Signals;
use super::control::{KMREQ, KMRSP};
use super::crypt::{Crypt, Refusal};
use super::final_response::FinalResponse;
use super::lifecycle::Phase;
use super::path_updates::{self, PathUpdates};
use super::peer_error::PeerErrorReport;
use super::recv::ReceiveHalf;
use super::rtt::RttTracker;
use super::send::{SendHalf, Verdict};
use super::timer::{Timer, TimerTable};
use crate::config::{Config, Transmission};
use crate::error::{CloseReason, PeerError, RecvError, SendError};
use crate::event::{ConnectionInfo, Message, Readiness, SendOptions};
use crate::filter::{Findings, ReceiveFilter};
use crate::handshake::{FinalHandshake, Negotiated};
use crate::path::{Path, PathId};
use crate::statistics::Statistics;

/// A connection that stands, until it is forgotten.
#[derive(Debug)]
pub(crate) struct Established {
    pub(crate) sender: SendHalf,
    pub(crate) receiver: ReceiveHalf,
    pub(crate) rtt: RttTracker,
    pub(super) filter: Option<Box<Filtering>>,
    pub(crate) phase: Phase,
    pub(crate) last: LastActivity,
    pub(crate) pending: Pending,
    pub(crate) peer: SocketId,
    pub(crate) negotiated: Negotiated,
    /// Words of a loss list that fit a packet.
    pub(crate) loss_list_words: usize,
    pub(super) response: FinalResponse,
    /// The keys of both directions, or why there are none; `None` where nobody wants encryption.
    pub(crate) crypt: Option<Box<Crypt>>,
    /// Where the peer is and was, if both ends know path updates.
    pub(crate) path_updates: Option<Box<PathUpdates>>,
    peer_error: PeerErrorReport,
    told_readable: bool,
}

/// Why the timers of a connection are set anew.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    /// A data packet came in, or the receiving half sent a control packet.
    Data,
    /// The timer of the next delivery fired.
    DeliveryDue,
    /// The application submitted a message.
    Submitted,
    /// All is written that can be now. Control packets have set the receiving half's timers.
    Written,
    /// Anything else: every timer may have changed.
    Other,
}

/// The way in through the filter.
#[derive(Debug)]
pub(super) struct Filtering {
    pub(super) filter: Box<dyn ReceiveFilter>,
    /// Empty between packets; it keeps its memory.
    pub(super) findings: Findings,
    /// Packets that broke the filter's rules.
    pub(super) ignored: u64,
}

/// When something last happened on a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastActivity {
    /// When a packet of the peer's arrived.
    pub(crate) heard: Instant,
    /// When a packet was sent.
    pub(crate) sent: Instant,
    /// When the application submitted a message.
    pub(crate) submitted: Instant,
}

/// Control packets that wait to be written.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one packet that waits or does not")]
pub(crate) struct Pending {
    pub(crate) ack_ack: Option<AckNo>,
    /// The answer to a key message of the peer.
    pub(crate) key_answer: Option<Vec<u8>>,
    pub(crate) ack: bool,
    pub(crate) keep_alive: bool,
    /// A keepalive that says that this link of a group goes idle.
    pub(crate) idle: bool,
    /// The error that this end reports.
    pub(crate) error: Option<PeerError>,
    /// The answer to the peer's challenge.
    pub(crate) path_answer: Option<path_updates::Body>,
    pub(crate) path_probe: bool,
    /// How often SHUTDOWN is still to be said.
    pub(crate) shutdowns: u8,
}

impl Pending {
    /// Whether any waits but SHUTDOWN, which comes last.
    const fn any(&self) -> bool {
        self.ack
            || self.keep_alive
            || self.idle
            || self.path_probe
            || self.error.is_some()
            || self.ack_ack.is_some()
            || self.key_answer.is_some()
            || self.path_answer.is_some()
    }
}

impl Established {
    pub(crate) fn new(
        now: Instant,
        path: &Path,
        config: &Config,
        mut negotiated: Negotiated,
        final_handshake: Option<FinalHandshake>,
        timers: &mut TimerTable,
    ) -> Self {
        timers.set(Timer::KeepAlive, now + super::lifecycle::KEEP_ALIVE);
        timers.set(Timer::Idle, now + config.peer_idle_timeout());
        Self {
            sender: SendHalf::new(config, &negotiated, path.properties.packet_overhead(), now),
            receiver: ReceiveHalf::new(config, &negotiated, path, now),
            rtt: RttTracker::new(config.rtt_algorithm()),
            filter: negotiated.filter.map(|fec| {
                Box::new(Filtering {
                    filter: fec.receiver(negotiated.fixed.receive_isn),
                    findings: Findings::default(),
                    ignored: 0,
                })
            }),
            phase: Phase::Open,
            last: LastActivity { heard: now, sent: now, submitted: now },
            pending: Pending::default(),
            peer: negotiated.fixed.peer_socket_id,
            loss_list_words: path.packet_room(negotiated.fixed.mss) / 4,
            crypt: negotiated.crypt.take(),
            negotiated,
            response: FinalResponse::new(final_handshake),
            path_updates: None,
            peer_error: PeerErrorReport::default(),
            told_readable: false,
        }
    }

    /// The same, following its peer from address to address if both ends know how. `own` is this
    /// end's socket ID.
    pub(crate) fn with_path(mut self, own: SocketId) -> Self {
        self.path_updates =
            self.negotiated.path_update.then(|| Box::new(PathUpdates::new(own, &self.negotiated)));
        self
    }

    /// The properties of the path have changed.
    pub(crate) fn follow_path(&mut self, path: &Path) {
        self.loss_list_words = path.packet_room(self.negotiated.fixed.mss) / 4;
        self.sender.set_overhead(path.properties.packet_overhead());
        self.receiver.follow_path(path);
    }

    /// The peer has moved away from the address `from`. What was said there in the meantime is
    /// lost, so the peer is told anew what it waits for.
    pub(crate) fn note_move(&mut self, now: Instant, from: PathId) {
        if let Some(updates) = &mut self.path_updates {
            updates.moved(now, from);
        }
        self.last.heard = now;
        self.pending.ack = true;
        self.receiver.repeat_nak(now, self.rtt.estimate());
    }

    /// Takes over the options that may change while the connection runs.
    pub(crate) fn configure(&mut self, config: &Config) {
        self.sender.configure(config, &self.negotiated);
        self.receiver.configure(config, &self.negotiated);
    }

    /// Whether packets still matter: the connection is open, or closing.
    pub(crate) const fn is_live(&self) -> bool {
        !matches!(self.phase, Phase::Ended(_))
    }

    /// Takes in a data packet; whether it may have moved a timer, or calls for an answer.
    pub(crate) fn handle_data(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: Bytes,
    ) -> bool {
        let heard_before = std::mem::replace(&mut self.last.heard, now);
        let rtt = self.rtt.estimate();
        let moved = if self.filter.is_some() {
            self.handle_filtered(now, heard_before, header, payload)
        } else {
            let size = payload.len();
            match open(self.crypt.as_deref(), header, payload) {
                Ok(payload) => self.receiver.handle_data(now, heard_before, header, payload, rtt),
                Err(why) => self.receiver.refuse(now, header, size, why),
            }
        };
        if moved && self.receiver.take_quick_ack() {
            self.pending.ack = true;
        }
        self.receiver.look_at_nak_timer(now, rtt) || moved || self.receiver.has_bypassed()
    }

    /// Takes in a control packet; `false` if it was nonsense.
    pub(crate) fn handle_control(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        control: &Control<'_>,
    ) -> bool {
        self.last.heard = now;
        self.response.is_received();
        let rtt = self.rtt.estimate();
        let sensible = match control {
            Control::Ack(ack) => {
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
            Control::Nak(list) => {
                self.sender.handle_nak(now, timestamp, list, rtt) != Verdict::Invalid
            }
            Control::AckAck(number) => match self.receiver.handle_ack_ack(now, *number) {
                Some(sample) => {
                    self.rtt.ack_answered(now, *number, sample);
                    self.receiver.hurry_nak(now, self.rtt.estimate());
                    true
                }
                None => false,
            },
            Control::DropRequest(request) => self.receiver.handle_drop_request(request),
            Control::Shutdown => {
                self.phase = Phase::PeerLeft;
                true
            }
            Control::KeepAlive | Control::KeepAliveIdle | Control::CongestionWarning => true,
            Control::Extension { command: KMREQ, body } => self.handle_key_message(body),
            Control::Extension { command: KMRSP, body } => {
                self.crypt.as_mut().is_some_and(|crypt| crypt.sealing.handle_answer(body))
            }
            Control::Extension { command, body } => self.handle_path(*command, body),
            Control::PeerError(code) => self.note_peer_error(PeerError::new(*code)),
            Control::Handshake(_) => false,
        };
        if sensible {
            self.receiver.trace_drift(now, timestamp, self.rtt.latest());
        }
        self.receiver.look_at_nak_timer(now, self.rtt.estimate());
        sensible
    }

    /// The peer announces a key. Whatever it says, a key that serves now goes on serving.
    fn handle_key_message(&mut self, body: &[u8]) -> bool {
        let answer = self.crypt.as_mut().and_then(|crypt| crypt.opening.handle_request(body));
        let sensible = answer.as_ref().is_some_and(|answer| answer == body);
        self.pending.key_answer = answer.or(self.pending.key_answer.take());
        sensible
    }

    /// Takes in an extension packet that came from the peer's address; `false` if it is none of
    /// path updates. An answer comes too late here: the peer has moved already.
    fn handle_path(&mut self, command: u16, body: &[u8]) -> bool {
        let Some(updates) = &self.path_updates else { return false };
        match command {
            path_updates::CHALLENGE => {
                let answer = updates.answer(body);
                self.pending.path_answer = answer.or(self.pending.path_answer);
                answer.is_some()
            }
            path_updates::ANSWER | path_updates::PROBE => true,
            _ => false,
        }
    }

    /// The caller repeats its conclusion, or the other end of a rendezvous its last handshake: it
    /// did not get the response.
    pub(crate) fn repeat_response(&mut self, handshake: &Handshake) {
        let is_peer = handshake.socket_id == self.peer;
        if is_peer && self.is_live() && self.response.is_asked_for(handshake.request) {
            self.response.repeat();
        }
    }

    /// The peer reports an error. `false` in live mode, where no receiver has a file.
    const fn note_peer_error(&mut self, error: PeerError) -> bool {
        let is_file = self.receiver.is_of_file();
        if is_file {
            self.peer_error.note(error);
        }
        is_file
    }

    /// Reports an error of this end to the peer. Nothing acknowledges the report, and a second
    /// packet would be a second error to the peer, so that it is sent once, as in libsrt.
    pub(super) const fn tell_error(&mut self, error: PeerError) {
        if self.is_live() && self.receiver.is_of_file() {
            self.pending.error = Some(error);
        }
    }

    /// Why the application cannot send: first what the peer reported, once, even if it has left
    /// since.
    fn refuses_sending(&mut self) -> Option<SendError> {
        if let Some(error) = self.peer_error.take_error() {
            return Some(SendError::PeerError(error));
        }
        self.phase.refuses_sending().map(SendError::Closed)
    }

    pub(crate) fn send(
        &mut self,
        now: Instant,
        payload: Bytes,
        options: SendOptions,
        config: &Config,
        path: &Path,
    ) -> Result<(), SendError> {
        if let Some(error) = self.refuses_sending() {
            return Err(error);
        }
        let packet = self.negotiated.max_payload(config, path);
        let taken = if payload.len() <= packet && !payload.is_empty() {
            self.sender.submit(now, payload, options)
        } else {
            let max = self.max_message(config, packet);
            if payload.is_empty() || payload.len() > max {
                return Err(SendError::Size { size: payload.len(), max });
            }
            self.sender.submit_parts(now, payload, packet, options)
        };
        if !taken {
            return Err(SendError::Full);
        }
        self.last.submitted = now;
        Ok(())
    }

    /// Whether the connection is readable, writable or broken.
    pub(crate) fn readiness(&mut self, due_by: Instant) -> Readiness {
        Readiness {
            readable: self.receiver.next_delivery().is_due(due_by),
            writable: matches!(self.phase, Phase::Open) && self.sender.room() > 0,
            broken: !self.is_live(),
        }
    }

    /// Takes bytes of a stream from the front of `data`, as many as there is room for.
    pub(crate) fn write(
        &mut self,
        now: Instant,
        data: &mut Bytes,
        config: &Config,
        path: &Path,
    ) -> Result<usize, SendError> {
        if let Some(error) = self.refuses_sending() {
            return Err(error);
        }
        if config.transmission() != Transmission::Stream {
            return Err(SendError::NoStream);
        }
        if data.is_empty() {
            return Ok(0);
        }
        let packet = self.negotiated.max_payload(config, path);
        match self.sender.submit_stream(now, data, packet) {
            0 => Err(SendError::Full),
            taken => {
                self.last.submitted = now;
                Ok(taken)
            }
        }
    }

    /// Bytes of a message at most, where a packet holds so many.
    fn max_message(&self, config: &Config, packet: usize) -> usize {
        if config.cuts_messages() {
            packet * self.sender.message_packets(self.negotiated.fixed.peer_flow_window)
        } else {
            packet
        }
    }

    pub(crate) fn recv(
        &mut self,
        now: Instant,
        due_by: Instant,
        timers: &mut TimerTable,
    ) -> Result<Option<Message>, RecvError> {
        let next = match self.receiver.recv(now, due_by) {
            Ok(message) => {
                if self.receiver.ack_is_urgent() {
                    self.pending.ack = true;
                }
                return Ok(Some(message));
            }
            Err(next) => next,
        };
        if let Phase::Ended(reason) = &self.phase
            && self.receiver.is_drained()
        {
            if *reason == CloseReason::Peer && self.receiver.is_truncated() {
                return Err(RecvError::Truncated);
            }
            return Err(RecvError::Closed(reason.clone()));
        }
        self.told_readable = false;
        timers.assign(Timer::Deliver, next.instant(now));
        Ok(None)
    }

    pub(crate) fn wants_to_write(&self, now: Instant) -> bool {
        if !self.is_live() {
            return false;
        }
        self.has_control()
            || self.pending.shutdowns > 0
            || self.receiver.owes_nak_copy(now)
            || self.sender.next_send().is_due(now)
    }

    /// Whether a control packet other than SHUTDOWN waits to be written.
    pub(crate) fn has_control(&self) -> bool {
        self.response.is_due()
            || self.pending.any()
            || self.receiver.has_feedback()
            || self.sender.has_drop_request()
            || self.owes_key_request()
    }

    /// Whether a key message of our own waits to be written.
    pub(super) fn owes_key_request(&self) -> bool {
        self.crypt.as_ref().is_some_and(|crypt| crypt.sealing.owes_request())
    }

    /// Sets the timers anew that `cause` may have changed, and notes what the application is to be
    /// told. All timers but those of silence and of path updates are set here alone.
    #[inline]
    pub(crate) fn reschedule(
        &mut self,
        now: Instant,
        cause: Cause,
        timers: &mut TimerTable,
        signals: &mut Signals,
    ) {
        if matches!(cause, Cause::Other | Cause::Written) {
            self.settle_phase(now, timers, signals);
        }
        if matches!(cause, Cause::Other | Cause::Data) {
            self.schedule_receiver(now, timers, signals);
        }
        if matches!(cause, Cause::Other | Cause::Data | Cause::DeliveryDue) {
            self.schedule_delivery(now, timers, signals);
        }
        if matches!(cause, Cause::Other | Cause::Written | Cause::Submitted) {
            self.schedule_sender(now, timers);
        }
        if matches!(cause, Cause::Other | Cause::Written) {
            signals.writable |= self.sender.becomes_writable();
        }
        if matches!(cause, Cause::Other) {
            signals.writable |= self.peer_error.take_wake_up();
        }
    }

    /// Sets the timers of the receiving half, except for the delivery.
    fn schedule_receiver(&mut self, now: Instant, timers: &mut TimerTable, signals: &mut Signals) {
        if self.is_live() {
            let rtt = self.rtt.estimate();
            let ack = if self.pending.ack { None } else { self.receiver.next_ack(now, rtt) };
            timers.assign(Timer::Ack, ack);
            timers.assign(Timer::Nak, self.receiver.next_nak(now, rtt));
            timers.assign(Timer::FreshLoss, self.receiver.next_ripe());
            if let Some(crypt) = &self.crypt {
                timers.assign(Timer::KeyRequest, crypt.sealing.next_request());
            }
        }
        signals.news |= self.receiver.has_bypassed() || self.sender.has_returned();
        timers.assign(Timer::Skip, self.receiver.next_skip());
    }

    /// Tells of the next message if it is due, or sets the timer for it.
    fn schedule_delivery(&mut self, now: Instant, timers: &mut TimerTable, signals: &mut Signals) {
        if self.told_readable {
            return;
        }
        let next = self.receiver.next_delivery();
        let timer = if next.is_due(now) {
            self.told_readable = true;
            signals.readable = true;
            // The driver sets its alarm once: when the application has taken the message that is
            // due, it is set for the next one already. After several the alarm is set anew.
            self.receiver.second_delivery_after(now)
        } else {
            next.later_than(now)
        };
        timers.assign(Timer::Deliver, timer);
    }

    /// Sets the timers of the sending half.
    fn schedule_sender(&mut self, now: Instant, timers: &mut TimerTable) {
        if !self.is_live() {
            return;
        }
        timers.assign(Timer::Pace, self.sender.next_send().later_than(now));
        timers.assign(Timer::SendDrop, self.sender.next_drop());
        timers.assign(Timer::Retransmit, self.sender.next_timeout(self.rtt.estimate()));
    }

    pub(crate) fn fill_info(&self, info: &mut ConnectionInfo, config: &Config, path: &Path) {
        info.peer_socket_id = self.peer;
        info.stream_id.clone_from(&self.negotiated.stream_id);
        info.peer_version = self.negotiated.peer.version;
        info.connected = true;
        info.path_update = self.negotiated.path_update;
        info.receive_latency = self.negotiated.latency.receive;
        info.peer_latency = self.negotiated.latency.peer;
        info.caller_latency = self.negotiated.latency.caller;
        info.max_payload = self.max_message(config, self.negotiated.max_payload(config, path));
        info.rtt = self.rtt.estimate().smoothed;
        info.peer_error = self.peer_error.last();
        (info.send_key_state, info.receive_key_state) =
            self.crypt.as_ref().map_or_else(Default::default, |crypt| crypt.states());
        info.cipher = self.crypt.as_ref().and_then(|crypt| crypt.cipher());
    }

    pub(crate) fn fill_statistics(&self, now: Instant, mss: usize, statistics: &mut Statistics) {
        self.sender.fill_statistics(now, mss, statistics);
        self.receiver.fill_statistics(mss, statistics);
        statistics.packets_ignored += self.filter.as_ref().map_or(0, |filter| filter.ignored);
        statistics.peer_latency = self.negotiated.latency.peer;
        statistics.key_refreshes = self.crypt.as_ref().map_or(0, |crypt| crypt.sealing.refreshes());
        statistics.rtt = self.rtt.estimate().smoothed;
        statistics.rtt_variance = self.rtt.estimate().variance;
        (statistics.rtt_samples, statistics.rtt_latest) = self.rtt.measured();
        statistics.path_changes = self.path_updates.as_ref().map_or(0, |updates| updates.changes());
    }
}

/// The payload of a data packet, decrypted if the connection is encrypted.
#[inline(always)]
pub(super) fn open(
    crypt: Option<&Crypt>,
    header: &DataHeader,
    payload: Bytes,
) -> Result<Bytes, Refusal> {
    match crypt {
        Some(crypt) => crypt.opening.open(header, payload),
        None if header.key == KeyFlag::Clear => Ok(payload),
        None => Err(Refusal::NoKeys),
    }
}
