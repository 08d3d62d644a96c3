//! A stream over a network that goes away, between processes that are killed, in virtual time.

#![expect(clippy::cast_possible_truncation, reason = "the numbers of a scenario are small")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{LinkConfig, Loss};
use punctual_proto::{Config, ConnectionId, Endpoint, RecvError};
use punctual_resume::{
    Beginning, Kept, MemorySpool, Nonce, PeerFormat, Receiver, ResumePeer, Sender, Spool,
    SpoolError, StreamSecret,
};
use punctual_testbed::datagram::noise;
use punctual_testbed::node::{EPOCH, endpoint_config};
use punctual_testbed::{Pair, Random, Side};
use punctual_units::{Bitrate, Instant};

#[test]
fn ten_outages_of_ten_seconds_cost_no_byte() {
    let mut world = World::new(1, 64 << 20);
    for _ in 0..10 {
        world.run_for(SECOND * 10);
        world.black_out(SECOND * 10);
    }
    let produced = world.finish();
    // The last hundredth of a second is not produced any more.
    assert_eq!(produced, 20_000 * 12_500 - 12_500, "the source had to wait");
    assert!(world.calls >= 11, "the connection survived: {} calls", world.calls);
    assert_eq!(world.duplicates + world.missing, 0);
}

#[test]
fn a_spool_that_is_full_holds_the_source_back() {
    let mut world = World::new(2, 4 << 20);
    world.run_for(SECOND * 5);
    world.black_out(SECOND * 20);
    let produced = world.finish();
    assert!(produced < 25 * 10_000_000 / 8 - 4_000_000, "{produced} bytes");
    assert!(world.longest_spool <= 4 << 20);
}

#[test]
fn processes_that_are_killed_and_started_again_cost_no_byte() {
    for seed in 0..SEEDS {
        let mut world = World::new(seed, 64 << 20);
        for _ in 0..10 {
            let wait = world.random.millis(15_000);
            world.run_for(wait);
            match world.random.below(4) {
                0 => world.kill_sender(),
                1 => world.kill_receiver(),
                2 => {
                    world.kill_receiver();
                    world.kill_sender();
                }
                _ => world.black_out(SECOND * 10),
            }
        }
        world.finish();
        assert_eq!(world.duplicates + world.missing, 0, "seed {seed}");
    }
}

/// A sender that calls, whose spool survives it, and a receiver that listens and writes a file.
struct World {
    pair: Pair,
    random: Random,
    source: Source,
    sender: Sender<File>,
    spool: File,
    receiver: Receiver,
    /// Bytes that an end's connection had no room for yet.
    unsent: [Bytes; 2],
    /// The listener's connection, as far as the receiver knows.
    accepted: Option<ConnectionId>,
    is_connected: bool,
    next_call: Instant,
    calls: u32,
    produced: u64,
    has_ended: bool,
    /// Messages that the receiver's file does not have yet.
    unwritten: VecDeque<u8>,
    recording: Vec<u8>,
    /// The stream in the recording, once one has begun.
    recorded: Option<StreamSecret>,
    duplicates: u64,
    missing: u64,
    longest_spool: u64,
}

impl World {
    fn new(seed: u64, limit: u64) -> Self {
        let link = LinkConfig::default()
            .with_delay(Duration::from_millis(50))
            .with_rate(Some(Bitrate::from_mbps(50)))
            .with_loss(Loss::Random(0.01))
            .expect("a share");
        let pair = Pair::symmetric(seed, link);
        let mut random = Random(seed);
        let spool = File(Rc::new(RefCell::new(MemorySpool::new(limit))));
        let mut world = Self {
            next_call: pair.now,
            pair,
            source: Source::new(&mut random),
            random,
            sender: Sender::new(secret(), spool.clone()),
            spool,
            receiver: Receiver::default(),
            unsent: Default::default(),
            accepted: None,
            is_connected: false,
            calls: 0,
            produced: 0,
            has_ended: false,
            unwritten: VecDeque::new(),
            recording: Vec::new(),
            recorded: None,
            duplicates: 0,
            missing: 0,
            longest_spool: 0,
        };
        world.pair.caller.reads = false;
        world.pair.listener.reads = false;
        world.pair.listener.endpoint.listen(Some(config()));
        world
    }

    fn run_for(&mut self, time: Duration) {
        let end = self.pair.now + time;
        while self.pair.now < end {
            self.tick();
        }
    }

    /// Runs while no datagram arrives at either end.
    fn black_out(&mut self, time: Duration) {
        self.pair.drop_where(|_, _| true);
        self.run_for(time);
        self.pair.untap();
    }

    /// Ends the stream, waits until the sender knows that all is written, and compares the
    /// recording. Returns its length.
    fn finish(&mut self) -> u64 {
        self.has_ended = true;
        let limit = self.pair.now + SECOND * 120;
        while !self.sender.is_complete() {
            assert!(self.pair.now < limit, "not complete: {:?}", self.sender.kept());
            self.tick();
        }
        assert_eq!(self.recording.len() as u64, self.produced);
        assert!(self.source.is_begun_by(&self.recording), "the recording has wrong bytes");
        self.produced
    }

    /// The next hundredth of a second.
    fn tick(&mut self) {
        self.produce();
        self.call();
        self.receive();
        self.send();
        self.write();
        self.pair.run_for(TICK);
    }

    /// 10 Mb/s, as far as there is room.
    fn produce(&mut self) {
        let goal = (self.pair.now - EPOCH).as_millis() as u64 * 1_250;
        if self.has_ended {
            self.sender.end();
            return;
        }
        while self.produced < goal {
            let len = (goal - self.produced).min(1_316);
            let message = self.source.message(self.produced, len);
            let len = message.len() as u64;
            if self.sender.push(message).is_err() {
                break;
            }
            self.produced += len;
        }
        self.longest_spool = self.longest_spool.max(self.sender.kept().len());
    }

    fn call(&mut self) {
        let now = self.pair.now;
        let is_lost = self.pair.caller.closed().is_some();
        if is_lost {
            self.sender.disconnected();
            self.pair.release(Side::Caller);
            self.pair.caller.connection = None;
        }
        if self.pair.caller.connection.is_none() && now >= self.next_call {
            self.next_call = now + SECOND;
            self.calls += 1;
            (self.is_connected, self.pair.caller.connected) = (false, false);
            self.pair.call(config(), config());
        }
        if self.pair.caller.connected && !self.is_connected {
            self.is_connected = true;
            self.unsent[0].clear();
            let format = PeerFormat::Resumable(self.nonce());
            self.sender.connected(format, ResumePeer::Anybody).expect("it resumes");
        }
    }

    fn send(&mut self) {
        while let Some(bytes) = self.read(Side::Caller) {
            self.sender.receive(&bytes).expect("the receiver keeps to the protocol");
        }
        while self.is_connected && self.pair.caller.connection.is_some() {
            if self.unsent[0].is_empty() {
                let Some(next) = self.sender.next_bytes().expect("a spool in memory") else {
                    break;
                };
                self.unsent[0] = next;
            }
            let Ok(1..) = self.pair.write(Side::Caller, &mut self.unsent[0]) else { break };
        }
    }

    fn receive(&mut self) {
        if self.pair.listener.connection != self.accepted {
            self.accepted = self.pair.listener.connection;
            self.unsent[1].clear();
            let nonce = self.nonce();
            self.receiver.connected(nonce, ResumePeer::Anybody);
        }
        while let Some(bytes) = self.read(Side::Listener) {
            let mut messages = Vec::new();
            let begun = self.receiver.receive(&bytes, &mut messages);
            if let Some(beginning) = begun.expect("the sender keeps to the protocol") {
                self.record(beginning);
            }
            self.unwritten.extend(messages.iter().flatten());
        }
        while self.accepted.is_some() {
            if self.unsent[1].is_empty() {
                let Some(next) = self.receiver.next_bytes() else { break };
                self.unsent[1] = next;
            }
            let Ok(1..) = self.pair.write(Side::Listener, &mut self.unsent[1]) else { break };
        }
    }

    fn record(&mut self, beginning: Beginning) {
        self.recorded = Some(beginning.stream);
        let has = (self.recording.len() + self.unwritten.len()) as u64;
        self.duplicates += has.saturating_sub(beginning.offset);
        self.missing += beginning.offset.saturating_sub(has);
    }

    /// A disk that writes now and then, and no whole messages.
    fn write(&mut self) {
        if self.random.one_in(10) {
            let len = self.random.below(self.unwritten.len() as u32 + 1) as usize;
            self.recording.extend(self.unwritten.drain(..len));
            self.receiver.written(self.receiver.taken() - self.unwritten.len() as u64);
        }
    }

    fn nonce(&mut self) -> Nonce {
        std::array::from_fn(|_| self.random.next_u32() as u8)
    }

    fn read(&mut self, side: Side) -> Option<Bytes> {
        let now = self.pair.now;
        let node = self.pair.node(side);
        match node
            .endpoint
            .connection(node.local(now), node.connection?)
            .expect("not released")
            .recv()
        {
            Ok(message) => message.map(|message| message.payload),
            Err(RecvError::Closed(_)) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// The sender's process ends without a word; the next one finds its spool.
    fn kill_sender(&mut self) {
        let config = endpoint_config(self.random.next_u32().into(), 1);
        self.pair.caller.endpoint = Endpoint::new(config, self.pair.now);
        self.pair.caller.connection = None;
        self.is_connected = false;
        self.sender = Sender::new(secret(), self.spool.clone());
    }

    /// The receiver's process ends without a word; the next one finds its recording.
    fn kill_receiver(&mut self) {
        let endpoint = endpoint_config(self.random.next_u32().into(), 2);
        self.pair.listener.endpoint = Endpoint::new(endpoint, self.pair.now);
        self.pair.listener.endpoint.listen(Some(config()));
        (self.pair.listener.connection, self.accepted) = (None, None);
        self.unwritten.clear();
        self.receiver = match self.recorded {
            Some(stream) => Receiver::resuming(stream, self.recording.len() as u64),
            None => Receiver::default(),
        };
    }
}

/// A spool that outlives its process.
#[derive(Clone)]
struct File(Rc<RefCell<MemorySpool>>);

impl Spool for File {
    fn kept(&self) -> Kept {
        self.0.borrow().kept()
    }

    fn push(&mut self, message: Bytes) -> Result<(), SpoolError> {
        self.0.borrow_mut().push(message)
    }

    fn read(&mut self, offset: u64) -> Result<Option<Bytes>, SpoolError> {
        self.0.borrow_mut().read(offset)
    }

    fn release(&mut self, offset: u64) -> Result<(), SpoolError> {
        self.0.borrow_mut().release(offset)
    }

    fn has_begun(&self) -> bool {
        self.0.borrow().has_begun()
    }

    fn begin(&mut self) -> Result<(), SpoolError> {
        self.0.borrow_mut().begin()
    }
}

fn config() -> Config {
    Config::file().with_framing(true).with_resume(true)
}

fn secret() -> StreamSecret {
    StreamSecret::new([1; 16]).expect("not zero")
}

/// An endless source: noise of a prime length, again and again.
struct Source(Bytes);

impl Source {
    fn new(random: &mut Random) -> Self {
        Self(noise(random, 65_521).into())
    }

    /// At most `len` bytes from `offset` on.
    fn message(&self, offset: u64, len: u64) -> Bytes {
        let start = (offset % self.0.len() as u64) as usize;
        self.0.slice(start..self.0.len().min(start + len as usize))
    }

    fn is_begun_by(&self, bytes: &[u8]) -> bool {
        bytes.chunks(self.0.len()).all(|chunk| self.0.starts_with(chunk))
    }
}

const SECOND: Duration = Duration::from_secs(1);
const TICK: Duration = Duration::from_millis(10);

/// Worlds in which processes are killed.
const SEEDS: u64 = 8;
