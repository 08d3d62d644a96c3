//! Two ends and two links in virtual time.

use std::time::Duration;

use punctual_netem::{Link, LinkConfig, LinkStatistics, Loss, QueueLimit};
use punctual_units::Instant;

use crate::config::Scenario;
use crate::flight::as_u64;
use crate::journal::{Counts, Event, Sample};
use crate::packet::{Content, Packet, Step};
use crate::receiver::Receiver;
use crate::sender::{OVERHEAD, Sender};

/// The outcome of a run. Instants count from the client's first packet.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// When the receiver had the whole object; `None` if it did not get it, because the sender gave
    /// up or the limit was reached.
    pub completed: Option<Duration>,
    /// Totals of the sender.
    pub counts: Counts,
    /// Samples of the round-trip time that the sender took.
    pub round_trips: u64,
    /// Updates of its estimate.
    pub updates: u64,
    /// Packets with nothing but an acknowledgement that the receiver sent.
    pub acks: u64,
    /// Bytes of the object that came more than once.
    pub duplicate_bytes: u64,
    /// The time from the sending of the last lost packet of the tail until one of them was sent
    /// again; `None` without a lost tail.
    pub tail_found: Option<Duration>,
    /// Events in their order.
    pub events: Vec<(Instant, Event)>,
    /// The sender's state after each acknowledgement and timeout.
    pub samples: Vec<Sample>,
    /// The link from the server to the client.
    pub down: LinkStatistics,
}

/// Runs a scenario to its end. The same scenario gives the same outcome, on any machine.
pub fn run(scenario: &Scenario) -> Outcome {
    let mut simulation = Simulation::new(scenario);
    simulation.start();
    while !simulation.is_over() && simulation.step() {}
    simulation.outcome()
}

struct Simulation<'a> {
    scenario: &'a Scenario,
    now: Instant,
    server: Sender,
    client: Receiver,
    up: Link<Packet>,
    down: Link<Packet>,
    /// When the MTU falls, once that is known.
    mtu_falls: Option<Instant>,
    tail: Tail,
    completed: Option<Instant>,
}

/// The lost tail of the object.
#[derive(Debug, Default)]
struct Tail {
    /// Bytes of the object from here on are lost when they are sent for the first time.
    from: u64,
    /// Bytes before this one have been sent.
    sent_up_to: u64,
    last_sent: Option<Instant>,
    found: Option<Duration>,
}

impl<'a> Simulation<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        // The script of the handshake cannot repeat packets.
        let (loss, queue) = (Loss::None, QueueLimit::Unlimited);
        let link = |config: &LinkConfig, seed| {
            Link::new(LinkConfig { loss: loss.clone(), queue, ..config.clone() }, seed)
        };
        let payload = as_u64(scenario.sender.base_mtu - OVERHEAD);
        let tail = scenario.lost_tail * payload;
        Self {
            scenario,
            now: Instant::ORIGIN,
            server: Sender::new(scenario.sender.clone()),
            client: Receiver::new(scenario.sender.acks),
            up: link(&scenario.up, scenario.seed),
            down: link(&scenario.down, scenario.seed.wrapping_add(0x9e37_79b9_7f4a_7c15)),
            mtu_falls: None,
            tail: Tail { from: scenario.object.saturating_sub(tail), ..Tail::default() },
            completed: None,
        }
    }

    fn start(&mut self) {
        let hello = Content::Handshake(Step::ClientHello);
        let packet = self.client.packet(self.scenario.sender.base_mtu, true, hello, None);
        self.up.send(self.now, packet);
    }

    fn is_over(&self) -> bool {
        self.completed.is_some() || self.now > Instant::ORIGIN + self.scenario.limit
    }

    /// Does what is due next. False if nothing will happen any more.
    fn step(&mut self) -> bool {
        let sources = [
            self.mtu_falls,
            self.down.poll_timeout(),
            self.up.poll_timeout(),
            self.client.timeout(),
            self.server.timeout(),
        ];
        let Some(next) = sources.into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        if self.mtu_falls.is_some_and(|at| at <= self.now) {
            self.drop_mtu();
        }
        while let Some(arrival) = self.down.recv(self.now) {
            self.client_receives(&arrival.packet);
        }
        while let Some(arrival) = self.up.recv(self.now) {
            self.server_receives(&arrival.packet);
        }
        if let Some(packet) = self.client.poll(self.now) {
            self.up.send(self.now, packet);
        }
        while let Some(packet) = self.server.poll(self.now) {
            self.send_down(packet);
        }
        true
    }

    fn drop_mtu(&mut self) {
        self.mtu_falls = None;
        let Some((_, mtu)) = self.scenario.mtu_drop else { return };
        self.server.note(self.now, Event::MtuDropped(mtu));
        for link in [&mut self.up, &mut self.down] {
            let config = LinkConfig { mtu: Some(mtu), ..link.config().clone() };
            link.set_config(self.now, config);
        }
    }

    fn client_receives(&mut self, packet: &Packet) {
        self.client.receive(self.now, packet);
        if packet.content == Content::Handshake(Step::ServerFinished) {
            self.finish_handshake();
        }
        if self.client.has_all(self.scenario.object) && self.completed.is_none() {
            self.completed = Some(self.now);
            self.server.note(self.now, Event::Completed);
        }
    }

    /// The client sends its last packets of the handshake, its request and its probe for the MTU.
    fn finish_handshake(&mut self) {
        let ack = self.client.ack(self.now);
        let finished = Content::Handshake(Step::ClientFinished);
        let finished = self.client.packet(FINISHED_BYTES, true, finished, ack);
        let request = Content::Handshake(Step::Request);
        let request = self.client.packet(REQUEST_BYTES, true, request, None);
        let greatest = self.scenario.sender.greatest_mtu;
        let probe = self.client.packet(greatest, true, Content::None, None);
        for packet in [finished, request, probe] {
            self.up.send(self.now, packet);
        }
        self.server.note(self.now, Event::HandshakeDone);
        self.mtu_falls = self.scenario.mtu_drop.map(|(after, _)| self.now + after);
        for (link, wanted) in
            [(&mut self.up, &self.scenario.up), (&mut self.down, &self.scenario.down)]
        {
            link.set_config(self.now, wanted.clone());
        }
    }

    fn server_receives(&mut self, packet: &Packet) {
        if packet.is_damaged {
            return;
        }
        if let Some(ack) = &packet.ack {
            self.server.acknowledge(self.now, ack);
        }
        match &packet.content {
            Content::Handshake(Step::ClientHello) => {
                let base = self.scenario.sender.base_mtu;
                let hello = self.server.handshake(self.now, base, Some(Step::ServerHello));
                let rest = Some(Step::ServerFinished);
                let rest = self.server.handshake(self.now, SERVER_REST_BYTES, rest);
                self.down.send(self.now, hello);
                self.down.send(self.now, rest);
                if let Some(probe) = self.server.probe_mtu(self.now) {
                    self.down.send(self.now, probe);
                }
            }
            Content::Handshake(Step::ClientFinished) => {
                self.server.ready();
                for _ in 0..self.scenario.sender.packets_after_handshake {
                    let done = self.server.handshake(self.now, DONE_BYTES, None);
                    self.down.send(self.now, done);
                }
            }
            Content::Handshake(Step::Request) => {
                self.server.note(self.now, Event::Request);
                self.server.write(self.now, self.scenario.object);
            }
            _ => {}
        }
    }

    fn send_down(&mut self, packet: Packet) {
        if self.scenario.lost_tail > 0
            && let Content::Stream(parts) = &packet.content
            && self.tail.loses(self.now, parts)
        {
            return;
        }
        self.down.send(self.now, packet);
    }

    fn outcome(self) -> Outcome {
        let journal = self.server.journal();
        let (round_trips, updates) = self.server.round_trips();
        Outcome {
            completed: self.completed.map(|at| at - Instant::ORIGIN),
            counts: journal.counts,
            round_trips,
            updates,
            acks: self.client.acks_sent(),
            duplicate_bytes: self.client.duplicate_bytes(),
            tail_found: self.tail.found,
            events: journal.events().to_vec(),
            samples: journal.samples().to_vec(),
            down: self.down.statistics().clone(),
        }
    }
}

impl Tail {
    /// Whether the packet with these bytes is lost: it has bytes of the tail that are sent for the
    /// first time.
    fn loses(&mut self, now: Instant, parts: &[std::ops::Range<u64>]) -> bool {
        let Some(end) = parts.iter().map(|part| part.end).max() else { return false };
        let is_tail = end > self.from;
        if end > self.sent_up_to {
            self.sent_up_to = end;
            if is_tail {
                self.last_sent = Some(now);
            }
            return is_tail;
        }
        if is_tail && self.found.is_none() {
            self.found = self.last_sent.map(|sent| now.saturating_since(sent));
        }
        false
    }
}

/// Bytes of the packets of picoquic's handshake: the rest of the server's flight, the client's last
/// packets, the request, and what the server sends when it has finished.
const SERVER_REST_BYTES: usize = 506;
const FINISHED_BYTES: usize = 311;
const REQUEST_BYTES: usize = 287;
const DONE_BYTES: usize = 200;
