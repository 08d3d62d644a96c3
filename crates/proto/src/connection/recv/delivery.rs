//! The way in which received packets are delivered.

use punctual_units::Instant;
use punctual_wire::{DataHeader, SeqNo};

use super::buffer::{MessagePart, ReceiveBuffer};
use super::file::FileReceipt;
use super::group_bypass::GroupBypass;
use crate::config::Config;
use crate::connection::recv::messages::Messages;
use crate::handshake::Negotiated;
use crate::path::Path;

/// The way in which received packets become messages of the application.
#[derive(Debug)]
pub(super) enum Delivery {
    /// Live: each packet is a message, delivered when it is due.
    Live,
    /// Live, as a link of a balancing group, which gets each message as soon as it arrives.
    BalancedLink(Box<GroupBypass>),
    /// A file: messages of any size, or a stream of bytes.
    File(Box<FileReceipt>),
}

impl Delivery {
    pub(super) fn new(config: &Config, negotiated: &Negotiated, path: &Path) -> Self {
        FileReceipt::new(config, negotiated, path).map_or(Self::Live, Self::File)
    }

    /// Passes messages to a balancing group from now on.
    pub(super) fn bypass_to_group(&mut self) {
        if matches!(self, Self::Live) {
            *self = Self::BalancedLink(Box::default());
        }
    }

    /// The properties of the path have changed.
    pub(super) fn follow_path(&mut self, path: &Path) {
        if let Self::File(file) = self {
            file.follow_path(path);
        }
    }

    pub(super) const fn is_file(&self) -> bool {
        matches!(self, Self::File(_))
    }

    pub(super) const fn file(&self) -> Option<&FileReceipt> {
        match self {
            Self::File(file) => Some(file),
            Self::Live | Self::BalancedLink(_) => None,
        }
    }

    pub(super) const fn bypass(&self) -> Option<&GroupBypass> {
        match self {
            Self::BalancedLink(bypass) => Some(bypass),
            Self::Live | Self::File(_) => None,
        }
    }

    #[inline(always)]
    pub(super) const fn bypass_mut(&mut self) -> Option<&mut GroupBypass> {
        match self {
            Self::BalancedLink(bypass) => Some(bypass),
            Self::Live | Self::File(_) => None,
        }
    }

    /// The messages of several packets, in message mode.
    pub(super) fn messages(&mut self) -> Option<&mut Messages> {
        match self {
            Self::File(file) => file.messages(),
            Self::Live | Self::BalancedLink(_) => None,
        }
    }

    /// Whether this is a stream of bytes, without gaps.
    pub(super) fn is_stream(&self) -> bool {
        self.file().is_some_and(FileReceipt::is_stream)
    }

    /// Whether missing packets are never dropped, neither for being late nor for being skipped.
    pub(super) fn keeps_all(&self) -> bool {
        self.file().is_some_and(FileReceipt::keeps_all)
    }

    /// A data packet arrived with `payload` bytes, of `full` at most; returns its place in a
    /// message.
    #[inline(always)]
    pub(super) fn arrived(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: usize,
        full: usize,
    ) -> MessagePart {
        match self {
            Self::Live | Self::BalancedLink(_) => MessagePart::of_live(header.msgno),
            Self::File(file) => {
                file.arrived(now, header, payload, full);
                MessagePart::new(header.msgno, header.position, header.in_order)
            }
        }
    }

    /// A packet was stored at `seq`.
    #[inline(always)]
    pub(super) fn stored(&mut self, seq: SeqNo, buffer: &ReceiveBuffer) {
        if let Self::File(file) = self {
            file.stored(seq, buffer);
        }
    }

    /// Returns whether the last packet of a message or of a piece of a stream has arrived, and
    /// takes the mark back.
    pub(super) const fn take_quick_ack(&mut self) -> bool {
        match self {
            Self::File(file) => file.take_quick_ack(),
            Self::Live | Self::BalancedLink(_) => false,
        }
    }
}
