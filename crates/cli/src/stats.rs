//! Statistics of SRT connections as libsrt's tools write them: CSV and JSON.

use std::fs::File;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use punctual::{Socket, Statistics};
use punctual_stats::{Sample, csv_header, csv_row, json_row};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::args::{StatsArgs, StatsFormat};
use crate::exit::Failure;
use crate::timepoint::timepoint;

/// A file that gets a row for each connection once a period.
pub(crate) struct StatsFile {
    format: StatsFormat,
    period: Duration,
    out: Mutex<Box<dyn Write + Send>>,
}

impl StatsFile {
    /// Opens the file that the options name, if they name one, and writes its header.
    pub(crate) fn open(args: &StatsArgs) -> Result<Option<Self>, Failure> {
        let Some(path) = &args.statsfile else { return Ok(None) };
        let mut out: Box<dyn Write + Send> = match path.as_os_str().to_str() {
            Some("-") => Box::new(io::stdout()),
            _ => Box::new(File::create(path).map_err(|error| Failure::file(path, &error))?),
        };
        if args.statsformat == StatsFormat::Csv {
            writeln!(out, "{}", csv_header()).map_err(|error| Failure::file(path, &error))?;
        }
        Ok(Some(Self { format: args.statsformat, period: args.statsfreq, out: Mutex::new(out) }))
    }

    /// Runs `work`, and meanwhile writes a row for `socket` once a period, and a last one at the
    /// end.
    pub(crate) async fn observe<T>(&self, socket: &Socket, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let mut ticks = interval_at(Instant::now() + self.period, self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut before = Statistics::default();
        loop {
            tokio::select! {
                biased;
                result = &mut work => {
                    self.row(socket, &mut before);
                    return result;
                }
                _ = ticks.tick() => self.row(socket, &mut before),
            }
        }
    }

    fn row(&self, socket: &Socket, before: &mut Statistics) {
        let total = socket.statistics();
        let interval = total.since(before);
        *before = total.clone();
        let sample = Sample { total, interval };
        let id = socket.info().socket_id.value();
        let now = timepoint(SystemTime::now());
        let row = match self.format {
            StatsFormat::Csv => csv_row(&now, id, &sample),
            StatsFormat::Json => json_row(&now, id, &sample),
        };
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = writeln!(out, "{row}").and_then(|()| out.flush()) {
            tracing::warn!("cannot write statistics: {error}");
        }
    }
}
