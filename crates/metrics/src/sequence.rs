/// Loss, reordering and duplication from payload numbers (RFC 4737; duplication: RFC 5560).
///
/// A payload is reordered if its number is below the next expected one, which is one more than the
/// highest that has arrived (RFC 4737 section 3.3). The rest is where srt-xtransmit is wrong:
///
/// - A number that is skipped counts as lost until it arrives: a reordered payload is not lost.
/// - A number that arrives again is a duplicate, not reordered (RFC 4737 section 4.1). The last
///   [`WINDOW`](Self::WINDOW) numbers are remembered; one that comes later than that cannot be told
///   from a duplicate, counts as one, and stays lost.
/// - A first number of [`LATE_START`](Self::LATE_START) or more means that the receiver joined a
///   running stream: nothing before it is lost. Before a smaller one, the head from number 0 is.
/// - A number below the expected one with a later stamp than the newest payload's means that the
///   generator started again, since it stamps in order. The new run is counted from its start.
#[derive(Clone, Debug)]
pub struct Sequence {
    counts: SequenceCounts,
    run: Option<Run>,
    arrived: Box<[u64; WORDS]>,
}

/// The counts of a [`Sequence`] since it was made; only `lost` can fall.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SequenceCounts {
    /// Payloads that arrived, duplicates too.
    pub received: u64,
    /// Payloads skipped and not arrived since.
    pub lost: u64,
    /// Payloads that arrived after one with a higher number.
    pub reordered: u64,
    /// The largest distance of a reordered payload's number below the next expected one.
    pub reorder_distance: u64,
    /// Payloads that had arrived before.
    pub duplicates: u64,
    /// Times that the generator started again.
    pub restarts: u64,
}

/// The order in which a payload arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ArrivalOrder {
    /// Its number is the highest so far.
    InOrder,
    /// After a higher number.
    Reordered,
    /// Not for the first time.
    Duplicate,
}

impl Sequence {
    /// How many numbers below the next expected one are remembered.
    pub const WINDOW: u64 = (WORDS * 64) as u64;

    /// The lowest first number that means a late joining, not a lost head.
    pub const LATE_START: u64 = 128;

    /// Takes in payload number `seq`, stamped at `stamped_us` by the sender's monotonic clock.
    pub fn submit(&mut self, seq: u64, stamped_us: i64) -> ArrivalOrder {
        self.counts.received += 1;
        match self.run {
            Some(run) if seq < run.expected && stamped_us > run.newest_us => {
                self.counts.restarts += 1;
                self.begin(seq, stamped_us)
            }
            Some(run) if seq < run.expected => self.behind(seq, run),
            Some(run) => self.ahead(seq, stamped_us, run),
            None => self.begin(seq, stamped_us),
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> SequenceCounts {
        self.counts
    }

    fn begin(&mut self, seq: u64, stamped_us: i64) -> ArrivalOrder {
        self.arrived.fill(0);
        let first = if seq < Self::LATE_START { 0 } else { seq };
        self.ahead(seq, stamped_us, Run { first, expected: first, newest_us: stamped_us })
    }

    fn ahead(&mut self, seq: u64, stamped_us: i64, run: Run) -> ArrivalOrder {
        let skipped = seq - run.expected;
        self.counts.lost = self.counts.lost.saturating_add(skipped);
        if skipped >= Self::WINDOW {
            self.arrived.fill(0);
        } else {
            (run.expected..seq).for_each(|missing| self.unmark(missing));
        }
        self.mark(seq);
        self.run = Some(Run {
            expected: seq.saturating_add(1),
            newest_us: run.newest_us.max(stamped_us),
            ..run
        });
        ArrivalOrder::InOrder
    }

    fn behind(&mut self, seq: u64, run: Run) -> ArrivalOrder {
        let distance = run.expected - seq;
        if distance > Self::WINDOW || self.is_marked(seq) {
            self.counts.duplicates += 1;
            return ArrivalOrder::Duplicate;
        }
        self.mark(seq);
        self.counts.reordered += 1;
        self.counts.reorder_distance = self.counts.reorder_distance.max(distance);
        if seq < run.first {
            // The stream began before what seemed its first payload.
            self.counts.lost = self.counts.lost.saturating_add(run.first - seq - 1);
            self.run = Some(Run { first: seq, ..run });
        } else {
            self.counts.lost = self.counts.lost.saturating_sub(1);
        }
        ArrivalOrder::Reordered
    }

    fn is_marked(&self, seq: u64) -> bool {
        let (word, bit) = place(seq);
        self.arrived[word] & bit != 0
    }

    fn mark(&mut self, seq: u64) {
        let (word, bit) = place(seq);
        self.arrived[word] |= bit;
    }

    fn unmark(&mut self, seq: u64) {
        let (word, bit) = place(seq);
        self.arrived[word] &= !bit;
    }
}

impl Default for Sequence {
    fn default() -> Self {
        Self { counts: SequenceCounts::default(), run: None, arrived: Box::new([0; WORDS]) }
    }
}

/// One run of a generator: numbers from `first` up to `expected`, which is still to come.
#[derive(Clone, Copy, Debug)]
struct Run {
    first: u64,
    expected: u64,
    newest_us: i64,
}

/// Words of 64 numbers each in the memory of what arrived: 8 KiB.
const WORDS: usize = 1024;

fn place(seq: u64) -> (usize, u64) {
    ((seq / 64 % WORDS as u64) as usize, 1 << (seq % 64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A generator that stamps each number with itself.
    fn count(numbers: &[u64]) -> SequenceCounts {
        let mut sequence = Sequence::default();
        for &seq in numbers {
            sequence.submit(seq, i64::try_from(seq).unwrap());
        }
        sequence.counts()
    }

    /// Numbers are what the sender says they are.
    #[test]
    fn a_loss_beyond_counting_stays_the_most_that_can_be_counted() {
        let mut sequence = Sequence::default();
        for (seq, stamped_us) in [(300, 1), (u64::MAX, 2), (1_000, 3), (990, 3)] {
            sequence.submit(seq, stamped_us);
        }
        let counts = sequence.counts();
        assert_eq!((counts.lost, counts.restarts, counts.reordered), (u64::MAX - 292, 1, 1));
        sequence.submit(u64::MAX, 4);
        sequence.submit(500, 5);
        sequence.submit(490, 5);
        assert_eq!(sequence.counts().lost, u64::MAX);
    }

    #[test]
    fn a_gap_is_lost_until_it_arrives() {
        assert_eq!(
            count(&[0, 1, 4, 5]),
            SequenceCounts { received: 4, lost: 2, ..Default::default() }
        );
        assert_eq!(
            count(&[0, 1, 4, 5, 2]),
            SequenceCounts {
                received: 5,
                lost: 1,
                reordered: 1,
                reorder_distance: 4,
                ..Default::default()
            }
        );
    }

    #[test]
    fn duplicates_are_neither_reordered_nor_found_again() {
        assert_eq!(
            count(&[0, 2, 2, 0, 1, 1]),
            SequenceCounts {
                received: 6,
                reordered: 1,
                reorder_distance: 2,
                duplicates: 3,
                ..Default::default()
            }
        );
    }

    #[test]
    fn a_lost_head_is_lost_and_a_late_joiner_loses_nothing() {
        assert_eq!(count(&[3, 4]).lost, 3);
        assert_eq!(count(&[5_000, 5_001]).lost, 0);
        // A straggler from before the first shows that the stream began earlier.
        let counts = count(&[5_000, 4_997]);
        assert_eq!((counts.lost, counts.reordered, counts.duplicates), (2, 1, 0));
        assert_eq!(count(&[5_000, 4_997, 4_999]).lost, 1);
    }

    #[test]
    fn packets_later_than_the_window_stay_lost() {
        let window = Sequence::WINDOW;
        let numbers: Vec<u64> = (0..100).chain(101..=window + 99).collect();
        let mut in_window = numbers.clone();
        in_window.push(100);
        assert_eq!((count(&in_window).lost, count(&in_window).reordered), (0, 1));
        let mut too_late = numbers;
        too_late.extend([window + 100, 100]);
        assert_eq!((count(&too_late).lost, count(&too_late).duplicates), (1, 1));
    }

    #[test]
    fn a_gap_longer_than_the_window_forgets_what_lies_before() {
        let far = 3 * Sequence::WINDOW;
        let counts = count(&[0, far, far - 1, 0]);
        assert_eq!((counts.lost, counts.reordered, counts.duplicates), (far - 2, 1, 1));
    }

    #[test]
    fn a_generator_that_starts_again_is_a_new_run() {
        let mut sequence = Sequence::default();
        for seq in 0..10 {
            sequence.submit(seq, 100 + i64::try_from(seq).unwrap());
        }
        assert_eq!(sequence.submit(1, 500), ArrivalOrder::InOrder);
        assert_eq!(sequence.submit(0, 499), ArrivalOrder::Reordered);
        assert_eq!(sequence.submit(0, 499), ArrivalOrder::Duplicate);
        assert_eq!(
            sequence.counts(),
            SequenceCounts {
                received: 13,
                lost: 0,
                reordered: 1,
                reorder_distance: 2,
                duplicates: 1,
                restarts: 1
            }
        );
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let counts = count(&[0]);
        assert_eq!(counts.lost, 0);
        let mut sequence = Sequence::default();
        for seq in [0, u64::MAX, 5, u64::MAX, u64::MAX - 1] {
            sequence.submit(seq, 0);
        }
        assert_eq!(sequence.counts().received, 5);
        assert_eq!(sequence.counts().reordered, 1);
    }

    /// Numbers 0 to 299 in any order, some of them missing and some of them more than once.
    fn arrivals() -> impl Strategy<Value = Vec<u64>> {
        proptest::collection::vec(0_u64..300, 1..400)
    }

    proptest! {
        #[test]
        fn lost_is_what_never_arrived_below_the_highest(numbers in arrivals()) {
            let mut seen = numbers.clone();
            seen.sort_unstable();
            seen.dedup();
            let unique = seen.len() as u64;
            let highest = *seen.last().unwrap();
            // A late joiner knows nothing of what lies below the lowest.
            let first = if numbers[0] < Sequence::LATE_START { 0 } else { seen[0] };

            let counts = count(&numbers);
            prop_assert_eq!(counts.received, numbers.len() as u64);
            prop_assert_eq!(counts.duplicates, numbers.len() as u64 - unique);
            prop_assert_eq!(counts.lost, highest + 1 - first - unique);
        }

        #[test]
        fn any_numbers_and_stamps_are_taken(numbers: Vec<(u64, i64)>) {
            let mut sequence = Sequence::default();
            for &(seq, stamp) in &numbers {
                sequence.submit(seq, stamp);
            }
            prop_assert_eq!(sequence.counts().received, numbers.len() as u64);
        }
    }
}
