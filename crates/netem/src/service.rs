//! How the transmitter works: at a rate, or at recorded opportunities.

use punctual_units::{Bitrate, Instant};

use crate::trace::{OPPORTUNITY_BYTES, Opportunities};

/// The way in which packets leave the queue. Work is counted in nanobits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Service {
    /// Bits at a rate; `None` for at once.
    Rate(Option<Bitrate>),
    /// Some bytes at each of these instants, which are counted from `zero`.
    Opportunities { zero: Instant, list: Opportunities },
}

impl Service {
    /// When this much work is done that begins `since`; `None` for never.
    pub(crate) fn done(&self, since: Instant, work: u128) -> Option<Instant> {
        if work == 0 {
            return Some(since);
        }
        match self {
            Self::Rate(None) => Some(since),
            Self::Rate(Some(rate)) => {
                let time = divide_up(work, rate.as_bits_per_sec())?;
                since.as_nanos().checked_add(time).map(Instant::from_nanos)
            }
            Self::Opportunities { zero, list } => {
                let gone = list.up_to(nanos(*zero, since));
                let needed = u64::try_from(work.div_ceil(nanobits(OPPORTUNITY_BYTES))).ok()?;
                let last = list.time_of(gone.checked_add(needed)? - 1)?;
                zero.as_nanos().checked_add(last).map(Instant::from_nanos)
            }
        }
    }

    /// The work done in a time; without a rate, none is needed.
    pub(crate) fn work(&self, since: Instant, until: Instant) -> u128 {
        match self {
            Self::Rate(None) => 0,
            Self::Rate(Some(rate)) => {
                u128::from(nanos(since, until)) * u128::from(rate.as_bits_per_sec())
            }
            Self::Opportunities { zero, list } => {
                let count = |at| list.up_to(nanos(*zero, at));
                let opportunities = count(until).saturating_sub(count(since));
                u128::from(opportunities).saturating_mul(nanobits(OPPORTUNITY_BYTES))
            }
        }
    }
}

/// The work of transmitting that many bytes: at a rate in bits a second, that many nanobits are
/// done each nanosecond.
pub(crate) fn nanobits(bytes: u64) -> u128 {
    u128::from(bytes) * 8_000_000_000
}

/// Rounded up; `None` by zero, or if it is longer than the clock runs.
fn divide_up(work: u128, rate: u64) -> Option<u64> {
    match u64::try_from(work) {
        // A division of 64 bits is several times as fast as one of 128.
        Ok(work) => (rate > 0).then(|| work.div_ceil(rate)),
        Err(_) if rate == 0 => None,
        Err(_) => u64::try_from(work.div_ceil(rate.into())).ok(),
    }
}

fn nanos(since: Instant, until: Instant) -> u64 {
    until.as_nanos().saturating_sub(since.as_nanos())
}
