//! The packet filter: forward error correction between the send buffer and the network, and between
//! the network and the receive buffer. It repairs losses without retransmissions \[packetfilter\].
//!
//! A connection uses a filter through two small traits, one for each direction; both are made from
//! the configuration that the two ends agreed on. The only filter is `fec`: parity packets over
//! rows and columns (SMPTE 2022-1 as in libsrt). A filter sees packets as they are on the wire:
//! encrypted, if the connection is.

pub(crate) mod config;
mod grid;
mod parity;
mod receive;
mod send;

#[cfg(test)]
mod tests;

use std::fmt::Debug;

use bytes::Bytes;
use punctual_wire::{DataHeader, SeqNo};

pub(crate) use self::config::{Arq, Fec, FilterConfig};

/// The filter of a sender: it sees every original, and adds parity packets.
pub(crate) trait SendFilter: Debug + Send {
    /// An original is sent.
    fn feed(&mut self, header: &DataHeader, payload: &[u8]);

    /// Whether a parity packet waits. It has to be sent before the next original.
    fn has_parity_due(&self) -> bool;

    /// Appends the next parity packet, with its header, to `out`; `false` if none waits.
    fn write(&mut self, out: &mut Vec<u8>) -> bool;
}

/// The filter of a receiver: it sees every data packet on arrival, and reports the packets that it
/// rebuilt or could not rebuild.
pub(crate) trait ReceiveFilter: Debug + Send {
    /// A data packet arrived: one of the stream, or a parity packet of the peer's filter.
    fn handle(&mut self, header: &DataHeader, payload: &Bytes, findings: &mut Findings);

    /// The stream pauses, or has ended: reports the missing packets whose groups do not end for
    /// the time being.
    fn pause(&mut self, findings: &mut Findings);
}

/// The results of a receiving filter for one packet.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Rebuilt packets. They are marked as retransmissions, since they are out of order although
    /// the network did not reorder them.
    pub(crate) rebuilt: Vec<(DataHeader, Bytes)>,
    /// Runs of missing sequence numbers (first, last) whose groups have all ended, or do not go on;
    /// each is reported once. They can still be rebuilt later, by way of other rebuilt packets.
    pub(crate) lost: Vec<(SeqNo, SeqNo)>,
    /// The packet is invalid for the filter.
    pub(crate) is_invalid: bool,
}
