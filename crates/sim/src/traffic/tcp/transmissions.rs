//! The packets of a flow that are in flight.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;

use super::Packet;
use super::delivery_rate::Snapshot;

/// Every transmission since the oldest of which nothing is known, in order of sending.
#[derive(Debug, Default)]
pub(super) struct Transmissions {
    sent: VecDeque<Sent>,
    next_number: u32,
    open: u64,
    /// One more than the highest number that is known to have arrived.
    arrived_up_to: u32,
}

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) at: Instant,
    pub(super) segment: u32,
    pub(super) snapshot: Snapshot,
    open: bool,
}

impl Transmissions {
    /// Packets in flight, as far as the sender knows.
    pub(super) fn open(&self) -> u64 {
        self.open
    }

    /// The number of the next transmission.
    pub(super) fn next_number(&self) -> u32 {
        self.next_number
    }

    /// Whether the packet that was sent last is the only one that is remembered.
    pub(super) fn has_one(&self) -> bool {
        self.sent.len() == 1
    }

    pub(super) fn send(&mut self, at: Instant, segment: u32, snapshot: Snapshot) -> Packet {
        self.sent.push_back(Sent { at, segment, snapshot, open: true });
        self.open += 1;
        self.next_number += 1;
        Packet { transmission: self.next_number - 1, segment }
    }

    /// A transmission arrived. Returns it if it was in flight.
    pub(super) fn arrive(&mut self, number: u32) -> Option<Sent> {
        self.arrived_up_to = self.arrived_up_to.max(number + 1);
        let place = number.checked_sub(self.oldest())?;
        let sent = self.sent.get_mut(usize::try_from(place).ok()?)?;
        if !std::mem::take(&mut sent.open) {
            return None;
        }
        self.open -= 1;
        Some(*sent)
    }

    /// The oldest packet that is in flight, if at least `later` packets that were sent after it
    /// have arrived: it is lost, and no longer in flight.
    pub(super) fn lose_overtaken(&mut self, later: u32) -> Option<(u32, Sent)> {
        self.forget();
        let oldest = self.oldest();
        (oldest + later < self.arrived_up_to).then(|| self.lose_first()).flatten()
    }

    /// The oldest packet that is in flight, if one that was sent after it has arrived and `now` is
    /// at least `tolerance` after its sending. If it is too early, the time at which it is lost.
    pub(super) fn lose_late(
        &mut self,
        now: Instant,
        tolerance: Duration,
    ) -> Result<Option<(u32, Sent)>, Instant> {
        self.forget();
        let Some(first) = self.sent.front().filter(|_| self.oldest() + 1 < self.arrived_up_to)
        else {
            return Ok(None);
        };
        let lost_at = first.at + tolerance;
        if now < lost_at {
            return Err(lost_at);
        }
        Ok(self.lose_first())
    }

    /// The oldest packet in flight, whatever arrived; it is no longer in flight.
    pub(super) fn lose_first(&mut self) -> Option<(u32, Sent)> {
        self.forget();
        let number = self.oldest();
        let sent = self.sent.pop_front()?;
        self.open -= 1;
        Some((number, sent))
    }

    /// Forgets packets before the oldest in flight.
    pub(super) fn forget(&mut self) {
        while self.sent.front().is_some_and(|sent| !sent.open) {
            self.sent.pop_front();
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "transmissions have numbers of 32 bits")]
    fn oldest(&self) -> u32 {
        self.next_number - self.sent.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::super::delivery_rate::FlowDeliveryRate;
    use super::*;

    const AT: fn(u64) -> Instant = Instant::from_millis;

    /// Packets with these segments, one each millisecond.
    fn sent<const N: usize>(segments: [u32; N]) -> Transmissions {
        let mut transmissions = Transmissions::default();
        let snapshot = FlowDeliveryRate::new().on_send(AT(0), 1_000, 0);
        for (ms, segment) in (0..).zip(segments) {
            transmissions.send(AT(ms), segment, snapshot);
        }
        transmissions
    }

    #[test]
    fn a_packet_is_overtaken_by_three_that_were_sent_later() {
        let mut transmissions = sent([5, 6, 7, 8, 9]);
        assert!(transmissions.arrive(2).is_some() && transmissions.arrive(2).is_none());
        assert!(transmissions.lose_overtaken(3).is_none());
        transmissions.arrive(4);
        let lost: Vec<_> = std::iter::from_fn(|| transmissions.lose_overtaken(3)).collect();
        let lost: Vec<_> = lost.iter().map(|(number, sent)| (*number, sent.segment)).collect();
        assert_eq!((lost, transmissions.open()), (vec![(0, 5), (1, 6)], 1));
        assert!(transmissions.arrive(1).is_none(), "it was taken for lost");
    }

    #[test]
    fn a_packet_is_late_when_a_later_one_arrived_and_its_time_is_over() {
        let mut transmissions = sent([0, 1, 2]);
        let tolerance = Duration::from_millis(50);
        assert!(matches!(transmissions.lose_late(AT(90), tolerance), Ok(None)), "no arrival");
        transmissions.arrive(1);
        assert!(matches!(transmissions.lose_late(AT(49), tolerance), Err(at) if at == AT(50)));
        assert!(matches!(transmissions.lose_late(AT(50), tolerance), Ok(Some((0, _)))));
        assert!(matches!(transmissions.lose_late(AT(90), tolerance), Ok(None)), "the newest");
    }
}
