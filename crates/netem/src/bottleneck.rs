//! The queue and the transmitter behind it.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::{Bitrate, Instant};

use crate::config::QueueLimit;

/// Items that leave one after the other, each when it has been transmitted at the link's rate.
///
/// Work is counted in nanobits: a rate in bits a second does that many of them each nanosecond, so
/// no rounding adds up, neither over packets nor over changes of the rate.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck<T> {
    rate: Option<Bitrate>,
    /// The first item is being transmitted, those behind it wait.
    items: VecDeque<Item<T>>,
    /// Of those that wait.
    waiting_bytes: u64,
    /// Nanobits of the first item that were left at `since`.
    work_left: u128,
    /// When the first item's transmission began, or the rate changed since.
    since: Instant,
    /// When the first item leaves; `None` without an item, or if it never does.
    departure: Option<Instant>,
    queue_delay_max: Duration,
}

#[derive(Clone, Debug)]
struct Item<T> {
    content: T,
    bytes: u64,
    entered: Instant,
}

impl<T> Bottleneck<T> {
    pub(crate) fn new(rate: Option<Bitrate>) -> Self {
        Self {
            rate,
            items: VecDeque::new(),
            waiting_bytes: 0,
            work_left: 0,
            since: Instant::ORIGIN,
            departure: None,
            queue_delay_max: Duration::ZERO,
        }
    }

    /// Items in it, the one being transmitted included.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// The longest time from an item's entrance to the start of its transmission.
    pub(crate) fn queue_delay_max(&self) -> Duration {
        self.queue_delay_max
    }

    /// When the next item leaves, if none enters before.
    pub(crate) fn next_departure(&self) -> Option<Instant> {
        self.departure
    }

    /// Whether an item of this size may enter. Whatever has left by `now` must have been taken out.
    pub(crate) fn admits(&self, now: Instant, bytes: u64, limit: QueueLimit) -> bool {
        if self.items.is_empty() {
            return true;
        }
        match limit {
            QueueLimit::Bytes(limit) => self.waiting_bytes + bytes <= limit as u64,
            QueueLimit::Packets(limit) => self.items.len() - 1 < limit,
            QueueLimit::Time(limit) => self.time_to_drain(now).is_some_and(|wait| wait <= limit),
            QueueLimit::Unlimited => true,
        }
    }

    pub(crate) fn push(&mut self, now: Instant, bytes: u64, content: T) {
        self.items.push_back(Item { content, bytes, entered: now });
        if self.items.len() == 1 {
            self.start(now, nanobits(bytes));
        } else {
            self.waiting_bytes += bytes;
        }
    }

    /// The next item that has left by `now`, and when it did.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, T)> {
        let departure = self.departure.filter(|&departure| departure <= now)?;
        let left = self.items.pop_front()?;
        // Departures are rounded up to a nanosecond. What the transmitter did in the rest of that
        // nanosecond, it did for the next item.
        let spare = self.work_done(departure).saturating_sub(self.work_left);
        self.departure = None;
        if let Some(next) = self.items.front() {
            let bytes = next.bytes;
            self.queue_delay_max = self.queue_delay_max.max(departure - next.entered);
            self.waiting_bytes -= bytes;
            self.start(departure, nanobits(bytes).saturating_sub(spare));
        }
        Some((departure, left.content))
    }

    /// Goes on at another rate. Whatever has left by `now` must have been taken out.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Option<Bitrate>) {
        let work_left = self.work_left.saturating_sub(self.work_done(now));
        self.rate = rate;
        if !self.items.is_empty() {
            self.start(now, work_left);
        }
    }

    /// Starts, or goes on with, the transmission of the first item.
    fn start(&mut self, now: Instant, work: u128) {
        self.work_left = work;
        self.since = now;
        self.departure = self.time_for(work).map(|time| now + time);
    }

    /// Nanobits transmitted from `since` to `until`; without a rate, none are needed.
    fn work_done(&self, until: Instant) -> u128 {
        let rate = self.rate.map_or(0, Bitrate::as_bits_per_sec);
        (until - self.since).as_nanos() * u128::from(rate)
    }

    fn time_to_drain(&self, now: Instant) -> Option<Duration> {
        let started = self.work_left.saturating_sub(self.work_done(now));
        self.time_for(started + nanobits(self.waiting_bytes))
    }

    /// `None` for ever.
    fn time_for(&self, work: u128) -> Option<Duration> {
        let nanos = match self.rate.map(Bitrate::as_bits_per_sec) {
            _ if work == 0 => 0,
            None => 0,
            Some(0) => return None,
            Some(rate) => work.div_ceil(rate.into()),
        };
        Some(Duration::from_nanos(u64::try_from(nanos).ok()?))
    }
}

fn nanobits(bytes: u64) -> u128 {
    u128::from(bytes) * 8_000_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn departures(queue: &mut Bottleneck<u32>, until: Instant) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| queue.pop(until)).map(|(at, n)| (at.as_nanos(), n)).collect()
    }

    fn filled(rate: u64, packets: u32, bytes: u64) -> Bottleneck<u32> {
        let mut queue = Bottleneck::new(Some(Bitrate::from_bits_per_sec(rate)));
        (0..packets).for_each(|n| queue.push(Instant::ORIGIN, bytes, n));
        queue
    }

    #[test]
    fn packets_leave_one_after_the_other_and_rounding_does_not_add_up() {
        // 1316 bytes at 45 Mb/s take 233,955.56 ns.
        let mut queue = filled(45_000_000, 9, 1_316);
        let exact: Vec<_> = (1..=9).map(|n| (n * 10_528_000_u64).div_ceil(45)).zip(0..).collect();
        assert_eq!(departures(&mut queue, Instant::from_millis(10)), exact);
        assert_eq!(queue.len(), 0);
        assert_eq!(queue.next_departure(), None);
    }

    #[test]
    fn a_change_of_rate_holds_for_what_is_not_yet_transmitted() {
        // 1250 bytes at 10 Mb/s take 1 ms; half of the first packet and the second go at 5 Mb/s.
        let mut queue = filled(10_000_000, 2, 1_250);
        queue.set_rate(us(500), Some(Bitrate::from_mbps(5)));
        assert_eq!(departures(&mut queue, us(9_000)), [(1_500_000, 0), (3_500_000, 1)]);
    }

    #[test]
    fn at_rate_zero_all_wait_and_without_a_rate_none() {
        let mut queue = filled(10_000_000, 3, 1_250);
        queue.set_rate(us(400), Some(Bitrate::ZERO));
        assert_eq!(queue.next_departure(), None);
        assert!(!queue.admits(us(500), 1, QueueLimit::Time(Duration::MAX)));
        queue.set_rate(us(1_000), Some(Bitrate::from_mbps(10)));
        assert_eq!(departures(&mut queue, us(1_600)), [(1_600_000, 0)]);
        queue.set_rate(us(2_000), None);
        assert_eq!(departures(&mut queue, us(2_000)), [(2_000_000, 1), (2_000_000, 2)]);
    }

    #[test]
    fn each_limit_admits_exactly_what_it_says() {
        let ms = Duration::from_millis;
        let mut queue = filled(10_000_000, 0, 0);
        let now = Instant::ORIGIN;
        assert!(queue.admits(now, 1_250, QueueLimit::Packets(0)), "an idle link takes anything");
        assert!(queue.admits(now, 1_250, QueueLimit::Bytes(0)));
        assert!(queue.admits(now, 1_250, QueueLimit::Time(Duration::ZERO)));
        // One is being transmitted, two wait.
        (0..3).for_each(|n| queue.push(now, 1_250, n));
        assert!(queue.admits(now, 1_250, QueueLimit::Packets(3)));
        assert!(!queue.admits(now, 1_250, QueueLimit::Packets(2)));
        assert!(queue.admits(now, 1_250, QueueLimit::Bytes(3_750)));
        assert!(!queue.admits(now, 1_251, QueueLimit::Bytes(3_750)));
        assert!(queue.admits(now, 1_250, QueueLimit::Time(ms(3))));
        assert!(!queue.admits(now, 1_250, QueueLimit::Time(ms(3) - Duration::from_nanos(1))));
        assert!(queue.admits(us(500), 1_250, QueueLimit::Time(Duration::from_micros(2_500))));
        assert!(queue.admits(now, 1_250, QueueLimit::Unlimited));
        departures(&mut queue, us(3_000));
        assert_eq!(queue.queue_delay_max(), ms(2));
    }

    #[test]
    fn extreme_sizes_and_rates_do_not_overflow() {
        let mut queue = filled(u64::MAX, 2, u64::MAX / 2);
        assert!(!queue.admits(us(0), 1, QueueLimit::Time(Duration::ZERO)));
        assert_eq!(departures(&mut queue, Instant::from_nanos(u64::MAX)).len(), 2);
        let mut queue = filled(1, 2, u64::MAX / 2);
        assert_eq!(queue.next_departure(), None, "longer than the clock runs");
        queue.set_rate(Instant::from_nanos(u64::MAX), Some(Bitrate::ZERO));
        assert_eq!(queue.len(), 2);
    }
}
