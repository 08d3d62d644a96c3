//! Streams of messages from one host to another, as an application would send and read them.

pub(crate) mod bond;
mod outcome;
mod payload;
mod receiving;

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{CloseReason, Config, ConnectionId, GroupKind, SendError, Transmission};
use punctual_units::Instant;

use self::bond::Bond;
pub use self::outcome::{LinkOutcome, StreamIntegrity, StreamOutcome, StreamSample};
use self::payload::Content;
use self::payload::MAX_PAYLOAD;
pub(crate) use self::payload::MIN_PAYLOAD;
use self::receiving::Receiving;
use crate::chance::{Chance, Purpose, derive};
use crate::error::WorldError;
use crate::host::Lateness;
use crate::memory::Memory;
use crate::schedule::{Pace, RateSchedule};
use crate::world::HostId;

/// A stream of messages from one host to another.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// How messages are carried.
    pub transport: Transport,
    /// How fast the application sends: payload bits a second since the connection stands.
    pub rate: RateSchedule,
    /// Bytes of each message: 24 up to the limit of the transport, which is 1456 over live SRT,
    /// 1472 over UDP, and a mebibyte in file mode.
    pub payload: usize,
    /// When the caller calls, or the first message is sent over UDP, since the world's start.
    pub start: Duration,
    /// The time for which the application sends, from the moment it can.
    pub duration: Duration,
    /// The host that sends.
    pub from: HostId,
    /// The host that receives.
    pub to: HostId,
    /// The period of the recorded statistics of both ends, from `start` on; `None` for no record.
    pub series: Option<Duration>,
}

/// How the messages of a stream are carried.
#[derive(Clone, Debug)]
pub enum Transport {
    /// A separate connection: live, or a file if the ends' [`Transmission`] says so. If the buffer
    /// is full, a live source loses the message; that of a file waits for room, and goes on with
    /// the messages that have become due meanwhile. In a byte stream, each `payload` bytes are a
    /// message.
    Srt {
        /// Options of the sending end.
        sender: Config,
        /// Options of the receiving end.
        receiver: Config,
        /// The end that calls; the other one listens.
        caller: End,
    },
    /// A group of connections that carry one live stream. A link that ends is called again each
    /// second as long as another one stands.
    Group {
        /// The kind of the group.
        kind: GroupKind,
        /// Options of the sending end, for each link.
        sender: Config,
        /// Options of the receiving end, for each link.
        receiver: Config,
        /// The end that calls; the other one listens.
        caller: End,
        /// The weight of the first link, which joins the stream's `from` and `to`.
        weight: u16,
        /// The other links.
        others: Vec<GroupLink>,
    },
    /// Bare datagrams.
    Udp,
}

/// A link of a group. Hosts represent the UDP ports of one machine, so all hosts of an end have the
/// same clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GroupLink {
    /// The host that sends.
    pub from: HostId,
    /// The host that receives.
    pub to: HostId,
    /// In a backup group the links are used in the order of their weights, highest first.
    pub weight: u16,
}

impl Transport {
    /// The options of the sending and the receiving end, and the end that calls.
    pub(crate) const fn ends(&self) -> Option<(&Config, &Config, End)> {
        match self {
            Self::Srt { sender, receiver, caller }
            | Self::Group { sender, receiver, caller, .. } => Some((sender, receiver, *caller)),
            Self::Udp => None,
        }
    }

    /// The options of the end that calls and of the one that listens.
    pub(crate) const fn calling_and_called(&self) -> Option<(&Config, &Config, End)> {
        match self.ends() {
            Some((sender, receiver, End::Sender)) => Some((sender, receiver, End::Sender)),
            Some((sender, receiver, End::Receiver)) => Some((receiver, sender, End::Receiver)),
            None => None,
        }
    }

    /// How data travel over SRT.
    pub(crate) fn transmission(&self) -> Option<Transmission> {
        self.ends().map(|(sender, ..)| sender.transmission())
    }

    /// Whether the sending application waits for room.
    fn is_file(&self) -> bool {
        self.transmission().is_some_and(|it| it != Transmission::Live)
    }
}

impl StreamConfig {
    /// The pairs of hosts that it joins: one, or one for each link of a group.
    pub(crate) fn links(&self) -> impl Iterator<Item = GroupLink> + '_ {
        let (first, others) = match &self.transport {
            Transport::Group { weight, others, .. } => (*weight, &others[..]),
            _ => (0, &[][..]),
        };
        let first = GroupLink { from: self.from, to: self.to, weight: first };
        std::iter::once(first).chain(others.iter().copied())
    }

    /// Whether both ends send and receive alike, and can do so with this transport.
    pub(crate) fn check_ends(&self) -> Result<(), WorldError> {
        let Some((sender, receiver, _)) = self.transport.ends() else { return Ok(()) };
        let is_group = matches!(self.transport, Transport::Group { .. });
        let fits = sender.transmission() == receiver.transmission()
            && !(is_group && self.transport.is_file());
        if fits { Ok(()) } else { Err(WorldError::Ends) }
    }

    /// The longest message that can be carried.
    pub(crate) fn max_payload(&self) -> usize {
        let Some((sender, receiver, _)) = self.transport.ends() else { return MAX_PAYLOAD };
        match sender.transmission() {
            Transmission::Live => sender.payload_size(),
            Transmission::Stream => MAX_FILE_PAYLOAD,
            Transmission::Messages => {
                let packets = sender.send_buffer().packets().min(receiver.receive_window());
                // Some of the packets may have to hold an authentication tag.
                let packet = sender.payload_size().saturating_sub(TAG);
                packets.saturating_mul(packet).min(MAX_FILE_PAYLOAD)
            }
        }
    }
}

/// The longest message of a file.
const MAX_FILE_PAYLOAD: usize = 1 << 20;
/// Bytes of AES-GCM's authentication tag.
const TAG: usize = 16;

/// An end of a stream.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum End {
    /// The end that sends messages.
    Sender,
    /// The end that receives them.
    Receiver,
}

impl End {
    /// The end opposite.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

/// A stream at work.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) config: StreamConfig,
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The way of bare datagrams.
    pub(crate) route: u32,
    pub(crate) phase: Phase,
    /// The connection at the sender's host and at the receiver's.
    connections: [Option<ConnectionId>; 2],
    /// The groups at both ends, if it is a stream over several links and has begun.
    pub(crate) bond: Option<Box<Bond>>,
    pub(crate) connected_at: Option<Instant>,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) refused: u64,
    pub(crate) receiving: Receiving,
    pub(crate) series: Vec<StreamSample>,
    pub(crate) sent: u64,
    content: Content,
    pace: Pace,
    /// When the application should send next.
    due: Option<Instant>,
    /// The last message of a file, while there is no room for it.
    waiting: Bytes,
    lateness: Lateness,
    chance: Chance,
}

/// The sending application's activity.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// It has not begun.
    Waiting,
    /// It cannot send yet.
    Connecting,
    /// It sends.
    Sending,
    /// It waits for room.
    Blocked,
    /// It has sent all, or cannot any more.
    Done,
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
        let content = Content { key: derive(seed, Purpose::Stream, index) };
        Self {
            from: config.from.index(),
            to: config.to.index(),
            route,
            phase: Phase::Waiting,
            connections: [None; 2],
            bond: None,
            connected_at: None,
            closed: None,
            refused: 0,
            receiving: Receiving::new(content, config.payload, config.transport.transmission()),
            series: Vec::new(),
            sent: 0,
            content,
            pace: Pace::new(config.rate.clone(), config.payload),
            due: None,
            waiting: Bytes::new(),
            lateness,
            chance: Chance::new(derive(seed, Purpose::Application, index)),
            config,
        }
    }

    /// The connection at one end.
    pub(crate) fn connection(&self, end: End) -> Option<ConnectionId> {
        self.connections[end as usize]
    }

    pub(crate) fn set_connection(&mut self, end: End, id: ConnectionId) {
        self.connections[end as usize] = Some(id);
    }

    /// When it starts.
    pub(crate) fn start(&self) -> Instant {
        Instant::ORIGIN + self.config.start
    }

    /// From `now` on the application can send; when it wakes up for its first message.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<Instant> {
        self.connected_at = Some(now);
        self.phase = Phase::Sending;
        self.advance();
        self.wake()
    }

    /// The message that the application sends at `now`, if one is due; or the rest of one.
    pub(crate) fn next_message(&mut self, now: Instant, memory: &mut Memory) -> Option<Bytes> {
        if !self.waiting.is_empty() {
            return (self.phase == Phase::Sending).then(|| std::mem::take(&mut self.waiting));
        }
        self.due.filter(|&due| due <= now)?;
        Some(self.content.write(memory, self.sent, now, self.config.payload))
    }

    /// The message was handed over, with this result; `rest` is the part that was not taken.
    pub(crate) fn submitted(&mut self, result: &Result<(), SendError>, rest: Bytes) {
        match result {
            Ok(()) => self.sent += 1,
            Err(SendError::Full) if self.config.transport.is_file() => {
                self.waiting = rest;
                self.phase = Phase::Blocked;
                return;
            }
            Err(SendError::Closed(_)) => return self.stop(),
            Err(_) => self.refused += 1,
        }
        self.advance();
    }

    /// There is room again; whether the application has waited for it.
    pub(crate) fn unblock(&mut self) -> bool {
        let waits = self.phase == Phase::Blocked;
        if waits {
            self.phase = Phase::Sending;
        }
        waits
    }

    /// How long the application has been waiting to hand over a due message.
    pub(crate) fn behind(&self, now: Instant) -> Duration {
        let due = self.due.filter(|_| self.phase == Phase::Blocked);
        due.map_or(Duration::ZERO, |due| now.saturating_since(due))
    }

    /// When the application wakes up to send its next message.
    pub(crate) fn wake(&mut self) -> Option<Instant> {
        let due = self.due.filter(|_| self.phase == Phase::Sending)?;
        let late = self.lateness;
        Some(if late.is_none() { due } else { due + late.draw(&mut self.chance) })
    }

    fn advance(&mut self) {
        let next = self.pace.next().filter(|&time| time < self.config.duration);
        self.due = self.connected_at.zip(next).map(|(begun, time)| begun + time);
        if self.due.is_none() {
            self.phase = Phase::Done;
        }
    }

    /// The connection ended.
    pub(crate) fn end(&mut self, reason: CloseReason) {
        self.closed.get_or_insert(reason);
        self.stop();
    }

    /// The application sends no more.
    pub(crate) fn stop(&mut self) {
        self.phase = Phase::Done;
        self.due = None;
        self.waiting = Bytes::new();
    }
}
