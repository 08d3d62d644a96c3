//! Figures whose points are parts of runs: blocks, readchunks, or runs as a whole.

use std::collections::BTreeSet;

use crate::plan::RunParts;
use crate::results::Results;
use crate::results::drawing::DrawnPoint;
use crate::results::interval::Estimate;
use crate::results::runs::{GroupKey, scale};
use crate::results::sheet::Sheet;

/// The name of runs as parts.
pub(crate) const RUNS: &str = "runs";

/// Points for parts of runs, in groups.
pub(super) struct PartPoints<'a> {
    results: &'a Results,
    parts: &'a RunParts,
    /// The names of the horizontal and of the vertical value.
    axes: [&'a str; 2],
    /// The names whose values part the points into groups.
    by: &'a [String],
    groups: Vec<(GroupKey, Vec<DrawnPoint>)>,
}

impl<'a> PartPoints<'a> {
    /// No points yet.
    pub(super) fn new(
        results: &'a Results,
        parts: &'a RunParts,
        axes: [&'a str; 2],
        by: &'a [String],
    ) -> Self {
        Self { results, parts, axes, by, groups: Vec::new() }
    }

    /// Adds the parts of the run in this row.
    ///
    /// # Errors
    ///
    /// They were not recorded, or cannot be read.
    pub(super) fn add_run(&mut self, row: usize) -> Result<(), String> {
        let record = match self.parts.record.as_str() {
            RUNS => None,
            record => Some(self.results.record_of(row, record)?),
        };
        let count = record.as_ref().map_or(1, |record| record.rows().len());
        for part in 0..count {
            self.add(&Part { results: self.results, row, record: record.as_ref(), part });
        }
        Ok(())
    }

    /// Adds a part, if it has both values.
    fn add(&mut self, it: &Part<'_>) {
        let [x, y] = self.axes;
        let (Some(x), Some(y)) = (it.number(x), it.number(y)) else { return };
        let heat = self.parts.heat.as_ref();
        let heat =
            heat.and_then(|(column, hottest)| it.number(column).map(|value| value / hottest));
        let y = Estimate::single(y);
        let point = DrawnPoint { x, x_text: x.to_string(), y, quartiles: None, heat };
        let key: GroupKey = self.by.iter().map(|name| it.text(name)).collect();
        match self.groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, points)) => points.push(point),
            None => self.groups.push((key, vec![point])),
        }
    }

    /// The groups in the order of their values. Points of parts that would lie on each other are
    /// there once.
    pub(super) fn groups(mut self) -> Vec<(GroupKey, Vec<DrawnPoint>)> {
        self.groups.sort_by(|one, other| one.0.cmp(&other.0));
        if self.parts.record != RUNS {
            for (_, points) in &mut self.groups {
                *points = apart(std::mem::take(points));
            }
        }
        self.groups
    }
}

/// A part of a run.
struct Part<'a> {
    results: &'a Results,
    row: usize,
    record: Option<&'a Sheet>,
    part: usize,
}

impl Part<'_> {
    /// A cell of its record, or else of its run.
    fn text(&self, name: &str) -> String {
        if let Some(record) = self.record.filter(|record| record.column(name).is_some()) {
            return record.text(self.part, name).to_owned();
        }
        let column = self.results.column_of(name);
        column.map_or(String::new(), |column| self.results.sheet.text(self.row, &column).to_owned())
    }

    fn number(&self, name: &str) -> Option<f64> {
        let metric = self.results.metric(name);
        self.text(name).parse::<f64>().ok().map(|number| number * scale(metric))
    }
}

/// Leaves out points that would lie on another one in a figure of usual width.
fn apart(points: Vec<DrawnPoint>) -> Vec<DrawnPoint> {
    let least = points.iter().map(|point| point.x).fold(f64::INFINITY, f64::min);
    let most = points.iter().map(|point| point.x).fold(f64::NEG_INFINITY, f64::max);
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for point in points {
        #[expect(clippy::cast_possible_truncation, reason = "a place of a thousand")]
        let place = ((point.x - least) / (most - least).max(1e-9) * PLACES).round() as i64;
        if seen.insert((place, point.y.value.to_bits())) {
            kept.push(point);
        }
    }
    kept
}

/// Pixels of a figure along its horizontal axis, and some more.
const PLACES: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_each_other_are_drawn_once() {
        let point = |x: f64, y: f64| {
            let y = Estimate::single(y);
            DrawnPoint { x, x_text: x.to_string(), y, quartiles: None, heat: None }
        };
        let crowd = (0..10_000_u32).map(|i| point(f64::from(i) / 10_000.0, 1.0));
        let kept = apart(crowd.chain([point(0.5, 2.0), point(9.0, 1.0)]).collect());
        // A ninth of the thousand places, one of another height, and the last.
        assert!((112..=115).contains(&kept.len()), "{}", kept.len());
        assert!(kept.iter().any(|point| point.y.value == 2.0 || point.x == 9.0));
    }
}
