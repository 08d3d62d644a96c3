//! Figures of a plan as lines of points, ready to be drawn.

use crate::plan::Figure;
use crate::results::Results;
use crate::results::interval::Estimate;
use crate::results::plot::Plot;

/// A figure as lines of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// The horizontal axis.
    pub x: DrawnAxis,
    /// The vertical axis.
    pub y: DrawnAxis,
    /// Ours, then the references'.
    pub lines: Vec<DrawnLine>,
    /// Events on an axis of time: when, in seconds, and which.
    pub marks: Vec<(f64, String)>,
    /// Lines that could not be drawn, and why.
    pub problems: Vec<String>,
}

/// An axis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct DrawnAxis {
    /// Its title.
    pub title: String,
    /// Its unit; empty for none.
    pub unit: String,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnLine {
    /// Its label among the others: `efficient`, `unrecovered, sim`.
    pub label: String,
    /// The metric or column.
    pub metric: String,
    /// The values of what parts the runs, by the names that the figure gives.
    pub group: Vec<(String, String)>,
    /// The backend; empty for a reference.
    pub backend: String,
    /// The name of the reference that it is; `None` for ours.
    pub reference: Option<String>,
    /// Its points, from left to right.
    pub points: Vec<DrawnPoint>,
}

/// A point of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnPoint {
    /// Its place; the place among all values if these are no numbers.
    pub x: f64,
    /// The value of `x` as it is written in results.
    pub x_text: String,
    /// How high; of a box plot, the mean and the ends of the whiskers.
    pub y: Estimate,
    /// The quartiles, of a box plot.
    pub quartiles: Option<[f64; 3]>,
    /// How hot it is in a heat map: 0 is green, 1 is white.
    pub heat: Option<f64>,
}

impl Drawing {
    /// A figure of the plan.
    pub(super) fn of(results: &Results, figure: &Figure) -> Self {
        Plot::new(results, figure).draw()
    }
}

impl DrawnPoint {
    /// A point of a line, at a value of `x` as it is written in results.
    pub(super) fn at(x: f64, x_text: &str, y: Estimate) -> Self {
        Self { x, x_text: x_text.to_owned(), y, quartiles: None, heat: None }
    }
}

impl DrawnLine {
    /// A line of the runs that have the values `key` of the parameters `by`, one of which may be
    /// the backend.
    pub(super) fn new(
        metric: &str,
        by: &[String],
        key: &[String],
        mut points: Vec<DrawnPoint>,
    ) -> Self {
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let group = by.iter().cloned().zip(key.iter().cloned());
        let (backends, group): (Vec<_>, Vec<_>) = group.partition(|(name, _)| name == "backend");
        Self {
            label: String::new(),
            metric: metric.to_owned(),
            group,
            backend: backends.into_iter().next().map_or(String::new(), |(_, name)| name),
            reference: None,
            points,
        }
    }

    /// The line as one of the reference `name`.
    pub(super) fn published(self, name: &str) -> Self {
        Self { reference: Some(name.to_owned()), backend: String::new(), ..self }
    }

    /// The line as one of expected values: it is drawn as published ones are.
    pub(super) fn expected(self) -> Self {
        self.published(EXPECTED)
    }
}

/// The name of lines of expected values.
const EXPECTED: &str = "expected";
