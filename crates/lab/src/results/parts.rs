//! Figures whose points are parts of runs: blocks, readchunks, or runs as a whole.

use std::collections::BTreeSet;

use crate::plan::{Figure, Parts};
use crate::results::Results;
use crate::results::drawing::{Drawing, Point, with_backend};
use crate::results::estimate::scale;
use crate::results::interval::Estimate;
use crate::results::sheet::Sheet;

/// The name of runs as parts.
pub(crate) const RUNS: &str = "runs";

impl Results {
    /// A point for each part of each run. Points that would lie on each other are drawn once.
    pub(super) fn draw_parts(&self, figure: &Figure, x: &str, drawing: &mut Drawing) {
        let (Some(parts), Some(y)) = (&figure.parts, figure.y.first()) else { return };
        let rows = self.selected(&figure.filters);
        let by = with_backend(&figure.by);
        let mut groups: Vec<(Vec<String>, Vec<Point>)> = Vec::new();
        for row in &rows {
            let record = match self.parts_of(*row, parts) {
                Ok(record) => record,
                Err(problem) => {
                    drawing.problems.push(problem);
                    continue;
                }
            };
            let count = record.as_ref().map_or(1, |record| record.rows().len());
            for part in 0..count {
                let it = Part { results: self, row: *row, record: record.as_ref(), part };
                let (Some(x), Some(y)) = (it.number(x), it.number(y)) else { continue };
                let heat = parts
                    .heat
                    .as_ref()
                    .and_then(|(column, hottest)| it.number(column).map(|value| value / hottest));
                let key: Vec<String> = by.iter().map(|name| it.text(name)).collect();
                let y = Estimate::single(y);
                let point = Point { x, x_text: x.to_string(), y, quartiles: None, heat };
                match groups.iter_mut().find(|(known, _)| *known == key) {
                    Some((_, points)) => points.push(point),
                    None => groups.push((key, vec![point])),
                }
            }
        }
        groups.sort_by(|one, other| one.0.cmp(&other.0));
        for (key, points) in groups {
            let points = if parts.record == RUNS { points } else { apart(points) };
            drawing.lines.push(self.line(y, &by, &key, points));
        }
        match rows.first() {
            Some(first) if !drawing.lines.is_empty() => drawing.marks = self.marks(figure, *first),
            _ => drawing.problems.push("no run has a point".to_owned()),
        }
    }

    /// The record of a run; `None` for the run itself.
    fn parts_of(&self, row: usize, parts: &Parts) -> Result<Option<Sheet>, String> {
        match parts.record.as_str() {
            RUNS => Ok(None),
            record => self.record_of(row, record).map(Some),
        }
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
fn apart(points: Vec<Point>) -> Vec<Point> {
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
            Point { x, x_text: x.to_string(), y, quartiles: None, heat: None }
        };
        let crowd = (0..10_000_u32).map(|i| point(f64::from(i) / 10_000.0, 1.0));
        let kept = apart(crowd.chain([point(0.5, 2.0), point(9.0, 1.0)]).collect());
        // A ninth of the thousand places, one of another height, and the last.
        assert!((112..=115).contains(&kept.len()), "{}", kept.len());
        assert!(kept.iter().any(|point| point.y.value == 2.0 || point.x == 9.0));
    }
}
