//! A chart as a value: its content, not its look.

pub(crate) mod draw;
#[cfg(feature = "png")]
pub(crate) mod png;

use self::draw::Look;
use crate::axis::Axis;
use crate::series::{Marker, Series};
use crate::theme::Theme;

/// A figure: a title, a common axis along it, and one panel or several below each other.
///
/// ```
/// use punctual_figures::{Axis, Chart, Marker, Series, Theme};
///
/// let rtt = (0..600).map(|i| (f64::from(i) * 0.1, 150.0 + f64::from(i % 7)));
/// let svg = Chart::new("RTT of the path", Axis::time("Time"), Axis::linear("RTT", "ms"))
///     .series(Series::new("sender", rtt))
///     .marker(Marker::horizontal(150.0, "mean of the article"))
///     .to_svg(Theme::Auto);
/// assert!(svg.starts_with("<svg "));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) quotation: String,
    pub(crate) x: Axis,
    pub(crate) panels: Vec<Panel>,
}

/// One field of a chart, with its own vertical axis.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Panel {
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) markers: Vec<Marker>,
}

impl Chart {
    /// A chart of one empty panel. `x` is the axis along it, `y` the one of the panel.
    pub fn new(title: impl Into<String>, x: Axis, y: Axis) -> Self {
        let panel = Panel { y, series: Vec::new(), markers: Vec::new() };
        let (caption, quotation) = (String::new(), String::new());
        Self { title: title.into(), caption, quotation, x, panels: vec![panel] }
    }

    /// Sets the text below the title: the subject, and the means of the measurement.
    #[must_use]
    pub fn caption(mut self, caption: impl Into<String>) -> Self {
        self.caption = caption.into();
        self
    }

    /// Sets what others say of the same: it is set off from the caption as a quotation.
    #[must_use]
    pub fn quotation(mut self, quotation: impl Into<String>) -> Self {
        self.quotation = quotation.into();
        self
    }

    /// Adds a panel below; later additions go there.
    #[must_use]
    pub fn panel(mut self, y: Axis) -> Self {
        self.panels.push(Panel { y, series: Vec::new(), markers: Vec::new() });
        self
    }

    /// Adds a series to the last panel.
    #[must_use]
    pub fn series(mut self, series: Series) -> Self {
        self.last().series.push(series);
        self
    }

    /// Adds several series to the last panel.
    #[must_use]
    pub fn all_series(mut self, series: impl IntoIterator<Item = Series>) -> Self {
        self.last().series.extend(series);
        self
    }

    /// Adds a line that marks a value to the last panel.
    #[must_use]
    pub fn marker(mut self, marker: Marker) -> Self {
        self.last().markers.push(marker);
        self
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether there is no point to draw.
    pub fn is_empty(&self) -> bool {
        let mut series = self.panels.iter().flat_map(|panel| &panel.series);
        series.all(|series| series.points.iter().all(|point| !point.y.is_finite()))
    }

    /// The chart as a separate SVG file, [`WIDTH`](Self::WIDTH) units wide.
    pub fn to_svg(&self, theme: Theme) -> String {
        draw::draw(self, &Look::alone(theme, Self::WIDTH))
    }

    /// Whether a file that starts so is such an SVG file.
    pub fn recognises_svg(start: &[u8]) -> bool {
        let start = String::from_utf8_lossy(start);
        start.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=")
            && start.contains("DejaVu Sans")
    }

    /// Whether a file that starts so is a PNG image.
    pub fn recognises_png(start: &[u8]) -> bool {
        start.starts_with(b"\x89PNG\r\n\x1a\n")
    }

    /// Width of a chart in a separate file, in CSS pixels.
    pub const WIDTH: u32 = 760;

    fn last(&mut self) -> &mut Panel {
        self.panels.last_mut().expect("a chart has a panel from the start")
    }

    /// The chart as a PNG image on white, `width` pixels wide.
    ///
    /// The bytes are the same each time with the same fonts.
    ///
    /// # Errors
    ///
    /// See [`PngError`](crate::PngError).
    #[cfg(feature = "png")]
    pub fn to_png(&self, width: u32, fonts: &png::Fonts) -> Result<Vec<u8>, png::PngError> {
        png::png(self, width, fonts)
    }
}
