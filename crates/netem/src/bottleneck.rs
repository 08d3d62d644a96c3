//! The queue and the transmitter behind it.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;

use crate::codel::{CoDel, Discipline, Head};
use crate::config::QueueLimit;
use crate::service::{Service, nanobits};

/// Items that leave one after the other, each when it has been transmitted at the link's rate.
///
/// Work is counted in nanobits: a rate in bits a second does that many of them each nanosecond, so
/// no rounding adds up, neither over packets nor over changes of the rate.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck<T> {
    service: Service,
    /// Nothing is transmitted for the time being.
    stalled: bool,
    discipline: Discipline,
    codel: CoDel,
    /// The first item is being transmitted, those behind it wait.
    items: VecDeque<Item<T>>,
    /// Bytes of the waiting packets.
    waiting_bytes: u64,
    /// Nanobits of the first item that were left at `since`.
    work_left: u128,
    /// Nanobits that had been done for it beyond that.
    credit: u128,
    /// When the first item's transmission began, or the rate changed since.
    since: Instant,
    /// When the first item leaves; `None` without an item, or if it never does.
    departure: Option<Instant>,
    /// Bytes of the largest item so far.
    largest: u64,
    queue_delay_max: Duration,
    dropped_by_codel: u64,
}

#[derive(Clone, Debug)]
struct Item<T> {
    content: T,
    bytes: u64,
    entered: Instant,
}

impl<T> Bottleneck<T> {
    pub(crate) fn new(service: Service, discipline: Discipline) -> Self {
        Self {
            service,
            stalled: false,
            discipline,
            codel: CoDel::default(),
            items: VecDeque::new(),
            waiting_bytes: 0,
            work_left: 0,
            credit: 0,
            since: Instant::ORIGIN,
            departure: None,
            largest: 0,
            queue_delay_max: Duration::ZERO,
            dropped_by_codel: 0,
        }
    }

    /// Items in it, the one being transmitted included.
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether an item that enters now leaves in the same instant.
    pub(crate) fn is_open(&self) -> bool {
        self.items.is_empty() && !self.stalled && matches!(self.service, Service::Rate(None))
    }

    /// The longest time from an item's entrance to the start of its transmission.
    pub(crate) fn queue_delay_max(&self) -> Duration {
        self.queue_delay_max
    }

    /// Items that CoDel dropped.
    pub(crate) fn dropped_by_codel(&self) -> u64 {
        self.dropped_by_codel
    }

    /// When the next item leaves, if none enters before.
    pub(crate) fn next_departure(&self) -> Option<Instant> {
        self.departure
    }

    /// Whether an item has left by `now`.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.departure.is_some_and(|departure| departure <= now)
    }

    /// Whether an item of this size may enter. Whatever has left by `now` must have been taken out.
    pub(crate) fn admits(&self, now: Instant, bytes: u64, limit: QueueLimit) -> bool {
        if self.items.is_empty() {
            return true;
        }
        match limit {
            QueueLimit::Bytes(limit) => self.waiting_bytes.saturating_add(bytes) <= limit as u64,
            QueueLimit::Packets(limit) => self.items.len() - 1 < limit,
            QueueLimit::Time(limit) => self.time_to_drain(now).is_some_and(|wait| wait <= limit),
            QueueLimit::Unlimited => true,
        }
    }

    pub(crate) fn push(&mut self, now: Instant, bytes: u64, content: T) {
        self.largest = self.largest.max(bytes);
        self.items.push_back(Item { content, bytes, entered: now });
        if self.items.len() == 1 {
            self.codel.empty();
            self.start(now, nanobits(bytes), 0);
        } else {
            self.waiting_bytes = self.waiting_bytes.saturating_add(bytes);
        }
    }

    /// The next item that has left by `now`, and when it did.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<(Instant, T)> {
        let departure = self.departure.filter(|&departure| departure <= now)?;
        let left = self.items.pop_front()?;
        // Departures are rounded up to a nanosecond, or to an opportunity. The transmitter's work
        // in the rest of it counts for the next item.
        let spare = self.work_done(departure).saturating_sub(self.work_left);
        self.departure = None;
        if self.discipline != Discipline::TailDrop {
            self.drop_waiting(departure);
        }
        if let Some(next) = self.items.front() {
            let bytes = next.bytes;
            self.queue_delay_max = self.queue_delay_max.max(departure - next.entered);
            self.waiting_bytes = self.waiting_bytes.saturating_sub(bytes);
            self.start(departure, nanobits(bytes), spare);
        }
        Some((departure, left.content))
    }

    /// Goes on with another service. Whatever has left by `now` must have been taken out.
    pub(crate) fn set_service(&mut self, now: Instant, service: Service, stalled: bool) {
        let done = self.work_done(now);
        self.service = service;
        self.stalled = stalled;
        if !self.items.is_empty() {
            let spare = done.saturating_sub(self.work_left);
            self.start(now, self.work_left.saturating_sub(done), spare);
        }
    }

    pub(crate) fn set_discipline(&mut self, discipline: Discipline) {
        self.discipline = discipline;
    }

    /// Lets CoDel drop packets from the front.
    fn drop_waiting(&mut self, now: Instant) {
        let Discipline::CoDel { target, interval } = self.discipline else { return };
        let mut after = None;
        while let Some(next) = self.items.front() {
            let last = self.waiting_bytes.saturating_sub(next.bytes) <= self.largest;
            let head = Head { sojourn: now - next.entered, last, after };
            after = self.codel.drops(now, head, target, interval);
            if after.is_none() {
                return;
            }
            self.waiting_bytes = self.waiting_bytes.saturating_sub(next.bytes);
            self.items.pop_front();
            self.dropped_by_codel += 1;
        }
        self.codel.empty();
    }

    /// Starts, or goes on with, the transmission of the first item.
    fn start(&mut self, now: Instant, work: u128, credit: u128) {
        self.work_left = work;
        self.credit = credit;
        self.since = now;
        self.departure = match work.saturating_sub(credit) {
            0 if !self.stalled => Some(now),
            _ if self.stalled => None,
            left => self.service.done(now, left),
        };
    }

    /// Nanobits transmitted from `since` to `until`, and those before.
    fn work_done(&self, until: Instant) -> u128 {
        if self.stalled {
            return self.credit;
        }
        self.credit.saturating_add(self.service.work(self.since, until))
    }

    fn time_to_drain(&self, now: Instant) -> Option<Duration> {
        let started = self.work_left.saturating_sub(self.work_done(now));
        let work = started + nanobits(self.waiting_bytes);
        self.service.done(now, work).map(|done| done - now)
    }
}

#[cfg(test)]
mod tests {
    use punctual_units::Bitrate;

    use super::*;

    fn us(micros: u64) -> Instant {
        Instant::from_micros(micros)
    }

    fn set_rate(queue: &mut Bottleneck<u32>, now: Instant, rate: Option<Bitrate>) {
        queue.set_service(now, Service::Rate(rate), false);
    }

    fn departures(queue: &mut Bottleneck<u32>, until: Instant) -> Vec<(u64, u32)> {
        std::iter::from_fn(|| queue.pop(until)).map(|(at, n)| (at.as_nanos(), n)).collect()
    }

    fn filled(rate: u64, packets: u32, bytes: u64) -> Bottleneck<u32> {
        let service = Service::Rate(Some(Bitrate::from_bits_per_sec(rate)));
        let mut queue = Bottleneck::new(service, Discipline::TailDrop);
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
    fn a_new_rate_applies_to_packets_not_yet_transmitted() {
        // 1250 bytes at 10 Mb/s take 1 ms; half of the first packet and the second go at 5 Mb/s.
        let mut queue = filled(10_000_000, 2, 1_250);
        set_rate(&mut queue, us(500), Some(Bitrate::from_mbps(5)));
        assert_eq!(departures(&mut queue, us(9_000)), [(1_500_000, 0), (3_500_000, 1)]);
    }

    #[test]
    fn at_rate_zero_all_wait_and_without_a_rate_none() {
        let mut queue = filled(10_000_000, 3, 1_250);
        set_rate(&mut queue, us(400), Some(Bitrate::ZERO));
        assert_eq!(queue.next_departure(), None);
        assert!(!queue.admits(us(500), 1, QueueLimit::Time(Duration::MAX)));
        set_rate(&mut queue, us(1_000), Some(Bitrate::from_mbps(10)));
        assert_eq!(departures(&mut queue, us(1_600)), [(1_600_000, 0)]);
        set_rate(&mut queue, us(2_000), None);
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
        set_rate(&mut queue, Instant::from_nanos(u64::MAX), Some(Bitrate::ZERO));
        assert_eq!(queue.len(), 2);
    }
}
