//! The limit on what the received packets of all connections take.

use crate::connection::recv::PACKET;

/// The sum is taken again each time that this fraction of the limit has arrived, or earlier.
const STEPS: u64 = 64;

/// A limit on the bytes of received packets that wait for the application, of all connections
/// together.
///
/// A caller chooses its latency, and with it how long its packets wait, up to 65 s. As long as the
/// limit is reached, packets of connections are ignored that hold more than an equal share, so that
/// others do not suffer; at twice the limit all packets are.
#[derive(Debug)]
pub(super) struct ReceiveMemory {
    limit: u64,
    /// Bytes that may arrive until the sum is to be taken again.
    until_look: u64,
    usage: Usage,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Usage {
    Free,
    /// A connection may hold this many bytes.
    Shared(u64),
    Full,
}

impl ReceiveMemory {
    /// A limit of this many bytes.
    pub(super) const fn new(limit: u64) -> Self {
        Self { limit, until_look: limit / STEPS, usage: Usage::Free }
    }

    /// A packet with `payload` bytes arrives. `holders` gives the bytes that each connection holds,
    /// and `own` those of the packet's connection. Returns whether the packet may be stored.
    #[inline(always)]
    pub(super) fn admits<I: Iterator<Item = u64>>(
        &mut self,
        payload: usize,
        holders: impl FnOnce() -> I,
        own: impl FnOnce() -> u64,
    ) -> bool {
        let bytes = payload as u64 + PACKET;
        match self.until_look.checked_sub(bytes) {
            Some(left) => self.until_look = left,
            None => self.look(holders()),
        }
        self.usage == Usage::Free || self.is_within_share(own())
    }

    #[cold]
    fn look(&mut self, holders: impl Iterator<Item = u64>) {
        let (held, count) =
            holders.fold((0, 0), |(held, count): (u64, u64), own| (held + own, count + 1));
        let step = self.limit / STEPS;
        self.usage = if held + step <= self.limit {
            Usage::Free
        } else if held < self.limit.saturating_mul(2) {
            Usage::Shared(self.limit / count.max(1))
        } else {
            Usage::Full
        };
        self.until_look = step;
    }

    #[cold]
    const fn is_within_share(&self, own: u64) -> bool {
        match self.usage {
            Usage::Free => true,
            Usage::Shared(share) => own < share,
            Usage::Full => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a payload, so that a packet counts as 1000.
    const PAYLOAD: usize = 872;

    /// Packets of 1000 bytes arrive for connections that hold `held` bytes, each in its turn.
    fn arrive(memory: &mut ReceiveMemory, held: &mut [u64], packets: usize) {
        for packet in 0..packets {
            let place = packet % held.len();
            if memory.admits(PAYLOAD, || held.iter().copied(), || held[place]) {
                held[place] += 1_000;
            }
        }
    }

    #[test]
    fn a_packet_counts_with_its_place() {
        assert_eq!(PAYLOAD as u64 + PACKET, 1_000);
    }

    #[test]
    fn all_connections_together_hold_no_more_than_the_limit() {
        let mut memory = ReceiveMemory::new(1_000_000);
        let mut held = [0; 4];
        arrive(&mut memory, &mut held, 500);
        assert_eq!(held, [125_000; 4], "below the limit");
        arrive(&mut memory, &mut held, 5_000);
        assert_eq!(held, [250_000; 4], "a share for each");
    }

    #[test]
    fn a_connection_below_its_share_goes_on_beside_a_large_one() {
        let mut memory = ReceiveMemory::new(1_000_000);
        let mut large = [0; 1];
        arrive(&mut memory, &mut large, 3_000);
        let mut held = [large[0], 0];
        arrive(&mut memory, &mut held, 200);
        assert_eq!(held, [large[0], 100_000]);
        assert!((950_000..=1_000_000).contains(&large[0]), "{large:?}");
        // The large one has read what it had.
        held[0] = 0;
        arrive(&mut memory, &mut held, 200);
        assert!(held[0] > 50_000, "{held:?}");
    }

    #[test]
    fn at_twice_the_limit_nothing_is_stored() {
        let mut memory = ReceiveMemory::new(1_000_000);
        let held = [1_900_000, 200_000, 0];
        let admitted = (0..100)
            .filter(|_| memory.admits(PAYLOAD, || held.iter().copied(), || held[2]))
            .count();
        assert!(admitted <= 16, "{admitted}");
    }
}
