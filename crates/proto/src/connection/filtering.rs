//! The receiving side of the packet filter, in front of the receiving half.

use bytes::Bytes;
use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{DataHeader, MsgNo, SeqNo};

use super::recv::ReceiveHalf;
use crate::crypt;
use crate::crypt::Crypt;
use crate::filter::{Arq, Fec, Findings, ReceiveFilter};

/// The receiving filter of a connection.
#[derive(Debug)]
pub(super) struct Filtering {
    filter: Box<dyn ReceiveFilter>,
    /// Empty between packets; kept for its memory.
    findings: Findings,
    /// Packets that broke the filter's rules.
    ignored: u64,
    /// Whether a loss is reported when the filter can no longer rebuild it.
    reports: bool,
    /// When to look whether the stream pauses; `None` while no packet is missing.
    look: Option<Instant>,
}

/// A data packet as it arrived.
#[derive(Debug)]
pub(super) struct ArrivedPacket<'a> {
    pub(super) now: Instant,
    /// When the packet before it arrived from the peer.
    pub(super) previous: Instant,
    pub(super) header: &'a DataHeader,
    pub(super) payload: Bytes,
}

impl Filtering {
    /// The filter of a connection whose first packet has the sequence number `isn`.
    pub(super) fn new(fec: &Fec, isn: SeqNo) -> Self {
        Self {
            filter: fec.receiver(isn),
            findings: Findings::default(),
            ignored: 0,
            reports: fec.arq() == Arq::OnRequest,
            look: None,
        }
    }

    /// When to call [`look_for_pause`](Self::look_for_pause).
    pub(super) const fn next_look(&self) -> Option<Instant> {
        self.look
    }

    /// If the stream pauses or has ended, the parity packets that would rebuild the missing packets
    /// do not come: the packets are reported, while their retransmissions can still be in time.
    pub(super) fn look_for_pause(&mut self, receiver: &mut ReceiveHalf, now: Instant, rtt: Rtt) {
        self.look = receiver.pauses_at(now).filter(|&at| at > now);
        if self.look.is_some() {
            return;
        }
        self.filter.pause(&mut self.findings);
        for (first, last) in self.findings.lost.drain(..) {
            receiver.handle_filter_loss(now, first, last, rtt);
        }
    }

    /// Packets that broke the filter's rules.
    pub(super) const fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Takes in a data packet, which the filter gets as it arrived, still encrypted. Returns
    /// whether it may have moved a timer or needs an answer. Not inlined, so that connections
    /// without a filter do not pay for it.
    #[inline(never)]
    pub(super) fn handle_data(
        &mut self,
        receiver: &mut ReceiveHalf,
        crypt: Option<&Crypt>,
        arrival: ArrivedPacket<'_>,
        rtt: Rtt,
    ) -> bool {
        let ArrivedPacket { now, previous, header, payload } = arrival;
        let findings = &mut self.findings;
        // A packet with a number far ahead may be forged: the filter gets it when the receiving
        // half believes the number.
        if header.msgno == MsgNo::CONTROL || !receiver.is_far_ahead(header.seq) {
            self.filter.handle(header, &payload, findings);
        }
        self.ignored += u64::from(std::mem::take(&mut findings.is_invalid));
        let mut moved = !findings.rebuilt.is_empty() || !findings.lost.is_empty();
        // The packet precedes the packets that were rebuilt from it: they fill the gap that it
        // opens.
        if header.msgno == MsgNo::CONTROL {
            receiver.handle_filter_packet(payload.len());
        } else {
            let size = payload.len();
            moved |= match crypt::open(crypt, header, payload) {
                Ok(payload) => receiver.handle_data(now, previous, header, payload, rtt),
                Err(why) => receiver.refuse(now, header, size, why),
            };
        }
        for (header, payload) in findings.rebuilt.drain(..) {
            let size = payload.len();
            match crypt::open(crypt, &header, payload) {
                Ok(payload) => receiver.handle_rebuilt(now, &header, payload, rtt),
                Err(why) => receiver.refuse_rebuilt(now, &header, size, why),
            }
        }
        for (first, last) in findings.lost.drain(..) {
            receiver.handle_filter_loss(now, first, last, rtt);
        }
        if self.reports && self.look.is_none() {
            self.look = receiver.pauses_at(now);
            moved |= self.look.is_some();
        }
        moved
    }
}
