//! Charts as SVG and PNG, and self-contained HTML pages that hold them.
//!
//! A [`Chart`] has axes, series, intervals, and published figures beside our own. It is drawn for a
//! separate file ([`Chart::to_svg`], and `Chart::to_png` with the feature `png`) or within a
//! [`Page`]: one HTML file that needs no network, reads well in light and dark, on a phone and on
//! paper, and works without its script.
//!
//! Everything here is pure, except for the fonts that [`Fonts::system`] looks for: the same values
//! give the same bytes, so that pages can be compared. Nothing here knows the measured quantities.

#![forbid(unsafe_code)]

mod axis;
mod chart;
mod number;
mod page;
mod scale;
mod series;
mod svg;
mod theme;
mod thin;
mod width;

pub use axis::{Axis, Scale};
pub use chart::Chart;
#[cfg(feature = "png")]
pub use chart::png::{Fonts, PngError};
pub use page::{Align, Page, Span, Table, TableColumn, Text, slug};
pub use series::{Marker, Point, Series, Style};
pub use theme::{COLOURS, Theme};
