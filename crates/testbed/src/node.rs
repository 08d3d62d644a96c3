//! One end of a pair: an endpoint, its clock, its link and its application.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Link, LinkConfig};
use punctual_proto::{
    CloseReason, ConnectionGuard, ConnectionId, Endpoint, EndpointConfig, Event, Incoming,
    IncomingId, Message, PathId, RejectReason,
};
use punctual_units::Instant;

use crate::steps::{datagrams, run_due};

/// Where every clock starts: not at the origin, so that times before the start exist.
pub const EPOCH: Instant = Instant::from_millis(10_000_000);

/// One end: an endpoint, its clock, and what its application did and saw.
pub struct Node {
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The endpoint's address.
    pub address: SocketAddr,
    /// The connection that was called or accepted last.
    pub connection: Option<ConnectionId>,
    /// When each numbered message was submitted, on the world's clock.
    pub sent: Vec<Instant>,
    /// Each message that was delivered.
    pub received: Vec<DeliveredMessage>,
    /// The connections that have ended, and why.
    pub closed: BTreeMap<ConnectionId, CloseReason>,
    /// Callers that wait for an answer.
    pub incoming: VecDeque<Incoming>,
    /// Callers that gave up before they were answered.
    pub gone: Vec<IncomingId>,
    /// Callers that were refused without the application, and why.
    pub refused: Vec<(SocketAddr, RejectReason)>,
    /// Whether a call was answered.
    pub connected: bool,
    /// The addresses that the peer moved to.
    pub moved: Vec<SocketAddr>,
    /// Number of times that the send buffer had room again.
    pub writable: u32,
    /// Whether messages are read as soon as they are due.
    pub reads: bool,
    /// Number of times that a timer of the endpoint fired.
    pub wakeups: u64,
    /// The link from here to the other end.
    pub outgoing: Link<Vec<u8>>,
    pub(crate) ppm: i64,
}

/// A message and when it was delivered.
pub struct DeliveredMessage {
    /// On the world's clock.
    pub at: Instant,
    /// On the receiving node's clock.
    pub local: Instant,
    /// The message.
    pub message: Message,
}

impl Node {
    /// A node on a perfect clock. `host` tells apart the nodes of one seed.
    pub fn new(seed: u64, host: u8, link: LinkConfig) -> Self {
        Self {
            endpoint: Endpoint::new(endpoint_config(seed, host), EPOCH),
            address: SocketAddr::from(([192, 0, 2, host], 9_000)),
            connection: None,
            sent: Vec::new(),
            received: Vec::new(),
            closed: BTreeMap::new(),
            incoming: VecDeque::new(),
            gone: Vec::new(),
            refused: Vec::new(),
            connected: false,
            moved: Vec::new(),
            writable: 0,
            reads: true,
            wakeups: 0,
            outgoing: Link::new(link, seed ^ u64::from(host) << 56),
            ppm: 0,
        }
    }

    /// Why the connection ended, if it did.
    pub fn closed(&self) -> Option<&CloseReason> {
        self.closed.get(&self.connection?)
    }

    /// The connection that was called or accepted last, at this time of the world.
    pub fn connection(&mut self, world: Instant) -> ConnectionGuard<'_> {
        let (now, id) = (self.local(world), self.connection.expect("a connection"));
        self.endpoint.connection(now, id).expect("not released")
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
    pub fn next(&self, world: Instant) -> Option<Instant> {
        let timer = self.endpoint.poll_timeout().instant(self.local(world));
        let timer = timer.map(|at| self.world(at));
        match (timer, self.outgoing.poll_timeout()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Runs timers and takes events; whether anything happened.
    pub fn drain(&mut self, world: Instant, accepts: bool) -> bool {
        let now = self.local(world);
        let mut busy = false;
        self.wakeups += u64::from(run_due(&mut self.endpoint, now));
        while let Some(event) = self.endpoint.poll_event() {
            busy = true;
            match event {
                Event::Incoming(incoming) if accepts => {
                    self.connection = self.endpoint.accept(now, incoming.id, None).ok();
                }
                Event::Incoming(incoming) => self.incoming.push_back(incoming),
                Event::CallerRefused(path, reason) => {
                    self.refused.extend(path.address().map(|remote| (remote, reason)));
                }
                Event::IncomingGone(id) => self.gone.push(id),
                Event::Connected(_) => self.connected = true,
                Event::Readable(_) => self.read(world),
                Event::Writable(_) => self.writable += 1,
                Event::PeerMoved(_, path) => self.moved.extend(path.address()),
                Event::Closed(id, reason) => {
                    self.closed.insert(id, reason);
                    self.read(world);
                }
                _ => {}
            }
        }
        busy
    }

    /// Reads the due messages, if this node reads.
    pub fn read(&mut self, world: Instant) {
        let Some(id) = self.connection.filter(|_| self.reads) else { return };
        let local = self.local(world);
        let Some(mut connection) = self.endpoint.connection(local, id) else { return };
        while let Ok(Some(message)) = connection.recv() {
            self.received.push(DeliveredMessage { at: world, local, message });
        }
    }

    /// The datagrams that are to be sent now, and where to.
    pub fn transmit(&mut self, world: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
        let now = self.local(world);
        let datagrams = datagrams(&mut self.endpoint, now).into_iter();
        let remote = |path: PathId| path.address().expect("nodes call addresses");
        datagrams.map(|(path, datagram)| (remote(path), datagram)).collect()
    }
}

/// An endpoint's configuration from the scenario's seed; `host` tells the ends apart.
pub fn endpoint_config(seed: u64, host: u8) -> EndpointConfig {
    let mut endpoint_seed = [host; 32];
    endpoint_seed[..8].copy_from_slice(&seed.to_le_bytes());
    EndpointConfig::new(endpoint_seed)
}

/// A payload that says which message it is and can be checked to the last byte.
pub fn numbered(i: u32) -> Bytes {
    let mut payload = Vec::with_capacity(1_316);
    payload.extend_from_slice(&i.to_be_bytes());
    payload.extend((4..1_316u32).map(|at| (at ^ i) as u8));
    Bytes::from(payload)
}

/// The number of the message with this payload; panics if it is not a message of the test.
pub fn number_of(payload: &[u8]) -> u32 {
    let i = u32::from_be_bytes(payload[..4].try_into().expect("four bytes"));
    assert_eq!(payload, &numbered(i)[..], "the payload of message {i} was changed");
    i
}
