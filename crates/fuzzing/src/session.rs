//! A whole session between two honest ends, of which somebody on the way holds back, drops,
//! doubles, reorders, shortens and damages what he likes, while their addresses change and their
//! keys are replaced.
//!
//! Neither end panics, both come to rest, and neither sends or keeps more than its configuration
//! allows. What was not damaged, or is authenticated, is delivered as it was sent, in order and
//! once; and when nobody meddles any more, what is sent arrives. It may be live, or a file, of which
//! nothing is missing then.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    Config, ConnectionId, Endpoint, EndpointConfig, Event, SendOptions, Transmission,
};
use punctual_units::Instant;

use crate::config::{WINDOW, drawn, drawn_file, is_authentic, without_waiting};
use crate::input::Input;

const START: Instant = Instant::from_millis(100_000);
/// What waits on the way, each way.
const MOST_UNDER_WAY: usize = 512;
/// Datagrams of one turn: both ends may have everything to send again.
const MOST_AT_ONCE: usize = 4 * WINDOW + 256;

/// The first four bytes choose who calls, what is sent, and the options; each three after them are a
/// step.
pub(crate) fn run(input: &[u8]) {
    let mut input = Input(input);
    let mut session = Session::new(input.byte(), [input.byte(), input.byte()], input.byte());
    while let Some(what) = input.next() {
        session.step(what, input.byte(), input.byte());
        session.settle();
    }
    session.heal();
}

struct Session {
    now: Instant,
    ends: [End; 2],
    /// What each end has sent and nobody has got yet.
    under_way: [VecDeque<Datagram>; 2],
    /// Whether a datagram was changed.
    is_damaged: bool,
    /// Whether packets that were changed are found out.
    is_authentic: bool,
    transmission: Transmission,
}

struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

struct End {
    endpoint: Endpoint,
    address: SocketAddr,
    has_moved: bool,
    connection: Option<ConnectionId>,
    is_connected: bool,
    is_closed: bool,
    sent: Vec<Bytes>,
    received: Vec<Bytes>,
    /// Of a stream of bytes: how many were taken for sending.
    bytes_sent: usize,
    /// The same: how many were read.
    bytes_received: usize,
    /// The messages of a file that were sent, have no time to be given up at, and were not read.
    owed: BTreeSet<usize>,
    /// Whether none of the messages sent may be overtaken.
    keeps_order: bool,
    /// The numbers of the messages that were read.
    seen: BTreeSet<usize>,
    /// How many of `received` were looked at before.
    known: usize,
}

impl Session {
    /// A call or a rendezvous. Both ends have the same extras, but for what `differ` says.
    fn new(kind: u8, [basic, extra]: [u8; 2], differ: u8) -> Self {
        let extras = [extra, extra ^ differ];
        let transmission = match kind >> 3 & 3 {
            1 => Transmission::Stream,
            2 => Transmission::Messages,
            _ => Transmission::Live,
        };
        let basics = [basic, basic.rotate_left(1)];
        let configs = [0, 1].map(|end| match transmission {
            Transmission::Live => drawn(without_waiting(basics[end], extras), extras[end]),
            other => drawn_file(basics[end], extras[end], other),
        });
        let is_authentic = configs.iter().all(is_authentic);
        let mut ends = [1, 2].map(End::new);
        let [a, b] = &mut ends;
        let [of_a, of_b] = configs;
        if kind & 1 == 0 {
            b.endpoint.listen(Some(of_b));
            a.connection = a.endpoint.connect(START, b.address, of_a).ok();
        } else {
            let meet = |end: &mut End, remote, config: Config| {
                end.connection = end.endpoint.rendezvous(START, remote, config).ok();
            };
            let addresses = (a.address, b.address);
            meet(a, addresses.1, of_a);
            meet(b, addresses.0, of_b);
        }
        let under_way = Default::default();
        let is_damaged = false;
        let mut session =
            Self { now: START, ends, under_way, is_damaged, is_authentic, transmission };
        session.settle();
        // Two bits let the handshake pass unharmed, so that there is more to see of the stream.
        if kind & 6 == 0 {
            session.run_for(Duration::from_millis(50));
        }
        session
    }

    fn step(&mut self, what: u8, first: u8, second: u8) {
        let from = usize::from(what & 1);
        match what >> 1 & 15 {
            0..=4 => (0..=first % 16).for_each(|_| self.deliver(from)),
            5 => drop(self.under_way[from].pop_front()),
            6 => {
                if let Some(datagram) = self.under_way[from].front() {
                    let again = Datagram { bytes: datagram.bytes.clone(), ..*datagram };
                    self.under_way[from].push_back(again);
                }
            }
            7 => {
                let waiting = self.under_way[from].len();
                self.under_way[from].rotate_left(usize::from(first).min(waiting));
            }
            8 => self.damage(from, |bytes| {
                if let Some(byte) = bytes.get_mut(usize::from(first)) {
                    *byte ^= second;
                }
            }),
            9 if first & 0x80 == 0 => self.damage(from, |bytes| bytes.truncate(first.into())),
            9 => self.ends[from].move_on(second),
            10 => (0..=first % 32).for_each(|_| self.send(from, second, 0)),
            11 => self.now += Duration::from_micros(u64::from(first) * 256 + u64::from(second)),
            12 => self.now += Duration::from_millis(u64::from(first) * 8),
            13 | 14 => self.send(from, first, second),
            _ if first == 0xFF => self.ends[from].close(self.now),
            _ => self.run_for(Duration::from_millis(first.into())),
        }
    }

    fn damage(&mut self, from: usize, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(datagram) = self.under_way[from].front_mut() {
            self.is_damaged = true;
            change(&mut datagram.bytes);
        }
        self.deliver(from);
    }

    fn deliver(&mut self, from: usize) {
        let Some(datagram) = self.under_way[from].pop_front() else { return };
        let to = &mut self.ends[1 - from];
        if datagram.to == to.address {
            to.endpoint.handle_datagram(self.now, datagram.from, datagram.bytes.into());
        }
    }

    fn send(&mut self, from: usize, first: u8, second: u8) {
        let end = &mut self.ends[from];
        let Some(id) = end.connection else { return };
        if self.transmission == Transmission::Stream {
            let most = end.bytes_sent + 4 + usize::from(first) * 80;
            let mut data: Bytes = (end.bytes_sent..most).map(byte_at).collect();
            while !data.is_empty() {
                let Ok(taken) = end.endpoint.write(self.now, id, &mut data) else { return };
                end.bytes_sent += taken;
            }
            return;
        }
        let scale = if self.transmission == Transmission::Live { 5 } else { 80 };
        let mut payload = u32::try_from(end.sent.len()).unwrap_or(0).to_be_bytes().to_vec();
        payload.resize(4 + usize::from(first) * scale, first);
        let payload = Bytes::from(payload);
        let ttl = (second > 200).then(|| Duration::from_millis(second.into()));
        let in_order = second & 64 == 0;
        let options = SendOptions { ttl, in_order, ..SendOptions::default() };
        if end.endpoint.send(self.now, id, payload.clone(), options).is_ok() {
            if self.transmission == Transmission::Messages {
                end.keeps_order &= in_order;
                end.owed.extend(ttl.is_none().then_some(end.sent.len()));
            }
            end.sent.push(payload);
        }
    }

    /// Lets everything through at once for a while.
    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            for from in [0, 1] {
                (0..self.under_way[from].len()).for_each(|_| self.deliver(from));
            }
            self.settle();
            if self.under_way.iter().any(|waiting| !waiting.is_empty()) {
                continue;
            }
            let next = self.ends.iter().filter_map(|end| end.endpoint.poll_timeout()).min();
            match next.filter(|&at| at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
        }
        self.now = end;
        self.settle();
    }

    fn settle(&mut self) {
        let addresses = [self.ends[0].address, self.ends[1].address];
        for (at, under_way) in self.under_way.iter_mut().enumerate() {
            self.ends[at].settle(self.now, under_way);
        }
        debug_assert_eq!(addresses, [self.ends[0].address, self.ends[1].address]);
        if !self.is_damaged || self.is_authentic {
            let [a, b] = &mut self.ends;
            let expect = match self.transmission {
                Transmission::Stream => expect_the_stream,
                _ => expect_what_was_sent,
            };
            expect(a, b);
            expect(b, a);
        }
    }

    /// Where both ends stand, and at most one has moved, what is sent now arrives.
    fn heal(&mut self) {
        let stands = |end: &End| end.is_connected && !end.is_closed;
        let moved = self.ends.iter().filter(|end| end.has_moved).count();
        if self.is_damaged || moved > 1 || !self.ends.iter().all(stands) {
            return;
        }
        // As long as it takes to ask again where a held-back handshake made the round trip
        // seem long.
        self.run_for(Duration::from_secs(30));
        if self.transmission != Transmission::Live {
            self.wait_until_all_arrived();
        }
        // A packet behind a large gap is believed when another confirms it.
        for from in [0, 1, 0, 1] {
            let before = self.ends[from].taken();
            self.send(from, 1, 0);
            assert!(self.ends[from].taken() > before, "the buffer is full on a healthy path");
            self.run_for(Duration::from_millis(10));
        }
        self.wait_until_all_arrived();
    }

    /// If the handshake was held back, messages are played as much later; if a packet was, what was
    /// lost is asked for again as slowly as the round trip seemed to be.
    fn wait_until_all_arrived(&mut self) {
        let is_live = self.transmission == Transmission::Live;
        let arrived = |ends: &[End; 2]| {
            [(0, 1), (1, 0)].map(|(from, to)| {
                let (from, to) = (&ends[from], &ends[to]);
                if is_live {
                    return from.sent.last() == to.received.last();
                }
                from.owed.is_empty() && from.bytes_sent == to.bytes_received
            })
        };
        for _ in 0..30 {
            if arrived(&self.ends) == [true; 2] {
                return;
            }
            self.run_for(Duration::from_secs(20));
        }
        assert_eq!(arrived(&self.ends), [true; 2], "not delivered on a healthy path");
    }
}

impl End {
    fn new(host: u8) -> Self {
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
    fn taken(&self) -> usize {
        self.sent.len() + self.bytes_sent
    }

    /// A NAT gives this end another port, once it is known.
    fn move_on(&mut self, port: u8) {
        if self.is_connected {
            self.has_moved = true;
            self.address.set_port(10_000 + u16::from(port));
        }
    }

    fn close(&mut self, now: Instant) {
        if let Some(id) = self.connection {
            self.is_closed = true;
            self.endpoint.close(now, id);
        }
    }

    /// Runs timers, reads, and puts on the way what there is to send, until nothing is left to do.
    fn settle(&mut self, now: Instant, under_way: &mut VecDeque<Datagram>) {
        let (mut buffer, mut sent) = (Vec::new(), 0);
        for _ in 0..10_000 {
            if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
                self.endpoint.handle_timeout(now);
            }
            while let Some(event) = self.endpoint.poll_event() {
                self.take(now, &event);
            }
            while let Some(transmit) = self.endpoint.poll_transmit(now, 1, &mut buffer) {
                assert!(transmit.size <= 1_472, "a datagram too long");
                sent += 1;
                let bytes = std::mem::take(&mut buffer);
                under_way.push_back(Datagram { from: self.address, to: transmit.remote, bytes });
                if under_way.len() > MOST_UNDER_WAY {
                    under_way.pop_front();
                }
            }
            if self.endpoint.poll_timeout().is_none_or(|at| at > now) {
                break;
            }
        }
        let rests = self.endpoint.poll_timeout().is_none_or(|at| at > now);
        assert!(rests, "the endpoint does not come to rest");
        assert!(sent <= MOST_AT_ONCE, "{sent} datagrams at once");
        let Some(id) = self.connection else { return };
        let Some(statistics) = self.endpoint.statistics(now, id) else { return };
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
                while let Ok(Some(message)) = self.endpoint.recv(now, *id) {
                    self.received.push(message.payload);
                }
            }
            _ => {}
        }
    }
}

/// Each message is one of those that were sent, comes once, and after the one before it unless that
/// was allowed to be overtaken. Only the last is kept for the next time.
fn expect_what_was_sent(from: &mut End, to: &mut End) {
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

/// What was read of a stream are the bytes that were sent.
fn expect_the_stream(from: &mut End, to: &mut End) {
    for payload in to.received.drain(..) {
        let expected = (to.bytes_received..to.bytes_received + payload.len()).map(byte_at);
        assert!(expected.eq(payload.iter().copied()), "changed on its way");
        to.bytes_received += payload.len();
    }
    assert!(to.bytes_received <= from.bytes_sent, "bytes that nobody sent");
}

/// The byte at a place of a stream: no two places within a packet or two are alike.
fn byte_at(place: usize) -> u8 {
    let place = place as u32;
    (place.wrapping_mul(0x9E37_79B1) >> 13 ^ place >> 8) as u8
}
