//! Whatever arrives, from whomever and whenever: an endpoint that listens and has one connection,
//! for live messages, a file or a stream of bytes, never panics, comes to rest, and sends and keeps
//! no more than its configuration allows.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    Config, ConnectionId, Endpoint, EndpointConfig, Event, IncomingId, RejectReason, SendOptions,
    SeqNo, SocketId, Transmission,
};
use punctual_testbed::{datagrams, run_due, settle, transmit};
use punctual_units::Instant;

use crate::config::{WINDOW, drawn, drawn_file};
use crate::forge::{self, FORGED};
use crate::input::{FuzzInput, START};
use crate::packet_cost::of_one_packet;

const BACKLOG: usize = 4;
const CONNECTIONS: usize = 8;
/// IP and UDP headers leave this of an MTU of 1500.
const LONGEST: usize = 1_472;

/// The first two bytes choose the connection's options; the rest is what happens to it.
pub(crate) fn run(input: &[u8]) {
    let mut input = FuzzInput(input);
    let mut world = World::connected(input.byte(), input.byte());
    while let Some(step) = input.next() {
        let mut handle = || {
            world.step(step, &mut input);
            world.settle();
        };
        if step >= FORGED { of_one_packet(handle) } else { handle() }
    }
}

struct World {
    now: Instant,
    endpoint: Endpoint,
    peer: SocketAddr,
    connection: ConnectionId,
    socket: SocketId,
    isn: SeqNo,
    incoming: Vec<IncomingId>,
    accepted: Vec<ConnectionId>,
    /// Messages that were taken for sending; each is a packet, unless a file or a stream is cut.
    taken: u32,
    /// The most datagrams that may still be sent: messages taken, and answers to datagrams.
    owed: usize,
}

impl World {
    /// A listener with one connection, made by a caller that is gone afterwards.
    fn connected(basic: u8, extra: u8) -> Self {
        let address = |host| SocketAddr::from(([192, 0, 2, host], 9_000));
        let (caller_address, listener_address) = (address(1), address(2));
        let config = match basic & 3 {
            2 => drawn_file(basic, extra, Transmission::Messages),
            3 => drawn_file(basic, extra, Transmission::Stream),
            _ => drawn(basic, extra),
        };
        let limits = EndpointConfig {
            backlog: BACKLOG,
            max_connections: CONNECTIONS,
            ..EndpointConfig::new([2; 32])
        };
        let mut listener = Endpoint::new(limits, START);
        let mut caller = Endpoint::new(EndpointConfig::new([1; 32]), START);
        listener.listen(Some(config.clone()));
        caller.connect(START, listener_address, config).expect("an address");
        let mut connection = None;
        for _ in 0..4 {
            carry(&mut caller, &mut listener, caller_address);
            while let Some(event) = listener.poll_event() {
                if let Event::Incoming(incoming) = event {
                    connection = listener.accept(START, incoming.id, None).ok();
                }
            }
            carry(&mut listener, &mut caller, listener_address);
            // The caller repeats its requests with time only.
            caller.handle_timeout(START);
        }
        let connection = connection.expect("a perfect link");
        let socket =
            listener.connections().get(connection).expect("it is established").info().socket_id;
        Self {
            now: START,
            endpoint: listener,
            peer: caller_address,
            connection,
            socket,
            isn: isn_of_the_caller(),
            incoming: Vec::new(),
            accepted: Vec::new(),
            taken: 0,
            owed: 0,
        }
    }

    fn step(&mut self, step: u8, input: &mut FuzzInput<'_>) {
        match step % 11 {
            _ if step >= FORGED => self.arrive_forged(step, &mut FuzzInput(input.bytes())),
            0 => self.now += Duration::from_micros(input.u16().into()),
            1 => self.now += Duration::from_millis(input.u16().into()),
            2 => {
                let peer = self.peer;
                self.arrive(peer, input.bytes().to_vec());
            }
            3 => {
                let stranger = SocketAddr::from(([198, 51, 100, step], input.u16()));
                self.arrive(stranger, input.bytes().to_vec());
            }
            4 | 5 => self.arrive_data(input),
            6 | 7 => self.arrive_control(input),
            8 => {
                let ttl =
                    input.next().filter(|&ms| ms > 0).map(|ms| Duration::from_millis(ms.into()));
                let payload = vec![step; usize::from(input.u16() % 1_400)];
                let options = SendOptions { ttl, ..SendOptions::default() };
                let mut payload = Bytes::from(payload);
                let connection = self.endpoint.connection(self.now, self.connection);
                let taken = connection.is_some_and(|mut connection| {
                    let written = connection.write(&mut payload).is_ok();
                    written || connection.send(payload, options).is_ok()
                });
                self.taken += u32::from(taken);
            }
            9 => self.arrive_call(input),
            _ => self.apply(input.byte()),
        }
    }

    /// A packet in the peer's name, with the borders of the number space in its fields.
    fn arrive_forged(&mut self, step: u8, input: &mut FuzzInput<'_>) {
        let packet = match step & 3 {
            0 => forge::data(input, self.socket, self.isn),
            _ => forge::control(input, self.socket, self.isn.plus(self.taken)),
        };
        self.arrive(self.peer, packet);
    }

    /// Data in the peer's name, near the expected numbers or anywhere.
    fn arrive_data(&mut self, input: &mut FuzzInput<'_>) {
        let place = input.byte();
        let seq = match place {
            0..=199 => self.isn.plus(u32::from(input.u16() % 512)),
            _ => SeqNo::new(input.u32()),
        };
        // Message number 0 is a packet filter's.
        let mask = if (150..200).contains(&place) { 0 } else { 0x3FFF_FFFF };
        let flags = 0xC000_0000 | input.u32() & mask;
        let mut datagram = Vec::new();
        for word in [seq.value(), flags, input.u32(), self.socket.value()] {
            datagram.extend_from_slice(&word.to_be_bytes());
        }
        datagram.extend_from_slice(input.bytes());
        let peer = self.peer;
        self.arrive(peer, datagram);
    }

    /// A control packet in the peer's name with any body; sequence numbers in it are near the
    /// stream's.
    fn arrive_control(&mut self, input: &mut FuzzInput<'_>) {
        let kind = input.byte() % 10;
        let mut datagram = vec![0x80, kind, 0, 0];
        for word in [input.u32(), input.u32(), self.socket.value()] {
            datagram.extend_from_slice(&word.to_be_bytes());
        }
        for chunk in input.bytes().chunks(2) {
            let near = self.isn.plus(u32::from(chunk[0])).value();
            let opens_a_range = chunk.get(1).is_some_and(|&flag| flag & 1 == 1);
            let word = if opens_a_range { near | 0x8000_0000 } else { near };
            datagram.extend_from_slice(&word.to_be_bytes());
        }
        let peer = self.peer;
        self.arrive(peer, datagram);
    }

    /// A stranger calls with a cookie that is good; everything else in its conclusion is anything.
    fn arrive_call(&mut self, input: &mut FuzzInput<'_>) {
        let caller = input.byte();
        let remote = SocketAddr::from(([203, 0, 113, caller], 9_000));
        let mut words = [0x8000_0000, 0, 7, 0, 4, 2, 9, 1_500, 8_192, 1, u32::from(caller), 0];
        let datagram = |words: &[u32]| -> Vec<u8> {
            words.iter().chain(&[0; 4]).flat_map(|word| word.to_be_bytes()).collect()
        };
        self.arrive(remote, datagram(&words));
        let answers = datagrams(&mut self.endpoint, self.now);
        let answer = answers.iter().find(|(path, _)| *path == remote);
        let Some(cookie) = answer.and_then(|it| it.1.get(44..48)) else { return };
        words[11] = u32::from_be_bytes([cookie[0], cookie[1], cookie[2], cookie[3]]);
        (words[4], words[5], words[9]) = (5, 5, 0xFFFF_FFFF);
        let change = usize::from(input.byte());
        if (4..9).contains(&change) {
            words[change] = input.u32();
        }
        let mut conclusion = datagram(&words);
        if input.next().is_none_or(|plain| plain % 4 > 0) {
            let extension = [0x0001_0003u32, 0x0001_0505, 0xBF, 0x0078_0000];
            conclusion.extend(extension.iter().flat_map(|word| word.to_be_bytes()));
        }
        conclusion.extend_from_slice(input.bytes());
        self.arrive(remote, conclusion);
    }

    fn arrive(&mut self, remote: SocketAddr, datagram: Vec<u8>) {
        self.owed += 2;
        self.endpoint.handle_datagram(self.now, remote, Bytes::from(datagram));
    }

    /// The application does something.
    fn apply(&mut self, verb: u8) {
        match verb % 6 {
            0 => {
                if let Some(mut connection) = self.endpoint.connection(self.now, self.connection) {
                    while let Ok(Some(_)) = connection.recv() {}
                }
            }
            1 => {
                if let Some(id) = self.incoming.pop()
                    && let Ok(accepted) = self.endpoint.accept(self.now, id, None)
                {
                    self.accepted.push(accepted);
                }
            }
            2 => {
                if let Some(id) = self.incoming.pop() {
                    self.endpoint.reject(id, RejectReason::NOT_FOUND);
                }
            }
            3 => {
                if let Some(id) = self.accepted.pop() {
                    self.endpoint.connection(self.now, id).expect("not released").release();
                }
            }
            4 | 5 if verb > 240 => {
                let connection = self.endpoint.connection(self.now, self.connection);
                if let Some(mut connection) = connection {
                    if verb % 6 == 4 { connection.close() } else { connection.release() }
                }
            }
            _ => {}
        }
        self.owed += 2;
    }

    /// Runs timers, sends and takes events until nothing is left to do now.
    fn settle(&mut self) {
        let mut sent = 0;
        // A pause lets each connection fall silent once and send again all it has.
        let most = self.owed + CONNECTIONS * (2 * WINDOW + 64);
        settle(|| {
            run_due(&mut self.endpoint, self.now);
            transmit(&mut self.endpoint, self.now, |_, datagram| {
                assert!(datagram.len() <= LONGEST, "a datagram too long");
                sent += 1;
            });
            while let Some(event) = self.endpoint.poll_event() {
                match event {
                    Event::Incoming(incoming) => self.incoming.push(incoming.id),
                    Event::IncomingGone(id) => self.incoming.retain(|&waiting| waiting != id),
                    _ => {}
                }
            }
            self.endpoint.poll_timeout().is_due(self.now)
        });
        assert!(sent <= most, "{sent} datagrams at once");
        self.owed = 0;
        assert!(self.incoming.len() <= BACKLOG);
        assert!(self.endpoint.connections().count() <= CONNECTIONS);
        if let Some(connection) = self.endpoint.connections().get(self.connection) {
            let statistics = connection.statistics(self.now);
            assert!(statistics.receive_buffer_packets as usize <= WINDOW);
            assert!(statistics.send_buffer_packets as usize <= WINDOW);
            assert!(statistics.flight_size as usize <= WINDOW);
        }
    }
}

/// Carries what `from` has to send over to `to`.
fn carry(from: &mut Endpoint, to: &mut Endpoint, address: SocketAddr) {
    transmit(from, START, |_, datagram| {
        to.handle_datagram(START, address, Bytes::copy_from_slice(datagram));
    });
}

/// The sequence number that both directions of the connection start at: fixed by the caller's seed.
fn isn_of_the_caller() -> SeqNo {
    let mut caller = Endpoint::new(EndpointConfig::new([1; 32]), START);
    let remote = SocketAddr::from(([192, 0, 2, 2], 9_000));
    caller.connect(START, remote, Config::default()).expect("an address");
    let mut induction = Vec::new();
    caller.poll_transmit(START, 1, &mut induction).expect("a request");
    SeqNo::new(u32::from_be_bytes([induction[24], induction[25], induction[26], induction[27]]))
}
