//! How a stream is defined.

use std::time::Duration;

use punctual_proto::{Config, GroupKind, Transmission};

use super::payload::{MAX_FILE_PAYLOAD, MAX_PAYLOAD};
use crate::error::WorldError;
use crate::ids::HostId;
use crate::schedule::RateSchedule;

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
        others: Vec<GroupLinkConfig>,
    },
    /// Bare datagrams.
    Udp,
    /// Messages over QUIC without SRT; the sender calls.
    #[cfg(feature = "quic")]
    Quic,
}

/// A link of a group. Hosts represent the UDP ports of one machine, so all hosts of an end have the
/// same clock.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GroupLinkConfig {
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
    pub(crate) fn is_file(&self) -> bool {
        self.transmission().is_some_and(|it| it != Transmission::Live)
    }
}

impl StreamConfig {
    /// The pairs of hosts that it joins: one, or one for each link of a group.
    pub(crate) fn links(&self) -> impl Iterator<Item = GroupLinkConfig> + '_ {
        let (first, others) = match &self.transport {
            Transport::Group { weight, others, .. } => (*weight, &others[..]),
            _ => (0, &[][..]),
        };
        let first = GroupLinkConfig { from: self.from, to: self.to, weight: first };
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
        if let Transport::Quic = self.transport {
            return crate::bare_quic::MAX_PAYLOAD;
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
