use std::time::Duration;

use punctual_netem::{Link, LinkConfig, LinkStatistics};
use punctual_units::Instant;

use super::{LinkId, World};
use crate::agenda::Source;
use crate::error::WorldError;
use crate::packet::IpPacket;

/// A link and its records.
#[derive(Debug)]
pub(super) struct LinkSlot {
    pub(super) link: Link<IpPacket>,
    /// Its entrance in the capture, if it is captured; its exit is the next one.
    pub(super) interface: Option<u32>,
    /// Whether the datagrams that pass its ends are noted.
    pub(super) is_watched: bool,
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
    /// The totals of the link so far.
    pub statistics: LinkStatistics,
}

impl LinkSlot {
    pub(super) fn new(link: Link<IpPacket>) -> Self {
        let (interface, is_watched) = (None, false);
        Self { link, interface, is_watched, period: Duration::ZERO, series: Vec::new() }
    }
}

impl World {
    /// Goes on with another configuration of a link; see
    /// [`Link::set_config`](punctual_netem::Link::set_config).
    pub fn set_link(&mut self, link: LinkId, config: LinkConfig) {
        self.links[link.index()].link.set_config(self.now, config);
        self.settle_link(link.index());
    }

    /// How a link is now.
    pub fn link_config(&self, link: LinkId) -> &LinkConfig {
        self.links[link.index()].link.config()
    }

    /// Records the totals of a link each `period` from now on.
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

    /// The recorded series of a link.
    pub fn link_series(&self, link: LinkId) -> &[LinkSample] {
        &self.links[link.index()].series
    }

    /// Packets in a link: in the queue, being transmitted, and on their way.
    pub fn in_flight(&self, link: LinkId) -> usize {
        self.links[link.index()].link.in_flight()
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
