//! The way in which received packets are delivered.

use punctual_wire::{DataHeader, SeqNo};

use super::buffer::{MessagePart, ReceiveBuffer};
use super::messages::Messages;
use crate::config::Config;
use crate::transmission::Transmission;

/// The way in which received packets become data for the application.
#[derive(Debug)]
pub(super) enum Delivery {
    /// Live: each packet is a message, delivered when it is due.
    Live,
    /// A file whose packets are its messages. Missing packets are given up when they are too late,
    /// if that is allowed.
    Packets,
    /// A file: a message is delivered when all its packets have come.
    Messages(Box<Messages>),
    /// A file: bytes are delivered in order and without gaps.
    Stream,
}

impl Delivery {
    /// The delivery of a connection whose first packet has number `isn`.
    pub(super) fn new(config: &Config, isn: SeqNo) -> Self {
        match config.transmission() {
            Transmission::Live => Self::Live,
            Transmission::Stream => Self::Stream,
            Transmission::Messages if config.joins_messages() => {
                Self::Messages(Box::new(Messages::new(isn, config.overtaking())))
            }
            Transmission::Messages => Self::Packets,
        }
    }

    #[inline(always)]
    pub(super) const fn is_file(&self) -> bool {
        !matches!(self, Self::Live)
    }

    /// Whether this is a stream of bytes, without gaps.
    pub(super) const fn is_stream(&self) -> bool {
        matches!(self, Self::Stream)
    }

    /// Whether missing packets are never dropped, neither for being late nor for being skipped.
    pub(super) const fn keeps_all(&self) -> bool {
        matches!(self, Self::Messages(_) | Self::Stream)
    }

    /// The messages of several packets, in message mode.
    pub(super) const fn messages(&mut self) -> Option<&mut Messages> {
        match self {
            Self::Messages(messages) => Some(messages),
            Self::Live | Self::Packets | Self::Stream => None,
        }
    }

    /// The part of a message that a packet of this header carries.
    #[inline(always)]
    pub(super) const fn part(&self, header: &DataHeader) -> MessagePart {
        match self {
            Self::Live => MessagePart::of_live(header.msgno),
            Self::Packets | Self::Messages(_) | Self::Stream => {
                MessagePart::new(header.msgno, header.position, header.in_order)
            }
        }
    }

    /// A packet was stored at `seq`.
    #[inline(always)]
    pub(super) fn stored(&mut self, seq: SeqNo, buffer: &ReceiveBuffer) {
        if let Self::Messages(messages) = self {
            messages.stored(seq, buffer);
        }
    }
}
