//! Measures the messages that arrive by their stamps.

use std::sync::{Arc, Mutex, PoisonError};

use punctual_metrics::{Meter, MeterReport, Quantiles};

use crate::backend::real::micros;

/// The messages that arrived so far; the receiver and its watcher share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedArrivals(Arc<Mutex<ArrivedMessages>>);

/// The messages that arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct ArrivedMessages {
    /// Of the whole run.
    pub(crate) meter: Meter,
    /// Minimum, maximum and delay factor of a period.
    period: Meter,
    pub(crate) latency_us: Quantiles,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl SharedArrivals {
    /// A message has arrived.
    pub(crate) fn submit(&self, payload: &[u8], at: punctual::Instant) {
        let at = micros(at);
        let mut arrived = self.lock();
        arrived.messages += 1;
        arrived.bytes += payload.len() as u64;
        let stamp = arrived.meter.submit(payload, at, at);
        let _ = arrived.period.submit(payload, at, at);
        if let Ok(stamp) = stamp
            && let Ok(latency) = u64::try_from(at - stamp.monotonic_us)
        {
            arrived.latency_us.record(latency);
        }
    }

    /// Closes a period.
    pub(crate) fn period(&self) -> MeterReport {
        self.lock().period.report()
    }

    /// Everything so far.
    pub(crate) fn so_far(&self) -> ArrivedMessages {
        self.lock().clone()
    }

    /// A receiver that panicked leaves whole messages behind.
    fn lock(&self) -> std::sync::MutexGuard<'_, ArrivedMessages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
