use punctual_units::Instant;
use punctual_wire::{DataHeader, SeqNo};

use super::buffer::ReceiveBuffer;
use super::delivery_rate::DeliveryRate;
use super::pairs::ProbePairs;
use crate::config::Config;
use crate::connection::recv::messages::Messages;
use crate::connection::recv::mode::Mode;
use crate::handshake::Negotiated;
use crate::path::Path;
use crate::transmission::Transmission;

/// Bytes that a packet filter and an authentication tag may take of a full packet.
const EXTRAS: usize = 20;

/// The least payload of a full packet over this path, for any headers of the peer.
fn least_full(path: &Path, mss: usize) -> usize {
    path.least_packet_room(mss).saturating_sub(EXTRAS)
}

/// The additional work of a file's receiver: it measures the rates that file congestion control
/// uses, puts messages together, and acknowledges the end of each at once.
#[derive(Debug)]
pub(crate) struct FileReceipt {
    rate: DeliveryRate,
    pairs: ProbePairs,
    mode: Mode,
    mss: usize,
    /// A payload below this ends a message or a piece of a stream, and is acknowledged at once.
    full: usize,
    quick_ack: bool,
}

impl FileReceipt {
    /// `None` for live connections.
    pub(crate) fn new(config: &Config, negotiated: &Negotiated, path: &Path) -> Option<Box<Self>> {
        (config.transmission() != Transmission::Live).then(|| {
            Box::new(Self {
                rate: DeliveryRate::new(),
                pairs: ProbePairs::new(),
                mode: Mode::new(config, negotiated.fixed.receive_isn),
                mss: negotiated.fixed.mss,
                full: least_full(path, negotiated.fixed.mss),
                quick_ack: false,
            })
        })
    }

    /// The properties of the path have changed.
    pub(crate) fn follow_path(&mut self, path: &Path) {
        self.full = least_full(path, self.mss);
    }

    /// A data packet of any kind arrived, with `payload` bytes; a full one has `full`.
    #[inline(never)]
    pub(crate) fn arrived(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: usize,
        full: usize,
    ) {
        self.rate.arrived(now);
        self.pairs.arrived(now, header.seq, header.retransmitted, payload, full);
        self.quick_ack |= payload < self.full;
    }

    /// A packet was stored at `seq`.
    #[inline(never)]
    pub(crate) fn stored(&mut self, seq: SeqNo, buffer: &ReceiveBuffer) {
        if let Mode::Messages(messages) = &mut self.mode {
            messages.stored(seq, buffer);
        }
    }

    /// Returns whether the last packet of a message or of a piece of a stream has arrived, and
    /// takes the mark back.
    pub(crate) const fn take_quick_ack(&mut self) -> bool {
        std::mem::replace(&mut self.quick_ack, false)
    }

    /// Packets per second that arrive; 0 if unknown.
    pub(crate) fn packets_per_sec(&self) -> u32 {
        self.rate.packets_per_sec(self.capacity())
    }

    /// Packets of full size per second that the link seems to carry; 0 if unknown.
    pub(crate) fn capacity(&self) -> u32 {
        self.pairs.capacity(self.rate.grain())
    }

    /// The messages of several packets, in message mode.
    pub(crate) fn messages(&mut self) -> Option<&mut Messages> {
        match &mut self.mode {
            Mode::Messages(messages) => Some(messages),
            Mode::Packets | Mode::Stream => None,
        }
    }

    /// Whether bytes are delivered in order, without gaps.
    pub(crate) const fn is_stream(&self) -> bool {
        matches!(self.mode, Mode::Stream)
    }

    /// Whether missing packets are never dropped, neither for being late nor for being skipped.
    pub(crate) const fn keeps_all(&self) -> bool {
        !matches!(self.mode, Mode::Packets)
    }
}
