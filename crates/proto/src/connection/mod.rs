//! One connection in any state: handshaking, established or failed.

pub(crate) mod batch;
mod established;
mod failed;
mod filtering;
mod final_response;
mod handshaking;
mod keys;
mod lifetime;
mod output;
mod packet_room;
pub(crate) mod path_updates;
mod peer_error;
mod pending;
pub(crate) mod recv;
pub(crate) mod rtt;
pub(crate) mod send;
mod signals;
mod state;
#[cfg(test)]
mod testing;
pub(crate) mod timer;
pub(crate) mod turn;

use std::time::Duration;

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{
    Control, ControlPacket, DataHeader, Handshake, MsgNo, SeqNo, SocketId, Timestamp,
};

use self::batch::Batch;
pub(crate) use self::established::Occupant;
use self::established::{Effect, Established};
use self::failed::Failed;
use self::handshaking::{HandshakeRole, Handshaking};
pub(crate) use self::lifetime::SILENCE_OF_THE_DEAD;
use self::output::Output;
use self::path_updates::PathUpdates;
pub(crate) use self::signals::ConnectionSignals;
use self::state::State;
use self::turn::{Turn, Unsettled};
use crate::config::Config;
use crate::encryption::KeyState;
use crate::error::{CloseReason, ConfigError, PeerError, RecvError, SendError};
use crate::event::{ConnectionInfo, Message, Readiness, SendOptions};
use crate::group::{LinkAction, LinkStatus, LinkTerms};
#[cfg(test)]
use crate::handshake::Latency;
use crate::handshake::caller::Caller;
use crate::handshake::membership::Membership;
use crate::handshake::rendezvous::Rendezvous;
use crate::handshake::{FinalHandshake, Negotiated, Step};
use crate::path::{Path, PathProperties};
use crate::statistics::Statistics;
use crate::transmission::Transmission;

/// One connection of an endpoint.
///
/// [`Endpoint::connection`](crate::Endpoint::connection) hands it out at a time, which is the time
/// of the verbs here. Their consequences are dealt with when it is given back.
/// [`Endpoint::connections`](crate::Endpoint::connections) shows it at any time.
#[derive(Debug)]
pub struct Connection {
    pub(crate) path: Path,
    pub(crate) socket_id: SocketId,
    /// The events for the application.
    pub(crate) signals: ConnectionSignals,
    config: Config,
    /// The start of the connection or of its group, from which timestamps count.
    start: Instant,
    state: State,
    /// The turn that the application has, or had last.
    turn: Turn,
    /// The group that the connection is a link of, if it is one.
    link: Option<GroupLinkState>,
    first_message: MsgNo,
    /// Packets that were invalid or came in the wrong state.
    ignored: u64,
    /// Datagrams that were too long for the path.
    pub(crate) oversized: u64,
}

/// The state that a link gets from its group.
#[derive(Clone, Copy, Debug)]
struct GroupLinkState {
    /// The group's correction for the peer's clock, nanoseconds.
    drift: i64,
    /// Whether the group gives each link other messages.
    balances: bool,
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
        Self::handshaking(now, path, HandshakeRole::Caller(caller), socket_id, config)
    }

    /// A rendezvous with `path` that begins now.
    pub(crate) fn rendezvous(
        now: Instant,
        path: Path,
        rendezvous: Rendezvous,
        socket_id: SocketId,
        config: Config,
    ) -> Self {
        Self::handshaking(now, path, HandshakeRole::Rendezvous(rendezvous), socket_id, config)
    }

    fn handshaking(
        now: Instant,
        path: Path,
        role: HandshakeRole,
        socket_id: SocketId,
        config: Config,
    ) -> Self {
        // Only a listener can follow the peer's mode.
        let config = config.with_either_file_mode(false);
        let state = State::Handshaking(Box::new(Handshaking::new(now, role, &config)));
        Self::new(now, path, socket_id, config, state)
    }

    /// The connection of a caller that was accepted by `response`.
    pub(crate) fn accepted(
        now: Instant,
        path: Path,
        config: Config,
        negotiated: Negotiated,
        response: Handshake,
    ) -> Self {
        let own = response.socket_id;
        let response = Some(FinalHandshake { handshake: Box::new(response), due: true });
        let live = Established::new(now, &path, own, &config, negotiated, response);
        Self::new(now, path, own, config, State::Established(Box::new(live)))
    }

    fn new(start: Instant, path: Path, socket_id: SocketId, config: Config, state: State) -> Self {
        Self {
            path,
            socket_id,
            signals: ConnectionSignals::default(),
            config,
            start,
            state,
            turn: Turn::default(),
            link: None,
            first_message: MsgNo::FIRST,
            ignored: 0,
            oversized: 0,
        }
    }

    /// The application's turn begins.
    pub(crate) const fn begin_turn(&mut self, turn: Turn) {
        self.turn = turn;
    }

    /// The application's turn, which has ended.
    pub(crate) const fn turn(&self) -> Turn {
        self.turn
    }

    /// Numbers messages from `first` on.
    pub(crate) fn count_messages_from(&mut self, first: MsgNo) {
        self.first_message = if first == MsgNo::CONTROL { MsgNo::FIRST } else { first };
        self.count_from(self.first_message);
    }

    /// Takes in a data packet. Returns whether it may have moved a timer or needs an answer: most
    /// only queue behind other packets.
    pub(crate) fn handle_data(&mut self, now: Instant, header: DataHeader, payload: Bytes) -> bool {
        match &mut self.state {
            State::Handshaking(calling) => {
                calling.keep(header, payload);
                let step = calling.handle_traffic(&self.config, &self.path);
                let connects = matches!(step, Step::Connected(..));
                if connects {
                    self.proceed(now, step);
                }
                connects
            }
            State::Established(live) if live.is_live() => {
                live.handle_data(now, &header, payload, &mut self.signals)
            }
            State::Established(_) | State::Failed(_) => false,
        }
    }

    /// A data packet arrived for which there is no memory.
    #[cold]
    pub(crate) fn ignore_data(&mut self, now: Instant) {
        if let Some(live) = self.state.established()
            && live.is_live()
        {
            live.ignore_data(now);
        }
    }

    /// Bytes of the packets that wait for the application.
    pub(crate) fn held(&self) -> u64 {
        match &self.state {
            State::Established(live) => live.held(),
            State::Handshaking(_) | State::Failed(_) => 0,
        }
    }

    /// Takes in a control packet. Returns whether it may have moved a timer or needs an answer:
    /// keepalives do not.
    pub(crate) fn handle_control(&mut self, now: Instant, packet: ControlPacket<'_>) -> bool {
        let ControlPacket { timestamp, dest, control } = packet;
        if let State::Handshaking(calling) = &mut self.state {
            let (config, path) = (&self.config, &self.path);
            if let Control::Handshake(handshake) = &control {
                let step = calling.handle_handshake(now, timestamp, handshake, dest, config, path);
                self.proceed(now, step);
                return true;
            }
            let step = calling.handle_traffic(config, path);
            let connects = matches!(step, Step::Connected(..));
            self.proceed(now, step);
            // The packet that establishes the connection is also its first one.
            if !connects {
                return true;
            }
        }
        let effect = match (&mut self.state, control) {
            (State::Established(live), Control::Handshake(handshake)) => {
                live.handle_handshake(&handshake);
                Effect::Change
            }
            (State::Established(live), control) if live.is_live() => {
                live.handle_control(now, timestamp, &control, &mut self.signals)
            }
            (State::Failed(failed), Control::Handshake(handshake)) => {
                match failed.handle_handshake(&handshake) {
                    true => Effect::Change,
                    false => Effect::Invalid,
                }
            }
            _ => Effect::Invalid,
        };
        self.ignored += u64::from(effect == Effect::Invalid);
        effect != Effect::None
    }

    fn proceed(&mut self, now: Instant, step: Step) {
        match step {
            Step::Ignore => self.ignored += 1,
            Step::Request(pace) => {
                if let State::Handshaking(calling) = &mut self.state {
                    calling.request_now(now, pace);
                }
            }
            Step::RequestInAdvance => {
                if let State::Handshaking(calling) = &mut self.state {
                    calling.request_in_advance(now);
                }
            }
            Step::Failed(reason, peer) => self.fail(Failed::new(reason, peer)),
            Step::Refused(reason, handshake) => self.fail(Failed::refused(reason, handshake)),
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
        let State::Handshaking(calling) = &mut self.state else { return };
        let early = calling.take_kept();
        let (path, own, config) = (&self.path, self.socket_id, &self.config);
        let mut live = Established::new(now, path, own, config, negotiated, final_handshake);
        if let Some(link) = self.link {
            link.apply_to(&mut live);
        }
        self.state = State::Established(Box::new(live));
        self.count_from(self.first_message);
        self.signals.connected = true;
        for (header, payload) in early {
            self.handle_data(now, header, payload);
        }
    }

    /// Ends an attempt to connect.
    fn fail(&mut self, failed: Failed) {
        self.signals.closed = Some(failed.reason().clone());
        self.state = State::Failed(Box::new(failed));
    }

    /// Ends the handshake because this end gives it up.
    fn give_up(&mut self, reason: CloseReason) {
        if let State::Handshaking(calling) = &self.state {
            self.fail(calling.give_up(reason, &self.config, &self.path));
        }
    }

    /// The peer repeats its conclusion: it did not get the response.
    pub(crate) fn repeat_response(&mut self, conclusion: &Handshake) {
        if let Some(live) = self.state.established() {
            live.handle_handshake(conclusion);
        }
    }

    /// Handles the timers that are due.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        match &mut self.state {
            State::Handshaking(calling) => {
                if let Err(reason) = calling.handle_timeout(now, &self.config) {
                    self.give_up(reason);
                }
            }
            State::Established(live) => live.handle_timeout(now, &self.config, &mut self.signals),
            State::Failed(_) => {}
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) is to be called.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.state.next_timeout()
    }

    /// Whether a message is to be delivered at exactly this time.
    pub(crate) fn delivers_at(&self, at: Instant) -> bool {
        matches!(&self.state, State::Established(live) if live.delivers_at(at))
    }

    /// Appends datagrams to `buffer` as far as the batch has room. Returns whether it still has.
    pub(crate) fn write_datagrams(
        &mut self,
        now: Instant,
        batch: &mut Batch,
        buffer: &mut Vec<u8>,
    ) -> bool {
        batch.limit(self.path.properties.largest_datagram);
        let before = buffer.len();
        let mut out = Output { now, start: self.start, batch, buffer };
        let handshake = match &mut self.state {
            State::Established(live) => return live.write_datagrams(&mut out, &mut self.signals),
            State::Handshaking(calling) => calling
                .take_request(now, &self.config, &self.path)
                .map(|(request, dest)| (Control::Handshake(Box::new(request)), dest)),
            State::Failed(failed) => failed.take_refusal(),
        };
        let Some((handshake, dest)) = handshake else { return true };
        out.emit(now, dest, handshake);
        out.batch.add(out.buffer, before)
    }

    /// Whether [`write_datagrams`](Self::write_datagrams) would write a packet now.
    pub(crate) fn wants_to_write(&self, now: Instant) -> bool {
        self.state.wants_to_write(now)
    }

    /// Sets the timers that a submitted message may change.
    pub(crate) fn schedule_after_send(&mut self, now: Instant) {
        if let Some(live) = self.state.established() {
            live.schedule_after_send(now, &mut self.signals);
        }
    }

    /// Whether a rendezvous is under way.
    pub(crate) fn is_meeting(&self) -> bool {
        matches!(&self.state, State::Handshaking(calling) if calling.is_rendezvous())
    }

    /// The caller that has this connection, unless it is about to end.
    pub(crate) fn occupant(&self) -> Option<Occupant<'_>> {
        match &self.state {
            State::Established(live) => live.occupant(),
            _ => None,
        }
    }

    /// The peer's paths and the time that an answer takes, if both ends support path updates.
    pub(crate) fn path_updates(&mut self) -> Option<(&mut PathUpdates, Duration)> {
        self.state.established()?.path_updates()
    }

    /// The timestamp of a packet that is sent at `now`.
    pub(crate) fn timestamp(&self, now: Instant) -> Timestamp {
        output::timestamp(self.start, now)
    }

    /// The path has other properties from now on.
    pub(crate) fn set_path_properties(&mut self, now: Instant, properties: PathProperties) {
        self.path.properties = properties;
        if let Some(live) = self.state.established() {
            live.follow_path(now, &self.config, &self.path, &mut self.signals);
        }
    }

    /// The peer has proved that it is reached by `path` now.
    pub(crate) fn move_to(&mut self, now: Instant, path: Path) {
        let Some(live) = self.state.established() else { return };
        live.note_move(now, self.path.id);
        self.path = path;
        self.signals.moved = true;
        live.follow_path(now, &self.config, &self.path, &mut self.signals);
    }

    /// Makes the connection a link of a group from now on: timestamps count from the group's start,
    /// and the group numbers messages and corrects for the drift of the peer's clock.
    pub(crate) fn join_group(&mut self, membership: &Membership) {
        self.start = membership.start;
        let drift = membership.timebase.as_ref().map_or(0, |timebase| timebase.drift);
        let link = GroupLinkState { drift, balances: membership.balances() };
        self.link = Some(link);
        if let Some(live) = self.state.established() {
            link.apply_to(live);
        }
    }

    /// Ends an established connection without a packet to the peer.
    pub(crate) fn abandon(&mut self, reason: CloseReason) {
        if let Some(live) = self.state.established() {
            live.abandon(reason, &mut self.signals);
        }
    }

    /// Ends the connection, or the attempt, because its path is lost.
    pub(crate) fn lose_path(&mut self, reason: CloseReason) {
        match &self.state {
            State::Handshaking(_) => self.fail(Failed::new(reason, None)),
            State::Established(_) => self.abandon(reason),
            State::Failed(_) => {}
        }
    }

    /// Whether the connection has ended or failed.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.has_ended()
    }

    /// The last packet of a connection that is released: a refusal, or a SHUTDOWN if it was not
    /// closed.
    pub(crate) fn final_packet(&mut self, now: Instant) -> Option<Vec<u8>> {
        self.give_up(CloseReason::Local);
        let (control, dest) = match &mut self.state {
            State::Established(live) => live.is_live().then(|| (Control::Shutdown, live.peer()))?,
            State::Failed(failed) => failed.final_packet()?,
            State::Handshaking(_) => return None,
        };
        let mut datagram = Vec::new();
        ControlPacket { timestamp: self.timestamp(now), dest, control }.emit(&mut datagram);
        Some(datagram)
    }

    // The verbs of the application.

    /// Takes a message for sending.
    ///
    /// # Errors
    ///
    /// The connection is not established, the message is too large, the buffer is full, or the peer
    /// has reported an error.
    pub fn send(&mut self, payload: Bytes, options: SendOptions) -> Result<(), SendError> {
        let now = self.turn.now();
        let live = self.state.sendable()?;
        let packet = live.packet_payload();
        let taken = if payload.len() <= packet && !payload.is_empty() {
            live.sender().submit(now, payload, options)
        } else {
            let max = live.max_message(&self.config);
            if payload.is_empty() || payload.len() > max {
                return Err(SendError::Size { size: payload.len(), max });
            }
            live.sender().submit_parts(now, payload, packet, options)
        };
        if !taken {
            return Err(SendError::Full);
        }
        live.note_submitted(now);
        self.turn.leave(Unsettled::SUBMITTED);
        Ok(())
    }

    /// Takes bytes of a stream for sending from the front of `data`, as far as there is room, and
    /// returns their number. For connections whose [`Transmission`] is `Stream`.
    ///
    /// # Errors
    ///
    /// The connection is not established or carries messages, the buffer is full, or the peer has
    /// reported an error.
    pub fn write(&mut self, data: &mut Bytes) -> Result<usize, SendError> {
        let now = self.turn.now();
        let live = self.state.sendable()?;
        if self.config.transmission() != Transmission::Stream {
            return Err(SendError::NoStream);
        }
        if data.is_empty() {
            return Ok(0);
        }
        let packet = live.packet_payload();
        match live.sender().submit_stream(now, data, packet) {
            0 => Err(SendError::Full),
            taken => {
                live.note_submitted(now);
                self.turn.leave(Unsettled::SUBMITTED);
                Ok(taken)
            }
        }
    }

    /// The next message that is due, if any; the next bytes of a stream, in pieces of packets.
    /// After a close, received messages can still be read.
    ///
    /// # Errors
    ///
    /// The connection is closed and everything received has been read.
    pub fn recv(&mut self) -> Result<Option<Message>, RecvError> {
        let live = match &mut self.state {
            State::Handshaking(_) => return Ok(None),
            State::Failed(failed) => return Err(RecvError::Closed(failed.reason().clone())),
            State::Established(live) => live,
        };
        let now = self.turn.now();
        match live.receiver().recv(now, self.turn.due_by()) {
            Ok(message) => {
                if live.note_read() {
                    self.turn.leave(Unsettled::ACK);
                }
                Ok(Some(message))
            }
            Err(next) => {
                self.turn.leave(Unsettled::DELIVERY);
                live.note_unread(now, next).map(|()| None)
            }
        }
    }

    /// Whether the connection is readable, writable or broken now.
    pub fn readiness(&mut self) -> Readiness {
        match &mut self.state {
            State::Handshaking(_) => Readiness::default(),
            State::Failed(_) => Readiness { broken: true, ..Readiness::default() },
            State::Established(live) => Readiness {
                readable: live.receiver().next_delivery().is_due(self.turn.due_by()),
                writable: live.has_room(),
                broken: !live.is_live(),
            },
        }
    }

    /// Whether a packet can be submitted now. If not,
    /// [`Event::Writable`](crate::Event::Writable) follows when there is room.
    pub fn await_room(&mut self) -> bool {
        let Some(live) = self.state.established() else { return false };
        let has_room = live.has_room();
        if !has_room {
            live.sender().await_room();
        }
        has_room
    }

    /// The numbers that the next message gets: the sequence number of its first packet, and its
    /// message number. `None` if the connection is not established.
    pub fn next_message(&self) -> Option<(SeqNo, MsgNo)> {
        match &self.state {
            State::Handshaking(_) | State::Failed(_) => None,
            State::Established(live) => Some(live.as_sender().next_message()),
        }
    }

    /// Gives the next message of an established connection this message number; those after it
    /// count from there.
    pub fn count_from(&mut self, msgno: MsgNo) {
        if let Some(live) = self.state.established() {
            live.sender().count_from(msgno);
        }
    }

    /// The options of the connection.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Changes options: `change` gets the options and returns them with other values, which take
    /// effect at once.
    ///
    /// # Errors
    ///
    /// `change` failed, or changed an option that can only be set before connecting
    /// ([`OptionPhase`](crate::OptionPhase)). Then no option is changed.
    pub fn configure(
        &mut self,
        change: impl FnOnce(Config) -> Result<Config, ConfigError>,
    ) -> Result<(), ConfigError> {
        let config = change(self.config.clone())?;
        self.config.check_change(&config)?;
        self.config = config;
        if let Some(live) = self.state.established() {
            live.follow_options(self.turn.now(), &self.config, &mut self.signals);
        }
        self.turn.leave(Unsettled::ANYTHING);
        Ok(())
    }

    /// Reports an error to the peer by a PEERERROR packet, such as a full disk: the peer's next
    /// send call fails, or the one that waits. The connection stays open. In live mode no packet is
    /// sent. The packet may be lost and is not repeated, so that an application that gives up must
    /// close the connection as well.
    pub fn tell_error(&mut self, error: PeerError) {
        if let Some(live) = self.state.established() {
            live.report_error(error);
            self.turn.leave(Unsettled::ANYTHING);
        }
    }

    /// Closes the connection: buffered messages may go out for the configured linger, then SHUTDOWN
    /// is sent and [`Event::Closed`](crate::Event::Closed) follows. Received messages can still be
    /// read.
    pub fn close(&mut self) {
        self.turn.leave(Unsettled::ANYTHING);
        let (now, until) = (self.turn.now(), self.turn.now() + self.config.linger());
        match self.state.established() {
            Some(live) => live.close_by(now, until, &mut self.signals),
            None => self.give_up(CloseReason::Local),
        }
    }

    /// Closes the connection at once by SHUTDOWN: buffered messages are not sent, even if a linger
    /// is configured. Also ends a [`close`](Self::close) that lingers. Received messages can still
    /// be read.
    pub fn abort(&mut self) {
        self.turn.leave(Unsettled::ANYTHING);
        match self.state.established() {
            Some(live) => live.close_now(self.turn.now(), &mut self.signals),
            None => self.give_up(CloseReason::Local),
        }
    }

    /// The terms of the connection.
    pub fn info(&self) -> ConnectionInfo {
        let mut info = ConnectionInfo {
            path: self.path.id,
            socket_id: self.socket_id,
            peer_socket_id: SocketId::LISTENER,
            stream_id: self.config.raw_stream_id().clone(),
            peer_version: 0,
            connected: false,
            receive_latency: self.config.receive_latency(),
            peer_latency: self.config.peer_latency(),
            caller_latency: None,
            max_payload: self.config.payload_size(),
            packet_filter: String::new(),
            rtt: Rtt::INITIAL.smoothed,
            transmission: self.config.transmission(),
            peer_error: None,
            send_key_state: self.first_key_state(),
            receive_key_state: self.first_key_state(),
            cipher: None,
            path_update: false,
            framing: false,
            resumable: false,
        };
        if let State::Established(live) = &self.state {
            live.fill_info(&mut info, &self.config);
        }
        info
    }

    const fn first_key_state(&self) -> KeyState {
        if self.config.passphrase().is_some() { KeyState::Securing } else { KeyState::Unsecured }
    }

    /// The latencies of an established connection, which a test changes.
    #[cfg(test)]
    pub(crate) fn latency(&self) -> Option<&Latency> {
        let State::Established(live) = &self.state else { return None };
        Some(live.latency())
    }

    /// A snapshot of the statistics at `now`.
    pub fn statistics(&self, now: Instant) -> Statistics {
        let mut statistics = Statistics {
            elapsed: now - self.start,
            mss: u32::try_from(self.config.mss()).unwrap_or(u32::MAX),
            packets_ignored: self.ignored,
            packets_oversized: self.oversized,
            ..Statistics::default()
        };
        if let State::Established(live) = &self.state {
            live.fill_statistics(now, &mut statistics);
        }
        statistics
    }

    // The verbs of a group that the connection is a link of.

    /// The terms of a link; `None` before it is established, and for a connection without group.
    pub fn link_terms(&self) -> Option<LinkTerms> {
        let State::Established(live) = &self.state else { return None };
        live.link_terms(&self.path)
    }

    /// The status of a link; `None` before it is established.
    pub fn link_status(&self) -> Option<LinkStatus> {
        let State::Established(live) = &self.state else { return None };
        Some(live.link_status())
    }

    /// The messages that arrived over a link of a balancing group, due or not, for
    /// [`Group::handle_message`](crate::Group::handle_message); none for any other link. Read
    /// messages of such a link by [`recv`](Self::recv) as well, which makes room in its buffer:
    /// those are empty.
    pub fn take_link_messages(&mut self) -> Vec<Message> {
        self.state.established().map(|live| live.receiver().take_bypassed()).unwrap_or_default()
    }

    /// The packets of a link of a balancing group that were reported lost and given up since the
    /// last call, for [`Group::handle_losses`](crate::Group::handle_losses).
    pub fn take_link_losses(&mut self) -> Vec<SeqNo> {
        self.state.established().map(|live| live.sender().take_returned()).unwrap_or_default()
    }

    /// Carries out an action of the group. A message for which there is no room is not sent by this
    /// link.
    ///
    /// # Errors
    ///
    /// There is no room, or the link is not established.
    pub fn apply(&mut self, action: LinkAction) -> Result<(), SendError> {
        let live = self.state.established().ok_or(SendError::NotConnected)?;
        self.turn.leave(Unsettled::ANYTHING);
        live.link().apply(self.turn.now(), action, &mut self.signals)
    }
}

impl GroupLinkState {
    fn apply_to(self, live: &mut Established) {
        live.link().share_drift(self.drift);
        if self.balances {
            live.link().balance();
        }
    }
}
