use std::time::Duration;

use punctual_units::{Bitrate, Instant};

use crate::config::PACKET_OVERHEAD;

/// What an input counts as before it was measured.
const INITIAL: Bitrate = Bitrate::from_mbps(1_000);
const FIRST_PERIOD: Duration = Duration::from_millis(500);
const PERIOD: Duration = Duration::from_secs(1);
/// So many packets end the first period early.
const FIRST_PERIOD_PACKETS: u64 = 2_000;

/// The rate at which the application submits data, headers included, measured over a second.
#[derive(Debug)]
pub(crate) struct InputRate {
    period: Option<Period>,
    rate: Option<Bitrate>,
}

#[derive(Debug)]
struct Period {
    start: Instant,
    packets: u64,
    bytes: u64,
}

impl InputRate {
    pub(crate) const fn new() -> Self {
        Self { period: None, rate: None }
    }

    pub(crate) fn rate(&self) -> Bitrate {
        self.rate.unwrap_or(INITIAL)
    }

    /// The rate, once measured.
    pub(crate) const fn measured(&self) -> Option<Bitrate> {
        self.rate
    }

    /// Counts a message of `payload` bytes.
    pub(crate) fn submit(&mut self, now: Instant, payload: usize) {
        let period = self.period.get_or_insert(Period { start: now, packets: 0, bytes: 0 });
        let elapsed = now - period.start;
        let over = match self.rate {
            None => {
                elapsed >= FIRST_PERIOD
                    || (period.packets > FIRST_PERIOD_PACKETS && !elapsed.is_zero())
            }
            Some(_) => elapsed >= PERIOD,
        };
        if over {
            self.rate = Some(Bitrate::of(period.bytes, elapsed));
            *period = Period { start: now, packets: 0, bytes: 0 };
        }
        period.packets += 1;
        period.bytes += (payload + PACKET_OVERHEAD) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_a_constant_rate_with_headers() {
        let mut input = InputRate::new();
        assert_eq!(input.rate(), INITIAL);
        for i in 0..3_000 {
            input.submit(Instant::from_millis(i), 956);
        }
        assert_eq!(input.rate(), Bitrate::from_bytes_per_sec(1_000_000));
    }
}
