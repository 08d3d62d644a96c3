//! Box plots.

use std::fmt::Write as _;

use super::layout::{Layout, PlacedPanel};
use super::series::telling;
use super::{Spot, shapes};
use crate::series::{Point, Series, Style, drawable};
use crate::svg::{Px, Xml};

/// Draws the box plots of a panel, those of one place side by side.
pub(super) fn draw(xml: &mut Xml, layout: &Layout<'_>, field: &PlacedPanel<'_>) {
    let all = field.panel.series.iter().zip(field.slots.iter().copied());
    let boxes: Vec<_> = all.filter(|(series, _)| series.style == Style::Box).collect();
    let count = boxes.len();
    for (index, (series, slot)) in boxes.into_iter().enumerate() {
        let shift = (number(index) - (number(count) - 1.0) / 2.0) * PITCH;
        draw_one(xml, layout, field, series, slot, shift);
    }
}

fn draw_one(
    xml: &mut Xml,
    layout: &Layout<'_>,
    field: &PlacedPanel<'_>,
    series: &Series,
    slot: usize,
    shift: f64,
) {
    let (mut areas, mut lines, mut crosses) = (String::new(), String::new(), String::new());
    let drawn = |point: &&Point| drawable(point.x) && drawable(point.y);
    for point in series.points.iter().filter(drawn) {
        let x = layout.x_of(point.x) + shift;
        let (left, right) = (Px(x - HALF), Px(x + HALF));
        let Some(quartiles) = point.quartiles else {
            let (top, bottom) = (Px(field.y_of(point.y) - ARM), 2.0 * ARM);
            let back = Px(x - ARM);
            let _ = write!(crosses, "M{back} {top}l{0} {0}m0 -{0}l-{0} {0}", Px(bottom));
            continue;
        };
        let [first, median, third] = quartiles.map(|value| Px(field.y_of(value)));
        let outline = format!("M{left} {first}H{right}V{third}H{left}z");
        areas.push_str(&outline);
        let _ = write!(lines, "{outline}M{left} {median}H{right}");
        if let Some((low, high)) = point.ends() {
            let (low, high) = (Px(field.y_of(low)), Px(field.y_of(high)));
            let (back, on) = (Px(x - HALF / 2.0), Px(x + HALF / 2.0));
            let x = Px(x);
            let _ = write!(lines, "M{x} {first}V{low}M{back} {low}H{on}");
            let _ = write!(lines, "M{x} {third}V{high}M{back} {high}H{on}");
        }
    }
    for (class, path) in [(format!("a{slot}"), areas), (format!("w s{slot}"), lines + &crosses)] {
        if !path.is_empty() {
            xml.empty("path", &[("class", &class), ("d", &path)]);
        }
    }
    let class = shapes::marker_class(slot, series.reference);
    for point in series.points.iter().filter(drawn).filter(|point| point.quartiles.is_some()) {
        let spot = Spot { x: layout.x_of(point.x) + shift, y: field.y_of(point.y) };
        xml.open("path", &[("class", &class), ("d", &shapes::marker(slot, spot))]);
        xml.leaf("title", &[], &telling(layout, field, series, point));
        xml.close("path");
    }
}

#[expect(clippy::cast_precision_loss, reason = "a panel has few series")]
fn number(count: usize) -> f64 {
    count as f64
}

/// Half the width of a box, and the distance of two boxes at one place, in pixels.
const HALF: f64 = 9.0;
const PITCH: f64 = 26.0;
/// Half the width of the cross of an extreme value.
const ARM: f64 = 2.2;

#[cfg(test)]
mod tests {
    use crate::{Axis, Chart, Point, Series, Style, Theme};

    #[test]
    fn a_box_plot_has_a_box_whiskers_a_mean_and_its_extremes() {
        let points = [
            Point::new(0.0, 30.0).within(10.0, 80.0).quartiles([20.0, 28.0, 40.0]),
            Point::new(0.0, 250.0),
        ];
        let chart = |name: &str, shift: f64| {
            let own = points.map(|point| Point { y: point.y + shift, ..point });
            Series::new(name, own).style(Style::Box)
        };
        let svg = Chart::new("t", Axis::names("Experiment", ["1"]), Axis::linear("TS-DF", "ms"))
            .series(chart("quic", 0.0))
            .series(chart("srt", 1.0))
            .to_svg(Theme::Light);
        assert_eq!(svg.matches("class=\"a0\"").count(), 2, "a box, and a sign in the legend");
        // The mean tells its value and the whiskers.
        assert!(svg.contains("TS-DF: 30 (10 to 80)") || svg.contains("30 (10 to 80)"), "{svg}");
        // The cross of the extreme value.
        assert_eq!(svg.matches("m0 -4.4l-4.4 4.4").count(), 2, "{svg}");
    }
}
