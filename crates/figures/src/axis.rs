//! The axes of a chart.

/// One axis of a chart: its quantity, unit and scale.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) unit: String,
    pub(crate) scale: Scale,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// The names at 0, 1, 2 and so on instead of numbers; empty for numbers.
    pub(crate) names: Vec<String>,
}

/// How values become places along an axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scale {
    /// Equal differences are equally long. Large values are written with k, M, G.
    Linear,
    /// Equal ratios are equally long. Values of zero and less are at a separate place at the lower
    /// end, marked 0, so that "none" can be told from "few".
    Log,
    /// Seconds since some start, written as seconds, minutes or hours, whichever fits.
    Time,
}

impl Axis {
    /// An axis on a linear scale. `unit` may be empty.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(label.into(), unit.into(), Scale::Linear)
    }

    /// An axis on a logarithmic scale. `unit` may be empty.
    pub fn log(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(label.into(), unit.into(), Scale::Log)
    }

    /// An axis of time, whose values are seconds.
    pub fn time(label: impl Into<String>) -> Self {
        Self::new(label.into(), String::new(), Scale::Time)
    }

    /// An axis of names, in their order: the first is at 0, the next at 1, and so on. Only for the
    /// axis along a chart.
    pub fn names<N: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self { names, ..Self::new(label.into(), String::new(), Scale::Linear) }
    }

    /// Starts the axis here, whatever the values are; smaller values are not drawn.
    #[must_use]
    pub fn from(mut self, low: f64) -> Self {
        self.low = Some(low);
        self
    }

    /// Ends the axis here, whatever the values are; larger values are not drawn.
    #[must_use]
    pub fn to(mut self, high: f64) -> Self {
        self.high = Some(high);
        self
    }

    fn new(label: String, unit: String, scale: Scale) -> Self {
        Self { label, unit, scale, low: None, high: None, names: Vec::new() }
    }
}
