//! The window of packets in flight, and the order of the ACKs that set it.

use punctual_units::Instant;
use punctual_wire::{Ack, SeqNo};

use super::ack_order::{AckOrder, Order};
use crate::statistics::Statistics;

/// The window of packets in flight: the smaller of the peer's free buffer and of the window of
/// congestion control.
#[derive(Debug)]
pub(super) struct FlowWindow {
    /// The peer's free buffer in packets, by its newest ACK.
    peer: u32,
    congestion: u32,
    /// The smaller of both.
    size: u32,
    order: AckOrder,
    acknowledged: SeqNo,
    acks: u64,
    acks_expected: u64,
    acks_missed: u64,
    ack_gaps: u64,
}

impl FlowWindow {
    /// For packets that begin at `isn`.
    pub(super) fn new(now: Instant, isn: SeqNo, peer: u32, congestion: u32) -> Self {
        Self {
            peer,
            congestion,
            size: peer.min(congestion),
            order: AckOrder::new(now),
            acknowledged: isn,
            acks: 0,
            acks_expected: 0,
            acks_missed: 0,
            ack_gaps: 0,
        }
    }

    /// Applies an ACK. `first` is the first packet in the send buffer.
    pub(super) fn handle_ack(&mut self, now: Instant, ack: &Ack, first: SeqNo) {
        let next = ack.next();
        match ack.link() {
            Some(link) if self.is_newest(now, ack) => self.peer = link.free_buffer,
            Some(_) => {}
            None => {
                let steps = next.distance_from(first).max(0);
                self.peer = self.peer.saturating_sub(steps.unsigned_abs());
            }
        }
        if next.is_after(self.acknowledged) {
            self.acknowledged = next;
        }
    }

    /// Counts an ACK that acknowledged more packets, unless it is a light one.
    pub(super) fn count_ack(&mut self, ack: &Ack) {
        self.acks += u64::from(ack.number().is_some());
    }

    /// Congestion control allows this many packets in flight from now on.
    pub(super) fn limit(&mut self, congestion: u32) {
        self.congestion = congestion;
        self.size = self.peer.min(congestion);
    }

    pub(super) const fn is_open(&self, flight: u32) -> bool {
        flight < self.size
    }

    /// All packets before this one have been acknowledged. The send buffer may begin after it, if
    /// packets were dropped.
    pub(super) const fn acknowledged(&self) -> SeqNo {
        self.acknowledged
    }

    /// The next packet is `seq`, and none is in flight.
    pub(super) const fn restart(&mut self, seq: SeqNo) {
        self.acknowledged = seq;
    }

    pub(super) const fn fill_statistics(&self, statistics: &mut Statistics) {
        statistics.acks_received = self.acks;
        statistics.acks_expected = self.acks_expected;
        statistics.acks_missed = self.acks_missed;
        statistics.ack_gaps = self.ack_gaps;
        statistics.flow_window = self.peer;
        statistics.congestion_window = self.size;
    }

    /// Whether no later ACK overtook this one. An ACK that acknowledges more than all before is
    /// newer than those, with any number.
    fn is_newest(&mut self, now: Instant, ack: &Ack) -> bool {
        let Some(number) = ack.number() else { return true };
        match self.order.note(now, number) {
            Order::Newest(steps) => {
                self.acks_expected += u64::from(steps);
                self.acks_missed += u64::from(steps.saturating_sub(1));
                self.ack_gaps += u64::from(steps > 1);
                true
            }
            Order::Overtaken => {
                self.acks_missed = self.acks_missed.saturating_sub(1);
                ack.next().is_after(self.acknowledged)
            }
            Order::Leap => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use punctual_wire::{AckLink, AckNo};

    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;

    fn ack(number: u32, next: u32, free_buffer: u32) -> Ack {
        let link = AckLink { rtt_us: 20_000, rtt_var_us: 1_000, free_buffer };
        Ack::Small { number: AckNo::new(number), next: SeqNo::new(next), link }
    }

    fn window() -> FlowWindow {
        FlowWindow::new(MS(0), SeqNo::new(100), 50, 80)
    }

    #[test]
    fn the_smaller_of_both_windows_counts() {
        let mut flow = window();
        assert!(flow.is_open(49) && !flow.is_open(50));
        flow.limit(10);
        assert!(flow.is_open(9) && !flow.is_open(10));
    }

    #[test]
    fn an_overtaken_ack_does_not_change_the_peers_room() {
        let mut flow = window();
        flow.handle_ack(MS(10), &ack(1, 110, 40), SeqNo::new(100));
        flow.handle_ack(MS(20), &ack(3, 120, 20), SeqNo::new(110));
        flow.handle_ack(MS(21), &ack(2, 115, 30), SeqNo::new(120));
        flow.limit(80);
        assert!(!flow.is_open(20), "the newest ACK reported 20");
        assert_eq!(flow.acknowledged(), SeqNo::new(120));
        let mut statistics = Statistics::default();
        flow.fill_statistics(&mut statistics);
        assert_eq!((statistics.acks_expected, statistics.acks_missed), (3, 0));
    }

    #[test]
    fn a_light_ack_takes_what_it_acknowledges_from_the_room() {
        let mut flow = window();
        flow.handle_ack(MS(10), &Ack::Light { next: SeqNo::new(130) }, SeqNo::new(100));
        flow.limit(80);
        assert!(flow.is_open(19) && !flow.is_open(20));
    }
}
