//! What the application receives: live messages of one packet at their time, which the receiving
//! half delivers by itself; messages of any size; or a stream of bytes.

mod messages;

pub(crate) use self::messages::{Messages, ReassembledMessage};
use punctual_wire::SeqNo;

use crate::config::{Config, Transmission};

/// How received packets become what the application reads.
#[derive(Debug)]
pub(crate) enum Mode {
    /// A message is a packet. What is missing is given up, if that is allowed, when it is too late.
    Packets,
    /// A message is delivered when all its packets are there.
    Messages(Box<Messages>),
    /// Bytes are delivered in order, and nothing is ever left out.
    Stream,
}

impl Mode {
    pub(crate) fn new(config: &Config, isn: SeqNo) -> Self {
        match config.transmission() {
            Transmission::Stream => Self::Stream,
            Transmission::Messages if config.joins_messages() => {
                Self::Messages(Box::new(Messages::new(isn, config.overtaking())))
            }
            Transmission::Live | Transmission::Messages => Self::Packets,
        }
    }
}
