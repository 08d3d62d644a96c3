use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;

use super::TrafficStatistics;

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
    /// The packets that arrived, in order of arrival, and how many of those the sender knows.
    arrivals: VecDeque<u64>,
    arrivals_known: u64,
    rtt: Option<[Duration; 2]>,
    timer: Option<Instant>,
    backoff: u32,
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
            arrivals: VecDeque::new(),
            arrivals_known: 0,
            rtt: None,
            timer: Some(Instant::ORIGIN),
            backoff: 0,
            acknowledged: 0,
            lost: 0,
            reductions: 0,
            timeouts: 0,
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
        if self.sent.len() == 1 || self.timer.is_none_or(|at| at <= now) {
            self.timer = Some(now + self.timeout());
        }
        Some(self.next_number - 1)
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.timer
    }

    /// Nothing came back for too long: all that is on its way counts as lost.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.flight == 0 || self.timer.is_none_or(|at| at > now) {
            return;
        }
        self.timeouts += 1;
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.threshold = (self.flight / 2).max(2 * self.packet);
        self.window = self.packet;
        self.reduced_at = self.next_number;
        self.lost += self.flight / self.packet;
        self.flight = 0;
        self.sent.clear();
        self.timer = Some(now + self.timeout());
    }

    /// At the receiver: a packet arrived; the number of the answer.
    pub(super) fn handle_packet(&mut self, number: u64) -> u64 {
        self.arrivals.push_back(number);
        self.arrivals_known + self.arrivals.len() as u64
    }

    /// At the sender: an answer arrived, which tells of all that had arrived when it was sent.
    pub(super) fn handle_answer(&mut self, now: Instant, answer: u64) {
        while self.arrivals_known < answer {
            let Some(number) = self.arrivals.pop_front() else { break };
            self.arrivals_known += 1;
            self.acknowledge(now, number, self.arrivals_known == answer);
        }
        self.find_losses();
        while self.sent.front().is_some_and(|sent| !sent.open) {
            self.sent.pop_front();
        }
        self.timer = (self.flight > 0).then(|| now + self.timeout());
    }

    pub(super) fn tell(&self, statistics: &mut TrafficStatistics) {
        statistics.goodput_bytes = self.acknowledged * self.packet;
        statistics.lost = self.lost;
        statistics.reductions = self.reductions;
        statistics.timeouts = self.timeouts;
        statistics.window = self.window;
        statistics.rtt = self.rtt.map_or(Duration::ZERO, |[smoothed, _]| smoothed);
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
            self.sample(sample);
        }
        self.backoff = 0;
        self.acknowledged += 1;
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
                self.lost += 1;
                self.flight -= self.packet;
                newest_lost = Some(oldest + place as u64);
            }
        }
        if newest_lost.is_some_and(|number| number >= self.reduced_at) {
            self.threshold = (self.window / 2).max(2 * self.packet);
            self.window = self.threshold;
            self.reduced_at = self.next_number;
            self.reductions += 1;
        }
    }

    /// RFC 6298.
    fn sample(&mut self, sample: Duration) {
        self.rtt = Some(match self.rtt {
            None => [sample, sample / 2],
            Some([smoothed, variance]) => {
                [(smoothed * 7 + sample) / 8, (variance * 3 + smoothed.abs_diff(sample)) / 4]
            }
        });
    }

    fn timeout(&self) -> Duration {
        let timeout = self.rtt.map_or(FIRST_TIMEOUT, |[rtt, variance]| rtt + variance * 4);
        timeout.max(LEAST_TIMEOUT) * (1 << self.backoff)
    }
}

/// Packets (RFC 6928).
const INITIAL_WINDOW: u64 = 10;
/// Packets (RFC 5681).
const REORDERING: u64 = 3;
const FIRST_TIMEOUT: Duration = Duration::from_secs(1);
/// As Linux has it.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
const MAX_BACKOFF: u32 = 6;
