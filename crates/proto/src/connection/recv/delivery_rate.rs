use std::time::Duration;

use punctual_units::Instant;

/// Instants of arrival that the rate is taken from.
const ARRIVALS: usize = 64;
/// The rate is not told from less. libsrt's sender believes in 16 packets a second until it is told
/// better, and would go on at that if its slow start ended first.
const LEAST: usize = 2;

/// How many packets per second arrive while they do: what a file's sender goes by (draft section
/// 4.7; the peer's word for it is delivery rate).
///
/// A driver hands over packets in batches, so it is the packets of an instant that are counted
/// against the time since the instant before. Times far longer than usual are pauses of the sender
/// and tell nothing.
#[derive(Debug)]
pub(crate) struct DeliveryRate {
    /// Time since the arrival before, and how many packets came then.
    arrivals: [(Duration, u32); ARRIVALS],
    next: usize,
    known: usize,
    last: Option<Instant>,
}

impl DeliveryRate {
    pub(crate) const fn new() -> Self {
        Self { arrivals: [(Duration::ZERO, 0); ARRIVALS], next: 0, known: 0, last: None }
    }

    /// A data packet came, whatever it was.
    pub(crate) fn arrived(&mut self, now: Instant) {
        if self.last == Some(now) {
            let newest = (self.next + ARRIVALS - 1) % ARRIVALS;
            if self.known > 0 {
                self.arrivals[newest].1 += 1;
            }
            return;
        }
        if let Some(last) = self.last.replace(now) {
            self.arrivals[self.next] = (now - last, 1);
            self.next = (self.next + 1) % ARRIVALS;
            self.known = (self.known + 1).min(ARRIVALS);
        }
    }

    /// Packets per second; 0 if unknown. Times beyond eight times the median are left out.
    pub(crate) fn packets_per_sec(&self) -> u32 {
        if self.known < LEAST {
            return 0;
        }
        let known = &self.arrivals[..self.known];
        let mut times: Vec<Duration> = known.iter().map(|&(time, _)| time).collect();
        times.sort_unstable();
        let longest = times[times.len() / 2] * 8;
        let usual = known.iter().filter(|&&(time, _)| time <= longest);
        let (time, packets) = usual.fold((Duration::ZERO, 0), |(time, packets), arrival| {
            (time + arrival.0, packets + u64::from(arrival.1))
        });
        let rate = u128::from(packets) * 1_000_000_000 / time.as_nanos().max(1);
        u32::try_from(rate).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_and_pauses_do_not_change_the_rate() {
        for batch in [1, 4, 40] {
            let mut rate = DeliveryRate::new();
            assert_eq!(rate.packets_per_sec(), 0);
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
            assert_eq!(rate.packets_per_sec(), 10_000, "in batches of {batch}");
        }
    }
}
