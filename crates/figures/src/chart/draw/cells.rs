//! Heat maps: cells from green to white.

use std::fmt::Write as _;

use super::Spot;
use super::layout::{Layout, PlacedPanel};
use crate::series::{Style, drawable};
use crate::svg::{Px, Xml};

/// Draws the cells of a panel, those of one shade in one path.
pub(super) fn draw(xml: &mut Xml, layout: &Layout<'_>, field: &PlacedPanel<'_>) {
    let series = field.panel.series.iter().filter(|series| series.style == Style::Cells);
    let points = series.flat_map(|series| &series.points);
    let mut paths = vec![String::new(); SHADES];
    for point in points.filter(|point| drawable(point.x) && drawable(point.y)) {
        let Some(heat) = point.heat.filter(|heat| heat.is_finite()) else { continue };
        let (left, right) = (layout.x_of(point.x - 0.5), layout.x_of(point.x + 0.5));
        let (top, bottom) = (field.y_of(point.y + 0.5), field.y_of(point.y - 0.5));
        let path = &mut paths[shade(heat)];
        let _ =
            write!(path, "M{} {}H{}V{}H{}z", Px(left), Px(top), Px(right), Px(bottom), Px(left));
    }
    for (shade, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        xml.empty("path", &[("fill", &colour(shade)), ("d", path)]);
    }
}

/// Draws the scale of shades for a legend, from its left middle.
pub(super) fn draw_sign(xml: &mut Xml, at: Spot, width: f64) {
    let shades = [0, SHADES / 4, SHADES / 2, 3 * SHADES / 4, SHADES - 1];
    let part = width / 5.0;
    let mut x = at.x;
    for shade in shades {
        let (left, top) = (Px(x), Px(at.y - 5.0));
        let attributes: [(&str, &dyn std::fmt::Display); 5] = [
            ("fill", &colour(shade)),
            ("x", &left),
            ("y", &top),
            ("width", &Px(part)),
            ("height", &Px(10.0)),
        ];
        xml.empty("rect", &attributes);
        x += part;
    }
    let width = Px(width);
    let frame = format!("M{} {}h{width}v10h-{width}z", Px(at.x), Px(at.y - 5.0));
    xml.empty("path", &[("class", &"f"), ("fill", &"none"), ("d", &frame)]);
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1 of few shades")]
fn shade(heat: f64) -> usize {
    let most = f64::from(u8::try_from(SHADES - 1).unwrap_or(u8::MAX));
    (heat.clamp(0.0, 1.0) * most).round() as usize
}

/// From a dark green to white, the same on each background.
fn colour(shade: usize) -> String {
    let [red, green, blue] = COOL.map(|cool| {
        let rise = (255 - usize::from(cool)) * shade / (SHADES - 1);
        usize::from(cool) + rise
    });
    format!("#{red:02x}{green:02x}{blue:02x}")
}

const COOL: [u8; 3] = [0x0a, 0x6b, 0x3a];
const SHADES: usize = 33;

#[cfg(test)]
mod tests {
    use crate::{Axis, Chart, Point, Series, Style, Theme};

    #[test]
    fn cells_go_from_green_to_white_and_unknown_ones_are_left_out() {
        let points = [
            Point::new(0.0, 1.0).heat(0.0),
            Point::new(1.0, 1.0).heat(7.0),
            Point::new(2.0, 1.0).heat(f64::NAN),
            Point::new(3.0, 1.0),
        ];
        let x = Axis::linear("readchunk", "").from(-0.5).to(3.5);
        let svg = Chart::new("t", x, Axis::linear("test", "").from(0.5).to(1.5))
            .series(Series::new("", points).style(Style::Cells))
            .to_svg(Theme::Light);
        assert_eq!(svg.matches("fill=\"#0a6b3a\"").count(), 1, "{svg}");
        assert_eq!(svg.matches("fill=\"#ffffff\"").count(), 1, "{svg}");
        assert_eq!(svg.matches("fill=\"#").count(), 2, "{svg}");
    }

    #[test]
    fn thousands_of_dots_are_one_path() {
        let points = (0..5_000).map(|i| (f64::from(i % 100), f64::from(i / 100)));
        let svg = Chart::new("t", Axis::linear("x", ""), Axis::linear("y", ""))
            .series(Series::new("blocks", points).style(Style::Dots))
            .to_svg(Theme::Light);
        assert_eq!(svg.matches("h.1").count(), 5_000);
        assert!(svg.matches("<path").count() < 10, "{}", svg.matches("<path").count());
    }
}
