//! A caller and a listener joined by two modelled links, in virtual time from one seed.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{LinkConfig, Loss};
use punctual_proto::{
    Attempt, Config, ConfigError, ConnectionInfo, Endpoint, EndpointConfig, MsgNo, Readiness,
    SendError, SendOptions, Statistics,
};
use punctual_units::{Bitrate, Instant};

use crate::node::{EPOCH, Node, endpoint_config, number_of, numbered};
use crate::record::Record;
use crate::steps::{Steps, settle};

/// Which end of the pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Side {
    /// The end that calls.
    Caller,
    /// The end that is called.
    Listener,
}

impl Side {
    /// The other end.
    pub const fn other(self) -> Self {
        match self {
            Self::Caller => Self::Listener,
            Self::Listener => Self::Caller,
        }
    }
}

/// Is called with every datagram that `Side` puts on its link; its result is sent instead.
pub type Tap = Box<dyn FnMut(Instant, Side, Vec<u8>) -> Vec<Vec<u8>>>;

/// A caller and a listener with two links between them.
pub struct Pair {
    /// The world's time.
    pub now: Instant,
    /// The end that calls.
    pub caller: Node,
    /// The end that is called.
    pub listener: Node,
    /// Whether the listener accepts whoever comes.
    pub accepts: bool,
    /// Whether the listener is gone as soon as it has accepted: whoever calls then is not heard.
    pub closes: bool,
    /// Datagrams for addresses that are neither end's.
    pub strays: Vec<(SocketAddr, Vec<u8>)>,
    /// The interval at which both hosts look for arrivals, as drivers under load do: everything
    /// that arrived since has the time of the look.
    pub grain: Option<Duration>,
    tap: Tap,
    seed: u64,
    steps: Steps,
}

impl Pair {
    /// A pair on perfect clocks with these links from caller to listener and back.
    pub fn new(seed: u64, there: LinkConfig, back: LinkConfig) -> Self {
        Self {
            now: EPOCH,
            caller: Node::new(seed, 1, there),
            listener: Node::new(seed, 2, back),
            accepts: true,
            closes: false,
            strays: Vec::new(),
            grain: None,
            tap: Box::new(|_, _, datagram| vec![datagram]),
            seed,
            steps: Steps::default(),
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

    /// Gives both ends IPv6 addresses.
    pub fn over_ipv6(mut self) -> Self {
        self.caller.address = "[2001:db8::1]:9000".parse().expect("an address");
        self.listener.address = "[2001:db8::2]:9000".parse().expect("an address");
        self
    }

    /// Lets the messages of both ends begin with this number.
    pub fn count_from(mut self, first: MsgNo) -> Self {
        for (host, node) in [(1, &mut self.caller), (2, &mut self.listener)] {
            let config =
                EndpointConfig { first_message: first, ..endpoint_config(self.seed, host) };
            node.endpoint = Endpoint::new(config, EPOCH);
        }
        self
    }

    /// Changes the listener's endpoint options.
    pub fn with_listener(mut self, change: impl FnOnce(&mut EndpointConfig)) -> Self {
        let mut config = endpoint_config(self.seed, 2);
        change(&mut config);
        self.listener.endpoint = Endpoint::new(config, EPOCH);
        self
    }

    /// Lets `tap` see, change, drop and multiply every datagram from now on.
    pub fn tap(&mut self, tap: impl FnMut(Instant, Side, Vec<u8>) -> Vec<Vec<u8>> + 'static) {
        self.tap = Box::new(tap);
    }

    /// Drops the datagrams for which `drops` says so, from now on.
    pub fn drop_where(&mut self, mut drops: impl FnMut(Side, &[u8]) -> bool + 'static) {
        self.tap(
            move |_, side, datagram| {
                if drops(side, &datagram) { Vec::new() } else { vec![datagram] }
            },
        );
    }

    /// Lets every datagram through unseen from now on.
    pub fn untap(&mut self) {
        self.tap(|_, _, datagram| vec![datagram]);
    }

    /// Records every datagram from now on.
    pub fn record(&mut self) -> Record {
        let record = Record::default();
        let writer = record.clone();
        self.tap(move |at, side, datagram| {
            writer.push(at, side, &datagram);
            vec![datagram]
        });
        record
    }

    /// Listens, calls, and runs until the connection is established at both ends.
    #[track_caller]
    pub fn connect(&mut self, caller: Config, listener: Config) {
        self.call(caller, listener);
        let connected = self.run_while(Duration::from_secs(60), |pair| {
            pair.caller.closed().is_none()
                && !(pair.caller.connected && pair.listener.connection.is_some())
        });
        let closed = self.caller.closed();
        assert!(connected && closed.is_none(), "no connection: {closed:?}");
    }

    /// Listens and calls; nothing has been sent yet.
    pub fn call(&mut self, caller: Config, listener: Config) {
        self.listener.endpoint.listen(Some(listener));
        let remote = self.listener.address;
        let now = self.caller.local(self.now);
        self.caller.connection =
            Some(self.caller.endpoint.connect(now, remote, caller).expect("a callable address"));
    }

    /// Begins a rendezvous at one end; nothing has been sent yet.
    pub fn wave(&mut self, side: Side, config: Config) {
        let world = self.now;
        let remote = self.node(side.other()).address;
        let node = self.node(side);
        let now = node.local(world);
        node.connection = Some(
            node.endpoint
                .connect(now, remote, Attempt::rendezvous(config))
                .expect("nothing under way"),
        );
    }

    /// Begins a rendezvous at both ends, at the second `gap` after the first, and runs until it is
    /// established.
    #[track_caller]
    pub fn meet(&mut self, first: Side, gap: Duration, configs: [Config; 2]) {
        let [first_config, second_config] = configs;
        self.wave(first, first_config);
        self.run_for(gap);
        self.wave(first.other(), second_config);
        let met = self.run_while(Duration::from_secs(60), |pair| !pair.have_met());
        let closed = [self.caller.closed(), self.listener.closed()];
        assert!(met, "no rendezvous: {closed:?}");
    }

    /// Whether a rendezvous is established at both ends.
    pub fn have_met(&self) -> bool {
        self.caller.connected && self.listener.connected
    }

    /// Submits a message at one end.
    pub fn send(
        &mut self,
        side: Side,
        payload: impl Into<Bytes>,
        options: SendOptions,
    ) -> Result<(), SendError> {
        let world = self.now;
        let sent = self.node(side).connection(world).send(payload.into(), options);
        self.exchange();
        sent
    }

    /// Submits bytes of a stream at one end, as many as there is room for.
    pub fn write(&mut self, side: Side, data: &mut Bytes) -> Result<usize, SendError> {
        let world = self.now;
        let taken = self.node(side).connection(world).write(data);
        self.exchange();
        taken
    }

    /// Submits the next numbered message at one end; whether it was taken.
    pub fn send_next(&mut self, side: Side) -> bool {
        self.send_next_with(side, SendOptions::default()).is_ok()
    }

    /// As [`send_next`](Self::send_next), with options.
    ///
    /// # Errors
    ///
    /// As [`Connection::send`](punctual_proto::Connection::send).
    pub fn send_next_with(&mut self, side: Side, options: SendOptions) -> Result<(), SendError> {
        let number = self.node(side).sent.len() as u32;
        let sent = self.send(side, numbered(number), options);
        if sent.is_ok() {
            let now = self.now;
            self.node(side).sent.push(now);
        }
        sent
    }

    /// Sends `count` numbered messages from `side`, one each `interval`.
    #[track_caller]
    pub fn stream(&mut self, side: Side, count: u32, interval: Duration) {
        for _ in 0..count {
            assert!(self.send_next(side), "the send buffer is full");
            self.run_for(interval);
        }
    }

    /// Lets this time pass.
    pub fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.step_until(end) {}
    }

    /// Runs until `condition` is false, for at most `limit`; whether it became false.
    pub fn run_while(&mut self, limit: Duration, condition: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + limit;
        self.exchange();
        while condition(self) {
            if !self.step_until(end) {
                return !condition(self);
            }
        }
        true
    }

    /// Closes the connection at one end.
    pub fn close(&mut self, side: Side) {
        let world = self.now;
        self.node(side).connection(world).close();
        self.exchange();
    }

    /// Aborts the connection at one end.
    pub fn abort(&mut self, side: Side) {
        let world = self.now;
        self.node(side).connection(world).abort();
        self.exchange();
    }

    /// Releases the ended connection at one end.
    pub fn release(&mut self, side: Side) {
        let world = self.now;
        self.node(side).connection(world).release();
        self.exchange();
    }

    /// Reads the due messages at an end that did not read.
    pub fn read(&mut self, side: Side) {
        let world = self.now;
        self.node(side).reads = true;
        self.node(side).read(world);
        self.exchange();
    }

    /// The statistics of the connection at one end.
    pub fn statistics(&mut self, side: Side) -> Statistics {
        let world = self.now;
        let node = self.node(side);
        let now = node.local(world);
        node.connection(world).statistics(now)
    }

    /// The calls that the application can make at one end without waiting.
    pub fn readiness(&mut self, side: Side) -> Readiness {
        let world = self.now;
        self.node(side).connection(world).readiness()
    }

    /// Changes options of the connection at one end while it runs.
    pub fn configure(
        &mut self,
        side: Side,
        change: impl FnOnce(Config) -> Result<Config, ConfigError>,
    ) -> Result<(), ConfigError> {
        let world = self.now;
        self.node(side).connection(world).configure(change)?;
        self.exchange();
        Ok(())
    }

    /// The information about the connection at one end.
    pub fn info(&mut self, side: Side) -> ConnectionInfo {
        let world = self.now;
        self.node(side).connection(world).info()
    }

    /// Replaces a link, from `side` to the other.
    pub fn set_link(&mut self, side: Side, link: LinkConfig) {
        let now = self.now;
        self.node(side).outgoing.set_config(now, link);
    }

    /// Lets nothing from `side` through for `time`.
    pub fn black_out(&mut self, sides: &[Side], time: Duration) {
        let before: Vec<_> =
            sides.iter().map(|&side| self.node(side).outgoing.config().clone()).collect();
        for (&side, link) in sides.iter().zip(&before) {
            self.set_link(side, link.clone().with_loss(Loss::All).expect("no share in it"));
        }
        self.run_for(time);
        for (&side, link) in sides.iter().zip(before) {
            self.set_link(side, link);
        }
    }

    /// One of the ends.
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

    /// The numbers of the messages from `side` that were delivered, checked for their content and
    /// that none came twice or out of order.
    #[track_caller]
    pub fn delivered(&mut self, side: Side) -> Vec<u32> {
        let numbers: Vec<u32> = self
            .node(side.other())
            .received
            .iter()
            .map(|delivery| number_of(&delivery.message.payload))
            .collect();
        assert!(numbers.is_sorted_by(|a, b| a < b), "doubled or out of order: {numbers:?}");
        numbers
    }

    /// Every numbered message from `side` was delivered, once, in order, unchanged, when it was
    /// due.
    #[track_caller]
    pub fn assert_complete(&mut self, side: Side) {
        let sent = self.node(side).sent.len();
        let delivered = self.delivered(side);
        let missing: Vec<u32> =
            (0..sent as u32).filter(|number| delivered.binary_search(number).is_err()).collect();
        assert!(missing.is_empty(), "not delivered, of {sent}: {missing:?}");
        self.assert_punctual(side);
    }

    /// Every message from `side` was delivered at the very instant it was due.
    #[track_caller]
    pub fn assert_punctual(&mut self, side: Side) {
        for delivery in &self.node(side.other()).received {
            let message = &delivery.message;
            assert_eq!(delivery.local, message.due, "{} is not delivered when due", message.seq);
        }
    }

    /// From submission to delivery, on the world's clock, of each numbered message from `side`.
    pub fn delays(&mut self, side: Side) -> Vec<Duration> {
        let sent = self.node(side).sent.clone();
        let delay = |delivery: &crate::node::DeliveredMessage| {
            delivery.at - sent[number_of(&delivery.message.payload) as usize]
        };
        self.node(side.other()).received.iter().map(delay).collect()
    }

    /// Streams full messages at `rate` from the caller for this time, waits until everything has
    /// arrived, and returns both ends' statistics.
    pub fn stream_at(&mut self, rate: Bitrate, time: Duration) -> (Statistics, Statistics) {
        let interval = rate.time_for(1_316);
        let end = self.now + time;
        while self.now < end {
            assert!(self.send_next(Side::Caller));
            self.run_for(interval);
        }
        self.run_for(Duration::from_secs(1));
        self.delivered(Side::Caller);
        (self.statistics(Side::Caller), self.statistics(Side::Listener))
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.now - EPOCH
    }

    /// Whether the listener is gone.
    fn has_closed(&self) -> bool {
        self.closes && self.listener.connection.is_some()
    }

    /// Goes to the next thing that happens, but not beyond `end`; `false` at the end.
    fn step_until(&mut self, end: Instant) -> bool {
        self.exchange();
        let next =
            [self.caller.next(self.now), self.listener.next(self.now)].into_iter().flatten().min();
        let next = next.map(|at| self.grain.map_or(at, |grain| next_look(at, grain)));
        let goes_on = self.steps.advance(&mut self.now, next, end);
        if goes_on {
            self.exchange();
        }
        goes_on
    }

    /// Handles everything that is due now, and its immediate consequences.
    fn exchange(&mut self) {
        settle(|| {
            let mut busy = self.arrive();
            for side in [Side::Caller, Side::Listener] {
                busy |= self.drain_and_transmit(side);
            }
            busy
        });
    }

    /// Hands over the datagrams that arrive now. Returns whether there were any.
    fn arrive(&mut self) -> bool {
        let now = self.now;
        let mut busy = false;
        for from in [Side::Caller, Side::Listener] {
            let remote = self.node(from).address;
            while let Some(arrival) = self.node(from).outgoing.recv(now) {
                if from == Side::Caller && self.has_closed() && is_call(&arrival.packet) {
                    continue;
                }
                let node = self.node(from.other());
                let local = node.local(now);
                node.endpoint.handle_datagram(local, remote, Bytes::from(arrival.packet));
                busy = true;
            }
        }
        busy
    }

    /// Runs an end, and puts its datagrams on the link. Returns whether there was anything to do.
    fn drain_and_transmit(&mut self, side: Side) -> bool {
        let (now, accepts) = (self.now, self.accepts);
        let mut busy = self.node(side).drain(now, accepts);
        for (remote, datagram) in self.node(side).transmit(now) {
            busy = true;
            if remote == self.node(side.other()).address {
                for datagram in (self.tap)(now, side, datagram) {
                    self.node(side).outgoing.send(now, datagram);
                }
            } else {
                self.strays.push((remote, datagram));
            }
        }
        busy
    }
}

/// Whether a datagram is a handshake for a listener.
fn is_call(datagram: &[u8]) -> bool {
    datagram.get(12..16) == Some(&[0; 4])
}

/// The first multiple of `grain` since the epoch that is not before `at`.
fn next_look(at: Instant, grain: Duration) -> Instant {
    let past = (at - EPOCH).as_nanos() % grain.as_nanos();
    let past = u64::try_from(past).expect("less than a grain");
    if past == 0 { at } else { at + grain - Duration::from_nanos(past) }
}

impl Drop for Pair {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}, {:?} after the start", self.seed, self.elapsed());
        }
    }
}
