//! The packet filter: what stands between the send buffer and the network, and between the network
//! and the receive buffer, to repair losses without asking for them again \[packetfilter\].
//!
//! A connection reaches a filter through two small traits, one for each direction, and both are
//! made by what the two ends agreed on. There is one filter, `fec`: forward error correction by
//! parity over rows and columns (SMPTE 2022-1 as libsrt has it). Filters see packets as they are on
//! the wire: encrypted, if the connection is.

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
use self::receive::FecReceiver;
use self::send::FecSender;

/// The way out: sees every packet that is sent for the first time, and adds packets of its own.
pub(crate) trait SendFilter: Debug + Send {
    /// An original goes out.
    fn feed(&mut self, header: &DataHeader, payload: &[u8]);

    /// Whether a packet of the filter's waits. It goes out before the next original.
    fn owes(&self) -> bool;

    /// Appends the next packet of the filter's, header and all, to `out`; `false` if none waits.
    fn write(&mut self, out: &mut Vec<u8>) -> bool;
}

/// The way in: sees every data packet as it comes, and tells what it could repair and what not.
pub(crate) trait ReceiveFilter: Debug + Send {
    /// A data packet came in, of the application's or of the peer's filter.
    fn handle(&mut self, header: &DataHeader, payload: &Bytes, findings: &mut Findings);
}

/// What a receiving filter found out from one packet.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// Packets rebuilt, marked as sent again: they come out of order, though no network overtook
    /// them.
    pub(crate) rebuilt: Vec<(DataHeader, Bytes)>,
    /// Runs of numbers that are missing though all their groups are over, (first, last); each is
    /// told once. Only a chain of others that are rebuilt later can still bring them.
    pub(crate) lost: Vec<(SeqNo, SeqNo)>,
    /// The packet broke the rules of the filter.
    pub(crate) odd: bool,
}

impl Fec {
    /// Bytes behind the header that the filter's packets need above the largest payload.
    pub(crate) const OVERHEAD: usize = parity::PREFIX;

    /// The way out of a connection whose first packet is number `isn`.
    pub(crate) fn sender(&self, isn: SeqNo) -> Box<dyn SendFilter> {
        Box::new(FecSender::new(self.grid(), isn))
    }

    /// The way into a connection whose first packet is number `isn`.
    pub(crate) fn receiver(&self, isn: SeqNo) -> Box<dyn ReceiveFilter> {
        Box::new(FecReceiver::new(self.grid(), isn))
    }
}
