use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Link, LinkEnd, LinkStatistics};
use punctual_units::Instant;

use crate::ids::LinkId;
use crate::packet::IpPacket;

/// A link and its records.
#[derive(Debug)]
pub(crate) struct LinkSlot {
    pub(crate) link: Link<IpPacket>,
    /// Its entrance in the capture, if it is captured; its exit is the next one.
    pub(crate) interface: Option<u32>,
    /// Whether the datagrams that pass its ends are noted.
    pub(crate) is_watched: bool,
    period: Duration,
    series: Vec<LinkSnapshot>,
}

/// A link at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkSnapshot {
    /// Time since the world's start.
    pub at: Duration,
    /// Packets in the link: in the queue, being transmitted, and on their way.
    pub in_flight: usize,
    /// The totals of the link so far.
    pub statistics: LinkStatistics,
}

/// A UDP datagram that passed an end of a watched link.
#[derive(Clone, Debug)]
pub struct Passage {
    /// When.
    pub at: Instant,
    /// The link.
    pub link: LinkId,
    /// The end of the link.
    pub gate: LinkEnd,
    /// The content of the datagram.
    pub content: Bytes,
}

impl LinkSlot {
    /// A link without records.
    pub(crate) fn new(link: Link<IpPacket>) -> Self {
        let (interface, is_watched) = (None, false);
        Self { link, interface, is_watched, period: Duration::ZERO, series: Vec::new() }
    }

    /// The interface of the capture for an end of the link, if it is captured.
    pub(crate) fn interface(&self, gate: LinkEnd) -> Option<u32> {
        let entrance = self.interface?;
        Some(if gate == LinkEnd::Entrance { entrance } else { entrance + 1 })
    }

    /// Records the totals each `period` from `now` on. Returns when the first sample is due.
    pub(crate) fn record(&mut self, now: Instant, period: Duration) -> Instant {
        self.period = period;
        now + period
    }

    /// Takes a sample. Returns when the next one is due.
    pub(crate) fn sample(&mut self, now: Instant) -> Instant {
        self.series.push(LinkSnapshot {
            at: now - Instant::ORIGIN,
            in_flight: self.link.in_flight(),
            statistics: self.link.statistics().clone(),
        });
        now + self.period
    }

    /// The samples so far.
    pub(crate) fn series(&self) -> &[LinkSnapshot] {
        &self.series
    }
}
