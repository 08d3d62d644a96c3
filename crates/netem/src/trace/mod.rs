//! Recorded courses of a link's capacity.

mod csv;
mod error;
mod opportunities;

use std::sync::Arc;
use std::time::Duration;

use punctual_units::Bitrate;

pub use error::TraceError;
pub(crate) use opportunities::{OPPORTUNITY_BYTES, Opportunities};

/// A recorded course of a link's capacity, and perhaps of its delay and loss, counted from the
/// link's [time zero](crate::Link::start). It is played again and again, or [once](Self::once).
///
/// Two formats are read: mahimahi's ([`Trace::mahimahi`]) and CSV ([`Trace::csv`]);
/// [`Trace::parse`] tells one from the other. A copy is cheap: the records are shared.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    records: TraceRecords,
    once: bool,
    interpolated: bool,
}

#[derive(Clone, Debug, PartialEq)]
enum TraceRecords {
    Opportunities(Opportunities),
    Rows(Arc<[TraceRow]>),
}

/// The values of a link from an instant on. Values that are `None` do not change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TraceRow {
    /// Time since the begin of the trace.
    pub at: Duration,
    /// Bit rate.
    pub rate: Option<Bitrate>,
    /// Delay one way.
    pub delay: Option<Duration>,
    /// Share of packets lost by chance, 0 to 1.
    pub loss: Option<f64>,
}

impl Trace {
    /// Reads either format: CSV if the first line that is no comment has a letter in it.
    pub fn parse(text: &str) -> Result<Self, TraceError> {
        let first = text.lines().find(|line| !is_blank(line)).unwrap_or_default();
        if first.contains(|c: char| c.is_alphabetic()) {
            Self::csv(text)
        } else {
            Self::mahimahi(text)
        }
    }

    /// Reads mahimahi's format (Netravali et al., Mahimahi: accurate record-and-replay for HTTP,
    /// 2015): each line is a time in whole milliseconds at which 1504 bytes may leave, ascending;
    /// a number that is there n times lets n times as many bytes leave.
    ///
    /// Bytes count, as in mahimahi: a small packet leaves room for the next one, a large one may
    /// need several opportunities, and what finds nothing to send is wasted. A packet that enters
    /// at the very instant of an opportunity comes too late for it. The last time is the period
    /// after which the trace begins anew; after a trace played [once](Self::once) the link has its
    /// own rate. As long as the trace lasts, the link's rate has no meaning.
    ///
    /// Blank lines and text after a `#` do not count. Up to 10 million lines.
    pub fn mahimahi(text: &str) -> Result<Self, TraceError> {
        Opportunities::parse(text).map(Self::from_opportunities)
    }

    /// Reads CSV: a header that names the columns, and a line for each time at which something
    /// changes.
    ///
    /// Columns are `time`, which must be there, ascend and begin anywhere, `rate`, `delay` and
    /// `loss`, in any order. Values have units (`1.5s`, `4.2Mbps`, `80ms`, `2%`), or the header has
    /// them for bare numbers: `time_s,rate_mbps,delay_ms,loss_%`. A bare time is in seconds, a bare
    /// rate in bits a second, a bare delay in milliseconds. An empty field leaves the value as it
    /// was.
    ///
    /// The time of the last line is the period after which the trace starts again; that of a trace
    /// played [once](Self::once) stays. Blank lines and text after a `#` do not count. Up to a
    /// million lines.
    pub fn csv(text: &str) -> Result<Self, TraceError> {
        let rows = csv::parse(text)?;
        Ok(Self { records: TraceRecords::Rows(rows.into()), once: false, interpolated: false })
    }

    /// A trace of opportunities to send 1504 bytes, at these milliseconds. [`Trace::mahimahi`]
    /// tells their meaning and their range.
    pub fn from_millis(millis: Vec<u32>) -> Result<Self, TraceError> {
        Opportunities::new(millis).map(Self::from_opportunities)
    }

    /// A trace of rows. [`Trace::csv`] tells their meaning and their range.
    pub fn from_rows(rows: Vec<TraceRow>) -> Result<Self, TraceError> {
        csv::check(&rows)?;
        Ok(Self { records: TraceRecords::Rows(rows.into()), once: false, interpolated: false })
    }

    /// A trace of rows that are known to be as they must.
    pub(crate) fn from_valid_rows(rows: Vec<TraceRow>) -> Self {
        Self { records: TraceRecords::Rows(rows.into()), once: false, interpolated: false }
    }

    fn from_opportunities(opportunities: Opportunities) -> Self {
        let records = TraceRecords::Opportunities(opportunities);
        Self { records, once: false, interpolated: false }
    }

    /// Played once instead of again and again.
    #[must_use]
    pub fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Values go from one row to the next in a straight line instead of steps. Of no meaning to
    /// mahimahi's format.
    #[must_use]
    pub fn interpolated(self) -> Self {
        Self { interpolated: true, ..self }
    }

    /// Whether it is played once.
    pub fn is_once(&self) -> bool {
        self.once
    }

    /// Time until it begins anew.
    pub fn period(&self) -> Duration {
        match &self.records {
            TraceRecords::Opportunities(opportunities) => opportunities.period(),
            TraceRecords::Rows(rows) => rows.last().map_or(Duration::ZERO, |row| row.at),
        }
    }

    /// The mean rate over a period; `None` if it says nothing of the rate.
    pub fn mean_rate(&self) -> Option<Bitrate> {
        match &self.records {
            TraceRecords::Opportunities(opportunities) => Some(opportunities.mean_rate()),
            TraceRecords::Rows(rows) => csv::mean_rate(rows, self.interpolated),
        }
    }

    pub(crate) fn opportunities(&self) -> Option<&Opportunities> {
        match &self.records {
            TraceRecords::Opportunities(opportunities) => Some(opportunities),
            TraceRecords::Rows(_) => None,
        }
    }

    /// The rows, empty for mahimahi's format.
    pub fn rows(&self) -> &[TraceRow] {
        match &self.records {
            TraceRecords::Opportunities(_) => &[],
            TraceRecords::Rows(rows) => rows,
        }
    }

    pub(crate) fn is_interpolated(&self) -> bool {
        self.interpolated
    }
}

/// The part of a line that counts.
fn content(line: &str) -> &str {
    line.split('#').next().unwrap_or_default().trim()
}

fn is_blank(line: &str) -> bool {
    content(line).is_empty()
}
