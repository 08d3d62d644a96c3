//! The packets of the model.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

/// A packet on a link. Its content is not bytes: the model knows their sizes alone.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Packet {
    /// Bytes of the UDP payload.
    pub(crate) bytes: usize,
    /// Its number. The model has one space of packet numbers for each direction.
    pub(crate) number: u64,
    /// Whether the receiver must acknowledge it (RFC 9002 section 2: ack-eliciting).
    pub(crate) ack_eliciting: bool,
    pub(crate) content: Content,
    pub(crate) ack: Option<AckFrame>,
    /// How the sender wants acknowledgements from now on.
    pub(crate) ack_request: Option<AckRequest>,
    /// Whether it was damaged on the link; the receiver cannot decrypt it.
    pub(crate) is_damaged: bool,
}

/// The content of a packet beside acknowledgements.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Content {
    /// Nothing, or padding.
    None,
    /// A step of the handshake.
    Handshake(Step),
    /// Bytes of the stream.
    Stream(Vec<Range<u64>>),
}

/// The steps of a handshake that tell the other end something.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Step {
    /// The client's first packet.
    ClientHello,
    /// The first packet of the server's flight.
    ServerHello,
    /// The rest of the server's flight.
    ServerFinished,
    /// The client has finished.
    ClientFinished,
    /// The client's request, in the packet behind.
    Request,
}

/// An ACK frame (RFC 9000 section 19.3).
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct AckFrame {
    /// The acknowledged numbers, from the highest range down.
    pub(crate) ranges: Vec<RangeInclusive<u64>>,
    /// How long the greatest number waited for this frame.
    pub(crate) delay: Duration,
}

/// An `ACK_FREQUENCY` frame (draft-ietf-quic-ack-frequency).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct AckRequest {
    /// The packets after which one acknowledgement is due.
    pub(crate) packets: u64,
    /// The time after which it is due in any case.
    pub(crate) delay: Duration,
}

impl punctual_netem::Packet for Packet {
    fn len(&self) -> usize {
        self.bytes
    }

    fn corrupt(&mut self, _: u64) {
        self.is_damaged = true;
    }
}
