//! The handshake of each role, fed with changed answers of an honest peer: a caller, a listener, or
//! one end of a rendezvous.
//!
//! It never panics, comes to rest, keeps and sends little; and whatever it was told, it serves the
//! next caller who is honest.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{Attempt, Endpoint, EndpointConfig, Event};
use punctual_testbed::{datagrams, run_due, settle};
use punctual_units::Instant;

use crate::config::drawn;
use crate::input::{FuzzInput, START};

/// The most datagrams of one step: the answers of all handshakes that the input can begin.
const MOST_AT_ONCE: usize = 1_024;

/// The first three bytes choose role and options; each three after them decide the fate of the next
/// datagram to the end under test.
pub(crate) fn run(input: &[u8]) {
    let mut input = FuzzInput(input);
    let mut dialogue = Dialogue::new(input.byte(), input.byte(), input.byte());
    while let Some(what) = input.next() {
        dialogue.step(what, input.byte(), input.byte());
    }
    dialogue.now += Duration::from_secs(20);
    dialogue.exchange();
    dialogue.expect_service();
}

struct Dialogue {
    now: Instant,
    tested: Endpoint,
    honest: Endpoint,
    /// The datagrams of the honest end, and how many of them the other has received.
    said: Vec<Vec<u8>>,
    told: usize,
}

impl Dialogue {
    fn new(kind: u8, basic: u8, extra: u8) -> Self {
        let mut tested = Endpoint::new(EndpointConfig::new([1; 32]), START);
        let mut honest = Endpoint::new(EndpointConfig::new([2; 32]), START);
        let config = || drawn(basic, extra);
        match kind % 4 {
            0 => {
                honest.listen(Some(config()));
                drop(tested.connect(START, HONEST(), config()));
            }
            1 => {
                tested.listen(Some(config()));
                drop(honest.connect(START, TESTED(), config()));
            }
            _ => {
                drop(tested.connect(START, HONEST(), Attempt::rendezvous(config())));
                drop(honest.connect(START, TESTED(), Attempt::rendezvous(config())));
            }
        }
        let mut dialogue = Self { now: START, tested, honest, said: Vec::new(), told: 0 };
        dialogue.exchange();
        dialogue
    }

    fn step(&mut self, what: u8, at: u8, value: u8) {
        match what % 12 {
            // Said earlier, or to somebody else.
            0 => self.tell_again(at.into(), |_| {}),
            1 => self.now += Duration::from_millis(u64::from(at) * 8),
            2 => self.told = self.said.len().min(self.told + 1),
            3..=5 => self.tell(|_| {}),
            6 => self.tell(|bytes| bytes.truncate(4 * usize::from(at))),
            7 => self.tell(|bytes| bytes.extend(std::iter::repeat_n(value, at.into()))),
            8 => self.tell(|bytes| set_word(bytes, at, [0, 0, 0, value])),
            9 => self.tell(|bytes| set_word(bytes, at, [value; 4])),
            10 => self.tell_again(value.into(), |bytes| flip(bytes, at, what | 1)),
            _ => self.tell(|bytes| flip(bytes, at, value)),
        }
        self.exchange();
    }

    fn tell(&mut self, change: impl FnOnce(&mut Vec<u8>)) {
        if self.told < self.said.len() {
            self.told += 1;
            self.tell_again(self.told - 1, change);
        }
    }

    fn tell_again(&mut self, which: usize, change: impl FnOnce(&mut Vec<u8>)) {
        let Some(said) = self.said.get(which) else { return };
        let mut bytes = said.clone();
        change(&mut bytes);
        self.tested.handle_datagram(self.now, HONEST(), bytes.into());
    }

    /// Takes the datagrams of both ends; those of the tested one are delivered unchanged.
    fn exchange(&mut self) {
        for _ in 0..4 {
            for (to, bytes) in turn(&mut self.tested, self.now) {
                if to == HONEST() {
                    self.honest.handle_datagram(self.now, TESTED(), Bytes::from(bytes));
                }
            }
            let said = turn(&mut self.honest, self.now);
            self.said.extend(said.into_iter().map(|(_, bytes)| bytes));
            // More than this repeats itself.
            let most = self.said.len().min(256);
            self.said.drain(..self.said.len() - most);
            self.told = self.told.min(most);
        }
    }

    /// Somebody who was not here yet calls, and is connected.
    fn expect_service(mut self) {
        let address = SocketAddr::from(([203, 0, 113, 9], 9));
        let mut caller = Endpoint::new(EndpointConfig::new([9; 32]), self.now);
        self.tested.listen(Some(drawn(0, 0)));
        let call = caller.connect(self.now, TESTED(), drawn(0, 0)).expect("an address");
        for _ in 0..4 {
            for (_, bytes) in turn(&mut caller, self.now) {
                self.tested.handle_datagram(self.now, address, bytes.into());
            }
            for (to, bytes) in turn(&mut self.tested, self.now) {
                if to == address {
                    caller.handle_datagram(self.now, TESTED(), bytes.into());
                }
            }
        }
        let call = caller.connections().get(call).expect("not released");
        assert!(call.info().connected, "nobody is served any more");
    }
}

/// Runs timers, accepts and reads, and takes outgoing datagrams, until nothing is left to do.
fn turn(endpoint: &mut Endpoint, now: Instant) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut sent = Vec::new();
    settle(|| {
        run_due(endpoint, now);
        while let Some(event) = endpoint.poll_event() {
            match event {
                Event::Incoming(incoming) => drop(endpoint.accept(now, incoming.id, None)),
                Event::Readable(id) => {
                    if let Some(mut connection) = endpoint.connection(now, id) {
                        while let Ok(Some(_)) = connection.recv() {}
                    }
                }
                Event::Closed(id, reason) => {
                    drop(reason.to_string());
                    endpoint.connection(now, id).expect("not released").release();
                }
                _ => {}
            }
        }
        for (path, datagram) in datagrams(endpoint, now) {
            assert!(datagram.len() <= 1_472, "a datagram too long");
            sent.push((path.address().expect("the fuzzer calls addresses"), datagram));
        }
        endpoint.poll_timeout().is_due(now)
    });
    assert!(sent.len() <= MOST_AT_ONCE, "{} datagrams at once", sent.len());
    sent
}

fn set_word(bytes: &mut [u8], at: u8, word: [u8; 4]) {
    if let Some(place) = bytes.chunks_exact_mut(4).nth(at.into()) {
        place.copy_from_slice(&word);
    }
}

fn flip(bytes: &mut [u8], at: u8, mask: u8) {
    if let Some(byte) = bytes.get_mut(usize::from(at)) {
        *byte ^= mask;
    }
}

const TESTED: fn() -> SocketAddr = || SocketAddr::from(([192, 0, 2, 1], 9_000));
const HONEST: fn() -> SocketAddr = || SocketAddr::from(([192, 0, 2, 2], 9_000));
