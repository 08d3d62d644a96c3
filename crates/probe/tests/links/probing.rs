//! A probe over a simulated path: the brain of the program between two endpoints, in virtual time.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Link, PathProfile};
use punctual_probe::{Measurement, Probe, ProbeConfig, ProbePeer, Reporter};
use punctual_proto::{
    Config, ConnectionId, Endpoint, EndpointConfig, Event, RetransmitAlgorithm, SendOptions,
};
use punctual_testbed::{run_due, transmit};
use punctual_units::Instant;

/// Where the clocks start.
const EPOCH: Instant = Instant::from_millis(1_000_000);
/// Headers of IPv4 and UDP.
const HEADERS: usize = 28;

/// One end of the path.
struct End {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<ConnectionId>,
    connected: bool,
    outgoing: Link<Datagram>,
}

#[derive(Clone)]
struct Datagram(Vec<u8>);

impl punctual_netem::Packet for Datagram {
    fn len(&self) -> usize {
        self.0.len() + HEADERS
    }

    fn corrupt(&mut self, entropy: u64) {
        self.0.corrupt(entropy);
    }
}

impl End {
    fn new(seed: u64, host: u8, outgoing: Link<Datagram>) -> Self {
        let mut endpoint_seed = [host; 32];
        endpoint_seed[..8].copy_from_slice(&seed.to_le_bytes());
        Self {
            endpoint: Endpoint::new(EndpointConfig::new(endpoint_seed), EPOCH),
            address: SocketAddr::from(([192, 0, 2, host], 4_200)),
            connection: None,
            connected: false,
            outgoing,
        }
    }

    fn next(&self, now: Instant) -> Option<Instant> {
        let timer = self.endpoint.poll_timeout().instant(now);
        timer.into_iter().chain(self.outgoing.poll_timeout()).min()
    }

    /// Runs timers, takes events and messages, and puts outgoing datagrams on the link.
    fn turn(&mut self, now: Instant, mut message: impl FnMut(&[u8])) {
        run_due(&mut self.endpoint, now);
        loop {
            let mut quiet = true;
            while let Some(event) = self.endpoint.poll_event() {
                quiet = false;
                match event {
                    Event::Incoming(incoming) => {
                        self.connection = self.endpoint.accept(now, incoming.id, None).ok();
                        self.connected = true;
                    }
                    Event::Connected(_) => self.connected = true,
                    Event::Closed(_, reason) => panic!("the connection ended: {reason}"),
                    _ => {}
                }
            }
            if let Some(id) = self.connection {
                let mut connection = self.endpoint.connection(now, id).expect("not released");
                while let Ok(Some(received)) = connection.recv() {
                    message(&received.payload);
                }
            }
            transmit(&mut self.endpoint, now, |_, datagram| {
                quiet = false;
                self.outgoing.send(now, Datagram(datagram.to_vec()));
            });
            if quiet {
                return;
            }
        }
    }
}

/// Probes a path with this seed; the listener reports, or is one of another make.
pub(crate) fn probe(
    path: &PathProfile,
    seed: u64,
    config: &ProbeConfig,
    listener: ProbePeer,
) -> Measurement {
    let latency = Config::default().with_latency(Duration::from_millis(500)).expect("in range");
    let latency = latency.with_retransmit_algorithm(RetransmitAlgorithm::Efficient);
    let sending = latency.clone().with_payload_size(1_456).expect("in range");
    let mut there = End::new(seed, 1, Link::new(path.up.clone(), seed ^ 0x55));
    let mut back = End::new(seed, 2, Link::new(path.down.clone(), seed ^ 0xAA));
    back.endpoint.listen(Some(latency));
    let call = there.endpoint.connect(EPOCH, back.address, sending);
    there.connection = Some(call.expect("a callable address"));
    let mut now = EPOCH;
    let mut brain: Option<Probe> = None;
    let mut reporter: Option<Reporter> = None;
    loop {
        there.turn(now, |message| {
            if let Some(brain) = &mut brain {
                brain.handle_message(now, message);
            }
        });
        back.turn(now, |message| {
            if let Some(reporter) = &mut reporter {
                reporter.handle_message(message.len());
            }
        });
        if brain.is_none() && there.connected {
            brain = Some(Probe::new(config.clone(), now));
        }
        if reporter.is_none() && back.connected && listener == ProbePeer::Punctual {
            reporter = Some(Reporter::new(now));
        }
        if let Some(brain) = &mut brain {
            drive(brain, &mut there, now);
            if brain.is_done() {
                return brain.measurement();
            }
        }
        if let Some(reporter) = &mut reporter {
            report(reporter, &mut back, now);
        }
        there.turn(now, |_| {});
        back.turn(now, |_| {});
        let next = [
            there.next(now),
            back.next(now),
            brain.as_ref().and_then(Probe::poll_timeout),
            reporter.as_ref().map(Reporter::poll_timeout),
        ];
        now = next.into_iter().flatten().min().expect("something is to come").max(now);
        while let Some(arrival) = there.outgoing.recv(now) {
            back.endpoint.handle_datagram(now, there.address, Bytes::from(arrival.packet.0));
        }
        while let Some(arrival) = back.outgoing.recv(now) {
            there.endpoint.handle_datagram(now, back.address, Bytes::from(arrival.packet.0));
        }
    }
}

fn drive(brain: &mut Probe, end: &mut End, now: Instant) {
    let id = end.connection.expect("a connection");
    while let Some(message) = brain.poll_message(now) {
        let mut connection = end.endpoint.connection(now, id).expect("not released");
        let _ = connection.send(message, SendOptions::default());
    }
    if brain.wants_statistics(now)
        && let Some(connection) = end.endpoint.connections().get(id)
    {
        brain.observe(now, &connection.statistics(now));
    }
}

fn report(reporter: &mut Reporter, end: &mut End, now: Instant) {
    let id = end.connection.expect("a connection");
    if now >= reporter.poll_timeout()
        && let Some(connection) = end.endpoint.connections().get(id)
    {
        reporter.observe(now, &connection.statistics(now));
    }
    if let Some(message) = reporter.poll_message(now) {
        let mut connection = end.endpoint.connection(now, id).expect("not released");
        let _ = connection.send(message, SendOptions::default());
    }
}
