//! The established connection of a socket: one of its own, or a group of links.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use punctual::{
    Config, ConfigError, Error, Group, Message, MsgNo, Phase, Readiness, SendOptions, Socket,
    Statistics, Submitted, Transmission, Watcher,
};

use super::buffer_means::BufferMeans;

/// Bytes of the largest payload of a packet.
const LARGEST_PAYLOAD: usize = 1_456;

/// A connection, or a group of links.
#[derive(Clone, Debug)]
pub(super) enum Carrier {
    Connection(Socket),
    Group(GroupSlot),
}

/// The place of a group. Once a group has lost all its links, another one can carry the stream of
/// the same socket.
#[derive(Clone, Debug)]
pub(super) struct GroupSlot(Arc<Mutex<Group>>);

impl GroupSlot {
    pub(super) fn new(group: Group) -> Self {
        Self(Arc::new(Mutex::new(group)))
    }

    /// The present group.
    pub(super) fn get(&self) -> Group {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another group in the place. Returns the one before.
    pub(super) fn replace(&self, group: Group) -> Group {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), group)
    }
}

impl Carrier {
    /// The phase of the connection.
    pub(super) fn phase(&self) -> Phase {
        match self {
            Self::Connection(socket) => socket.phase(),
            Self::Group(slot) => slot.get().phase(),
        }
    }

    /// Tells `watcher` of its changes.
    pub(super) fn watch(&self, watcher: Weak<dyn Watcher>) {
        match self {
            Self::Connection(socket) => socket.watch(watcher),
            Self::Group(slot) => slot.get().watch(watcher),
        }
    }

    /// Whether it was ever established.
    pub(super) fn was_connected(&self) -> bool {
        match self {
            Self::Connection(socket) => socket.was_connected(),
            Self::Group(slot) => slot.get().was_connected(),
        }
    }
}

/// An established connection, with the terms that each call reads.
#[derive(Debug)]
pub(super) struct Link {
    carrier: Carrier,
    pub(super) mode: Transmission,
    /// Whether messages are delivered by their origin times.
    pub(super) is_timed: bool,
    /// The sequence number of the first packet that this end sends.
    pub(super) first_sequence: i32,
    /// Bytes of the largest payload of a packet.
    packet: usize,
    pub(super) means: BufferMeans,
}

impl Link {
    pub(super) fn new(carrier: Carrier) -> Self {
        let mode = match &carrier {
            Carrier::Connection(socket) => socket.info().transmission,
            Carrier::Group(_) => Transmission::Live,
        };
        let first = match &carrier {
            Carrier::Connection(socket) => socket.next_message(),
            Carrier::Group(_) => None,
        };
        let first_sequence = first.and_then(|(seq, _)| i32::try_from(seq.value()).ok());
        let packet = match &carrier {
            Carrier::Connection(socket) => socket.config().payload_size(),
            Carrier::Group(_) => LARGEST_PAYLOAD,
        };
        let is_timed = match &carrier {
            Carrier::Connection(socket) => mode == Transmission::Live && socket.config().tsbpd(),
            Carrier::Group(_) => true,
        };
        let first_sequence = first_sequence.unwrap_or(0);
        Self { carrier, mode, is_timed, first_sequence, packet, means: BufferMeans::default() }
    }

    /// The packets of a message of this many bytes.
    pub(super) const fn packets(&self, bytes: usize) -> usize {
        match self.mode {
            Transmission::Live => 1,
            Transmission::Messages | Transmission::Stream => bytes.div_ceil(self.packet),
        }
    }

    /// Whether it is a connection of its own that carries live messages.
    pub(super) const fn is_live(&self) -> bool {
        matches!((&self.carrier, self.mode), (Carrier::Connection(_), Transmission::Live))
    }

    /// The connection, if the link is not a group.
    pub(super) const fn connection(&self) -> Option<&Socket> {
        match &self.carrier {
            Carrier::Connection(socket) => Some(socket),
            Carrier::Group(_) => None,
        }
    }

    /// Whether it is a group of which no link is established yet.
    pub(super) fn is_connecting(&self) -> bool {
        match &self.carrier {
            Carrier::Connection(_) => false,
            Carrier::Group(slot) => !slot.get().was_connected(),
        }
    }

    /// Appends messages that are due, at most `limit`. Returns whether further ones may be due; if
    /// not, the connection becomes readable with the next one.
    pub(super) fn receive(&self, messages: &mut Vec<Message>, limit: usize) -> Result<bool, Error> {
        match &self.carrier {
            Carrier::Connection(socket) => socket.try_recv_many(messages, limit),
            Carrier::Group(slot) => {
                let (group, before) = (slot.get(), messages.len());
                while messages.len() - before < limit {
                    match group.try_recv() {
                        Ok(Some(message)) => messages.push(message),
                        Ok(None) => return Ok(false),
                        Err(error) if messages.len() == before => return Err(error),
                        Err(_) => return Ok(true),
                    }
                }
                // The group tells of further ones only after it had none.
                Ok(true)
            }
        }
    }

    /// Submits a message; `None` if there is no room.
    pub(super) fn send(
        &self,
        payload: Bytes,
        options: SendOptions,
        number: Option<MsgNo>,
    ) -> Result<Option<Submitted>, Error> {
        match &self.carrier {
            Carrier::Connection(socket) => socket.try_send_with(payload, options, number),
            // There is room once a link is established.
            Carrier::Group(_) if self.is_connecting() => Ok(None),
            Carrier::Group(slot) => slot.get().try_send_with(&payload, options),
        }
    }

    /// Submits bytes from the front of `data` to a stream; `None` if there is no room.
    pub(super) fn write(
        &self,
        data: &mut Bytes,
        number: Option<MsgNo>,
    ) -> Result<Option<Submitted>, Error> {
        match &self.carrier {
            Carrier::Connection(socket) => socket.try_write_with(data, number),
            Carrier::Group(_) => Err(Error::NoStream),
        }
    }

    /// Whether there is room for a packet; if not, the socket becomes writable when there is.
    pub(super) fn has_room(&self) -> bool {
        match &self.carrier {
            Carrier::Connection(socket) => socket.await_room(),
            Carrier::Group(slot) => slot.get().readiness().writable,
        }
    }

    pub(super) fn readiness(&self) -> Readiness {
        match &self.carrier {
            Carrier::Connection(socket) => socket.readiness(),
            Carrier::Group(slot) => slot.get().readiness(),
        }
    }

    pub(super) fn phase(&self) -> Phase {
        self.carrier.phase()
    }

    pub(super) fn begin_close(&self) {
        match &self.carrier {
            Carrier::Connection(socket) => socket.begin_close(),
            Carrier::Group(slot) => slot.get().begin_close(),
        }
    }

    /// Closes without lingering.
    pub(super) fn begin_abort(&self) {
        match &self.carrier {
            Carrier::Connection(socket) => socket.begin_abort(),
            Carrier::Group(slot) => slot.get().begin_close(),
        }
    }

    pub(super) fn statistics(&self) -> Statistics {
        match &self.carrier {
            Carrier::Connection(socket) => socket.statistics(),
            Carrier::Group(slot) => slot.get().statistics(),
        }
    }

    /// The packets and payload bytes in the send buffer, and the time that they span in
    /// milliseconds.
    pub(super) fn send_buffer(&self) -> (usize, usize, i32) {
        let statistics = self.statistics();
        let packets = usize::try_from(statistics.send_buffer_packets).unwrap_or(usize::MAX);
        let bytes = usize::try_from(statistics.send_buffer_bytes).unwrap_or(usize::MAX);
        let span = i32::try_from(statistics.send_buffer_span.as_millis()).unwrap_or(i32::MAX);
        (packets, bytes, span)
    }

    pub(super) fn configure(
        &self,
        change: impl Fn(Config) -> Result<Config, ConfigError>,
    ) -> Result<(), ConfigError> {
        match &self.carrier {
            Carrier::Connection(socket) => socket.configure(change),
            Carrier::Group(slot) => slot.get().configure(change),
        }
    }
}
