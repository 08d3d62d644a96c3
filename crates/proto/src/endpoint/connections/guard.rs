//! A connection that is handed out to the application.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};

use super::Connections;
use crate::connection::Connection;

/// A connection in the hands of the application, which calls the verbs of [`Connection`]. When this
/// is dropped, the endpoint deals with their consequences: it queues events, sets timers, and lets
/// the connection send.
#[derive(Debug)]
pub struct ConnectionGuard<'a> {
    connections: &'a mut Connections,
    index: usize,
}

impl<'a> ConnectionGuard<'a> {
    /// The connection at this index, which exists. Its turn has begun.
    pub(super) const fn new(connections: &'a mut Connections, index: usize) -> Self {
        Self { connections, index }
    }

    /// Forgets the connection, after a SHUTDOWN if it was not closed. No event follows.
    pub fn release(self) {
        let mut this = ManuallyDrop::new(self);
        let index = this.index;
        this.connections.release(index);
    }
}

impl Deref for ConnectionGuard<'_> {
    type Target = Connection;

    #[inline]
    fn deref(&self) -> &Connection {
        &self.connections.table[self.index].connection
    }
}

impl DerefMut for ConnectionGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connections.table[self.index].connection
    }
}

impl Drop for ConnectionGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.connections.settle_turn(self.index);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::Duration;

    use bytes::Bytes;
    use punctual_units::{Bitrate, Instant};
    use punctual_wire::{DataHeader, KeyFlag, MsgNo, Position, SeqNo, SocketId, Timestamp};

    use super::*;
    use crate::config::{Config, MaxBandwidth};
    use crate::connection::turn::Unsettled;
    use crate::endpoint::testing::{connected, host};
    use crate::endpoint::{Endpoint, EndpointConfig};
    use crate::error::{CloseReason, SendError};
    use crate::event::{Event, SendOptions};
    use crate::ids::ConnectionId;
    use crate::wake_up::WakeUp;

    const NOW: Instant = Instant::from_millis(9_000);
    const MS: fn(u64) -> Duration = Duration::from_millis;
    const LATENCY: Duration = Duration::from_millis(120);

    /// Connections with an established one that has sent its first packets.
    fn established() -> (Connections, ConnectionId) {
        let (mut connections, id) = connected(NOW, host(1), "");
        drain(&mut connections);
        (connections, id)
    }

    /// Takes the datagrams that are to be sent now; returns their number.
    fn drain(connections: &mut Connections) -> usize {
        let mut buffer = Vec::new();
        let batch = || connections.write_batch(NOW, 16, &mut buffer);
        std::iter::from_fn(batch).map(|it| it.size.div_ceil(it.segment_size)).sum()
    }

    fn send(connection: &mut Connection, size: usize) -> Result<(), SendError> {
        connection.send(Bytes::from(vec![1; size]), SendOptions::default())
    }

    #[test]
    fn an_event_follows_and_a_timer_stops_when_a_call_is_given_back_closed() {
        let mut endpoint = Endpoint::new(EndpointConfig::new([1; 32]), NOW);
        let remote = SocketAddr::from(([192, 0, 2, 1], 9_000));
        let id = endpoint.connect(NOW, remote, Config::default()).expect("an address");
        while endpoint.poll_transmit(NOW, 16, &mut Vec::new()).is_some() {}
        assert!(matches!(endpoint.poll_timeout(), WakeUp::At(_)) && !endpoint.has_events());
        endpoint.connection(NOW, id).expect("it is there").close();
        let event = endpoint.poll_event();
        assert!(matches!(event, Some(Event::Closed(closed, CloseReason::Local)) if closed == id));
        while endpoint.poll_transmit(NOW, 16, &mut Vec::new()).is_some() {}
        assert_eq!(endpoint.poll_timeout(), WakeUp::Never);
    }

    #[test]
    fn messages_of_a_turn_are_queued_when_the_connection_is_given_back() {
        let (mut connections, id) = established();
        let mut connection = connections.hand_out(NOW, id).expect("it is there");
        for _ in 0..3 {
            send(&mut connection, 100).expect("there is room");
        }
        drop(connection);
        assert!(connections.has_datagrams());
        assert_eq!(drain(&mut connections), 3);
    }

    #[test]
    fn a_message_that_the_pacer_holds_back_sets_a_timer() {
        let (mut connections, id) = established();
        let slow = MaxBandwidth::Absolute(Bitrate::from_mbps(1));
        let mut connection = connections.hand_out(NOW, id).expect("it is there");
        connection.configure(|config| Ok(config.with_max_bandwidth(slow))).expect("at any time");
        drop(connection);
        for _ in 0..50 {
            let mut connection = connections.hand_out(NOW, id).expect("it is there");
            send(&mut connection, 1_000).expect("there is room");
            drop(connection);
            if drain(&mut connections) == 0 {
                let timer = connections.next_timeout().expect("a message waits");
                assert!(timer < NOW + Duration::from_millis(20), "{timer:?}");
                return;
            }
        }
        panic!("no message waits");
    }

    #[test]
    fn verbs_that_read_and_verbs_that_fail_leave_nothing_to_do() {
        let (mut connections, id) = established();
        let due = connections.next_timeout();
        let mut connection = connections.hand_out(NOW, id).expect("it is there");
        assert!(connection.readiness().writable && connection.await_room());
        assert!(connection.next_message().is_some() && connection.info().connected);
        assert_eq!(connection.statistics(NOW).packets_sent, 0);
        assert!(matches!(send(&mut connection, 0), Err(SendError::Size { .. })));
        let later = |config: Config| config.with_latency(Duration::from_secs(1));
        assert!(connection.configure(later).is_err());
        assert_eq!(connection.turn().result(), (NOW, Unsettled::NOTHING));
        drop(connection);
        assert!(!connections.has_datagrams() && !connections.has_events());
        assert_eq!(connections.next_timeout(), due);
    }

    #[test]
    fn both_halves_follow_a_latency_that_changes() {
        let (mut connections, id) = established();
        let latency = connections.get(id).and_then(Connection::latency);
        let latency = latency.expect("it is established").clone();
        assert_eq!([latency.receive.get(), latency.peer.get()], [LATENCY, LATENCY]);
        let at = |millis| NOW + Duration::from_millis(millis);
        let header = DataHeader {
            seq: SeqNo::new(11),
            position: Position::Solo,
            in_order: false,
            key: KeyFlag::Clear,
            retransmitted: false,
            msgno: MsgNo::FIRST,
            timestamp: Timestamp::default(),
            dest: SocketId::new(3),
        };
        let arrives = |connection: &mut Connection| {
            connection.handle_data(NOW, header, Bytes::from_static(b"payload"))
        };
        connections.change(NOW, id, arrives).expect("it is there");
        latency.receive.set(MS(300));
        latency.peer.set(MS(3_000));
        let mut received = |now| connections.hand_out(now, id).expect("it is there").recv();
        assert!(received(at(299)).expect("it is open").is_none());
        let message = received(at(300)).expect("it is open").expect("it is due");
        assert_eq!((message.origin, message.due), (NOW, at(300)));

        send(&mut connections.hand_out(at(300), id).expect("it is there"), 100).expect("room");
        let statistics = |connections: &mut Connections, now| {
            connections.change(now, id, |it| it.handle_timeout(now)).expect("it is there");
            connections.get(id).expect("it is there").statistics(now)
        };
        let times = [at(1_400), at(3_310), at(3_330)];
        let after = times.map(|now| statistics(&mut connections, now));
        assert_eq!(after.each_ref().map(|it| it.packets_send_dropped), [0, 0, 1]);
        assert_eq!((after[0].receive_latency, after[0].peer_latency), (MS(300), MS(3_000)));
    }

    #[test]
    fn a_connection_that_was_released_is_handed_out_no_more() {
        let (mut connections, id) = established();
        connections.hand_out(NOW, id).expect("it is there").release();
        assert!(connections.hand_out(NOW, id).is_none() && connections.get(id).is_none());
        assert_eq!(connections.count(), 0);
    }
}
