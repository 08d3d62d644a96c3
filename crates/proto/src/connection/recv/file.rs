use punctual_units::Instant;
use punctual_wire::{DataHeader, SeqNo};

use super::buffer::ReceiveBuffer;
use super::delivery_rate::DeliveryRate;
use super::pairs::ProbePairs;
use crate::config::{Config, SRT_HEADER, Transmission, UDP_IPV6_OVERHEAD};
use crate::handshake::Negotiated;
use crate::mode::{Messages, Mode};

/// Bytes that a packet filter and an authentication tag may take of a full packet.
const EXTRAS: usize = 20;

/// The additional work of a file's receiver: it measures the rates that file congestion control
/// uses, puts messages together, and acknowledges the end of each at once.
#[derive(Debug)]
pub(crate) struct FileReceipt {
    rate: DeliveryRate,
    pairs: ProbePairs,
    mode: Mode,
    /// A payload below this ends a message or a piece of a stream, and is acknowledged at once.
    full: usize,
    quick_ack: bool,
}

impl FileReceipt {
    /// `None` for live connections.
    pub(crate) fn new(config: &Config, negotiated: &Negotiated) -> Option<Box<Self>> {
        (config.transmission() != Transmission::Live).then(|| {
            Box::new(Self {
                rate: DeliveryRate::new(),
                pairs: ProbePairs::new(),
                mode: Mode::new(config, negotiated.fixed.receive_isn),
                full: negotiated.fixed.mss.saturating_sub(UDP_IPV6_OVERHEAD + SRT_HEADER + EXTRAS),
                quick_ack: false,
            })
        })
    }

    /// A data packet came, whatever it was, with `payload` bytes of `full`.
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

    /// Whether a packet came that ends a message or a piece of a stream; tells once.
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

    /// Where packets become messages of several.
    pub(crate) fn messages(&mut self) -> Option<&mut Messages> {
        match &mut self.mode {
            Mode::Messages(messages) => Some(messages),
            Mode::Packets | Mode::Stream => None,
        }
    }

    /// Whether bytes are delivered in order and none may be left out.
    pub(crate) const fn is_stream(&self) -> bool {
        matches!(self.mode, Mode::Stream)
    }

    /// Whether nothing is given up because it is late, or because more came behind it.
    pub(crate) const fn keeps_all(&self) -> bool {
        !matches!(self.mode, Mode::Packets)
    }
}
