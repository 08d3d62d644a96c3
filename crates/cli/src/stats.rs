//! Statistics of SRT connections as libsrt's tools write them: CSV and JSON.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use punctual::Statistics;
use punctual_ends::{Row, StatsEnd};
use punctual_stats::{
    Sample, csv_header, csv_header_with_weight, csv_row, csv_row_with_weight, json_group_row,
    json_row, quic_csv_header, quic_csv_row,
};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::args::{StatsArgs, StatsFormat};
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
        let mut before = PreviousRows::default();
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

    fn rows(&self, end: &StatsEnd, before: &mut PreviousRows) {
        let rows: Vec<(u32, u16, String, Sample)> = before
            .next(end.rows())
            .map(|(Row { id, weight, peer, statistics: total, quic, .. }, interval)| {
                (id, weight, peer, Sample { total, interval, quic })
            })
            .collect();
        let now = timepoint(SystemTime::now());
        if let Some(file) = &self.quic {
            for (id, _, _, Sample { quic, .. }) in &rows {
                quic.iter().for_each(|quic| file.write(quic_csv_row(&now, *id, quic)));
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

/// The statistics of the rows before, by socket ID.
#[derive(Default)]
struct PreviousRows {
    statistics: HashMap<u32, Statistics>,
    /// Links with a last row.
    ended: HashSet<u32>,
}

impl PreviousRows {
    /// The rows that are to be written now, each with its statistics since the row before: all but
    /// those of ended links that have had their last one.
    fn next(&mut self, mut rows: Vec<Row>) -> impl Iterator<Item = (Row, Statistics)> {
        let ended = rows.iter().filter(|row| row.is_last).map(|row| row.id).collect();
        let had_last = std::mem::replace(&mut self.ended, ended);
        rows.retain(|row| !(row.is_last && had_last.contains(&row.id)));
        rows.into_iter().map(|row| {
            let before = match row.is_last {
                true => self.statistics.remove(&row.id),
                false => self.statistics.insert(row.id, row.statistics.clone()),
            };
            let interval = row.statistics.since(&before.unwrap_or_default());
            (row, interval)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u32, sent: u64, is_last: bool) -> Row {
        let mut statistics = Statistics::default();
        statistics.packets_sent = sent;
        Row { id, weight: 0, peer: String::new(), statistics, quic: None, is_last }
    }

    #[test]
    fn a_link_that_has_ended_gets_one_last_row_of_its_rest() {
        let mut before = PreviousRows::default();
        let mut next = |rows| -> Vec<(u32, u64)> {
            before.next(rows).map(|(row, since)| (row.id, since.packets_sent)).collect()
        };
        assert_eq!(next(vec![row(1, 90, false), row(2, 50, false)]), [(1, 90), (2, 50)]);
        // The second link ended; a third came and went within the period.
        let ended = || [row(2, 57, true), row(3, 4, true)];
        let with_first = |sent| std::iter::once(row(1, sent, false)).chain(ended()).collect();
        assert_eq!(next(with_first(100)), [(1, 10), (2, 7), (3, 4)]);
        assert_eq!(next(with_first(110)), [(1, 10)]);
        assert_eq!(next(with_first(120)), [(1, 10)]);
    }
}
