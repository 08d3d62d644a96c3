//! Metrics of the payloads of each connection, a row once a period.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use punctual_metrics::{CSV_HEADER, Meter};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::args::MetricsArgs;
use crate::exit::Failure;
use crate::last_rows::LastRows;
use crate::output::{Columns, Rows};
use crate::timepoint::timepoint;

/// A file that gets a row for each connection once a period.
pub(crate) struct MetricsFile {
    period: Duration,
    last_rows: LastRows,
    rows: Rows,
}

/// The meter of one connection.
pub(crate) struct ConnectionMeter {
    connection: u64,
    /// Whether anything arrived.
    has_any: AtomicBool,
    meter: Mutex<Meter>,
    stamps: StampCheck,
}

/// Warns once of a stream without stamps.
#[derive(Default)]
struct StampCheck {
    /// Payloads without a stamp, from the start of the stream on.
    unstamped: AtomicU64,
}

impl MetricsFile {
    /// Opens the file or standard output, if metrics are asked for.
    pub(crate) fn open(args: &MetricsArgs) -> Result<Option<Self>, Failure> {
        if !args.enable_metrics {
            return Ok(None);
        }
        let path = args.metricsfile.as_deref().unwrap_or(Path::new("-"));
        let rows = Rows::open(path, Columns::Csv(CSV_HEADER.to_owned()))?;
        Ok(Some(Self { period: args.metricsfreq, last_rows: LastRows::new("metrics"), rows }))
    }

    /// Runs `work`, and meanwhile writes a row of `measurement` once a period, and a last one at
    /// the end.
    pub(crate) async fn observe<T>(
        &self,
        measurement: &ConnectionMeter,
        work: impl Future<Output = T>,
    ) -> T {
        let mut work = std::pin::pin!(work);
        let mut ticks = interval_at(Instant::now() + self.period, self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut had_rows = false;
        loop {
            tokio::select! {
                biased;
                result = &mut work => {
                    let carried = measurement.has_any();
                    self.last_rows.write(had_rows, carried, || self.row(measurement));
                    return result;
                }
                _ = ticks.tick() => {
                    had_rows = true;
                    self.row(measurement);
                }
            }
        }
    }

    fn row(&self, measurement: &ConnectionMeter) {
        let timepoint = timepoint(SystemTime::now());
        let report = measurement.lock().report();
        self.rows.write(report.csv_row(&timepoint, measurement.connection));
    }
}

impl ConnectionMeter {
    /// The measurement of the connection with this number.
    pub(crate) fn new(connection: u64, args: &MetricsArgs) -> Self {
        Self {
            connection,
            has_any: AtomicBool::new(false),
            meter: Mutex::new(Meter::new(args.checksum())),
            stamps: StampCheck::default(),
        }
    }

    /// Measures payloads that arrived just now.
    pub(crate) fn submit(&self, batch: &[Bytes]) {
        self.has_any.store(true, Ordering::Relaxed);
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let system = i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX);
        let monotonic = i64::try_from(punctual::now().as_micros()).unwrap_or(i64::MAX);
        let mut damaged = 0;
        self.lock().submit_all(batch, system, monotonic, |error| {
            damaged += 1;
            tracing::debug!("payload: {error}");
        });
        self.stamps.submit(batch.len(), damaged);
    }

    fn has_any(&self) -> bool {
        self.has_any.load(Ordering::Relaxed)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StampCheck {
    /// Takes in the number of payloads of a batch, and of those without a stamp.
    fn submit(&self, payloads: usize, unstamped: usize) {
        let before = self.unstamped.load(Ordering::Relaxed);
        if before >= ENOUGH_UNSTAMPED {
            return;
        }
        let after = if unstamped < payloads { u64::MAX } else { before + unstamped as u64 };
        self.unstamped.store(after, Ordering::Relaxed);
        if (ENOUGH_UNSTAMPED..u64::MAX).contains(&after) {
            tracing::warn!(
                "the payloads have no stamps: the metrics cannot measure them. Stamps come from \
                 `punctual generate --enable-metrics`; statistics (--statsfile) measure any stream"
            );
        }
    }
}

/// A stream whose first payloads have no stamp, in this number, has none at all.
const ENOUGH_UNSTAMPED: u64 = 20;
