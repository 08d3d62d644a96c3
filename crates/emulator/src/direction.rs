//! One direction of an emulated link, and how exactly its times are kept.

use punctual_metrics::Quantiles;
use punctual_netem::{Link, LinkProfile, Packet};
use punctual_units::Instant;

use crate::report::DirectionReport;

/// A link, and how late its packets were sent on.
#[derive(Debug)]
pub(crate) struct Direction<P> {
    pub(crate) link: Link<P>,
    lateness: Quantiles,
}

impl<P: Packet> Direction<P> {
    /// A link whose time zero is `start`.
    pub(crate) fn new(profile: &LinkProfile, seed: u64, start: Instant) -> Self {
        let mut link = Link::new(profile.clone(), seed);
        link.start(start);
        Self { link, lateness: Quantiles::default() }
    }

    /// Records that a packet was sent at `sent` which was due at `due`.
    pub(crate) fn record(&mut self, due: Instant, sent: Instant) {
        self.lateness.record(u64::try_from((sent - due).as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds its totals to `report`.
    pub(crate) fn add_to(&self, report: &mut DirectionReport) {
        report.merge(self.link.statistics(), &self.lateness);
    }
}
