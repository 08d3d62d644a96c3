use std::time::Duration;

use punctual_units::Instant;

/// The number of arrival instants from which the rate is computed.
const ARRIVALS: usize = 64;
/// The least number of arrival instants. libsrt's sender assumes 16 packets a second until an ACK
/// reports a rate, and stays at that rate if its slow start ends first, so the rate is reported
/// soon.
const LEAST: usize = 2;
/// The least number of packets of one instant that are taken for a sender's first window, of which
/// libsrt's has 16.
const WINDOW: u32 = 8;
/// The longest time that received packets wait until the host reads them. An idle host reads them
/// at once, a busy one about ten thousand times a second. So packets that are read together after a
/// longer pause arrived within this time.
const LOOK: Duration = Duration::from_micros(200);
/// A value above this multiple of the median, or below this fraction of it, is left out (draft
/// section 5.2.1.2).
const OUTLIER: u32 = 8;

/// The rate at which packets arrive, without the sender's pauses: the delivery rate, by which the
/// congestion control of files sets its rate (draft section 4.7).
///
/// A driver passes packets in batches. So the packets of one instant are divided by the time since
/// the instant before, and the median is taken over packets: over instants it would be a pause if a
/// window's packets arrived in few batches. An instant with a far longer time per packet than the
/// median follows a pause of the sender, and is left out.
#[derive(Debug)]
pub(super) struct DeliveryRate {
    arrivals: [Arrival; ARRIVALS],
    next: usize,
    known: usize,
    last: Option<Instant>,
    /// The packets of the first instant.
    first: u32,
}

impl DeliveryRate {
    pub(super) const fn new() -> Self {
        Self { arrivals: [(Duration::ZERO, 0); ARRIVALS], next: 0, known: 0, last: None, first: 0 }
    }

    /// A data packet of any kind arrived.
    pub(super) fn arrived(&mut self, now: Instant) {
        if self.last == Some(now) {
            let newest = (self.next + ARRIVALS - 1) % ARRIVALS;
            match self.known {
                0 => self.first += 1,
                _ => self.arrivals[newest].1 += 1,
            }
            return;
        }
        if self.last.is_none() {
            self.first = 1;
        }
        if let Some(last) = self.last.replace(now) {
            self.arrivals[self.next] = (now - last, 1);
            self.next = (self.next + 1) % ARRIVALS;
            self.known = (self.known + 1).min(ARRIVALS);
        }
    }

    /// Packets per second; 0 if unknown. `capacity` is the estimated capacity of the link in
    /// packets per second.
    ///
    /// A batch after a pause arrived faster than its time since the pause says. If most packets are
    /// in such batches, the sender's window limits the rate, and the link carries more: its
    /// capacity, or the rate within the batches if that is lower.
    pub(super) fn packets_per_sec(&self, capacity: u32) -> u32 {
        if self.known < LEAST {
            return self.of_first_window(capacity);
        }
        let mut arrivals = self.arrivals[..self.known].to_vec();
        let on_average = usual_rate(&mut arrivals);
        let behind_pauses = |&(time, packets): &Arrival| time > LOOK && packets > 1;
        if !arrivals.iter().any(behind_pauses) {
            return on_average;
        }
        let mut parted = Vec::with_capacity(2 * arrivals.len());
        for arrival in arrivals {
            if behind_pauses(&arrival) {
                parted.extend([(arrival.0, 1), (LOOK, arrival.1 - 1)]);
            } else {
                parted.push(arrival);
            }
        }
        on_average.max(usual_rate(&mut parted).min(capacity))
    }

    /// The rate of a first window that arrived at once, which is all that is known of the link: the
    /// next window may have a loss, at which libsrt's sender takes the rate that it knows.
    fn of_first_window(&self, capacity: u32) -> u32 {
        if self.first < WINDOW {
            return 0;
        }
        let within = usual_rate(&mut [(LOOK, self.first - 1)]);
        if capacity == 0 { within } else { within.min(capacity) }
    }

    /// The median time between two reads of the network that found packets, at most [`LOOK`];
    /// `None` if unknown.
    pub(super) fn grain(&self) -> Option<Duration> {
        let mut times: Vec<Duration> =
            self.arrivals[..self.known].iter().map(|&(time, _)| time).collect();
        times.sort_unstable();
        times.get(times.len() / 2).map(|&time| time.min(LOOK))
    }
}

/// The time since the arrival before, and the number of packets at that instant.
type Arrival = (Duration, u32);

/// The rate of packets, without those whose time is far from the median.
fn usual_rate(arrivals: &mut [Arrival]) -> u32 {
    let each = |&(time, packets): &Arrival| time / packets.max(1);
    arrivals.sort_unstable_by_key(each);
    let all: u64 = arrivals.iter().map(|&(_, packets)| u64::from(packets)).sum();
    let mut below = 0;
    let median = arrivals.iter().find(|&&(_, packets)| {
        below += u64::from(packets);
        below * 2 > all
    });
    let median = median.map_or(Duration::ZERO, each);
    let usual = arrivals.iter().filter(|arrival| {
        let each = each(arrival);
        each <= median * OUTLIER && each * OUTLIER >= median
    });
    let (time, packets) = usual.fold((Duration::ZERO, 0), |(time, packets), arrival| {
        (time + arrival.0, packets + u64::from(arrival.1))
    });
    let rate = u128::from(packets) * 1_000_000_000 / time.as_nanos().max(1);
    u32::try_from(rate).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_and_pauses_do_not_change_the_rate() {
        for batch in [1, 4, 40] {
            let mut rate = DeliveryRate::new();
            assert_eq!(rate.packets_per_sec(10_000), 0);
            let mut now = Instant::from_millis(1);
            for i in 0..100u64 {
                // 10,000 packets a second, and a pause now and then.
                now += Duration::from_micros(100 * batch);
                if i % 20 == 19 {
                    now += Duration::from_secs(2);
                }
                for _ in 0..batch {
                    rate.arrived(now);
                }
            }
            assert_eq!(rate.packets_per_sec(10_000), 10_000, "in batches of {batch}");
            let grain = Duration::from_micros(100 * batch).min(LOOK);
            assert_eq!(rate.grain(), Some(grain));
        }
    }

    #[test]
    fn pauses_between_batches_do_not_lower_the_rate_of_a_window() {
        let mut rate = DeliveryRate::new();
        for window in 0..40u64 {
            // Each 30 ms 32 packets at 8,000 a second, seen once a millisecond.
            for look in 0..4 {
                for _ in 0..8 {
                    rate.arrived(Instant::from_millis(100 + window * 30 + look));
                }
            }
        }
        assert_eq!(rate.packets_per_sec(8_000), 8_000);
    }

    #[test]
    fn a_first_window_that_arrives_at_once_has_a_rate_and_few_packets_none() {
        let rate = |packets: u32, capacity: u32| {
            let mut rate = DeliveryRate::new();
            (0..packets).for_each(|_| rate.arrived(Instant::from_millis(100)));
            let first = rate.packets_per_sec(capacity);
            rate.arrived(Instant::from_millis(140));
            assert_eq!(rate.packets_per_sec(capacity), first);
            first
        };
        assert_eq!([rate(16, 0), rate(16, 20_000), rate(16, 500_000)], [75_000, 20_000, 75_000]);
        assert_eq!([rate(1, 0), rate(7, 500_000)], [0, 0]);
    }

    #[test]
    fn simultaneous_windows_have_the_links_rate_single_packets_their_own() {
        let rate = |packets: u64, capacity: u32| {
            let mut rate = DeliveryRate::new();
            for window in 0..40 {
                let now = Instant::from_millis(100 + window * 10);
                (0..packets).for_each(|_| rate.arrived(now));
            }
            rate.packets_per_sec(capacity)
        };
        // 17 within 200 µs are 80,000 a second and more, behind a first one.
        for (packets, capacity, told) in [
            (17, 20_000, 20_000),
            (17, 500_000, 80_000),
            (17, 100, 1_700),
            (17, 0, 1_700),
            (1, 500_000, 100),
        ] {
            assert_eq!(rate(packets, capacity), told, "{packets} a window of {capacity}");
        }
    }
}
