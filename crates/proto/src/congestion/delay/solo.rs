use std::time::Duration;

/// The window of a sender that has the path to itself, or shares it with others of its kind: it
/// keeps a small queue of its own.
///
/// The law is that of FAST TCP (Wei, Jin, Low, Hegde: FAST TCP, 2006, equation 3): in each round
/// trip the window moves from *W* towards *W* · base / RTT + *α*, where *α* is the number of own
/// packets in the queue. Losses have no part in it.
///
/// FAST's *α* is a constant, so that the queueing delay depends on the rate. Here *α* is the number
/// of packets of the target delay up to a rate of 10 Mb/s, and above it grows as the square root of
/// the rate: the delay stays within its target, and since *α* grows more slowly than the rate,
/// senders that share a queue still end at equal rates.
///
/// Hosts are late by the noise of the round trips on average: a sender that took that for a queue
/// would end at a rate of 10 Mb/s · (target / noise)², and a queue that is no longer than the noise
/// runs empty each time that a host is later than on average. So the delay of *α* is nearer to its
/// target by the share of it that four times the noise is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Solo {
    /// The target of the queueing delay.
    target: Duration,
    /// The factor of the number of own packets in the queue.
    weight: f64,
    /// The rate of 10 Mb/s, packets per second.
    reference: f64,
    /// The queueing delay that is the noise of hosts.
    noise: Duration,
}

/// The share of the difference that the window makes up for in a round trip (FAST TCP: γ). The
/// queue is reported a round trip late, and a larger share than 1 / e makes the window swing.
const GAIN: f64 = 0.35;
/// The same while the queue is far too long, as after a drop of the link's rate.
const FAST_GAIN: f64 = 0.7;
/// A queueing delay beyond this multiple of the target is far too long.
const FAR_TOO_LONG: u32 = 3;
/// The least number of own packets in the queue: fewer cannot be told from none.
const LEAST_QUEUE: f64 = 2.0;
/// The multiple of the noise that the own queue covers (RFC 6298 section 2: K = 4): of times that
/// are distributed exponentially, one in fifty exceeds four times their mean.
const COVERED: f64 = 4.0;
/// Above this rate, bits per second, *α* grows as the square root of the rate.
const REFERENCE: f64 = 10e6;

impl Solo {
    /// For packets of `packet_size` bytes. Of senders that share a queue, one with twice the
    /// `shares` gets twice the rate.
    pub(super) fn new(target: Duration, shares: f64, packet_size: u32, noise: Duration) -> Self {
        let reference = REFERENCE / 8.0 / f64::from(packet_size.max(1));
        Self { target, weight: shares.sqrt(), reference, noise }
    }

    /// The number of own packets in the queue at an arrival rate of `rate` packets per second.
    pub(super) fn own_queue(&self, rate: f64) -> f64 {
        let share = self.weight * (self.reference / rate.max(1.0)).sqrt().min(1.0);
        let target = self.target.as_secs_f64();
        let covered = (COVERED * self.noise.as_secs_f64()).min(target);
        let delay = target * share + covered * (1.0 - share).max(0.0);
        (delay * rate).max(LEAST_QUEUE)
    }

    /// The queueing delay that the sender causes alone at this rate.
    pub(super) fn own_delay(&self, rate: f64) -> Duration {
        Duration::from_secs_f64(self.own_queue(rate) / rate.max(1.0))
    }

    /// The window that fills a path that carries `rate` packets per second and whose round trip is
    /// `base`, with the own packets in its queue.
    pub(super) fn full_window(&self, rate: f64, base: Duration) -> f64 {
        self.own_queue(rate) + rate * base.as_secs_f64()
    }

    /// The window `elapsed` after it was `window`. `own_queue`: the number of own packets in the
    /// queue that it aims at.
    pub(super) fn follow(
        &self,
        window: f64,
        elapsed: Duration,
        base: Duration,
        queue: Duration,
        own_queue: f64,
    ) -> f64 {
        let rtt = (base + queue).as_secs_f64();
        if rtt <= 0.0 {
            return window;
        }
        let wanted = window * base.as_secs_f64() / rtt + own_queue;
        let gain = if queue > self.target * FAR_TOO_LONG { FAST_GAIN } else { GAIN };
        let step = gain * (elapsed.as_secs_f64() / rtt).min(1.0);
        window + step * (wanted - window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const SIZE: u32 = 1_500;

    /// Lets senders with these windows share a link of `capacity` packets per second for a minute.
    /// Returns their rates and the queueing delay.
    fn share(mut windows: Vec<(Solo, f64)>, capacity: f64, base: Duration) -> (Vec<f64>, Duration) {
        let mut queue = Duration::ZERO;
        for _ in 0..6_000 {
            let all: f64 = windows.iter().map(|(_, window)| window).sum();
            queue = Duration::from_secs_f64((all / capacity - base.as_secs_f64()).max(0.0));
            let rtt = (base + queue).as_secs_f64();
            for (solo, window) in &mut windows {
                let own_queue = solo.own_queue(*window / rtt);
                *window = solo.follow(*window, MS(10), base, queue, own_queue);
            }
        }
        let rtt = (base + queue).as_secs_f64();
        (windows.iter().map(|(_, window)| window / rtt).collect(), queue)
    }

    #[test]
    fn noise_lengthens_the_own_queue_up_to_its_target() {
        // A gigabit a second, a hundred times 10 Mb/s: a tenth of the target.
        let rate = 1e9 / 8.0 / f64::from(SIZE);
        let delays = [0, 1, 9].map(|ms| Solo::new(MS(5), 1.0, SIZE, MS(ms)).own_delay(rate));
        assert_eq!(delays.map(|delay| delay.as_micros()), [500, 4_100, 5_000]);
    }

    #[test]
    fn alone_it_fills_the_link_and_the_queue_stays_within_its_target() {
        for (mbps, base) in [(1.0, 20), (10.0, 300), (50.0, 100), (200.0, 200)] {
            let capacity = mbps * 1e6 / 8.0 / f64::from(SIZE);
            let solo = Solo::new(MS(20), 1.0, SIZE, Duration::ZERO);
            let (rates, queue) = share(vec![(solo, 10.0)], capacity, MS(base));
            assert!(rates[0] > 0.999 * capacity, "{mbps} Mb/s: {} of {capacity}", rates[0]);
            let two_packets = Duration::from_secs_f64(2.0 / capacity);
            let most = MS(20).max(two_packets) + MS(1);
            assert!(queue <= most && queue > MS(1), "{mbps} Mb/s: {queue:?}");
        }
    }

    #[test]
    fn senders_that_share_a_queue_end_at_equal_rates() {
        let solo = Solo::new(MS(20), 1.0, SIZE, Duration::ZERO);
        let (rates, _) = share(vec![(solo, 800.0), (solo, 20.0)], 8_000.0, MS(100));
        assert!((rates[0] / rates[1] - 1.0).abs() < 0.02, "{rates:?}");
    }

    #[test]
    fn two_shares_get_twice_the_rate_of_one() {
        let [one, two] = [1.0, 2.0].map(|shares| Solo::new(MS(20), shares, SIZE, Duration::ZERO));
        let (rates, _) = share(vec![(one, 400.0), (two, 400.0)], 8_000.0, MS(100));
        assert!((rates[1] / rates[0] - 2.0).abs() < 0.1, "{rates:?}");
    }
}
