//! The forms in which the application receives data: live messages of one packet, which the
//! receiving half delivers itself when they are due; messages of any size; or a stream of bytes.

use punctual_wire::SeqNo;

use super::messages::Messages;
use crate::config::Config;
use crate::transmission::Transmission;

/// The way in which received packets become data for the application.
#[derive(Debug)]
pub(crate) enum Mode {
    /// Each packet is a message. Missing packets are given up when they are too late, if that is
    /// allowed.
    Packets,
    /// A message is delivered when all its packets have come.
    Messages(Box<Messages>),
    /// Bytes are delivered in order and without gaps.
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
