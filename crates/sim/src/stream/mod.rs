//! Streams of messages from one host to another, as an application would send and read them.

mod outcome;
mod payload;
mod receiving;

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{CloseReason, Config, ConnectionId, SendError};
use punctual_units::Instant;

pub use self::outcome::{StreamIntegrity, StreamOutcome, StreamSample};
use self::payload::Content;
pub(crate) use self::payload::{MAX_PAYLOAD, MIN_PAYLOAD};
use self::receiving::Receiving;
use crate::chance::{Chance, Purpose, derive};
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
    /// Bytes of each message: 24 to what the transport takes, 1456 at most over SRT and 1472 over
    /// UDP.
    pub payload: usize,
    /// When the caller calls, or the first message is sent over UDP, since the world's start.
    pub start: Duration,
    /// How long the application sends, from the moment it can.
    pub duration: Duration,
    /// The host that sends.
    pub from: HostId,
    /// The host that receives.
    pub to: HostId,
    /// How often both ends' statistics are written down, from `start` on; `None` for never.
    pub series: Option<Duration>,
}

/// How the messages of a stream are carried.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each stream, not for each packet")]
pub enum Transport {
    /// A connection of its own.
    Srt {
        /// Options of the sending end.
        sender: Config,
        /// Options of the receiving end.
        receiver: Config,
        /// The end that calls; the other one listens.
        caller: End,
    },
    /// Bare datagrams.
    Udp,
}

/// An end of a stream.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum End {
    /// The end that sends messages.
    Sender,
    /// The end that receives them.
    Receiver,
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
    lateness: Lateness,
    chance: Chance,
}

/// What the sending application does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Phase {
    /// It has not begun.
    Waiting,
    /// It cannot send yet.
    Connecting,
    /// It sends.
    Sending,
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
            connected_at: None,
            closed: None,
            refused: 0,
            receiving: Receiving::new(content, config.payload),
            series: Vec::new(),
            sent: 0,
            content,
            pace: Pace::new(config.rate.clone(), config.payload),
            due: None,
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

    /// The message that the application sends at `now`, if one is due.
    pub(crate) fn next_message(&self, now: Instant, memory: &mut Memory) -> Option<Bytes> {
        self.due.filter(|&due| due <= now)?;
        Some(self.content.write(memory, self.sent, now, self.config.payload))
    }

    /// The message was handed over, with this result.
    pub(crate) fn submitted(&mut self, result: &Result<(), SendError>) {
        match result {
            Ok(()) => self.sent += 1,
            Err(SendError::Closed(_)) => {
                self.due = None;
                self.phase = Phase::Done;
                return;
            }
            Err(_) => self.refused += 1,
        }
        self.advance();
    }

    /// When the application wakes up to send its next message.
    pub(crate) fn wake(&mut self) -> Option<Instant> {
        let due = self.due?;
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
    }
}
