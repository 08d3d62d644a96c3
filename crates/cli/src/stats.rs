//! Statistics of SRT connections as libsrt's tools write them: CSV and JSON.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use punctual::Statistics;
use punctual_stats::{
    Sample, csv_header, csv_header_with_weight, csv_row, csv_row_with_weight, json_group_row,
    json_row, quic_csv_header, quic_csv_row,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::args::{StatsArgs, StatsFormat};
use crate::endpoint::{Row, StatsEnd};
use crate::exit::Failure;
use crate::last_rows::LastRows;
use crate::output::{Columns, Rows};
use crate::timepoint::timepoint;

/// The files that get a row for each connection once a period.
pub(crate) struct StatsFiles {
    format: StatsFormat,
    period: Duration,
    /// Whether rows have the weight of a link, as srt-xtransmit's do: if there may be groups.
    weights: bool,
    last_rows: LastRows,
    /// The statistics of SRT.
    srt: Option<Rows>,
    /// The statistics of QUIC.
    quic: Option<Rows>,
}

impl StatsFiles {
    /// Opens the files that the options name, if they name any; `weights` if there may be groups.
    pub(crate) fn open(args: &StatsArgs, weights: bool) -> Result<Option<Self>, Failure> {
        if args.statsfile.is_none() && args.quicstats.is_none() {
            return Ok(None);
        }
        let columns = match (args.statsformat, weights) {
            (StatsFormat::Csv, true) => Columns::Csv(csv_header_with_weight()),
            (StatsFormat::Csv, false) => Columns::Csv(csv_header()),
            (StatsFormat::Json, _) => Columns::Json,
        };
        let srt = args.statsfile.as_deref().map(|path| Rows::open(path, columns));
        let quic_columns = Columns::Csv(quic_csv_header().to_owned());
        let quic = args.quicstats.as_deref().map(|path| Rows::open(path, quic_columns));
        Ok(Some(Self {
            format: args.statsformat,
            period: args.statsfreq,
            weights,
            last_rows: LastRows::new("statistics"),
            srt: srt.transpose()?,
            quic: quic.transpose()?,
        }))
    }

    /// Runs `work`, and meanwhile writes a row for `end` once a period, and a last one at its end.
    pub(crate) async fn observe<T>(&self, end: &StatsEnd, work: impl Future<Output = T>) -> T {
        let mut work = std::pin::pin!(work);
        let mut ticks = interval_at(Instant::now() + self.period, self.period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut before = HashMap::new();
        let mut had_rows = false;
        loop {
            tokio::select! {
                biased;
                result = &mut work => {
                    let carried = end.has_carried();
                    self.last_rows.write(had_rows, carried, || self.rows(end, &mut before));
                    return result;
                }
                _ = ticks.tick() => {
                    had_rows = true;
                    self.rows(end, &mut before);
                }
            }
        }
    }

    fn rows(&self, end: &StatsEnd, before: &mut HashMap<u32, Statistics>) {
        let rows: Vec<(u32, u16, String, Sample)> = end
            .srt_rows()
            .into_iter()
            .map(|Row { id, weight, peer, statistics: total, quic }| {
                let interval = total.since(before.get(&id).unwrap_or(&Statistics::default()));
                before.insert(id, total.clone());
                (id, weight, peer, Sample { total, interval, quic })
            })
            .collect();
        let now = timepoint(SystemTime::now());
        if let Some(file) = &self.quic {
            for (id, _, _, Sample { quic, .. }) in &rows {
                quic.iter().for_each(|quic| file.write(quic_csv_row(&now, *id, quic)));
            }
            if let Some((id, quic)) = end.bare_quic() {
                file.write(quic_csv_row(&now, id, &quic));
            }
        }
        if let Some(file) = &self.srt {
            self.srt_rows(file, &now, &rows);
        }
    }

    fn srt_rows(&self, file: &Rows, now: &str, rows: &[(u32, u16, String, Sample)]) {
        match (self.format, rows.split_first()) {
            (StatsFormat::Json, Some(((id, .., whole), links))) if self.weights => {
                // This bit is set in the IDs of groups alone.
                let links = (id >> 30 == 1).then_some(links);
                file.write(json_group_row(now, *id, whole, links));
            }
            _ => rows.iter().for_each(|row| file.write(self.row(now, row))),
        }
    }

    fn row(&self, now: &str, (id, weight, peer, sample): &(u32, u16, String, Sample)) -> String {
        match self.format {
            StatsFormat::Csv if self.weights => {
                csv_row_with_weight(now, *id, *weight, peer, sample)
            }
            StatsFormat::Csv => csv_row(now, *id, sample),
            StatsFormat::Json => json_row(now, *id, sample),
        }
    }
}
