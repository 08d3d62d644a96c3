//! The schedule of redundant copies of retransmitted packets.

use std::collections::BTreeSet;

use punctual_units::Instant;
use punctual_wire::SeqNo;

/// The largest number of copies that wait; further copies are not sent.
const WAITING: usize = 4_096;

/// The packets of which a copy will be sent, with its instant.
#[derive(Debug, Default)]
pub(crate) struct RedundantRetransmits {
    due: BTreeSet<(Instant, u32)>,
}

impl RedundantRetransmits {
    /// Plans a copy of `seq`; `false` if too many wait already.
    pub(crate) fn plan(&mut self, at: Instant, seq: SeqNo) -> bool {
        self.due.len() < WAITING && self.due.insert((at, seq.value()))
    }

    /// The instant of the first copy.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|&(at, _)| at)
    }

    /// The first copy that is due at `now`.
    pub(crate) fn take(&mut self, now: Instant) -> Option<SeqNo> {
        self.next().filter(|&at| at <= now)?;
        self.due.pop_first().map(|(_, seq)| SeqNo::new(seq))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_come_at_their_time_and_no_more_than_can_wait() {
        let mut copies = RedundantRetransmits::default();
        let at = Instant::from_millis;
        assert!(copies.plan(at(7), SeqNo::new(1)));
        assert!(copies.plan(at(5), SeqNo::new(9)));
        assert_eq!(copies.next(), Some(at(5)));
        assert_eq!(copies.take(at(4)), None);
        assert_eq!(copies.take(at(8)), Some(SeqNo::new(9)));
        assert_eq!(copies.take(at(8)), Some(SeqNo::new(1)));
        assert_eq!((copies.take(at(8)), copies.next()), (None, None));
        let planned = (0..5_000).filter(|&i| copies.plan(at(9), SeqNo::new(i))).count();
        assert_eq!(planned, WAITING);
    }
}
