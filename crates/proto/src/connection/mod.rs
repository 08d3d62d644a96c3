//! One connection: routing between the handshake, the two halves, the timers and the application.

pub(crate) mod batch;
mod control;
pub(crate) mod crypt;
mod established;
mod filtered;
mod final_response;
mod handshaking;
mod lifecycle;
mod link;
pub(crate) mod path_updates;
mod peer_error;
pub(crate) mod recv;
pub(crate) mod rtt;
pub(crate) mod send;
pub(crate) mod timer;
pub(crate) mod windowed_ratio;

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{Control, ControlPacket, DataHeader, Handshake, MsgNo, SocketId, Timestamp};

use self::batch::Batch;
use self::established::{Cause, Established};
use self::handshaking::{Handshaking, Role};
use self::lifecycle::Refusal;
use self::link::GroupLinkConfig;
use self::timer::{Timer, TimerTable};
use crate::config::Config;
use crate::encryption::KeyState;
use crate::error::{CloseReason, ConfigError, PeerError, RecvError, SendError};
use crate::event::{ConnectionInfo, Message, Readiness, SendOptions};
use crate::handshake::caller::Caller;
use crate::handshake::rendezvous::Rendezvous;
use crate::handshake::{FinalHandshake, Negotiated, Step};
use crate::path::{Path, PathProperties};
use crate::statistics::Statistics;

/// The news for the application since it last asked.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is told or not")]
pub(crate) struct Signals {
    pub(crate) connected: bool,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The peer is at another address.
    pub(crate) moved: bool,
    /// There is something for the group that the connection is a link of.
    pub(crate) news: bool,
    pub(crate) closed: Option<CloseReason>,
}

impl Signals {
    pub(crate) const fn any(&self) -> bool {
        self.connected
            || self.readable
            || self.writable
            || self.moved
            || self.news
            || self.closed.is_some()
    }
}

/// One connection of an endpoint.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) path: Path,
    pub(crate) socket_id: SocketId,
    pub(crate) signals: Signals,
    config: Config,
    start: Instant,
    timers: TimerTable,
    state: State,
    /// The peer's socket for a call that failed after it was made.
    unacknowledged_peer: Option<SocketId>,
    /// The configuration as a link of a group, if it is one.
    link: Option<GroupLinkConfig>,
    /// The number of its first message.
    first_message: MsgNo,
    /// The refusal that the peer gets of a connection that was not established.
    refusal: Option<Refusal>,
    ignored: u64,
    /// Datagrams that were too long for the path.
    pub(crate) oversized: u64,
}

#[derive(Debug)]
enum State {
    Handshaking(Box<Handshaking>),
    Established(Box<Established>),
    Failed(Box<CloseReason>),
}

impl Connection {
    /// A call to `path` that begins now.
    pub(crate) fn call(
        now: Instant,
        path: Path,
        caller: Caller,
        socket_id: SocketId,
        config: Config,
    ) -> Self {
        Self::dial(now, path, Role::Caller(caller), socket_id, config)
    }

    /// A rendezvous with `path` that begins now.
    pub(crate) fn rendezvous(
        now: Instant,
        path: Path,
        rendezvous: Rendezvous,
        socket_id: SocketId,
        config: Config,
    ) -> Self {
        Self::dial(now, path, Role::Rendezvous(rendezvous), socket_id, config)
    }

    fn dial(now: Instant, path: Path, role: Role, socket_id: SocketId, config: Config) -> Self {
        // There is no caller to follow.
        let config = config.with_either_file_mode(false);
        let calling = Handshaking::new(role);
        let mut timers = TimerTable::default();
        timers.set(Timer::ConnectTimeout, now + calling.timeout(&config));
        timers.set(Timer::Handshake, now);
        let state = State::Handshaking(Box::new(calling));
        Self::new(now, path, socket_id, config, timers, state)
    }

    /// A caller that was accepted by `response`.
    pub(crate) fn accepted(
        now: Instant,
        path: Path,
        config: Config,
        negotiated: Negotiated,
        response: Handshake,
    ) -> Self {
        let socket_id = response.socket_id;
        let mut timers = TimerTable::default();
        let response = Some(FinalHandshake { handshake: Box::new(response), due: true });
        let established = Established::new(now, &path, &config, negotiated, response, &mut timers)
            .with_path(socket_id);
        let state = State::Established(Box::new(established));
        Self::new(now, path, socket_id, config, timers, state)
    }

    fn new(
        start: Instant,
        path: Path,
        socket_id: SocketId,
        config: Config,
        timers: TimerTable,
        state: State,
    ) -> Self {
        Self {
            path,
            socket_id,
            signals: Signals::default(),
            config,
            start,
            timers,
            state,
            unacknowledged_peer: None,
            link: None,
            first_message: MsgNo::FIRST,
            refusal: None,
            ignored: 0,
            oversized: 0,
        }
    }

    /// Gives its first message this number.
    pub(crate) fn count_messages_from(&mut self, first: MsgNo) {
        self.first_message = if first == MsgNo::CONTROL { MsgNo::FIRST } else { first };
        if let State::Established(live) = &mut self.state {
            live.sender.count_from(self.first_message);
        }
    }

    /// Takes in a data packet of the peer's. Whether it may have moved a timer, or calls for an
    /// answer: most only follow others that wait for their time.
    pub(crate) fn handle_data(&mut self, now: Instant, header: DataHeader, payload: Bytes) -> bool {
        match &mut self.state {
            State::Handshaking(calling) => {
                calling.keep(header, payload);
                let step = calling.handle_traffic(&self.config, self.path.id);
                let connects = matches!(step, Step::Connected(..));
                if connects {
                    self.proceed(now, step);
                }
                return connects;
            }
            State::Established(live) if live.is_live() => {
                if live.handle_data(now, &header, payload) {
                    live.reschedule(now, Cause::Data, &mut self.timers, &mut self.signals);
                    return true;
                }
            }
            State::Established(_) | State::Failed(_) => {}
        }
        false
    }

    /// Takes in a control packet of the peer's.
    pub(crate) fn handle_control(&mut self, now: Instant, packet: ControlPacket<'_>) {
        if let State::Handshaking(calling) = &mut self.state {
            let step = match &packet.control {
                Control::Handshake(answer) => {
                    calling.hear(answer, packet.dest);
                    calling.handle(now, packet.timestamp, answer, &self.config, self.path.id)
                }
                _ => calling.handle_traffic(&self.config, self.path.id),
            };
            let proves = !matches!(packet.control, Control::Handshake(_));
            let connects = matches!(step, Step::Connected(..));
            self.proceed(now, step);
            // What proved that the connection stands is its first packet.
            if !(proves && connects) {
                return;
            }
        }
        match (&mut self.state, packet.control) {
            (State::Established(live), Control::Handshake(handshake)) => {
                live.repeat_response(&handshake);
            }
            (State::Established(live), control) if live.is_live() => {
                if !live.handle_control(now, packet.timestamp, &control) {
                    self.ignored += 1;
                }
                live.reschedule(now, Cause::Other, &mut self.timers, &mut self.signals);
            }
            (State::Failed(_), Control::Handshake(handshake)) => self.repeat_refusal(&handshake),
            _ => self.ignored += 1,
        }
    }

    fn proceed(&mut self, now: Instant, step: Step) {
        match step {
            Step::Ignore => self.ignored += 1,
            Step::Request(pace) => self.request_now(now, pace),
            Step::RequestInAdvance => self.request_in_advance(now),
            Step::Failed(reason, peer) => self.fail(reason, peer),
            Step::Refused(reason, handshake) => self.refuse(reason, handshake),
            Step::Connected(negotiated, final_handshake) => {
                self.establish(now, *negotiated, final_handshake);
            }
        }
    }

    fn establish(
        &mut self,
        now: Instant,
        negotiated: Negotiated,
        final_handshake: Option<FinalHandshake>,
    ) {
        self.timers = TimerTable::default();
        let (config, timers) = (&self.config, &mut self.timers);
        let mut live =
            Established::new(now, &self.path, config, negotiated, final_handshake, timers)
                .with_path(self.socket_id);
        live.sender.count_from(self.first_message);
        if let Some(group_link) = self.link {
            live.join_group(group_link);
        }
        let State::Handshaking(calling) =
            std::mem::replace(&mut self.state, State::Established(Box::new(live)))
        else {
            return;
        };
        self.signals.connected = true;
        for (header, payload) in calling.kept() {
            self.handle_data(now, header, payload);
        }
    }

    /// The caller repeats its conclusion: it did not get the response.
    pub(crate) fn repeat_response(&mut self, conclusion: &Handshake) {
        if let State::Established(live) = &mut self.state {
            live.repeat_response(conclusion);
        }
    }

    /// Does what is due at `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::Handshaking(calling) => {
                if self.timers.fired(Timer::ConnectTimeout, now) {
                    let reason = calling.no_answer(&self.config);
                    self.give_up(reason);
                } else if self.timers.fired(Timer::Handshake, now) {
                    let pause = calling.repeat();
                    self.timers.set(Timer::Handshake, now + pause);
                }
            }
            State::Established(live) => {
                if self.timers.fired(Timer::Deliver, now) {
                    let cause = Cause::DeliveryDue;
                    live.reschedule(now, cause, &mut self.timers, &mut self.signals);
                }
                // That is all, as a rule.
                if self.timers.next().is_some_and(|at| at <= now) {
                    live.handle_timers(now, &mut self.timers, &self.config, &mut self.signals);
                    live.reschedule(now, Cause::Other, &mut self.timers, &mut self.signals);
                }
            }
            State::Failed(_) => {}
        }
    }

    /// When `handle_timeout` has something to do.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Whether a message is to be delivered at exactly this time.
    pub(crate) fn delivers_at(&self, at: Instant) -> bool {
        self.timers.at(Timer::Deliver) == Some(at)
    }

    /// Appends its datagrams to `out` as far as `batch` has room; whether it has.
    pub(crate) fn write_datagrams(
        &mut self,
        now: Instant,
        batch: &mut Batch,
        out: &mut Vec<u8>,
    ) -> bool {
        let before = out.len();
        batch.limit(self.path.properties.largest_datagram);
        match &mut self.state {
            State::Handshaking(calling) => {
                if !std::mem::take(&mut calling.request_due) {
                    return true;
                }
                let (request, dest) = calling.request(now, &self.config, self.path.id);
                self.write_handshake(now, dest, Box::new(request), out);
                batch.add(out, before)
            }
            State::Established(live) => {
                let (timers, signals) = (&mut self.timers, &mut self.signals);
                let goes_on = live.write_datagrams(now, self.start, batch, out, timers, signals);
                if goes_on {
                    live.reschedule(now, Cause::Written, timers, signals);
                }
                goes_on
            }
            State::Failed(_) => {
                let Some((refusal, dest)) = self.due_refusal() else { return true };
                self.write_handshake(now, dest, refusal, out);
                batch.add(out, before)
            }
        }
    }

    fn write_handshake(
        &self,
        now: Instant,
        dest: SocketId,
        handshake: Box<Handshake>,
        out: &mut Vec<u8>,
    ) {
        let timestamp = send::timestamp(self.start, now);
        ControlPacket { timestamp, dest, control: Control::Handshake(handshake) }.emit(out);
    }

    /// Whether `write_datagrams` would write something at `now`.
    pub(crate) fn wants_to_write(&self, now: Instant) -> bool {
        match &self.state {
            State::Handshaking(calling) => calling.request_due,
            State::Established(live) => live.wants_to_write(now),
            State::Failed(_) => self.refusal.as_ref().is_some_and(Refusal::is_due),
        }
    }

    /// Takes a message for sending; [`schedule_after_send`](Self::schedule_after_send) follows
    /// unless something is written now.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        payload: Bytes,
        options: SendOptions,
    ) -> Result<(), SendError> {
        match &mut self.state {
            State::Handshaking(_) => Err(SendError::NotConnected),
            State::Failed(reason) => Err(SendError::Closed(CloseReason::clone(reason))),
            State::Established(live) => live.send(now, payload, options, &self.config, &self.path),
        }
    }

    /// Takes bytes of a stream for sending, otherwise as [`send`](Self::send).
    pub(crate) fn write(&mut self, now: Instant, data: &mut Bytes) -> Result<usize, SendError> {
        match &mut self.state {
            State::Handshaking(_) => Err(SendError::NotConnected),
            State::Failed(reason) => Err(SendError::Closed(CloseReason::clone(reason))),
            State::Established(live) => live.write(now, data, &self.config, &self.path),
        }
    }

    /// Sets the timers that a submitted message may change.
    pub(crate) fn schedule_after_send(&mut self, now: Instant) {
        if let State::Established(live) = &mut self.state {
            live.reschedule(now, Cause::Submitted, &mut self.timers, &mut self.signals);
        }
    }

    /// The next message, if it is due at `due_by`.
    pub(crate) fn recv(
        &mut self,
        now: Instant,
        due_by: Instant,
    ) -> Result<Option<Message>, RecvError> {
        match &mut self.state {
            State::Handshaking(_) => Ok(None),
            State::Failed(reason) => Err(RecvError::Closed(CloseReason::clone(reason))),
            State::Established(live) => live.recv(now, due_by, &mut self.timers),
        }
    }

    /// Its options.
    pub(crate) const fn config(&self) -> &Config {
        &self.config
    }

    /// Takes over `config`, which may differ in options that can be changed at any time.
    pub(crate) fn configure(&mut self, now: Instant, config: Config) -> Result<(), ConfigError> {
        self.config.check_change(&config)?;
        self.config = config;
        if let State::Established(live) = &mut self.state {
            live.configure(&self.config);
            live.reschedule(now, Cause::Other, &mut self.timers, &mut self.signals);
        }
        Ok(())
    }

    /// What the application can do without waiting; messages count that are due at `due_by`.
    pub(crate) fn readiness(&mut self, due_by: Instant) -> Readiness {
        match &mut self.state {
            State::Handshaking(_) => Readiness::default(),
            State::Failed(_) => Readiness { broken: true, ..Readiness::default() },
            State::Established(live) => live.readiness(due_by),
        }
    }

    /// Tells the peer what went wrong here.
    pub(crate) fn tell_error(&mut self, error: PeerError) {
        if let State::Established(live) = &mut self.state {
            live.tell_error(error);
        }
    }

    /// Whether a rendezvous is under way.
    pub(crate) fn is_meeting(&self) -> bool {
        matches!(&self.state, State::Handshaking(calling) if calling.is_rendezvous())
    }

    /// What is known of the peer's addresses, and the round-trip time, if both ends know path
    /// updates.
    pub(crate) fn path_updates(&mut self) -> Option<(&mut path_updates::PathUpdates, Rtt)> {
        match &mut self.state {
            State::Established(live) if live.is_live() => {
                let rtt = live.rtt.estimate();
                Some((live.path_updates.as_deref_mut()?, rtt))
            }
            _ => None,
        }
    }

    /// What a packet that goes out at `now` says of the time.
    pub(crate) fn timestamp(&self, now: Instant) -> Timestamp {
        send::timestamp(self.start, now)
    }

    /// The path carries datagrams of another size from now on, or adds other headers to them.
    pub(crate) fn set_path_properties(&mut self, now: Instant, properties: PathProperties) {
        self.path.properties = properties;
        if let State::Established(live) = &mut self.state {
            live.follow_path(&self.path);
            live.reschedule(now, Cause::Other, &mut self.timers, &mut self.signals);
        }
    }

    /// The peer has proved that it is reached by `path` now.
    pub(crate) fn move_to(&mut self, now: Instant, path: Path) {
        let State::Established(live) = &mut self.state else { return };
        live.note_move(now, self.path.id);
        live.follow_path(&path);
        self.path = path;
        self.signals.moved = true;
        live.reschedule(now, Cause::Other, &mut self.timers, &mut self.signals);
    }

    /// Whether an ACK waits to be written.
    pub(crate) fn owes_ack(&self) -> bool {
        matches!(&self.state, State::Established(live) if live.pending.ack)
    }

    pub(crate) fn info(&self) -> ConnectionInfo {
        let mut info = ConnectionInfo {
            path: self.path.id,
            socket_id: self.socket_id,
            peer_socket_id: SocketId::LISTENER,
            stream_id: self.config.stream_id().to_owned(),
            peer_version: 0,
            connected: false,
            receive_latency: self.config.receive_latency(),
            peer_latency: self.config.peer_latency(),
            caller_latency: None,
            max_payload: self.config.payload_size(),
            rtt: Rtt::INITIAL.smoothed,
            transmission: self.config.transmission(),
            peer_error: None,
            send_key_state: self.first_key_state(),
            receive_key_state: self.first_key_state(),
            cipher: None,
            path_update: false,
        };
        if let State::Established(live) = &self.state {
            live.fill_info(&mut info, &self.config, &self.path);
        }
        info
    }

    const fn first_key_state(&self) -> KeyState {
        if self.config.passphrase().is_some() { KeyState::Securing } else { KeyState::Unsecured }
    }

    pub(crate) fn statistics(&self, now: Instant) -> Statistics {
        let mut statistics = Statistics {
            elapsed: now - self.start,
            mss: u32::try_from(self.config.mss()).unwrap_or(u32::MAX),
            packets_ignored: self.ignored,
            packets_oversized: self.oversized,
            ..Statistics::default()
        };
        if let State::Established(live) = &self.state {
            live.fill_statistics(now, self.config.mss(), &mut statistics);
        }
        statistics
    }
}
