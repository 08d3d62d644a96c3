//! The samples of a measurement epoch.

use std::time::Duration;

use crate::estimate::Rtt;
use crate::number::PacketNumber;

/// A measurement epoch: it begins with the next packet to be sent, and ends when that packet or a
/// later one is acknowledged, which takes a round trip.
///
/// The packet with which it begins may be lost, so any later one ends it too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Epoch {
    /// The packet with which it begins.
    first: PacketNumber,
    samples: u32,
    sum: Duration,
    least: Duration,
    greatest: Duration,
}

/// The samples of an epoch, of which there is at least one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Summary {
    pub(crate) samples: u32,
    pub(crate) mean: Duration,
    pub(crate) least: Duration,
    pub(crate) greatest: Duration,
}

impl Epoch {
    /// An epoch that begins with the packet `first`, the next to be sent.
    pub(crate) fn beginning(first: PacketNumber) -> Self {
        Self {
            first,
            samples: 0,
            sum: Duration::ZERO,
            least: Duration::MAX,
            greatest: Duration::ZERO,
        }
    }

    /// Counts a sample.
    pub(crate) fn count(&mut self, sample: Duration) {
        self.samples = self.samples.saturating_add(1);
        self.sum = self.sum.saturating_add(sample);
        self.least = self.least.min(sample);
        self.greatest = self.greatest.max(sample);
    }

    /// Whether the acknowledgement of the packet `number` ends it.
    pub(crate) fn ends_with(&self, number: PacketNumber) -> bool {
        number >= self.first
    }

    /// Its samples; `None` if there was no sample.
    pub(crate) fn summary(&self) -> Option<Summary> {
        let mean = self.sum.checked_div(self.samples)?;
        let Self { samples, least, greatest, .. } = *self;
        Some(Summary { samples, mean, least, greatest })
    }
}

impl Summary {
    /// The estimate after the epoch; it was `before`.
    pub(crate) fn update(&self, before: Rtt) -> Rtt {
        before.updated(self.mean, self.deviation(before.smoothed))
    }

    /// The greatest deviation of one of the samples from `smoothed`.
    pub(crate) fn deviation(&self, smoothed: Duration) -> Duration {
        self.greatest.abs_diff(smoothed).max(self.least.abs_diff(smoothed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::MS;

    #[test]
    fn an_epoch_ends_with_its_first_packet_or_any_later_one() {
        let epoch = Epoch::beginning(PacketNumber::new(7));
        let ends = |number| epoch.ends_with(PacketNumber::new(number));
        assert_eq!([ends(6), ends(7), ends(9)], [false, true, true]);
    }

    #[test]
    fn an_epoch_without_samples_has_no_summary() {
        let mut epoch = Epoch::beginning(PacketNumber::default());
        assert_eq!(epoch.summary(), None);
        [MS(30), MS(10), MS(20)].into_iter().for_each(|it| epoch.count(it));
        let summary = epoch.summary().expect("there are three samples");
        let expected = Summary { samples: 3, mean: MS(20), least: MS(10), greatest: MS(30) };
        assert_eq!(summary, expected);
        assert_eq!(summary.deviation(MS(12)), MS(18));
        assert_eq!(summary.deviation(MS(25)), MS(15));
        assert_eq!(summary.deviation(MS(90)), MS(80));
    }
}
