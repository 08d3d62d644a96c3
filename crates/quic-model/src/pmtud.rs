//! Discovery of the path MTU, and of a path that has become a black hole for long packets.

/// The sizes of packets on a path: what passes, what is probed, and how often full packets were
/// lost (RFC 8899, in the form that picoquic had in 2023).
#[derive(Clone, Debug)]
pub(crate) struct Pmtud {
    base: usize,
    greatest: usize,
    current: usize,
    /// The smallest size that was probed and lost; or the greatest that passed.
    tried: Option<usize>,
    /// The size of the probe under way.
    probe: Option<usize>,
    /// Full packets lost since the last one that passed.
    full_losses: u32,
}

/// How urgent a probe is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct ProbeUrgency {
    pub(crate) bytes: usize,
    /// Whether it goes before data, because it pays; otherwise it waits until nothing else is to be
    /// sent.
    pub(crate) is_urgent: bool,
}

impl Pmtud {
    /// Packets of `base` bytes pass; the peer accepts up to `greatest`.
    pub(crate) fn new(base: usize, greatest: usize) -> Self {
        Self { base, greatest, current: base, tried: None, probe: None, full_losses: 0 }
    }

    /// Bytes of a full packet.
    pub(crate) fn current(&self) -> usize {
        self.current
    }

    /// Bytes that surely pass.
    pub(crate) fn base(&self) -> usize {
        self.base
    }

    /// The probe to send next while `queued` bytes wait; `None` if one is under way or the search
    /// has ended.
    pub(crate) fn next_probe(&self, queued: u64) -> Option<ProbeUrgency> {
        if self.probe.is_some() {
            return None;
        }
        let bytes = match self.tried {
            None => self.greatest,
            Some(tried) => *STEPS.iter().find(|step| tried > **step)?,
        };
        if bytes <= self.current {
            return None;
        }
        let packets = |size: usize| queued / u64::try_from(size).unwrap_or(u64::MAX);
        let saved = packets(self.current) - packets(bytes);
        let is_urgent = saved * SAVED_PER_PACKET > u64::try_from(bytes).unwrap_or(u64::MAX);
        Some(ProbeUrgency { bytes, is_urgent })
    }

    /// A probe was sent.
    pub(crate) fn probed(&mut self, bytes: usize) {
        self.probe = Some(bytes);
    }

    /// A packet that was no probe, or a probe, was acknowledged.
    pub(crate) fn acknowledged(&mut self, bytes: usize) {
        if bytes == self.current {
            self.full_losses = 0;
        } else if bytes > self.current {
            self.current = bytes;
            self.probe = None;
        }
    }

    /// The probe was lost: its size is too long for the path.
    pub(crate) fn probe_lost(&mut self, bytes: usize) {
        self.probe = None;
        self.tried = Some(bytes);
    }

    /// A packet with data was lost. True if the path has become a black hole: more than ten full
    /// packets were lost and none passed. Then the size is the base again, and the search begins
    /// anew.
    pub(crate) fn lost(&mut self, bytes: usize) -> bool {
        if bytes != self.current {
            return false;
        }
        self.full_losses += 1;
        let is_black_hole = self.full_losses > BLACK_HOLE;
        if is_black_hole {
            self.reset();
        }
        is_black_hole
    }

    /// Goes back to the base size and begins the search anew.
    pub(crate) fn reset(&mut self) {
        self.current = self.base;
        self.tried = None;
        self.probe = None;
    }
}

/// Sizes that are tried below the greatest.
const STEPS: [usize; 2] = [1_500, 1_400];
/// Full packets that may be lost in a row.
const BLACK_HOLE: u32 = 10;
/// Bytes of overhead that a packet less saves, as the urgency of a probe counts it.
const SAVED_PER_PACKET: u64 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_size_is_probed_first_and_1400_after_its_loss() {
        let mut pmtud = Pmtud::new(1_252, 1_440);
        assert_eq!(pmtud.next_probe(0), Some(ProbeUrgency { bytes: 1_440, is_urgent: false }));
        pmtud.probed(1_440);
        assert_eq!(pmtud.next_probe(0), None, "one is under way");
        pmtud.probe_lost(1_440);
        assert_eq!(
            pmtud.next_probe(1_000_000),
            Some(ProbeUrgency { bytes: 1_400, is_urgent: true })
        );
        pmtud.probed(1_400);
        pmtud.probe_lost(1_400);
        assert_eq!(pmtud.next_probe(1_000_000), None, "nothing is searched below 1400");
        assert_eq!(pmtud.current(), 1_252);
    }

    #[test]
    fn a_probe_that_passes_is_the_new_size() {
        let mut pmtud = Pmtud::new(1_252, 1_440);
        pmtud.probed(1_440);
        pmtud.acknowledged(1_440);
        assert_eq!((pmtud.current(), pmtud.next_probe(1 << 30)), (1_440, None));
    }

    #[test]
    fn eleven_full_packets_lost_in_a_row_are_a_black_hole() {
        let mut pmtud = Pmtud::new(1_252, 1_440);
        pmtud.acknowledged(1_440);
        assert!((0..10).all(|_| !pmtud.lost(1_440)));
        pmtud.acknowledged(1_440);
        assert!((0..10).all(|_| !pmtud.lost(1_440)), "a full one passed in between");
        assert!(!pmtud.lost(900), "a short one says nothing");
        assert!(pmtud.lost(1_440));
        assert_eq!(pmtud.current(), 1_252);
        assert!(pmtud.next_probe(0).is_some(), "the search begins anew");
    }
}
