//! A carriage other than UDP: datagrams of at most 1,150 bytes in a queue, which becomes 900 while
//! streams run. Only the carriage itself knows how datagrams travel.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    CloseReason, Config, ConnectionGuard, ConnectionId, Endpoint, EndpointConfig, Event, PathId,
    PathProperties, RecvError, SendError, SendOptions, Transmission,
};
use punctual_testbed::{datagrams, run_due};
use punctual_units::Instant;

use crate::MS;

/// The transit time of a datagram.
const TRANSIT: Duration = Duration::from_millis(10);
/// Bytes that the carriage adds to each datagram.
const OVERHEAD: usize = 12;
const SRT_HEADER: usize = 16;
/// The name that each end gives the path to the other.
const PATHS: [PathId; 2] = [PathId::numbered(7), PathId::numbered(8)];
const CALLER: usize = 0;
const LISTENER: usize = 1;

/// Two ends, and the carriage between them.
struct Carriage {
    now: Instant,
    ends: [Endpoint; 2],
    ids: [Option<ConnectionId>; 2],
    /// Datagrams in flight, each with its arrival time and its destination end.
    queue: VecDeque<(Instant, usize, Vec<u8>)>,
    largest: usize,
    /// Whether datagrams that are handed back take another way; otherwise they are lost.
    reroutes: bool,
    handed_back: Vec<usize>,
    received: [Vec<Bytes>; 2],
}

/// The properties of a path that carries datagrams of this size.
fn properties(largest_datagram: Option<usize>) -> PathProperties {
    PathProperties { largest_datagram, overhead: OVERHEAD, moves: false, host: None }
}

impl Carriage {
    fn new() -> Self {
        let now = Instant::from_millis(1_000);
        let ends = [1, 2].map(|seed| Endpoint::new(EndpointConfig::new([seed; 32]), now));
        let mut carriage = Self {
            now,
            ends,
            ids: [None; 2],
            queue: VecDeque::new(),
            largest: 0,
            reroutes: true,
            handed_back: Vec::new(),
            received: [Vec::new(), Vec::new()],
        };
        carriage.set_largest(1_150);
        carriage
    }

    /// A connection between the two ends.
    fn connected(config: &Config) -> Self {
        Self::new().connect(config)
    }

    /// Calls the listener.
    fn connect(mut self, config: &Config) -> Self {
        let carriage = &mut self;
        carriage.ends[LISTENER].listen(Some(config.clone()));
        let call = carriage.ends[CALLER].connect(carriage.now, PATHS[CALLER], config.clone());
        carriage.ids[CALLER] = Some(call.expect("a path can be called"));
        carriage.run_for(MS(100));
        assert!(carriage.ids[LISTENER].is_some(), "the call was accepted");
        self
    }

    fn set_largest(&mut self, largest: usize) {
        self.largest = largest;
        let properties = properties(Some(largest));
        for (end, path) in self.ends.iter_mut().zip(PATHS) {
            end.set_path(self.now, path, properties);
        }
    }

    fn id(&self, end: usize) -> ConnectionId {
        self.ids[end].expect("a connection")
    }

    fn connection(&mut self, end: usize) -> ConnectionGuard<'_> {
        let id = self.id(end);
        self.ends[end].connection(self.now, id).expect("not released")
    }

    fn max_payload(&self) -> usize {
        self.max_payload_of(CALLER)
    }

    fn max_payload_of(&self, end: usize) -> usize {
        self.ends[end].connections().get(self.id(end)).expect("a connection").info().max_payload
    }

    fn send(&mut self, message: Vec<u8>) -> Result<(), SendError> {
        self.connection(CALLER).send(message.into(), SendOptions::default())
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            for index in [CALLER, LISTENER] {
                self.serve(index);
            }
            let timers = self.ends.iter().filter_map(|it| it.poll_timeout().instant(self.now));
            let arrival = self.queue.front().map(|&(at, ..)| at);
            let next = timers.chain(arrival).min().expect("connections have timers");
            if next > end {
                break;
            }
            self.now = self.now.max(next);
            while self.queue.front().is_some_and(|&(at, ..)| at <= self.now)
                && let Some((_, to, datagram)) = self.queue.pop_front()
            {
                self.ends[to].handle_datagram(self.now, PATHS[to], datagram.into());
            }
        }
        self.now = end;
    }

    /// Runs the timers of an end, takes its events and messages, and transports its datagrams.
    fn serve(&mut self, index: usize) {
        let (now, end) = (self.now, &mut self.ends[index]);
        run_due(end, now);
        while let Some(event) = end.poll_event() {
            match event {
                Event::Incoming(incoming) => {
                    assert_eq!(incoming.path, PATHS[index]);
                    self.ids[index] = end.accept(now, incoming.id, None).ok();
                }
                Event::Closed(_, reason) => panic!("{reason}"),
                _ => {}
            }
        }
        while let Some(id) = self.ids[index]
            && let Ok(Some(message)) = end.connection(now, id).expect("not released").recv()
        {
            self.received[index].push(message.payload);
        }
        for (path, datagram) in datagrams(end, now) {
            assert_eq!(path, PATHS[index]);
            assert!(datagram.len() <= self.largest, "{} bytes", datagram.len());
            self.queue.push_back((now + TRANSIT, 1 - index, datagram));
        }
        while let Some((path, datagram)) = end.poll_oversized() {
            assert_eq!(path, PATHS[index]);
            assert!(datagram.len() > self.largest, "{} bytes", datagram.len());
            self.handed_back.push(datagram.len());
            if self.reroutes {
                self.queue.push_back((now + TRANSIT, 1 - index, datagram));
            }
        }
    }
}

fn live() -> Config {
    Config::default().with_receive_latency(MS(120)).expect("a latency")
}

#[test]
fn a_live_stream_follows_the_largest_datagram_of_its_path() {
    let mut carriage = Carriage::connected(&live());
    let mut sent = Vec::new();
    for (count, largest) in [(50, 1_150), (50, 900), (50, 1_150)] {
        carriage.set_largest(largest);
        assert_eq!(carriage.max_payload(), largest - SRT_HEADER);
        for _ in 0..count {
            let message = vec![sent.len() as u8; carriage.max_payload()];
            carriage.send(message.clone()).expect("it fits");
            sent.push(message);
            carriage.run_for(MS(2));
        }
        let max = carriage.max_payload();
        let refused = carriage.send(vec![0; max + 1]);
        assert_eq!(refused, Err(SendError::Size { size: max + 1, max }));
    }
    carriage.run_for(MS(500));
    assert!(carriage.received[LISTENER] == sent, "{} of 150", carriage.received[LISTENER].len());
    let now = carriage.now;
    let statistics = carriage.connection(CALLER).statistics(now);
    let payload: usize = sent.iter().map(Vec::len).sum();
    let headers = sent.len() * (SRT_HEADER + OVERHEAD);
    assert_eq!(statistics.bytes_sent, (payload + headers) as u64);
    assert_eq!((statistics.packets_oversized, carriage.handed_back.len()), (0, 0));
}

/// Ten messages of full size wait when the path becomes narrower.
fn narrowed(reroutes: bool) -> Carriage {
    let mut carriage = Carriage::connected(&live());
    carriage.reroutes = reroutes;
    for i in 0..10 {
        carriage.send(vec![i; 1_134]).expect("it fits");
    }
    carriage.set_largest(900);
    for i in 10..20 {
        carriage.send(vec![i; 884]).expect("it fits");
        carriage.run_for(MS(2));
    }
    carriage.run_for(MS(500));
    carriage
}

#[test]
fn packets_too_long_for_a_narrowed_path_are_counted_and_handed_back() {
    let carriage = narrowed(true);
    assert_eq!(carriage.handed_back, [1_150; 10]);
    let firsts: Vec<u8> = carriage.received[LISTENER].iter().map(|message| message[0]).collect();
    assert_eq!(firsts, (0..20).collect::<Vec<u8>>());
    let statistics = carriage.ends[CALLER]
        .connections()
        .get(carriage.id(CALLER))
        .map(|it| it.statistics(carriage.now));
    assert_eq!(statistics.expect("a connection").packets_oversized, 10);
}

#[test]
fn a_stream_survives_a_carriage_that_drops_oversized_packets() {
    let carriage = narrowed(false);
    let firsts: Vec<u8> = carriage.received[LISTENER].iter().map(|message| message[0]).collect();
    assert_eq!(firsts, (10..20).collect::<Vec<u8>>(), "the others are dropped as too late");
    assert!(carriage.handed_back.len() > 10, "retransmissions are too long as well");
    let statistics = carriage.ends[CALLER]
        .connections()
        .get(carriage.id(CALLER))
        .map(|it| it.statistics(carriage.now));
    let counted = statistics.expect("a connection").packets_oversized;
    assert_eq!(counted, carriage.handed_back.len() as u64);
}

/// Only the caller's carriage knows its largest datagram: an end of another implementation learns
/// it from the MSS.
#[test]
fn both_ends_agree_on_a_payload_that_the_smaller_path_carries() {
    for (largest, agreed) in [(1_150, 1_134), (1_332, 1_316), (1_400, 1_316)] {
        for (small, large) in [(CALLER, LISTENER), (LISTENER, CALLER)] {
            let mut carriage = Carriage::new();
            carriage.set_largest(largest);
            let properties = properties(None);
            carriage.ends[large].set_path(carriage.now, PATHS[large], properties);
            let carriage = carriage.connect(&live());
            assert_eq!(carriage.max_payload_of(small), agreed);
            assert_eq!(carriage.max_payload_of(large), agreed);
        }
    }
}

#[test]
fn a_byte_stream_is_split_by_the_largest_datagram_of_its_path() {
    let config = Config::file().with_transmission(Transmission::Stream);
    let mut carriage = Carriage::connected(&config);
    let bytes: Vec<u8> = (0..400_000_u32).map(|i| (i % 251) as u8).collect();
    let mut left = Bytes::from(bytes.clone());
    while !left.is_empty() {
        if left.len() < 200_000 && carriage.largest > 900 {
            carriage.set_largest(900);
        }
        let mut piece = left.slice(..left.len().min(20_000));
        let size = piece.len();
        match carriage.connection(CALLER).write(&mut piece) {
            Ok(taken) => left = left.slice(taken..),
            Err(SendError::Full) => {}
            Err(error) => panic!("{error}, {size} bytes"),
        }
        carriage.run_for(MS(5));
    }
    carriage.run_for(MS(2_000));
    assert_eq!(carriage.received[LISTENER].concat(), bytes);
    let pieces = &carriage.received[LISTENER];
    assert!(pieces.iter().any(|piece| piece.len() > 1_000));
    assert!(pieces.last().is_some_and(|piece| piece.len() <= 884));
}

#[test]
fn a_connection_stays_on_its_path_if_the_carriage_follows_the_peer() {
    let mut carriage = Carriage::connected(&live());
    carriage.send(vec![1; 100]).expect("it fits");
    let mut buffer = Vec::new();
    let sent = carriage.ends[CALLER].poll_transmit(carriage.now, 1, &mut buffer);
    assert!(sent.is_some());
    let other_path = PathId::numbered(9);
    carriage.ends[LISTENER].handle_datagram(carriage.now, other_path, buffer.into());
    let mut answer = Vec::new();
    assert_eq!(carriage.ends[LISTENER].poll_transmit(carriage.now, 1, &mut answer), None);
    let info = carriage.connection(LISTENER).info();
    assert_eq!(info.path, PATHS[LISTENER]);
}

#[test]
fn a_lost_path_ends_its_connections_and_leaves_received_messages() {
    let mut carriage = Carriage::connected(&live());
    carriage.send(vec![1; 100]).expect("it fits");
    carriage.run_for(MS(50));
    let (now, id) = (carriage.now, carriage.id(LISTENER));
    let end = &mut carriage.ends[LISTENER];
    assert!(end.uses_path(PATHS[LISTENER]) && !end.uses_path(PATHS[CALLER]));
    end.lose_path(now, PATHS[LISTENER], "the tunnel has ended");
    assert!(!end.uses_path(PATHS[LISTENER]));
    let closed = std::iter::from_fn(|| end.poll_event()).find_map(|event| match event {
        Event::Closed(closed, reason) if closed == id => Some(reason),
        _ => None,
    });
    let reason = CloseReason::PathLost("the tunnel has ended".into());
    assert_eq!(closed, Some(reason.clone()));
    assert_eq!(reason.to_string(), "the tunnel has ended");
    let due = now + MS(200);
    let mut connection = end.connection(due, id).expect("not released");
    let message = connection.recv().expect("a message").expect("it is due");
    assert_eq!(message.payload, vec![1; 100]);
    let after = connection.recv().map(|it| it.is_some());
    assert_eq!(after, Err(RecvError::Closed(reason)));
}

#[test]
fn a_lost_path_ends_a_call_under_way() {
    let mut carriage = Carriage::new();
    let (now, path) = (carriage.now, PATHS[CALLER]);
    let end = &mut carriage.ends[CALLER];
    let id = end.connect(now, path, live()).expect("a path can be called");
    assert!(end.uses_path(path));
    end.lose_path(now, path, "gone");
    let Some(Event::Closed(closed, CloseReason::PathLost(_))) = end.poll_event() else {
        panic!("the call goes on")
    };
    assert_eq!(closed, id);
    assert_eq!(end.poll_transmit(now, 4, &mut Vec::new()), None);
    assert!(!end.poll_timeout().is_due(now + MS(60_000)), "a timer is left");
}
