//! Instants at which a number of bytes may leave, as mahimahi has them.

use std::sync::Arc;
use std::time::Duration;

use punctual_units::Bitrate;

use crate::trace::{TraceError, content};

/// Opportunities to send [`OPPORTUNITY_BYTES`], repeated with the time of the last as period.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Opportunities {
    /// Milliseconds of the period, ascending; at least one, and the last is not 0.
    millis: Arc<[u32]>,
}

impl Opportunities {
    pub(crate) fn new(millis: Vec<u32>) -> Result<Self, TraceError> {
        if let Some(at) = (1..millis.len()).find(|&at| millis[at] < millis[at - 1]) {
            return Err(goes_back(at + 1, millis[at], millis[at - 1]));
        }
        if millis.len() > MAX_OPPORTUNITIES {
            return Err(TraceError::at(MAX_OPPORTUNITIES + 1, "at most 10 million are possible"));
        }
        match millis.last() {
            None => Err(TraceError::whole("a trace needs at least one line with a time in it")),
            Some(0) => Err(TraceError::whole("the last time must be later than 0")),
            Some(_) => Ok(Self { millis: millis.into() }),
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, TraceError> {
        let mut millis = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = content(line);
            if line.is_empty() {
                continue;
            }
            let Ok(time) = line.parse::<u32>() else {
                return Err(TraceError::at(number, not_a_time(line)));
            };
            if millis.last().is_some_and(|&last| time < last) {
                return Err(goes_back(number, time, *millis.last().unwrap_or(&0)));
            }
            if millis.len() == MAX_OPPORTUNITIES {
                return Err(TraceError::at(number, "at most 10 million lines are possible"));
            }
            millis.push(time);
        }
        Self::new(millis)
    }

    pub(crate) fn period(&self) -> Duration {
        Duration::from_millis(self.period_millis())
    }

    pub(crate) fn mean_rate(&self) -> Bitrate {
        Bitrate::of(self.millis.len() as u64 * OPPORTUNITY_BYTES, self.period())
    }

    /// Opportunities up to this long after the begin, the end included.
    pub(crate) fn up_to(&self, nanos: u64) -> u64 {
        let millis = nanos / 1_000_000;
        let (periods, rest) = (millis / self.period_millis(), millis % self.period_millis());
        let within = self.millis.partition_point(|&at| u64::from(at) <= rest);
        periods.saturating_mul(self.millis.len() as u64).saturating_add(within as u64)
    }

    /// Nanoseconds from the begin to the opportunity of this number, counted from 0; `None` if that
    /// is longer than the clock runs.
    pub(crate) fn time_of(&self, number: u64) -> Option<u64> {
        let (period, place) = (number / self.len(), number % self.len());
        let place = usize::try_from(place).ok()?;
        let millis = period.checked_mul(self.period_millis())?;
        millis.checked_add(self.millis[place].into())?.checked_mul(1_000_000)
    }

    /// Opportunities in a period.
    pub(crate) fn len(&self) -> u64 {
        self.millis.len() as u64
    }

    fn period_millis(&self) -> u64 {
        self.millis.last().copied().unwrap_or(1).into()
    }
}

fn not_a_time(text: &str) -> String {
    format!("`{text}` must be a time in whole milliseconds, like 125 (up to {})", u32::MAX)
}

fn goes_back(line: usize, time: u32, last: u32) -> TraceError {
    TraceError::at(line, format!("{time} comes after {last}, but times must not go backwards"))
}

/// Bytes of an opportunity: a packet of 1500 bytes and the four of mahimahi's TUN header.
pub(crate) const OPPORTUNITY_BYTES: u64 = 1_504;

/// 40 MB, and more than an hour at 30 Mb/s.
const MAX_OPPORTUNITIES: usize = 10_000_000;
