use std::time::Duration;

use punctual_netem::{Link, LinkStatistics};
use punctual_units::Instant;

use super::{LinkId, World};
use crate::agenda::Source;
use crate::error::WorldError;
use crate::packet::IpPacket;

/// A link and what is written down of it.
#[derive(Debug)]
pub(super) struct LinkSlot {
    pub(super) link: Link<IpPacket>,
    period: Duration,
    series: Vec<LinkSample>,
}

/// A link at one moment.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct LinkSample {
    /// Time since the world's start.
    pub at: Duration,
    /// Packets in the link: in the queue, being transmitted, and on their way.
    pub in_flight: usize,
    /// What it did so far.
    pub statistics: LinkStatistics,
}

impl LinkSlot {
    pub(super) fn new(link: Link<IpPacket>) -> Self {
        Self { link, period: Duration::ZERO, series: Vec::new() }
    }

    pub(super) fn send(&mut self, now: Instant, packet: IpPacket) {
        self.link.send(now, packet);
    }

    pub(super) fn recv(&mut self, now: Instant) -> Option<IpPacket> {
        self.link.recv(now).map(|arrival| arrival.packet)
    }
}

impl World {
    /// Writes down what a link does, each `period` from now on.
    ///
    /// # Errors
    ///
    /// The period must be longer than zero.
    pub fn record_link(&mut self, link: LinkId, period: Duration) -> Result<(), WorldError> {
        if period.is_zero() {
            return Err(WorldError::ZeroPeriod);
        }
        self.links[link.index()].period = period;
        self.agenda.set(Source::LinkSample(link.index()), Some(self.now + period));
        Ok(())
    }

    /// What was written down of a link.
    pub fn link_series(&self, link: LinkId) -> &[LinkSample] {
        &self.links[link.index()].series
    }

    pub(super) fn sample_link(&mut self, index: usize) {
        let slot = &mut self.links[index];
        slot.series.push(LinkSample {
            at: self.now - Instant::ORIGIN,
            in_flight: slot.link.in_flight(),
            statistics: slot.link.statistics().clone(),
        });
        self.agenda.set(Source::LinkSample(index), Some(self.now + slot.period));
    }

    /// After a link was touched: when something comes out of it next.
    pub(super) fn settle_link(&mut self, index: usize) {
        self.agenda.set(Source::Link(index), self.links[index].link.poll_timeout());
    }
}
