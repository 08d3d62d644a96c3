//! The test bed: a caller and a listener on their own clocks, joined by two modelled links, in
//! virtual time from one seed.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Link, LinkConfig};
use punctual_proto::{
    CloseReason, Config, ConnectionId, Endpoint, EndpointConfig, Event, Incoming, Message,
    SendOptions, Statistics,
};
use punctual_units::Instant;

/// Where every node's clock starts: not at the origin, so that times before the start exist.
const EPOCH: Instant = Instant::from_millis(10_000_000);

/// Which end of the pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    Caller,
    Listener,
}

/// One end: an endpoint, its clock, and what its application saw.
pub struct Node {
    pub endpoint: Endpoint,
    pub address: SocketAddr,
    pub connection: Option<ConnectionId>,
    /// Messages with the instant of delivery on this node's clock.
    pub received: Vec<(Instant, Message)>,
    pub closed: Option<CloseReason>,
    pub incoming: VecDeque<Incoming>,
    pub connected: bool,
    pub writable: u32,
    /// Whether messages are read as soon as they are due.
    pub reads: bool,
    ppm: i64,
    outgoing: Link<Vec<u8>>,
}

/// A caller and a listener with two links between them.
pub struct Pair {
    pub now: Instant,
    pub caller: Node,
    pub listener: Node,
    /// Whether the listener accepts whoever comes.
    pub accepts: bool,
    /// Sees every datagram that is put on a link; what it returns is sent instead.
    pub tap: Box<dyn FnMut(Side, Vec<u8>) -> Vec<Vec<u8>>>,
}

impl Pair {
    /// A pair on perfect clocks with these links from caller to listener and back.
    pub fn new(seed: u64, there: LinkConfig, back: LinkConfig) -> Self {
        Self {
            now: EPOCH,
            caller: Node::new(seed, 1, there),
            listener: Node::new(seed, 2, back),
            accepts: true,
            tap: Box::new(|_, datagram| vec![datagram]),
        }
    }

    /// A pair whose links are the same both ways.
    pub fn symmetric(seed: u64, link: LinkConfig) -> Self {
        Self::new(seed, link.clone(), link)
    }

    /// Makes a node's clock run fast (or slow) by `ppm` millionths.
    pub fn with_drift(mut self, side: Side, ppm: i64) -> Self {
        self.node(side).ppm = ppm;
        self
    }

    /// Listens, calls, and runs until both ends stand.
    pub fn connect(&mut self, caller: Config, listener: Config) {
        self.call(caller, listener);
        let connected = self.run_while(Duration::from_secs(60), |pair| {
            pair.caller.closed.is_none()
                && !(pair.caller.connected && pair.listener.connection.is_some())
        });
        assert!(
            connected && self.caller.closed.is_none(),
            "no connection: {:?}",
            self.caller.closed
        );
    }

    /// Listens and calls; nothing has been sent yet.
    pub fn call(&mut self, caller: Config, listener: Config) {
        self.listener.endpoint.listen(Some(listener));
        let remote = self.listener.address;
        let now = self.caller.local(self.now);
        self.caller.connection =
            Some(self.caller.endpoint.connect(now, remote, caller).expect("a callable address"));
    }

    /// Submits a message at one end.
    pub fn send(&mut self, side: Side, payload: impl Into<Bytes>) -> bool {
        self.send_with(side, payload, SendOptions::default())
    }

    pub fn send_with(
        &mut self,
        side: Side,
        payload: impl Into<Bytes>,
        options: SendOptions,
    ) -> bool {
        let world = self.now;
        let node = self.node(side);
        let now = node.local(world);
        let id = node.connection.expect("a connection");
        let sent = node.endpoint.send(now, id, payload.into(), options).is_ok();
        self.exchange();
        sent
    }

    /// Sends `count` messages from `side`, one each `interval`, then runs on for `tail`.
    pub fn stream(&mut self, side: Side, count: u32, interval: Duration, tail: Duration) {
        for i in 0..count {
            self.send(side, numbered(i));
            self.run_for(interval);
        }
        self.run_for(tail);
    }

    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step_until(end) {}
    }

    /// Runs until `condition` is false, for at most `limit`; whether it became false.
    pub fn run_while(&mut self, limit: Duration, condition: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + limit;
        while condition(self) {
            if !self.step_until(end) {
                return !condition(self);
            }
        }
        true
    }

    pub fn close(&mut self, side: Side) {
        let world = self.now;
        let node = self.node(side);
        let now = node.local(world);
        node.endpoint.close(now, node.connection.expect("a connection"));
        self.exchange();
    }

    pub fn statistics(&mut self, side: Side) -> Statistics {
        let world = self.now;
        let node = self.node(side);
        let id = node.connection.expect("a connection");
        node.endpoint.statistics(node.local(world), id).expect("not released")
    }

    /// Replaces a link, from `side` to the other.
    pub fn set_link(&mut self, side: Side, link: LinkConfig) {
        let now = self.now;
        self.node(side).outgoing.set_config(now, link);
    }

    pub fn node(&mut self, side: Side) -> &mut Node {
        match side {
            Side::Caller => &mut self.caller,
            Side::Listener => &mut self.listener,
        }
    }

    /// Puts a datagram before `side` as if it came from `remote`.
    pub fn inject(&mut self, side: Side, remote: SocketAddr, datagram: impl Into<Bytes>) {
        let world = self.now;
        let node = self.node(side);
        let now = node.local(world);
        node.endpoint.handle_datagram(now, remote, datagram.into());
        self.exchange();
    }

    /// Goes to the next thing that happens, but not beyond `end`; `false` at the end.
    fn step_until(&mut self, end: Instant) -> bool {
        self.exchange();
        let next = [self.caller.next(), self.listener.next()].into_iter().flatten().min();
        match next {
            Some(at) if at <= end => {
                assert!(at > self.now || self.is_due(), "a timeout that does nothing at {at}");
                self.now = self.now.max(at);
                self.exchange();
                true
            }
            _ => {
                self.now = end;
                false
            }
        }
    }

    fn is_due(&self) -> bool {
        [&self.caller, &self.listener]
            .iter()
            .any(|node| node.next().is_some_and(|at| at <= self.now))
    }

    /// Does everything that is due now, and what follows from it at once.
    fn exchange(&mut self) {
        let now = self.now;
        for _ in 0..10_000 {
            let mut busy = false;
            for (from, to) in [(Side::Caller, Side::Listener), (Side::Listener, Side::Caller)] {
                let remote = self.node(from).address;
                while let Some(arrival) = self.node(from).outgoing.recv(now) {
                    let node = self.node(to);
                    let local = node.local(now);
                    node.endpoint.handle_datagram(local, remote, Bytes::from(arrival.packet));
                    busy = true;
                }
            }
            let accepts = self.accepts;
            for side in [Side::Caller, Side::Listener] {
                let node = self.node(side);
                busy |= node.drain(now, accepts);
                let mut sent = Vec::new();
                node.transmit(now, &mut sent);
                for datagram in sent {
                    busy = true;
                    for datagram in (self.tap)(side, datagram) {
                        self.node(side).outgoing.send(now, datagram);
                    }
                }
            }
            if !busy {
                return;
            }
        }
        panic!("the pair does not come to rest at {now}");
    }
}

impl Node {
    fn new(seed: u64, host: u8, link: LinkConfig) -> Self {
        let mut endpoint_seed = [host; 32];
        endpoint_seed[..8].copy_from_slice(&seed.to_le_bytes());
        Self {
            endpoint: Endpoint::new(EndpointConfig::new(endpoint_seed), EPOCH),
            address: SocketAddr::from(([192, 0, 2, host], 9_000)),
            connection: None,
            received: Vec::new(),
            closed: None,
            incoming: VecDeque::new(),
            connected: false,
            writable: 0,
            reads: true,
            ppm: 0,
            outgoing: Link::new(link, seed ^ u64::from(host) << 56),
        }
    }

    /// The instant on this node's clock.
    pub fn local(&self, world: Instant) -> Instant {
        let elapsed = i128::from((world - EPOCH).as_nanos() as u64);
        let local = elapsed + elapsed * i128::from(self.ppm) / 1_000_000;
        EPOCH + Duration::from_nanos(u64::try_from(local).expect("not before the epoch"))
    }

    /// The first instant of the world at which this node's clock shows `local` or later.
    fn world(&self, local: Instant) -> Instant {
        if local <= EPOCH {
            return EPOCH;
        }
        let elapsed = i128::from((local - EPOCH).as_nanos() as u64);
        let guess = elapsed * 1_000_000 / (1_000_000 + i128::from(self.ppm));
        let mut world =
            EPOCH + Duration::from_nanos(u64::try_from(guess).expect("later than the epoch"));
        while self.local(world) < local {
            world += Duration::from_nanos(1);
        }
        world
    }

    /// When something happens here next, on the world's clock.
    fn next(&self) -> Option<Instant> {
        let timer = self.endpoint.poll_timeout().map(|at| self.world(at));
        match (timer, self.outgoing.poll_timeout()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Runs timers and takes events; whether anything happened.
    fn drain(&mut self, world: Instant, accepts: bool) -> bool {
        let now = self.local(world);
        let mut busy = false;
        if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
            self.endpoint.handle_timeout(now);
        }
        while let Some(event) = self.endpoint.poll_event() {
            busy = true;
            match event {
                Event::Incoming(incoming) if accepts => {
                    self.connection = self.endpoint.accept(now, incoming.id, None).ok();
                }
                Event::Incoming(incoming) => self.incoming.push_back(incoming),
                Event::IncomingGone(id) => self.incoming.retain(|incoming| incoming.id != id),
                Event::Connected(_) => self.connected = true,
                Event::Readable(_) => self.read(now),
                Event::Writable(_) => self.writable += 1,
                Event::Closed(_, reason) => {
                    self.closed = Some(reason);
                    self.read(now);
                }
                _ => {}
            }
        }
        busy
    }

    /// Reads what is due, if this node reads.
    pub fn read(&mut self, now: Instant) {
        let Some(id) = self.connection.filter(|_| self.reads) else { return };
        while let Ok(Some(message)) = self.endpoint.recv(now, id) {
            self.received.push((now, message));
        }
    }

    fn transmit(&mut self, world: Instant, sent: &mut Vec<Vec<u8>>) {
        let now = self.local(world);
        let mut buffer = Vec::new();
        while let Some(transmit) = self.endpoint.poll_transmit(now, 16, &mut buffer) {
            assert_eq!(transmit.size, buffer.len());
            sent.extend(buffer.chunks(transmit.segment_size).map(<[u8]>::to_vec));
            buffer.clear();
        }
    }
}

/// A payload that says which message it is and can be checked to the last byte.
pub fn numbered(i: u32) -> Bytes {
    let mut payload = Vec::with_capacity(1_316);
    payload.extend_from_slice(&i.to_be_bytes());
    payload.extend((4..1_316u32).map(|at| (at ^ i).to_le_bytes()[0]));
    Bytes::from(payload)
}

/// Which message a payload is; panics if it is none.
pub fn number_of(payload: &[u8]) -> u32 {
    let i = u32::from_be_bytes(payload[..4].try_into().expect("four bytes"));
    assert_eq!(payload, &numbered(i)[..], "the payload of message {i} was changed");
    i
}
