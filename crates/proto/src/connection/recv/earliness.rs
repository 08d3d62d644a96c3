use std::time::Duration;

/// The greatest earliness that is plausible: the longest delay of the handshake that set the time
/// base.
const MOST: Duration = Duration::from_secs(2);
/// The number of packets from which the usual earliness is learned.
const LEARNT: u32 = 64;
/// The least margin above the learned earliness, for a path that suddenly becomes shorter.
const LEAST_MARGIN: Duration = Duration::from_millis(50);
/// The number of early packets in a row that prove a larger change.
const IN_A_ROW: u32 = 16;

/// The plausible earliness of packets: the time by which a timestamp, converted to this end's
/// clock, lies after the arrival of its packet.
///
/// No packet crosses the path faster than the path allows. A packet whose timestamp claims so was
/// forged, or the peer's clock is wrong. If it were delivered by its timestamp, all later packets
/// would wait for it.
#[derive(Debug)]
pub(super) struct Earliness {
    limit: Duration,
    earliest: Duration,
    /// The least transit time that was learned, nanoseconds: the negative of `earliest`, without a
    /// limit.
    lowest: i64,
    seen: u32,
    in_a_row: u32,
}

impl Earliness {
    /// No packet has arrived.
    pub(super) const fn new() -> Self {
        Self { limit: MOST, earliest: Duration::ZERO, lowest: 0, seen: 0, in_a_row: 0 }
    }

    /// The largest plausible earliness.
    pub(super) const fn limit(&self) -> Duration {
        self.limit
    }

    /// Whether a path that became shorter can make a packet this early.
    pub(super) fn is_possible(early: Duration) -> bool {
        early <= MOST
    }

    /// A plausible packet arrived. `transit` is its transit time less that of the packet that set
    /// the time base, in nanoseconds; negative if it was faster. The stream's latency is the
    /// margin: an emptied queue makes a path shorter by hundreds of milliseconds, and a message
    /// that is delivered later by less than the latency delays the following ones by less than
    /// that, too.
    #[inline(always)]
    pub(super) fn note(&mut self, transit: i64, latency: impl FnOnce() -> Duration) {
        self.in_a_row = 0;
        if self.seen < LEARNT || transit < self.lowest {
            self.learn(transit, latency());
        }
    }

    #[inline(never)]
    fn learn(&mut self, transit: i64, latency: Duration) {
        let early = Duration::from_nanos(transit.min(0).unsigned_abs());
        self.earliest = self.earliest.max(early).min(MOST);
        self.lowest = self.lowest.min(transit);
        self.seen = (self.seen + 1).min(LEARNT);
        if self.seen == LEARNT {
            self.limit = (self.earliest + margin(latency)).min(MOST);
        }
    }

    /// A packet arrived whose earliness, in nanoseconds, is above the limit. Returns whether it is
    /// plausible, because enough packets in a row were as early.
    #[cold]
    pub(super) fn believes(&mut self, early: u64, latency: Duration) -> bool {
        let early = Duration::from_nanos(early);
        if !Self::is_possible(early) {
            return false;
        }
        self.in_a_row += 1;
        if self.in_a_row < IN_A_ROW {
            return false;
        }
        self.in_a_row = 0;
        self.earliest = early;
        self.limit = (early + margin(latency)).min(MOST);
        true
    }
}

/// The margin above the learned earliness for a stream of this latency.
fn margin(latency: Duration) -> Duration {
    latency.max(LEAST_MARGIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn learnt(transit: i64) -> Earliness {
        let mut earliness = Earliness::new();
        (0..LEARNT).for_each(|_| earliness.note(transit, || Duration::ZERO));
        earliness
    }

    #[test]
    fn after_some_packets_no_other_may_be_much_earlier() {
        assert_eq!(Earliness::new().limit(), MOST);
        assert_eq!(learnt(3_000_000).limit(), LEAST_MARGIN);
        assert_eq!(learnt(-300_000_000).limit(), Duration::from_millis(350));
        let mut patient = Earliness::new();
        (0..LEARNT).for_each(|_| patient.note(0, || Duration::from_millis(750)));
        assert_eq!(patient.limit(), Duration::from_millis(750));
    }

    #[test]
    fn a_path_that_becomes_shorter_is_believed_when_packets_in_a_row_say_so() {
        let mut earliness = learnt(0);
        let believed = (0..40).filter(|_| earliness.believes(900 * MS, Duration::ZERO)).count();
        assert_eq!(believed, 2, "each sixteenth that is beyond the limit");
        assert_eq!(earliness.limit(), Duration::from_millis(950));
        assert!((0..100).all(|_| !earliness.believes(2_001 * MS, Duration::ZERO)));
    }

    #[test]
    fn single_early_packets_among_others_are_not_believed() {
        let mut earliness = learnt(0);
        for _ in 0..100 {
            earliness.note(0, || Duration::ZERO);
            assert!(!earliness.believes(900 * MS, Duration::ZERO));
        }
        assert_eq!(earliness.limit(), LEAST_MARGIN);
    }
}
