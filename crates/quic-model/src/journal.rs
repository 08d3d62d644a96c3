//! The record of a run: counts, events, and the course of the sender's state.

use std::time::Duration;

use punctual_units::Instant;

/// An event of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// The client has finished the handshake.
    HandshakeDone,
    /// The request has arrived at the sender.
    Request,
    /// The congestion control left its first slow start.
    SlowStartLeft,
    /// The path no longer lets packets of more than this many bytes pass.
    MtuDropped(usize),
    /// A probe timeout, the first, second, … since the last acknowledgement.
    ProbeTimeout(u32),
    /// The sender went back to the base size of packets.
    MtuReset,
    /// A probe of this size for the path MTU was lost.
    MtuProbeLost(usize),
    /// Packets of this size pass.
    MtuRaised(usize),
    /// The sender ended the connection after too many timeouts in a row.
    GaveUp,
    /// The receiver has the whole stream.
    Completed,
}

/// The sender's state after an acknowledgement or a timeout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sample {
    /// When.
    pub at: Instant,
    /// The latest sample of the round-trip time, without the peer's delay.
    pub latest: Duration,
    /// The smoothed round-trip time.
    pub smoothed: Duration,
    /// Its mean deviation.
    pub variance: Duration,
    /// The retransmission timer without backoff.
    pub timeout: Duration,
    /// The congestion window, bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Bytes of a full packet.
    pub mtu: usize,
}

/// Totals of a sender.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Packets that ask for an acknowledgement.
    pub sent: u64,
    /// Packets declared lost, without probes for the path MTU.
    pub lost: u64,
    /// Their bytes.
    pub lost_bytes: u64,
    /// Probes of timeouts that repeated bytes which were still in flight.
    pub repeated: u64,
    /// Packets that had arrived, but whose bytes were declared lost or repeated by a probe before
    /// the acknowledgement came.
    pub spurious: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Journal {
    pub(crate) counts: Counts,
    events: Vec<(Instant, Event)>,
    samples: Vec<Sample>,
}

impl Journal {
    pub(crate) fn note(&mut self, now: Instant, event: Event) {
        self.events.push((now, event));
    }

    pub(crate) fn sample(&mut self, sample: Sample) {
        self.samples.push(sample);
    }

    pub(crate) fn events(&self) -> &[(Instant, Event)] {
        &self.events
    }

    pub(crate) fn samples(&self) -> &[Sample] {
        &self.samples
    }
}
