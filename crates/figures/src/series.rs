//! The data of a chart: series of points, and lines that mark a value.

/// Values that belong together, drawn in one colour and with one shape of marker.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) points: Vec<Point>,
    pub(crate) style: Style,
    pub(crate) slot: Option<usize>,
    pub(crate) reference: bool,
}

/// One value, with the interval in which it lies if that is known.
///
/// Infinite values and NaN are not drawn: a line has a gap at a point without a `y`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Place along the chart.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// The lower and the upper end of its interval; of a box, those of its whiskers.
    pub interval: Option<(f64, f64)>,
    /// The quartiles of a distribution, of which `y` is the mean: those of a box.
    pub quartiles: Option<[f64; 3]>,
    /// How hot a cell is: 0 is green, 1 and more is white.
    pub heat: Option<f64>,
}

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Style {
    /// A line from point to point. Long lines carry a marker now and then, so that they can be told
    /// apart without colours.
    Line,
    /// A marker for each point.
    Points,
    /// A dot for each point: for thousands of them.
    Dots,
    /// A square for each point that has a heat, one unit wide and high around it, from green
    /// (cool) to white (hot): a heat map.
    Cells,
    /// A marker for each point, and a line from one to the next.
    LinePoints,
    /// A line that keeps its height until the next point.
    Step,
    /// The area between the ends of the intervals, and a line through the values.
    Band,
    /// A box plot for each point that has quartiles: a box between the outer quartiles with a line
    /// at the median, whiskers to the ends of the interval, and a marker at the mean. Each point
    /// without quartiles is an extreme value, a cross. Boxes of several series at one place stand
    /// side by side.
    Box,
}

impl Style {
    /// Whether there is a line along the points.
    pub(crate) const fn has_line(self) -> bool {
        matches!(self, Self::Line | Self::LinePoints | Self::Step | Self::Band)
    }
}

/// A straight line across a panel, with a label: a limit, an event, a setting.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    pub(crate) at: SeriesPlace,
    pub(crate) label: String,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SeriesPlace {
    X(f64),
    Y(f64),
}

impl Series {
    /// A series drawn as a line. In all panels of a chart, series of one name have one colour.
    pub fn new<P: Into<Point>>(
        name: impl Into<String>,
        points: impl IntoIterator<Item = P>,
    ) -> Self {
        Self {
            name: name.into(),
            points: points.into_iter().map(Into::into).collect(),
            style: Style::Line,
            slot: None,
            reference: false,
        }
    }

    /// Draws the points in this way.
    #[must_use]
    pub fn style(mut self, style: Style) -> Self {
        self.style = style;
        self
    }

    /// Takes the colour and the marker of this number instead of the next free ones. There are
    /// [`COLOURS`](crate::COLOURS); larger numbers begin again.
    #[must_use]
    pub fn slot(mut self, slot: usize) -> Self {
        self.slot = Some(slot);
        self
    }

    /// Sets the series apart as somebody else's figures: hollow markers, dashed lines.
    #[must_use]
    pub fn reference(mut self) -> Self {
        self.reference = true;
        self
    }
}

impl Point {
    /// A value without an interval.
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None, quartiles: None, heat: None }
    }

    /// Sets an interval from `low` to `high` for the value.
    #[must_use]
    pub fn within(mut self, low: f64, high: f64) -> Self {
        self.interval = Some((low, high));
        self
    }

    /// Sets the quartiles of the distribution of which the value is the mean.
    #[must_use]
    pub fn quartiles(mut self, quartiles: [f64; 3]) -> Self {
        self.quartiles = Some(quartiles);
        self
    }

    /// Sets the heat of the point's cell.
    #[must_use]
    pub fn heat(mut self, heat: f64) -> Self {
        self.heat = Some(heat);
        self
    }

    /// The ends of the interval where both can be drawn, in order.
    pub(crate) fn ends(&self) -> Option<(f64, f64)> {
        let (low, high) = self.interval?;
        (drawable(low) && drawable(high)).then(|| (low.min(high), low.max(high)))
    }
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Self {
        Self::new(x, y)
    }
}

impl Marker {
    /// A vertical line at this place along the chart.
    pub fn vertical(x: f64, label: impl Into<String>) -> Self {
        Self { at: SeriesPlace::X(x), label: label.into() }
    }

    /// A horizontal line at this value.
    pub fn horizontal(y: f64, label: impl Into<String>) -> Self {
        Self { at: SeriesPlace::Y(y), label: label.into() }
    }
}

/// Whether a value has a place on an axis. Differences of larger values would overflow.
pub(crate) fn drawable(value: f64) -> bool {
    value.is_finite() && value.abs() <= 1e150
}
