//! The connections of an endpoint, and everything that follows from a change of one of them.

mod events;
mod guard;
mod off_path;
mod outbox;
mod paths;
mod receive_memory;
mod table;
mod timers;

use std::time::Duration;

use bytes::Bytes;
use punctual_units::Instant;
use punctual_wire::{Control, ControlPacket, DataHeader, Handshake, MsgNo, SocketId, Timestamp};

use self::events::EventQueue;
pub use self::guard::ConnectionGuard;
use self::off_path::{OffPathPacket, Reaction};
pub use self::outbox::Transmit;
use self::outbox::TransmitQueue;
use self::paths::Paths;
use self::receive_memory::ReceiveMemory;
use self::table::{ConnectionTable, Slot};
use self::timers::TimerQueue;
use super::EndpointConfig;
use super::recent_calls::{Call, RecentCalls};
use crate::chance::Chance;
use crate::connection::batch::Batch;
use crate::connection::turn::{Turn, Unsettled};
use crate::connection::{Connection, Occupant};
use crate::error::CloseReason;
use crate::event::Event;
use crate::handshake::cookie::CookieKey;
use crate::ids::ConnectionId;
use crate::path::{Host, Path, PathId, PathProperties};

/// The connections of an endpoint, with their paths, timers, events and datagrams.
///
/// The application reads them here, and changes one that the endpoint
/// [hands out](crate::Endpoint::connection).
#[derive(Debug)]
pub struct Connections {
    table: ConnectionTable,
    paths: Paths,
    timers: TimerQueue,
    outbox: TransmitQueue,
    events: EventQueue,
    /// Calls that their callers have ended.
    departed: RecentCalls<()>,
    memory: ReceiveMemory,
    /// How long before its time a message is delivered together with others.
    early_delivery: Duration,
    first_message: MsgNo,
}

impl Connections {
    /// No connection yet.
    pub(super) fn new(config: &EndpointConfig) -> Self {
        Self {
            table: ConnectionTable::new(config.max_connections, config.shard),
            paths: Paths::default(),
            timers: TimerQueue::default(),
            outbox: TransmitQueue::default(),
            events: EventQueue::default(),
            departed: RecentCalls::default(),
            memory: ReceiveMemory::new(config.receive_memory),
            early_delivery: Duration::ZERO,
            first_message: config.first_message,
        }
    }

    /// Adds a connection, accepted from `caller` if it was.
    pub(super) fn insert(
        &mut self,
        now: Instant,
        mut connection: Connection,
        caller: Option<Call>,
    ) -> ConnectionId {
        connection.count_messages_from(self.first_message);
        let id = self.table.insert(connection, caller);
        self.settle(now, id.index());
        id
    }

    /// Adds a rendezvous by `path`.
    pub(super) fn insert_rendezvous(
        &mut self,
        now: Instant,
        connection: Connection,
        path: PathId,
    ) -> ConnectionId {
        let id = self.insert(now, connection, None);
        self.table.set_rendezvous(id.index(), path);
        id
    }

    /// Checks that there is room for another connection.
    ///
    /// # Errors
    ///
    /// The largest number of connections.
    pub(super) fn check_room(&self) -> Result<(), usize> {
        self.table.check_room()
    }

    /// A socket ID for another connection.
    pub(super) fn draw_socket_id(&self, chance: &mut Chance) -> SocketId {
        self.table.draw_socket_id(chance)
    }

    /// A connection; `None` if it was released.
    pub fn get(&self, id: ConnectionId) -> Option<&Connection> {
        Some(&self.table[self.table.index(id)?].connection)
    }

    /// The number of connections in any state that were not released.
    pub fn count(&self) -> usize {
        self.table.len()
    }

    /// Hands out a connection; `None` if it was released.
    #[inline]
    pub(super) fn hand_out(
        &mut self,
        now: Instant,
        id: ConnectionId,
    ) -> Option<ConnectionGuard<'_>> {
        let turn = Turn::new(now, self.early_delivery);
        self.table.get_mut(id)?.connection.begin_turn(turn);
        Some(ConnectionGuard::new(self, id.index()))
    }

    /// Changes a connection; `None` if it was released.
    pub(super) fn change<R>(
        &mut self,
        now: Instant,
        id: ConnectionId,
        change: impl FnOnce(&mut Connection) -> R,
    ) -> Option<R> {
        let index = self.table.index(id)?;
        let result = change(&mut self.table[index].connection);
        self.settle(now, index);
        Some(result)
    }

    /// Sets how long before its time a message is delivered together with others.
    pub(super) fn set_early_delivery(&mut self, early: Duration) {
        self.early_delivery = early;
    }

    /// Forgets a connection, whose turn it is, after a SHUTDOWN if it was not closed.
    fn release(&mut self, index: usize) {
        let mut slot = self.table.remove(index);
        let (now, _) = slot.connection.turn().result();
        if let Some(final_packet) = slot.connection.final_packet(now) {
            self.outbox.reply(slot.connection.path.id, final_packet);
        }
        self.timers.set(index, None);
        self.outbox.forget(index);
    }

    /// Frees the memory that tables keep for connections that were released.
    pub(super) fn shrink(&mut self) {
        self.table.shrink();
        self.timers.shrink();
        self.outbox.shrink();
        self.events.shrink();
    }

    /// Takes in a data packet.
    #[inline(always)]
    pub(super) fn handle_data(
        &mut self,
        now: Instant,
        path: PathId,
        header: DataHeader,
        payload: Bytes,
        cookies: &CookieKey,
    ) {
        let packet = OffPathPacket::Other { size: DataHeader::LEN + payload.len() };
        let Some(index) = self.route(now, path, header.dest, packet, cookies) else { return };
        let Self { memory, table, .. } = self;
        let held = || table.iter().map(|slot| slot.connection.held());
        if !memory.admits(payload.len(), held, || table[index].connection.held()) {
            table[index].connection.ignore_data(now);
        } else if table[index].connection.handle_data(now, header, payload) {
            self.settle(now, index);
        }
    }

    /// Takes in a control packet of `size` bytes that names a connection.
    pub(super) fn handle_control(
        &mut self,
        now: Instant,
        path: PathId,
        packet: ControlPacket<'_>,
        size: usize,
        cookies: &CookieKey,
    ) {
        let off_path = OffPathPacket::of(&packet.control, size);
        if let Some(index) = self.route(now, path, packet.dest, off_path, cookies)
            && self.table[index].connection.handle_control(now, packet)
        {
            self.settle(now, index);
        }
    }

    /// Handles the timers that are due at `now`.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(index) = self.timers.pop_due(now) {
            self.table[index].connection.handle_timeout(now);
            self.settle(now, index);
        }
    }

    /// When to call [`handle_timeout`](Self::handle_timeout).
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// The delivery time of the next message, if no connection waits for an earlier time.
    pub(super) fn next_delivery(&self) -> Option<Instant> {
        let (at, index) = self.timers.first()?;
        self.table[index].connection.delivers_at(at).then_some(at)
    }

    /// The newest rendezvous by `path`, under way or not.
    pub(super) fn rendezvous_by(&self, path: PathId) -> Option<ConnectionId> {
        self.table.of_rendezvous(path).map(|index| self.table[index].id)
    }

    /// The accepted callers that are connected.
    pub(super) fn callers(&self) -> impl Iterator<Item = (ConnectionId, Host, Occupant<'_>)> {
        let accepted = self.table.iter().filter(|slot| slot.caller.is_some());
        accepted.filter_map(|slot| {
            Some((slot.id, slot.connection.path.host(), slot.connection.occupant()?))
        })
    }

    /// A caller repeats its conclusion: if it was accepted, the response is repeated. Returns
    /// whether it was.
    pub(super) fn repeat_response(
        &mut self,
        now: Instant,
        path: PathId,
        conclusion: &Handshake,
    ) -> bool {
        let Some(index) = self.accepted(path, conclusion) else { return false };
        self.table[index].connection.repeat_response(conclusion);
        self.settle(now, index);
        true
    }

    /// A caller withdraws its call. Returns whether it had been accepted.
    pub(super) fn withdraw(&mut self, now: Instant, path: PathId, withdrawal: &Handshake) -> bool {
        self.departed.insert(now, (path, withdrawal.socket_id, withdrawal.isn), ());
        let Some(index) = self.accepted(path, withdrawal) else { return false };
        self.table[index].connection.abandon(CloseReason::Withdrawn);
        self.settle(now, index);
        true
    }

    /// Whether the caller has ended the call of this conclusion a short time ago.
    pub(super) fn has_departed(
        &mut self,
        now: Instant,
        path: PathId,
        conclusion: &Handshake,
    ) -> bool {
        self.departed.get(now, &(path, conclusion.socket_id, conclusion.isn)).is_some()
    }

    /// Ends a connection whose peer has called again.
    pub(super) fn evict(&mut self, now: Instant, id: ConnectionId) {
        let Some(index) = self.table.index(id) else { return };
        let slot = &mut self.table[index];
        let (path, timestamp) = (slot.connection.path.id, slot.connection.timestamp(now));
        let peer = slot.caller.map_or(SocketId::LISTENER, |(_, peer, _)| peer);
        slot.connection.abandon(CloseReason::Replaced);
        self.settle(now, index);
        // In case the older one is alive after all.
        self.reply(path, timestamp, peer, Control::Shutdown);
    }

    /// Sends a control packet that belongs to no connection.
    pub(super) fn reply(
        &mut self,
        path: PathId,
        timestamp: Timestamp,
        dest: SocketId,
        control: Control<'_>,
    ) {
        let mut datagram = Vec::new();
        ControlPacket { timestamp, dest, control }.emit(&mut datagram);
        self.outbox.reply(path, datagram);
    }

    /// Queues an event that does not concern a connection.
    pub(super) fn push_event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Whether there are events to [poll](Self::poll_event).
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// The next event, if any.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }

    /// A path with its properties.
    pub(super) fn path(&self, path: PathId) -> Path {
        self.paths.get(path)
    }

    /// Sets the properties of a path, also for the connections that use it.
    pub(super) fn set_path(&mut self, now: Instant, path: PathId, properties: PathProperties) {
        self.paths.insert(path, properties);
        self.change_by_path(now, path, |connection| {
            connection.set_path_properties(now, properties);
        });
    }

    /// Ends the connections that use a path, and forgets its properties.
    pub(super) fn lose_path(&mut self, now: Instant, path: PathId, reason: &CloseReason) {
        self.paths.remove(path);
        self.change_by_path(now, path, |connection| connection.lose_path(reason.clone()));
    }

    /// Whether a connection that has not ended uses a path.
    pub(super) fn uses_path(&self, path: PathId) -> bool {
        let uses = |slot: &Slot| slot.connection.path.id == path && !slot.connection.has_ended();
        self.table.iter().any(uses)
    }

    /// Whether datagrams wait to be sent.
    pub(super) fn has_datagrams(&self) -> bool {
        self.outbox.is_waiting()
    }

    /// The next datagram that is too long for its path.
    pub(super) fn poll_oversized(&mut self) -> Option<(PathId, Vec<u8>)> {
        self.outbox.pop_oversized()
    }

    /// Appends up to `max_segments` datagrams for one path to `buffer`.
    pub(super) fn write_batch(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        if let Some((path, datagram)) = self.outbox.pop_reply(&self.paths) {
            buffer.extend_from_slice(&datagram);
            return Some(Transmit { path, size: datagram.len(), segment_size: datagram.len() });
        }
        self.write_ready(now, max_segments, buffer)
    }

    /// Fills a batch with the datagrams of the connections at the head of the queue, while they use
    /// the same path.
    fn write_ready(
        &mut self,
        now: Instant,
        max_segments: usize,
        buffer: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let start = buffer.len();
        let mut batch = Batch::new(max_segments);
        let mut path = None;
        while let Some(index) = self.outbox.first_ready() {
            let connection = &mut self.table[index].connection;
            let id = connection.path.id;
            if path.is_some_and(|path| path != id) {
                break;
            }
            let has_room = connection.write_datagrams(now, &mut batch, buffer);
            connection.oversized += batch.oversized.len() as u64;
            for datagram in batch.oversized.drain(..) {
                self.outbox.hand_back(id, datagram);
            }
            if !batch.is_empty() {
                path = Some(id);
            }
            if !has_room {
                break;
            }
            // The connection has no more datagrams now.
            self.outbox.pop_ready();
            self.table[index].queued = false;
            self.settle(now, index);
        }
        let path = path?;
        let Batch { size, segment_size, .. } = batch;
        if buffer.len() > start + size {
            self.outbox.carry_over(path, buffer.split_off(start + size));
        }
        Some(Transmit { path, size, segment_size })
    }

    /// The connection with the socket ID `dest`, if `path` leads to its peer: packets from a
    /// spoofed source have no effect. `packet` is the meaning of a packet that came by another
    /// path.
    #[inline(always)]
    fn route(
        &mut self,
        now: Instant,
        path: PathId,
        dest: SocketId,
        packet: OffPathPacket<'_>,
        cookies: &CookieKey,
    ) -> Option<usize> {
        let index = self.table.of_socket(dest)?;
        let is_peer = self.table[index].connection.path.id == path
            || self.handle_off_path(now, path, index, packet, cookies);
        is_peer.then_some(index)
    }

    /// A packet for the connection `index` came by `path`, which is not its peer's. Returns whether
    /// the connection takes it in all the same.
    #[cold]
    fn handle_off_path(
        &mut self,
        now: Instant,
        path: PathId,
        index: usize,
        packet: OffPathPacket<'_>,
        cookies: &CookieKey,
    ) -> bool {
        let connection = &mut self.table[index].connection;
        match packet.react(now, path, connection, cookies) {
            Reaction::Ignore => {}
            Reaction::TakeIn => return true,
            Reaction::Move => {
                let properties = connection.path.properties;
                connection.move_to(now, Path { id: path, properties });
                self.settle(now, index);
            }
            Reaction::Challenge(datagram) => self.outbox.reply(path, datagram),
        }
        false
    }

    /// The connection of the call that a handshake belongs to, if it was accepted.
    fn accepted(&self, path: PathId, handshake: &Handshake) -> Option<usize> {
        let index = self.table.of_caller(path, handshake.socket_id)?;
        let is_same = |(_, _, isn)| isn == handshake.isn;
        self.table[index].caller.is_some_and(is_same).then_some(index)
    }

    fn change_by_path(
        &mut self,
        now: Instant,
        path: PathId,
        mut change: impl FnMut(&mut Connection),
    ) {
        for index in self.table.indices() {
            let connection = &mut self.table[index].connection;
            if connection.path.id == path {
                change(connection);
                self.settle(now, index);
            }
        }
    }

    /// Follows each change of a connection: queues its events, sets its timer, queues it for
    /// sending.
    fn settle(&mut self, now: Instant, index: usize) {
        let slot = &mut self.table[index];
        self.timers.set(index, slot.connection.next_timeout());
        if slot.connection.signals.any() {
            let signals = std::mem::take(&mut slot.connection.signals);
            if let (Some(call), Some(CloseReason::Peer)) = (slot.caller, &signals.closed) {
                self.departed.insert(now, call, ());
            }
            self.events.push_signals(slot.id, slot.connection.path.id, signals);
        }
        self.enqueue(now, index);
    }

    /// Follows the verbs of a turn of the application.
    #[inline]
    fn settle_turn(&mut self, index: usize) {
        let slot = &self.table[index];
        let (now, unsettled) = slot.connection.turn().result();
        if unsettled.has(Unsettled::SUBMITTED) && !slot.queued {
            self.settle_send(now, index);
        }
        let others = unsettled.without(Unsettled::SUBMITTED);
        if !others.is_empty() {
            self.settle_others(now, index, others);
        }
    }

    /// Follows all verbs but submissions.
    fn settle_others(&mut self, now: Instant, index: usize, unsettled: Unsettled) {
        if unsettled.has(Unsettled::ANYTHING) {
            self.settle(now, index);
            return;
        }
        if unsettled.has(Unsettled::ACK) {
            self.enqueue(now, index);
        }
        if unsettled.has(Unsettled::DELIVERY) {
            self.timers.set(index, self.table[index].connection.next_timeout());
        }
    }

    /// Follows a submission. If packets can be sent now, the timers are set after that.
    fn settle_send(&mut self, now: Instant, index: usize) {
        if !self.enqueue(now, index) {
            let connection = &mut self.table[index].connection;
            connection.schedule_after_send(now);
            self.timers.set(index, connection.next_timeout());
        }
    }

    /// Queues a connection that has packets to send. Returns whether it is in the queue.
    fn enqueue(&mut self, now: Instant, index: usize) -> bool {
        let slot = &mut self.table[index];
        if !slot.queued && slot.connection.wants_to_write(now) {
            slot.queued = true;
            self.outbox.enqueue(index);
        }
        slot.queued
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::endpoint::testing::{accepted, conclusion, host};

    const NOW: Instant = Instant::from_millis(9_000);

    fn with(callers: &[PathId]) -> (Connections, Vec<ConnectionId>) {
        let mut connections = Connections::new(&EndpointConfig::new([1; 32]));
        let mut chance = Chance::new([6; 32]);
        let insert = |&path: &PathId| {
            let own = connections.draw_socket_id(&mut chance);
            let (connection, call) = accepted(NOW, path, own, "");
            connections.insert(NOW, connection, Some(call))
        };
        let ids = callers.iter().map(insert).collect();
        (connections, ids)
    }

    fn batches(connections: &mut Connections) -> Vec<Transmit> {
        std::iter::from_fn(|| connections.write_batch(NOW, 16, &mut Vec::new())).collect()
    }

    fn shutdown(own: SocketId) -> ControlPacket<'static> {
        control(own, Control::Shutdown)
    }

    fn control(own: SocketId, control: Control<'static>) -> ControlPacket<'static> {
        ControlPacket { timestamp: Timestamp::default(), dest: own, control }
    }

    #[test]
    fn a_new_connection_has_its_turn_to_send_and_a_timer() {
        let (mut connections, _) = with(&[host(1)]);
        assert!(connections.has_datagrams());
        assert_eq!(batches(&mut connections).len(), 1);
        assert!(!connections.has_datagrams());
        assert!(connections.next_timeout().is_some());
    }

    #[test]
    fn connections_by_one_path_share_a_batch() {
        let (mut connections, _) = with(&[host(1), host(1), host(2)]);
        let sent: Vec<_> = batches(&mut connections)
            .iter()
            .map(|it| (it.path, it.size / it.segment_size))
            .collect();
        assert_eq!(sent, [(host(1), 2), (host(2), 1)]);
    }

    #[test]
    fn a_keepalive_changes_only_when_the_peer_was_heard() {
        let (mut connections, ids) = with(&[host(1)]);
        batches(&mut connections);
        let later = NOW + Duration::from_millis(500);
        let own = connections.get(ids[0]).expect("it is there").socket_id;
        let changes = |connections: &mut Connections, packet| {
            let packet = control(own, packet);
            connections.change(later, ids[0], |connection| connection.handle_control(later, packet))
        };
        assert_eq!(changes(&mut connections, Control::KeepAlive), Some(false));
        let (_, _, occupant) = connections.callers().next().expect("it is connected");
        assert_eq!(occupant.last_received, later);
        assert_eq!(changes(&mut connections, Control::Shutdown), Some(true));
    }

    #[test]
    fn a_call_that_its_caller_ended_has_departed() {
        let (mut connections, ids) = with(&[host(1)]);
        let own = connections.get(ids[0]).expect("it is there").socket_id;
        let cookies = CookieKey::new([5; 16], NOW);
        let call = conclusion(NOW, host(1), &Config::default(), 1);
        connections.handle_control(NOW, host(2), shutdown(own), 16, &cookies);
        assert!(connections.poll_event().is_none(), "it came by another path");
        assert!(!connections.has_departed(NOW, host(1), &call));
        connections.handle_control(NOW, host(1), shutdown(own), 16, &cookies);
        let event = connections.poll_event();
        assert!(matches!(event, Some(Event::Closed(id, CloseReason::Peer)) if id == ids[0]));
        assert!(connections.has_departed(NOW, host(1), &call));
    }

    #[test]
    fn only_the_conclusion_of_its_own_call_concerns_an_accepted_caller() {
        let (mut connections, _) = with(&[host(1)]);
        batches(&mut connections);
        let call = conclusion(NOW, host(1), &Config::default(), 1);
        let other = Handshake { isn: call.isn.next(), ..call.clone() };
        assert!(!connections.repeat_response(NOW, host(1), &other));
        assert!(!connections.withdraw(NOW, host(1), &other));
        assert!(connections.repeat_response(NOW, host(1), &call));
        assert!(connections.has_datagrams(), "the response is sent again");
        assert!(connections.withdraw(NOW, host(1), &call));
        let event = connections.poll_event();
        assert!(matches!(event, Some(Event::Closed(_, CloseReason::Withdrawn))));
    }

    #[test]
    fn a_released_connection_leaves_nothing_but_a_shutdown() {
        let (mut connections, ids) = with(&[host(1)]);
        connections.hand_out(NOW, ids[0]).expect("it is there").release();
        assert!(connections.get(ids[0]).is_none() && connections.next_timeout().is_none());
        let sent: Vec<_> = batches(&mut connections).iter().map(|it| it.size).collect();
        assert_eq!(sent, [20]);
        assert!(connections.poll_event().is_none());
    }

    #[test]
    fn a_lost_path_ends_its_own_connections() {
        let (mut connections, ids) = with(&[host(1), host(2)]);
        let reason = CloseReason::PathLost("unplugged".into());
        connections.lose_path(NOW, host(1), &reason);
        let event = connections.poll_event();
        assert!(matches!(event, Some(Event::Closed(id, CloseReason::PathLost(_))) if id == ids[0]));
        assert!(connections.poll_event().is_none());
        assert!(!connections.uses_path(host(1)) && connections.uses_path(host(2)));
    }
}
