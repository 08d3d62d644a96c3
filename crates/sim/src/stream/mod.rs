//! Streams of messages from one host to another, as an application would send and read them.

pub(crate) mod bond;
mod outcome;
mod payload;
mod receiving;
mod sending;

use std::time::Duration;

use punctual_proto::{CloseReason, Config, ConnectionId, GroupKind, Transmission};
use punctual_units::Instant;

use self::bond::Bond;
pub use self::outcome::{LinkOutcome, StreamIntegrity, StreamOutcome, StreamSample};
use self::payload::Content;
use self::payload::MAX_PAYLOAD;
pub(crate) use self::payload::MIN_PAYLOAD;
use self::receiving::Receiving;
pub(crate) use self::sending::{Phase, Sending};
use crate::error::WorldError;
use crate::host::Lateness;
use crate::schedule::RateSchedule;
use crate::seeds::{Purpose, SplitMix64, derive};
use crate::world::HostId;

/// A stream of messages from one host to another.
#[derive(Clone, Debug)]
pub struct StreamConfig {
    /// How messages are carried.
    pub transport: Transport,
    /// The rate of the application: payload bits a second since the connection is established.
    pub rate: RateSchedule,
    /// Bytes of each message: 24 up to the limit of the transport, which is 1456 over live SRT,
    /// 1472 over UDP, 1414 in a datagram of QUIC, and a mebibyte in file mode or on a stream of
    /// QUIC.
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
    /// second as long as another one is established.
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
    /// Messages over QUIC without SRT; the sender calls.
    #[cfg(feature = "quic")]
    Quic(crate::QuicCarry),
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
            _ => None,
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
        #[cfg(feature = "quic")]
        if let Transport::Quic(carry) = self.transport {
            return carry.max_payload();
        }
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
pub(crate) const MAX_FILE_PAYLOAD: usize = 1 << 20;
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
        let content = Content { key: derive(seed, Purpose::Stream, index) };
        let chance = SplitMix64::new(derive(seed, Purpose::Application, index));
        Self {
            from: config.from.index(),
            to: config.to.index(),
            route,
            connections: [None; 2],
            bond: None,
            closed: None,
            sending: Sending::new(&config, content, lateness, chance),
            receiving: Receiving::new(content, config.payload, config.transport.transmission()),
            series: Vec::new(),
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

    pub(crate) fn is_bare_udp(&self) -> bool {
        matches!(self.config.transport, Transport::Udp)
    }

    /// When it starts.
    pub(crate) fn start(&self) -> Instant {
        Instant::ORIGIN + self.config.start
    }

    /// The connection ended.
    pub(crate) fn end(&mut self, reason: CloseReason) {
        self.closed.get_or_insert(reason);
        self.sending.stop();
    }
}
