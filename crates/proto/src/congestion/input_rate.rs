use std::time::Duration;

use punctual_units::{Bitrate, Instant};

/// The rate before the first measurement.
const INITIAL: Bitrate = Bitrate::from_mbps(1_000);
const FIRST_PERIOD: Duration = Duration::from_millis(500);
const PERIOD: Duration = Duration::from_secs(1);
/// Longer pauses count as this one: a stream is as fast as before when it continues, and a limit
/// that follows the input must not slow it down.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);
/// The number of packets that ends the first period early.
const FIRST_PERIOD_PACKETS: u64 = 2_000;

/// The rate at which the application submits data, headers included, measured over a second without
/// long pauses.
#[derive(Debug)]
pub(crate) struct InputRate {
    period: Option<Period>,
    rate: Option<Bitrate>,
}

#[derive(Debug)]
struct Period {
    /// When the last message was submitted.
    last: Instant,
    /// The time since the period began, with long pauses shortened.
    elapsed: Duration,
    packets: u64,
    bytes: u64,
    /// Whether a message was refused, so that the input is faster than measured.
    refused: bool,
}

impl Period {
    const fn new(start: Instant) -> Self {
        Self { last: start, elapsed: Duration::ZERO, packets: 0, bytes: 0, refused: false }
    }
}

impl InputRate {
    pub(crate) const fn new() -> Self {
        Self { period: None, rate: None }
    }

    pub(crate) fn rate(&self) -> Bitrate {
        self.rate.unwrap_or(INITIAL)
    }

    /// The rate; `None` before the first measurement.
    pub(crate) const fn measured(&self) -> Option<Bitrate> {
        self.rate
    }

    /// The rate of the first period, of which a tenth of a second or more has passed; `None`
    /// otherwise.
    pub(crate) fn so_far(&self) -> Option<Bitrate> {
        let period = self.period.as_ref().filter(|period| period.elapsed >= LONGEST_PAUSE)?;
        Some(Bitrate::of(period.bytes, period.elapsed))
    }

    /// Counts a packet of `bytes`, headers included.
    pub(crate) fn submit(&mut self, now: Instant, bytes: usize) {
        let period = self.period.get_or_insert(Period::new(now));
        period.elapsed += (now - period.last).min(LONGEST_PAUSE);
        period.last = now;
        let elapsed = period.elapsed;
        let over = match self.rate {
            None => {
                elapsed >= FIRST_PERIOD
                    || (period.packets > FIRST_PERIOD_PACKETS && !elapsed.is_zero())
            }
            Some(_) => elapsed >= PERIOD,
        };
        if over {
            // A full buffer accepts only as many messages as are sent. If the limit followed this
            // rate down, it would allow even fewer to be sent, and so on.
            let measured = Bitrate::of(period.bytes, elapsed);
            if !period.refused || measured > self.rate.unwrap_or(INITIAL) {
                self.rate = Some(measured);
            }
            *period = Period::new(now);
        }
        period.packets += 1;
        period.bytes += bytes as u64;
    }

    /// A message was refused because the buffer is full.
    pub(crate) const fn refuse(&mut self) {
        if let Some(period) = &mut self.period {
            period.refused = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_rate_is_measured() {
        let mut input = InputRate::new();
        assert_eq!(input.rate(), INITIAL);
        for i in 0..3_000 {
            input.submit(Instant::from_millis(i), 1_000);
        }
        assert_eq!(input.rate(), Bitrate::from_bytes_per_sec(1_000_000));
    }

    #[test]
    fn a_pause_is_not_a_low_rate() {
        let mut input = InputRate::new();
        for i in 0..2_500 {
            input.submit(Instant::from_millis(i), 1_000);
        }
        let before = input.rate();
        for i in 0..2_500 {
            input.submit(Instant::from_millis(3_600_000 + i), 1_000);
            assert!(input.rate() >= Bitrate::from_bytes_per_sec(900_000), "{:?}", input.rate());
        }
        assert_eq!(input.rate(), before);
    }

    #[test]
    fn refused_messages_do_not_lower_the_rate() {
        let mut input = InputRate::new();
        let second = |input: &mut InputRate, n: u64, step, refused| {
            for i in (0..1_000).step_by(step) {
                input.submit(Instant::from_millis(n * 1_000 + i), 1_000);
                if refused {
                    input.refuse();
                }
            }
            input.rate()
        };
        let full = Bitrate::from_bytes_per_sec(1_000_000);
        (0..2).for_each(|n| {
            second(&mut input, n, 1, false);
        });
        (2..5).for_each(|n| assert_eq!(second(&mut input, n, 10, true), full));
        second(&mut input, 5, 10, false);
        assert_eq!(second(&mut input, 6, 10, false), Bitrate::from_bytes_per_sec(100_000));
    }
}
