//! The course of a run: the values of its metrics over time.

use crate::results::Results;
use crate::results::columns::full_name;
use crate::results::drawing::DrawnPoint;
use crate::results::interval::Estimate;
use crate::results::runs::scale;
use crate::results::sheet::Sheet;

/// The recorded time series of a run.
pub(super) struct RecordedCourse<'a> {
    results: &'a Results,
    sheet: Sheet,
    /// The end of the stream, s.
    end: f64,
}

impl<'a> RecordedCourse<'a> {
    /// The course of the run in this row.
    ///
    /// # Errors
    ///
    /// None was recorded, or it cannot be read.
    pub(super) fn of(results: &'a Results, row: usize) -> Result<Self, String> {
        let sheet = results.series_of(row)?;
        let end = results.number_of(row, "duration").map_or(f64::INFINITY, |ms| ms / 1e3);
        Ok(Self { results, sheet, end })
    }

    /// A point for each time at which a metric or column has a value; `None` without the column.
    pub(super) fn points(&self, name: &str) -> Option<Vec<DrawnPoint>> {
        let metric = self.results.metric(name);
        if metric.is_none() {
            self.column(name)?;
        }
        let scale = scale(metric);
        let number = |row: &[String], name: &str| row[self.column(name)?].parse::<f64>().ok();
        let value = |row: &[String]| match metric {
            Some(metric) => metric.value(&|name| number(row, name)),
            None => number(row, name),
        };
        let point = |row: &Vec<String>| {
            let y = Estimate::single(value(row)? * scale);
            Some(DrawnPoint::at(row[0].parse().ok()?, &row[0], y))
        };
        Some(self.sheet.rows().iter().filter_map(point).collect())
    }

    /// The values of a metric or column, without the start, in which everything starts, and without
    /// the stream's tail, in which the last messages arrive: that is no full period.
    pub(super) fn settled(&self, name: &str) -> Vec<f64> {
        let points = self.points(name).unwrap_or_default().into_iter();
        let settled = points.filter(|point| point.x > SETTLING && point.x <= self.end);
        settled.map(|point| point.y.value).collect()
    }

    /// The column that a figure or formula means by `name`.
    fn column(&self, name: &str) -> Option<usize> {
        self.sheet.column(name).or_else(|| self.sheet.column(&full_name(name)?))
    }
}

/// The length of the start, s.
const SETTLING: f64 = 1.0;
