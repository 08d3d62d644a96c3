use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use bytes::Bytes;
use punctual_proto::{ConnectionId, Endpoint, EndpointConfig, Event};
use punctual_testbed::{datagrams, run_due, settle};
use punctual_units::Instant;

use crate::config::WINDOW;
use crate::input::START;

/// The most datagrams that are under way, each way.
const MOST_UNDER_WAY: usize = 512;
/// Datagrams of one turn: both ends may have everything to send again.
const MOST_AT_ONCE: usize = 4 * WINDOW + 256;

/// A datagram on its way.
pub(super) struct FuzzedDatagram {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) bytes: Vec<u8>,
}

/// One end of the session.
pub(super) struct End {
    pub(super) endpoint: Endpoint,
    pub(super) address: SocketAddr,
    pub(super) has_moved: bool,
    pub(super) connection: Option<ConnectionId>,
    pub(super) is_connected: bool,
    pub(super) is_closed: bool,
    pub(super) sent: Vec<Bytes>,
    pub(super) received: Vec<Bytes>,
    /// Of a stream of bytes: how many were taken for sending.
    pub(super) bytes_sent: usize,
    /// The number of received bytes that were read.
    pub(super) bytes_received: usize,
    /// The messages of a file that were sent, have no time to be given up at, and were not read.
    pub(super) owed: BTreeSet<usize>,
    /// Whether no message may be delivered before an earlier one.
    pub(super) keeps_order: bool,
    /// The numbers of the messages that were read.
    pub(super) seen: BTreeSet<usize>,
    /// The number of messages in `received` that were checked before.
    pub(super) known: usize,
}

impl End {
    pub(super) fn new(host: u8) -> Self {
        Self {
            endpoint: Endpoint::new(EndpointConfig::new([host; 32]), START),
            address: SocketAddr::from(([192, 0, 2, host], 9_000)),
            has_moved: false,
            connection: None,
            is_connected: false,
            is_closed: false,
            sent: Vec::new(),
            received: Vec::new(),
            bytes_sent: 0,
            bytes_received: 0,
            owed: BTreeSet::new(),
            keeps_order: true,
            seen: BTreeSet::new(),
            known: 0,
        }
    }

    /// Messages and bytes that were taken for sending.
    pub(super) fn taken(&self) -> usize {
        self.sent.len() + self.bytes_sent
    }

    /// A NAT gives this end another port, once it is known.
    pub(super) fn move_on(&mut self, port: u8) {
        if self.is_connected {
            self.has_moved = true;
            self.address.set_port(10_000 + u16::from(port));
        }
    }

    pub(super) fn close(&mut self, now: Instant) {
        if let Some(id) = self.connection {
            self.is_closed = true;
            self.endpoint.connection(now, id).expect("not released").close();
        }
    }

    /// Runs timers, reads, and puts outgoing datagrams on the way, until nothing is left to do.
    pub(super) fn settle(&mut self, now: Instant, under_way: &mut VecDeque<FuzzedDatagram>) {
        let mut sent = 0;
        settle(|| {
            run_due(&mut self.endpoint, now);
            while let Some(event) = self.endpoint.poll_event() {
                self.take(now, &event);
            }
            for (path, bytes) in datagrams(&mut self.endpoint, now) {
                assert!(bytes.len() <= 1_472, "a datagram too long");
                sent += 1;
                let to = path.address().expect("the fuzzer calls addresses");
                under_way.push_back(FuzzedDatagram { from: self.address, to, bytes });
                if under_way.len() > MOST_UNDER_WAY {
                    under_way.pop_front();
                }
            }
            self.endpoint.poll_timeout().is_due(now)
        });
        assert!(sent <= MOST_AT_ONCE, "{sent} datagrams at once");
        let Some(id) = self.connection else { return };
        let Some(connection) = self.endpoint.connections().get(id) else { return };
        let statistics = connection.statistics(now);
        assert!(statistics.receive_buffer_packets as usize <= WINDOW);
        assert!(statistics.send_buffer_packets as usize <= WINDOW);
    }

    fn take(&mut self, now: Instant, event: &Event) {
        match event {
            Event::Incoming(incoming) => {
                if let Ok(id) = self.endpoint.accept(now, incoming.id, None)
                    && self.connection.is_none()
                {
                    self.connection = Some(id);
                    self.is_connected = true;
                }
            }
            Event::Connected(_) => self.is_connected = true,
            Event::Closed(..) => self.is_closed = true,
            Event::Readable(id) => {
                let mut connection = self.endpoint.connection(now, *id).expect("not released");
                while let Ok(Some(message)) = connection.recv() {
                    self.received.push(message.payload);
                }
            }
            _ => {}
        }
    }
}

/// Each message is one of the sent ones, comes once, and after the one before it unless it may be
/// reordered. Only the last is kept for the next time.
pub(super) fn expect_what_was_sent(from: &mut End, to: &mut End) {
    let mut last = None;
    for (at, payload) in to.received.iter().enumerate() {
        let number = payload.first_chunk().map(|number| u32::from_be_bytes(*number));
        let number = number.expect("a payload that nobody sent") as usize;
        assert_eq!(from.sent.get(number), Some(payload), "changed on its way");
        let is_new = to.seen.insert(number) || at < to.known;
        assert!(is_new, "doubled");
        assert!(!from.keeps_order || last.is_none_or(|last| number > last), "out of order");
        from.owed.remove(&number);
        last = Some(number);
    }
    to.received.drain(..to.received.len().saturating_sub(1));
    to.known = to.received.len();
}

/// The bytes that were read of a stream are the bytes that were sent.
pub(super) fn expect_the_stream(from: &mut End, to: &mut End) {
    for payload in to.received.drain(..) {
        let expected = (to.bytes_received..to.bytes_received + payload.len()).map(byte_at);
        assert!(expected.eq(payload.iter().copied()), "changed on its way");
        to.bytes_received += payload.len();
    }
    assert!(to.bytes_received <= from.bytes_sent, "bytes that nobody sent");
}

/// The byte at a place of a stream: no two places within a packet or two are alike.
pub(super) fn byte_at(place: usize) -> u8 {
    let place = place as u32;
    (place.wrapping_mul(0x9E37_79B1) >> 13 ^ place >> 8) as u8
}
