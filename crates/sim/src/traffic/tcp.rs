use std::collections::VecDeque;

use punctual_units::Instant;

use super::TrafficStatistics;
use super::retransmission_timer::RetransmissionTimer;

/// The sender of a TCP-like flow, and what its receiver knows; see [`super::Traffic::TcpLike`].
#[derive(Debug)]
pub(super) struct Tcp {
    packet: u64,
    max_window: u64,
    /// Bytes that may be on their way.
    window: u64,
    /// Up to here the window doubles each round trip.
    threshold: u64,
    /// Bytes that are on their way, as far as the sender knows.
    flight: u64,
    /// Packets since the oldest of which nothing is known.
    sent: VecDeque<Sent>,
    next_number: u64,
    /// One more than the highest number that is known to have arrived.
    arrived_up_to: u64,
    /// Losses of packets before this one belong to a reduction that was made.
    reduced_at: u64,
    arrivals: Arrivals,
    timer: RetransmissionTimer,
    totals: Totals,
}

/// The packets that arrived, in order of arrival. The sender knows the first of them.
#[derive(Debug, Default)]
struct Arrivals {
    unknown: VecDeque<u64>,
    known: u64,
}

#[derive(Debug, Default)]
struct Totals {
    /// Packets that the sender knows to have arrived before it took them for lost.
    acknowledged: u64,
    lost: u64,
    reductions: u64,
    timeouts: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Instant,
    open: bool,
}

impl Tcp {
    /// A flow of packets of `packet` bytes.
    pub(super) fn new(packet: u64, max_window: u64) -> Self {
        Self {
            packet,
            max_window,
            window: (INITIAL_WINDOW * packet).min(max_window.max(packet)),
            threshold: u64::MAX,
            flight: 0,
            sent: VecDeque::new(),
            next_number: 0,
            arrived_up_to: 0,
            reduced_at: 0,
            arrivals: Arrivals::default(),
            timer: RetransmissionTimer::due_at(Instant::ORIGIN),
            totals: Totals::default(),
        }
    }

    /// The number of a packet that the window lets go.
    pub(super) fn poll_send(&mut self, now: Instant) -> Option<u64> {
        if self.flight + self.packet > self.window {
            return None;
        }
        self.flight += self.packet;
        self.sent.push_back(Sent { at: now, open: true });
        self.next_number += 1;
        if self.sent.len() == 1 || self.timer.due().is_none_or(|at| at <= now) {
            self.timer.start(now);
        }
        Some(self.next_number - 1)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.timer.due()
    }

    /// Nothing came back for too long: all that is on its way counts as lost.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.flight == 0 || self.timer.due().is_none_or(|at| at > now) {
            return;
        }
        self.totals.timeouts += 1;
        self.timer.back_off();
        self.threshold = (self.flight / 2).max(2 * self.packet);
        self.window = self.packet;
        self.reduced_at = self.next_number;
        self.totals.lost += self.flight / self.packet;
        self.flight = 0;
        self.sent.clear();
        self.timer.start(now);
    }

    /// At the receiver: a packet arrived; the number of the answer.
    pub(super) fn handle_packet(&mut self, number: u64) -> u64 {
        self.arrivals.add(number)
    }

    /// At the sender: an answer arrived, which tells of all that had arrived when it was sent.
    pub(super) fn handle_answer(&mut self, now: Instant, answer: u64) {
        while let Some((number, newest)) = self.arrivals.learn(answer) {
            self.acknowledge(now, number, newest);
        }
        self.find_losses();
        while self.sent.front().is_some_and(|sent| !sent.open) {
            self.sent.pop_front();
        }
        if self.flight > 0 {
            self.timer.start(now);
        } else {
            self.timer.stop();
        }
    }

    pub(super) fn tell(&self, statistics: &mut TrafficStatistics) {
        statistics.goodput_bytes = self.totals.acknowledged * self.packet;
        statistics.lost = self.totals.lost;
        statistics.reductions = self.totals.reductions;
        statistics.timeouts = self.totals.timeouts;
        statistics.window = self.window;
        statistics.rtt = self.timer.rtt();
    }

    fn acknowledge(&mut self, now: Instant, number: u64, newest: bool) {
        self.arrived_up_to = self.arrived_up_to.max(number + 1);
        let oldest = self.next_number - self.sent.len() as u64;
        let place = number.checked_sub(oldest).and_then(|place| usize::try_from(place).ok());
        let Some(sent) = place.and_then(|place| self.sent.get_mut(place)) else { return };
        if !std::mem::take(&mut sent.open) {
            return;
        }
        if newest {
            let sample = now - sent.at;
            self.timer.sample(sample);
        }
        self.timer.reset_backoff();
        self.totals.acknowledged += 1;
        self.flight -= self.packet;
        if number < self.reduced_at {
            return;
        }
        let growth = if self.window < self.threshold {
            self.packet
        } else {
            (self.packet * self.packet / self.window).max(1)
        };
        self.window = (self.window + growth).min(self.max_window.max(self.packet));
    }

    /// A packet is lost when three that were sent after it have arrived.
    fn find_losses(&mut self) {
        let oldest = self.next_number - self.sent.len() as u64;
        let certain = self.arrived_up_to.saturating_sub(REORDERING).saturating_sub(oldest);
        let certain = usize::try_from(certain).unwrap_or(0).min(self.sent.len());
        let mut newest_lost = None;
        for (place, sent) in self.sent.range_mut(..certain).enumerate() {
            if std::mem::take(&mut sent.open) {
                self.totals.lost += 1;
                self.flight -= self.packet;
                newest_lost = Some(oldest + place as u64);
            }
        }
        if newest_lost.is_some_and(|number| number >= self.reduced_at) {
            self.threshold = (self.window / 2).max(2 * self.packet);
            self.window = self.threshold;
            self.reduced_at = self.next_number;
            self.totals.reductions += 1;
        }
    }
}

impl Arrivals {
    /// A packet arrived. Returns the number of the answer: that of all packets so far.
    fn add(&mut self, number: u64) -> u64 {
        self.unknown.push_back(number);
        self.known + self.unknown.len() as u64
    }

    /// The next packet that this answer tells of, and whether it is the last one.
    fn learn(&mut self, answer: u64) -> Option<(u64, bool)> {
        if self.known >= answer {
            return None;
        }
        let number = self.unknown.pop_front()?;
        self.known += 1;
        Some((number, self.known == answer))
    }
}

/// Packets (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Packets (RFC 5681).
const REORDERING: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_tells_of_all_arrivals_before_it() {
        let mut arrivals = Arrivals::default();
        assert_eq!([7, 9, 8].map(|number| arrivals.add(number)), [1, 2, 3]);
        assert_eq!(arrivals.learn(2), Some((7, false)));
        assert_eq!(arrivals.learn(2), Some((9, true)));
        assert_eq!(arrivals.learn(2), None);
        assert_eq!(arrivals.learn(1), None, "an older answer");
        assert_eq!((arrivals.add(10), arrivals.learn(3)), (4, Some((8, true))));
    }
}
