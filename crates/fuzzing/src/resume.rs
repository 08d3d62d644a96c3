//! The records by which two ends resume a stream, from a peer that may know the secret of the
//! stream.

use bytes::{Bytes, BytesMut};
use punctual_proto::write_control_frame;
use punctual_resume::{MemorySpool, PeerFormat, Receiver, ResumePeer, Sender, StreamSecret};

use crate::forge::FORGED;
use crate::input::FuzzInput;
use crate::packet_cost::of_one_packet;

/// A sender and a receiver of one stream, each with a peer of its own that sends any bytes, records
/// with borders of the number space in their fields, and messages, over several connections. Then a
/// sound connection between a sound receiver and the sender: it gets all that the sender still has.
pub(crate) fn run(input: &[u8]) {
    let mut input = FuzzInput(input);
    let mut world = World::new();
    while let Some(step) = input.next() {
        if step >= FORGED {
            of_one_packet(|| {
                world.forge(step, &mut FuzzInput(input.bytes()));
                world.check();
            });
        } else {
            world.step(step, input.byte(), input.byte());
            world.check();
        }
    }
    deliver(&mut world.sender);
}

/// Offsets that are special, or distances from an expected one.
const BORDERS: [u64; 16] = [
    0,
    1,
    8,
    64,
    1_000,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    1 << 53,
    1 << 62,
    (1 << 63) - 1,
    1 << 63,
    (1 << 63) + 1,
    u64::MAX - 8,
    u64::MAX,
];

const LIMIT: u64 = 100_000;
/// A control frame is a record; the record with the longest fields has 49 bytes.
const KINDS: u8 = 9;

struct World {
    secret: StreamSecret,
    sender: Sender<MemorySpool>,
    receiver: Receiver,
    /// Whether the peer of the sender, and that of the receiver, has a connection.
    connected: [bool; 2],
    /// Bytes of messages that the receiver's peer has sent.
    sent: u64,
}

impl World {
    fn new() -> Self {
        let secret = StreamSecret::new([1; 16]).expect("it is not zero");
        let mut sender = Sender::new(secret, MemorySpool::new(LIMIT));
        assert!(sender.push(Bytes::from_static(b"a message")).is_ok());
        let receiver = Receiver::default();
        Self { secret, sender, receiver, connected: [false; 2], sent: 0 }
    }

    /// The application does something, or a connection ends.
    fn step(&mut self, step: u8, first: u8, second: u8) {
        match step % 5 {
            0 => {
                let message = vec![step; usize::from(first) * usize::from(second % 8)];
                // There may be no room.
                let _ = self.sender.push(message.into());
            }
            1 => self.receiver.written(self.receiver.taken().saturating_sub(first.into())),
            2 => self.receiver.written(self.receiver.taken()),
            3 => {
                self.sender.disconnected();
                self.connected[0] = false;
            }
            _ => self.connected[1] = false,
        }
    }

    /// The peer of one end sends something. Without a connection it calls first.
    fn forge(&mut self, step: u8, input: &mut FuzzInput<'_>) {
        let to = usize::from(step & 1);
        if !self.connected[to] {
            self.connected[to] = true;
            match to {
                0 => self.call_sender(input),
                _ => self.call_receiver(input),
            }
        }
        let mut bytes = BytesMut::new();
        match step >> 1 & 7 {
            0 => bytes.extend_from_slice(input.bytes()),
            1 => self.message(input, &mut bytes),
            2 => {
                // A part of a frame.
                self.record(to, input, &mut bytes);
                bytes.truncate(usize::from(input.byte()));
            }
            _ => self.record(to, input, &mut bytes),
        }
        self.take(to, &bytes);
    }

    /// The sender takes bytes, or the receiver.
    fn take(&mut self, to: usize, bytes: &[u8]) {
        let kept = match to {
            0 => self.sender.receive(bytes).is_ok(),
            _ => {
                let mut messages = Vec::new();
                let taken = self.receiver.taken();
                let kept = self.receiver.receive(bytes, &mut messages).is_ok();
                let came: u64 = messages.iter().map(|message| message.len() as u64).sum();
                assert_eq!(self.receiver.taken() - taken, came);
                self.sent += bytes.len() as u64;
                kept
            }
        };
        self.connected[to] = kept;
    }

    /// A record of any kind, with fields at the borders.
    fn record(&self, to: usize, input: &mut FuzzInput<'_>, bytes: &mut BytesMut) {
        let expected = match to {
            0 => {
                let kept = self.sender.kept();
                if input.byte().is_multiple_of(2) { kept.first } else { kept.end }
            }
            _ => self.receiver.taken(),
        };
        let kind = input.byte() % (KINDS + 2);
        let mut record = vec![kind];
        let (randoms, offsets) = match kind {
            1 => (16, 0),
            2 => (48, 0),
            3 => (32, 2),
            5 => (16, 1),
            6..=8 => (0, 1),
            _ => (0, 0),
        };
        let random = input.byte();
        record.extend((0..randoms).map(|_| random));
        for _ in 0..offsets {
            record.extend(offset(input, expected).to_be_bytes());
        }
        match input.byte() {
            // Of another length than it should have.
            0 => record.truncate(usize::from(input.byte())),
            1 => record.extend([7; 9]),
            _ => {}
        }
        write_control_frame(&record, bytes).expect("a short record");
    }

    fn message(&self, input: &mut FuzzInput<'_>, bytes: &mut BytesMut) {
        let message = vec![7; usize::from(input.u16() % 2_000)];
        punctual_proto::write_frame(&message, bytes).expect("a short message");
    }

    /// A receiver calls the sender and proves that the stream is its own, at any position, or asks
    /// for a new stream. It is sound up to there.
    fn call_sender(&mut self, input: &mut FuzzInput<'_>) {
        let kept = self.sender.kept();
        let choice = input.byte();
        let mut other = match choice & 3 {
            0 => Receiver::default(),
            1 => Receiver::resuming(self.secret, offset(input, kept.first) % (1 << 63)),
            2 => Receiver::resuming(self.secret, offset(input, kept.end) % (1 << 63)),
            _ => Receiver::resuming(StreamSecret::new([9; 16]).expect("not zero"), kept.first),
        };
        let peer = if choice & 4 == 0 { ResumePeer::Anybody } else { ResumePeer::Chosen };
        if self.sender.connected(PeerFormat::Resumable([2; 16]), peer).is_err() {
            return;
        }
        other.connected([3; 16], ResumePeer::Chosen);
        for _ in 0..4 {
            let Some(bytes) = other.next_bytes() else { break };
            self.take(0, &bytes);
            while let Ok(Some(bytes)) = self.sender.next_bytes() {
                let _ = other.receive(&bytes, &mut Vec::new());
            }
        }
    }

    /// A sender of this stream or of another one calls the receiver. It is sound up to the
    /// beginning of the stream.
    fn call_receiver(&mut self, input: &mut FuzzInput<'_>) {
        let choice = input.byte();
        let other = if choice & 3 == 3 { 9 } else { 1 };
        let other = StreamSecret::new([other; 16]).expect("not zero");
        let first = offset(input, self.receiver.taken()) % (1 << 63);
        let mut sender = Sender::new(other, MemorySpool::at(first, LIMIT));
        assert!(sender.push(Bytes::from_static(b"a message")).is_ok());
        let peer = if choice & 4 == 0 { ResumePeer::Anybody } else { ResumePeer::Chosen };
        assert!(sender.connected(PeerFormat::Resumable([2; 16]), ResumePeer::Chosen).is_ok());
        self.receiver.connected([3; 16], peer);
        for _ in 0..if choice & 8 == 0 { 2 } else { 4 } {
            if let Some(bytes) = self.receiver.next_bytes() {
                let _ = sender.receive(&bytes);
            }
            while let Ok(Some(bytes)) = sender.next_bytes() {
                self.take(1, &bytes);
            }
        }
    }

    /// Both ends come to rest, and keep no more than they may.
    fn check(&mut self) {
        while let Ok(Some(_)) = self.sender.next_bytes() {}
        while self.receiver.next_bytes().is_some() {}
        let kept = self.sender.kept();
        assert!(kept.first <= kept.end && kept.len() <= LIMIT);
        assert!(self.receiver.taken() <= self.sent, "no byte comes from nowhere");
    }
}

/// An offset at a border, or a border away from `expected`.
fn offset(input: &mut FuzzInput<'_>, expected: u64) -> u64 {
    let choice = input.byte();
    let border = BORDERS[usize::from(choice & 15)];
    match choice >> 4 {
        0..=6 => expected.wrapping_add(border),
        7..=10 => expected.wrapping_sub(border),
        11..=14 => border,
        _ => input.u64(),
    }
}

/// A receiver that knows nothing gets all that the sender still has.
fn deliver(sender: &mut Sender<MemorySpool>) {
    let mut receiver = Receiver::default();
    sender.end();
    assert!(sender.connected(PeerFormat::Resumable([2; 16]), ResumePeer::Chosen).is_ok());
    receiver.connected([3; 16], ResumePeer::Chosen);
    let kept = sender.kept().len();
    let mut messages = Vec::new();
    while !sender.is_complete() {
        let mut to_sender = BytesMut::new();
        while let Some(bytes) = receiver.next_bytes() {
            to_sender.extend_from_slice(&bytes);
        }
        sender.receive(&to_sender).expect("a sound receiver");
        while let Some(bytes) = sender.next_bytes().expect("a spool in memory") {
            receiver.receive(&bytes, &mut messages).expect("a sound sender");
        }
        receiver.written(receiver.taken());
    }
    assert_eq!(receiver.taken(), kept);
}
