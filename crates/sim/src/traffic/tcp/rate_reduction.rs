//! Proportional rate reduction (RFC 6937, with the slow-start bound).

/// Spreads the reduction of a window over the round trip of recovery. Counts are of packets.
#[derive(Debug)]
pub(super) struct RateReduction {
    /// Packets in flight when recovery began (`RecoverFS`).
    flight_at_begin: u64,
    /// Packets that arrived since, and packets that were sent.
    delivered: u64,
    sent: u64,
    /// The largest number of packets in flight for now.
    limit: u64,
}

impl RateReduction {
    /// Recovery begins with this number of packets in flight, before its losses were taken off.
    pub(super) fn new(flight_at_begin: u64) -> Self {
        Self { flight_at_begin: flight_at_begin.max(1), delivered: 0, sent: 0, limit: 0 }
    }

    /// `delivered` packets arrived; `flight` are in flight, and `target` is the reduced window.
    pub(super) fn on_ack(&mut self, delivered: u64, flight: u64, target: u64) {
        self.delivered += delivered;
        let count = if flight > target {
            (self.delivered * target).div_ceil(self.flight_at_begin).saturating_sub(self.sent)
        } else {
            let bound = self.delivered.saturating_sub(self.sent).max(delivered) + 1;
            bound.min(target - flight)
        };
        // The first retransmission leaves at once.
        self.limit = flight + count.max(u64::from(self.sent == 0));
    }

    pub(super) fn on_send(&mut self) {
        self.sent += 1;
    }

    /// The largest number of packets in flight for now.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_of_one_packet_lets_seven_of_ten_answers_send() {
        let mut reduction = RateReduction::new(100);
        let (mut flight, mut sent) = (99, 0);
        for _ in 0..99 {
            flight -= 1;
            reduction.on_ack(1, flight, 70);
            while flight < reduction.limit() {
                reduction.on_send();
                (flight, sent) = (flight + 1, sent + 1);
            }
        }
        assert_eq!((flight, sent), (70, 70));
    }

    #[test]
    fn after_many_losses_two_packets_leave_for_each_that_arrives() {
        let mut reduction = RateReduction::new(100);
        let mut flight = 10;
        let mut flights = Vec::new();
        for _ in 0..4 {
            flight -= 1;
            reduction.on_ack(1, flight, 50);
            while flight < reduction.limit() {
                reduction.on_send();
                flight += 1;
            }
            flights.push(flight);
        }
        assert_eq!(flights, [11, 12, 13, 14]);
    }
}
