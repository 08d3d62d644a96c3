//! Metrics of the payloads of each connection, a row once a period.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use punctual_metrics::{CSV_HEADER, Meter};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::args::MetricsArgs;
use crate::exit::Failure;
use crate::timepoint::timepoint;

/// A file that gets a row for each connection once a period.
pub(crate) struct MetricsFile {
    period: Duration,
    out: Mutex<Box<dyn Write + Send>>,
}

/// The meter of one connection.
pub(crate) struct Measurement {
    connection: u64,
    meter: Mutex<Meter>,
}

impl MetricsFile {
    /// Opens the file or standard output, if metrics are asked for, and writes the header.
    pub(crate) fn open(args: &MetricsArgs) -> Result<Option<Self>, Failure> {
        if !args.enable_metrics {
            return Ok(None);
        }
        let mut out: Box<dyn Write + Send> = match &args.metricsfile {
            Some(path) if path.as_os_str() != "-" => {
                Box::new(File::create(path).map_err(|error| Failure::file(path, &error))?)
            }
            _ => Box::new(io::stdout()),
        };
        writeln!(out, "{CSV_HEADER}")?;
        Ok(Some(Self { period: args.metricsfreq, out: Mutex::new(out) }))
    }

    /// Runs `work`, and meanwhile writes a row of `measurement` once a period, and a last one at
    /// the end.
    pub(crate) async fn observe<T>(
        &self,
        measurement: &Measurement,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = std::pin::pin!(work);
        let mut ticks = interval_at(Instant::now() + self.period, self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                biased;
                result = &mut work => {
                    self.row(measurement);
                    return result;
                }
                _ = ticks.tick() => self.row(measurement),
            }
        }
    }

    fn row(&self, measurement: &Measurement) {
        let report = measurement.lock().report();
        let row = report.csv_row(&timepoint(SystemTime::now()), measurement.connection);
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(out, "{row}").and_then(|()| out.flush()) {
            tracing::warn!("cannot write metrics: {error}");
        }
    }
}

impl Measurement {
    /// Of the connection with this number.
    pub(crate) fn new(connection: u64) -> Self {
        Self { connection, meter: Mutex::default() }
    }

    /// Measures payloads that arrived just now.
    pub(crate) fn submit(&self, batch: &[Bytes]) {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let system = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        let monotonic = i64::try_from(punctual::now().as_micros()).unwrap_or(i64::MAX);
        let mut meter = self.lock();
        for payload in batch {
            if let Err(error) = meter.submit(payload, system, monotonic) {
                tracing::debug!("payload: {error}");
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
