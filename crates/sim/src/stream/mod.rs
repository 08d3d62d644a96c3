//! Streams of messages from one host to another, as an application would send and read them.

pub(crate) mod bond;
mod config;
mod outcome;
pub(crate) mod payload;
mod receiving;
mod sending;

use bytes::Bytes;
use punctual_proto::{
    CloseReason, ConnectionId, Incoming, SendError, SendOptions, Statistics, Transmission,
};
use punctual_units::Instant;

use self::bond::Bond;
pub use self::config::{End, GroupLinkConfig, StreamConfig, Transport};
pub use self::outcome::{LinkOutcome, StreamIntegrity, StreamOutcome, StreamSample};
pub(crate) use self::payload::MIN_PAYLOAD;
use self::payload::PayloadContent;
use self::receiving::Receiving;
pub(crate) use self::sending::{Phase, Sending};
use crate::agenda::Source;
use crate::ground::Ground;
use crate::host::{Lateness, Use};
use crate::ids::number;
use crate::memory::Memory;
use crate::packet::{Cargo, IpPacket};
use crate::seeds::{Purpose, SplitMix64, derive};

/// A stream at work: the applications at both ends, and what carries their messages.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) config: StreamConfig,
    /// Its number in its world.
    number: usize,
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The way of bare datagrams.
    pub(crate) route: u32,
    /// The seed of the world.
    seed: u64,
    /// The connection at the sender's host and at the receiver's.
    connections: [Option<ConnectionId>; 2],
    /// The groups at both ends, if it is a stream over several links and has begun.
    pub(crate) bond: Option<Box<Bond>>,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) sending: Sending,
    pub(crate) receiving: Receiving,
    pub(crate) series: Vec<StreamSample>,
}

impl Stream {
    /// Stream number `index` of the world with this seed, which waits for its start. Its sending
    /// application is as late as its host.
    pub(crate) fn new(
        config: StreamConfig,
        route: u32,
        lateness: Lateness,
        seed: u64,
        index: usize,
    ) -> Self {
        let content = PayloadContent { key: derive(seed, Purpose::Stream, index) };
        let chance = SplitMix64::new(derive(seed, Purpose::Application, index));
        Self {
            number: index,
            from: config.from.index(),
            to: config.to.index(),
            route,
            seed,
            connections: [None; 2],
            bond: None,
            closed: None,
            sending: Sending::new(&config, content, lateness, chance),
            receiving: Receiving::new(content, config.payload, config.transport.transmission()),
            series: Vec::new(),
            config,
        }
    }

    /// Its number in its world.
    #[cfg(feature = "quic")]
    pub(crate) fn number(&self) -> usize {
        self.number
    }

    /// The connection at one end.
    pub(crate) fn connection(&self, end: End) -> Option<ConnectionId> {
        self.connections[end as usize]
    }

    pub(crate) fn set_connection(&mut self, end: End, id: ConnectionId) {
        self.connections[end as usize] = Some(id);
    }

    pub(crate) fn is_bare_udp(&self) -> bool {
        matches!(self.config.transport, Transport::Udp)
    }

    /// When it starts.
    pub(crate) fn start(&self) -> Instant {
        Instant::ORIGIN + self.config.start
    }

    /// Sets when the application has something to do next.
    fn set_timer(&self, ground: &mut Ground, at: Option<Instant>) {
        ground.time.set(Source::Stream(self.number), at);
    }

    /// The application sends no more.
    pub(crate) fn stop(&mut self, ground: &mut Ground) {
        self.sending.stop();
        self.set_timer(ground, None);
    }

    /// The connection ended.
    pub(crate) fn end(&mut self, ground: &mut Ground, reason: CloseReason) {
        self.closed.get_or_insert(reason);
        self.stop(ground);
    }

    /// The application has something to do.
    pub(crate) fn run(&mut self, ground: &mut Ground, memory: &mut Memory) {
        match self.sending.phase() {
            Phase::Waiting => self.connect(ground),
            Phase::Sending => self.send(ground, memory),
            Phase::Connecting | Phase::Blocked | Phase::Done => self.set_timer(ground, None),
        }
    }

    /// The caller calls. Bare datagrams need no call.
    fn connect(&mut self, ground: &mut Ground) {
        if self.is_bare_udp() {
            return self.begin(ground);
        }
        self.sending.connect();
        self.set_timer(ground, None);
        match &self.config.transport {
            Transport::Udp => {}
            Transport::Group { .. } => {
                let mut bond = Bond::new(&self.config, self.number, self.seed, ground);
                if let Some(bond) = &mut bond {
                    bond.call_all(ground);
                }
                self.bond = bond.map(Box::new);
            }
            #[cfg(feature = "quic")]
            Transport::Quic => self.call_by_quic(ground),
            Transport::Srt { .. } => self.call_by_srt(ground),
        }
    }

    fn call_by_srt(&mut self, ground: &mut Ground) {
        let Some((config, _, caller)) = self.config.transport.calling_and_called() else { return };
        let (calling, called) = match caller {
            End::Sender => (self.from, self.to),
            End::Receiver => (self.to, self.from),
        };
        let (local, remote) = (ground.local(calling), ground.hosts.get(called).address);
        let machine = &mut ground.hosts.get_mut(calling).machine;
        let path = machine.path_to(local, remote);
        let Ok(id) = machine.srt().connect(local, path, config.clone()) else { return };
        self.set_connection(caller, id);
        ground.expect(calling, called, id, Use { stream: self.number, link: 0 });
    }

    /// The sender's host calls the receiver's.
    #[cfg(feature = "quic")]
    fn call_by_quic(&mut self, ground: &mut Ground) {
        let [caller, remote] = [self.from, self.to].map(|host| ground.hosts.get(host).address);
        let local = ground.local(self.from);
        if let Some(called) = ground.hosts.get_mut(self.to).machine.bare_quic() {
            called.expect(caller, self.number);
        }
        if let Some(calling) = ground.hosts.get_mut(self.from).machine.bare_quic()
            && let Err(error) = calling.call(local, remote, self.number)
        {
            self.end(ground, CloseReason::PathLost(error.to_string().into()));
        }
        ground.hosts.touch(self.from);
    }

    /// The application can send from now on.
    pub(crate) fn begin(&mut self, ground: &mut Ground) {
        let next = self.sending.begin(ground.now());
        self.set_timer(ground, next);
    }

    fn send(&mut self, ground: &mut Ground, memory: &mut Memory) {
        while let Some(mut payload) = self.sending.next_message(ground.now(), memory) {
            let sent = self.submit(ground, &mut payload);
            self.sending.submitted(&sent, payload);
        }
        let next = self.sending.wake();
        self.set_timer(ground, next);
        if !matches!(self.config.transport, Transport::Udp | Transport::Group { .. }) {
            ground.hosts.touch(self.from);
        }
    }

    /// Hands a message over; the part that is not taken stays in `payload`.
    fn submit(&mut self, ground: &mut Ground, payload: &mut Bytes) -> Result<(), SendError> {
        let local = ground.local(self.from);
        let host = ground.hosts.get_mut(self.from);
        match &self.config.transport {
            Transport::Udp => {
                let [stream, from, to] = [self.number, self.from, self.to].map(number);
                let cargo = Cargo::Udp { stream, from, to };
                ground.enter(IpPacket::udp(cargo, self.route, payload.clone()));
                Ok(())
            }
            Transport::Group { .. } => {
                let bond = self.bond.as_mut().ok_or(SendError::NotConnected)?;
                bond.send(ground, payload.clone())
            }
            #[cfg(feature = "quic")]
            Transport::Quic => {
                let quic = host.machine.bare_quic().ok_or(SendError::NotConnected)?;
                quic.send(self.number, payload.clone())
            }
            Transport::Srt { sender, .. } => {
                let id = self.connection(End::Sender).ok_or(SendError::NotConnected)?;
                let connection = host.machine.srt().connection(local, id);
                let mut connection = connection.ok_or(SendError::NotConnected)?;
                if sender.transmission() != Transmission::Stream {
                    let in_order = sender.transmission() == Transmission::Messages;
                    let options = SendOptions { in_order, ..SendOptions::default() };
                    return connection.send(payload.clone(), options);
                }
                while !payload.is_empty() {
                    connection.write(payload)?;
                }
                Ok(())
            }
        }
    }

    /// There is room again in the connection.
    pub(crate) fn writable(&mut self, ground: &mut Ground) {
        if self.sending.unblock() {
            let next = self.sending.wake().map(|at| at.max(ground.now()));
            self.set_timer(ground, next);
        }
    }

    /// A caller for this stream waits for an answer, as the connection for `link`.
    pub(crate) fn accept(
        &mut self,
        ground: &mut Ground,
        host: usize,
        incoming: &Incoming,
        link: usize,
    ) {
        let purpose = Use { stream: self.number, link };
        if let Some(bond) = &mut self.bond {
            if let Some(id) = bond.accept(ground, host, incoming, purpose) {
                self.connected(ground, host, id);
            }
            return;
        }
        let Some((_, config, caller)) = self.config.transport.calling_and_called() else { return };
        let config = config.clone();
        let local = ground.local(host);
        // A caller that does not fit is told so, and closes its end.
        let at = ground.hosts.get_mut(host);
        let Ok(id) = at.machine.srt().accept(local, incoming.id, Some(config)) else { return };
        at.streams.insert(id, purpose);
        self.set_connection(caller.other(), id);
        if caller == End::Receiver {
            self.begin(ground);
        }
    }

    /// A connection is established.
    pub(crate) fn connected(&mut self, ground: &mut Ground, host: usize, id: ConnectionId) {
        let Some(bond) = &mut self.bond else {
            if self.from == host {
                self.begin(ground);
            }
            return;
        };
        let end = bond.link_up(ground, host, id);
        if end == End::Sender && self.sending.begun().is_none() {
            self.begin(ground);
        }
        if let Some(bond) = &mut self.bond {
            bond.plan(ground, end);
        }
    }

    /// A connection has something to read, or something for its group.
    pub(crate) fn read(&mut self, ground: &mut Ground, host: usize, id: ConnectionId) {
        if let Some(bond) = &mut self.bond {
            let end = bond.end_at(host);
            return bond.update(ground, end, &mut self.receiving);
        }
        let (now, local) = (ground.now(), ground.local(host));
        let endpoint = ground.hosts.get_mut(host).machine.srt();
        let Some(mut connection) = endpoint.connection(local, id) else { return };
        while let Ok(Some(message)) = connection.recv() {
            self.receiving.take(now, local, &message);
        }
    }

    /// A connection ended, from which everything has been read.
    pub(crate) fn closed(
        &mut self,
        ground: &mut Ground,
        host: usize,
        id: ConnectionId,
        reason: CloseReason,
    ) {
        let Some(bond) = &mut self.bond else { return self.end(ground, reason) };
        let Some(goes_on) = bond.link_ended(ground, host, id) else { return };
        if !goes_on {
            self.end(ground, reason);
        }
        self.read(ground, host, id);
    }

    /// The timer of the group at one end has fired.
    pub(crate) fn run_group(&mut self, ground: &mut Ground, end: End) {
        if let Some(bond) = &mut self.bond {
            bond.run(ground, end, &mut self.receiving);
        }
    }

    /// Takes a sample of the stream, and sets when the next one is due.
    pub(crate) fn sample(&mut self, ground: &mut Ground) {
        let sample = StreamSample::take(self, ground);
        self.series.push(sample);
        let next = self.config.series.map(|period| ground.now() + period);
        ground.time.set(Source::StreamSample(self.number), next);
    }

    /// The statistics of the sending and the receiving end.
    pub(crate) fn statistics(&self, ground: &Ground) -> [Statistics; 2] {
        [(End::Sender, self.from), (End::Receiver, self.to)].map(|(end, host)| {
            if let Some(bond) = &self.bond {
                return bond.end(end).group().statistics(ground.local(host));
            }
            let id = self.connection(end);
            id.and_then(|id| ground.statistics_of(host, id)).unwrap_or_default()
        })
    }
}
