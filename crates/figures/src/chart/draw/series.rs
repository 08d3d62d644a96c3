//! The data itself: areas, lines, intervals, markers.

use std::fmt::{Display, Write as _};

use super::layout::{Layout, PlacedPanel};
use super::{Spot, axes, boxes, cells, shapes};
use crate::number::reading;
use crate::series::{Point, Series, Style, drawable};
use crate::svg::{Px, Xml};
use crate::thin::thin;

/// Draws all series of a panel: areas first, then lines, then marks of single values.
pub(crate) fn draw(xml: &mut Xml, layout: &Layout<'_>, field: &PlacedPanel<'_>) {
    let all = || field.panel.series.iter().zip(field.slots.iter().copied());
    for (series, slot) in all().filter(|(series, _)| series.style == Style::Band) {
        draw_band(xml, layout, field, series, slot);
    }
    boxes::draw(xml, layout, field);
    cells::draw(xml, layout, field);
    for (series, slot) in all().filter(|(series, _)| series.style.has_line()) {
        draw_line(xml, layout, field, series, slot);
    }
    for (series, slot) in all() {
        if !matches!(series.style, Style::Band | Style::Box) {
            draw_intervals(xml, layout, field, series, slot);
        }
        match series.style {
            Style::Points | Style::LinePoints => draw_points(xml, layout, field, series, slot),
            Style::Line | Style::Step => draw_signs(xml, layout, field, series, slot),
            Style::Dots => draw_dots(xml, layout, field, series, slot),
            Style::Band | Style::Box | Style::Cells => {}
        }
    }
}

fn draw_line(
    xml: &mut Xml,
    layout: &Layout<'_>,
    field: &PlacedPanel<'_>,
    series: &Series,
    slot: usize,
) {
    let mut path = String::new();
    for run in runs(series) {
        let spots: Vec<Spot> =
            run.iter().map(|point| layout.spot(field, point.x, point.y)).collect();
        let spots = thin(&spots);
        for (index, spot) in spots.iter().enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            if series.style == Style::Step && index > 0 {
                let _ = write!(path, "L{} {}", Px(spot.x), Px(spots[index - 1].y));
            }
            let _ = write!(path, "{letter}{} {}", Px(spot.x), Px(spot.y));
        }
        // A single value between two gaps is a dot.
        if spots.len() == 1 {
            path.push_str("h0.1");
        }
    }
    if path.is_empty() {
        return;
    }
    let class = shapes::line_class(slot, series.reference);
    let attributes: [(&str, &dyn Display); 3] =
        [("class", &class), ("data-n", &series.name), ("d", &path)];
    xml.empty("path", &attributes);
}

fn draw_band(
    xml: &mut Xml,
    layout: &Layout<'_>,
    field: &PlacedPanel<'_>,
    series: &Series,
    slot: usize,
) {
    let mut path = String::new();
    let with_ends = |point: &&Point| drawable(point.x) && point.ends().is_some();
    for run in split(&series.points, |point| with_ends(&point)) {
        let edge = |of: fn((f64, f64)) -> f64| -> Vec<Spot> {
            let spots =
                run.iter().filter_map(|point| Some(layout.spot(field, point.x, of(point.ends()?))));
            thin(&spots.collect::<Vec<_>>())
        };
        let (low, high) = (edge(|ends| ends.0), edge(|ends| ends.1));
        for (index, spot) in high.iter().chain(low.iter().rev()).enumerate() {
            let letter = if index == 0 { 'M' } else { 'L' };
            let _ = write!(path, "{letter}{} {}", Px(spot.x), Px(spot.y));
        }
        path.push('z');
    }
    if !path.is_empty() {
        let class = format!("a{slot}");
        xml.empty("path", &[("class", &class), ("d", &path)]);
    }
}

/// Intervals as bars with caps.
fn draw_intervals(
    xml: &mut Xml,
    layout: &Layout<'_>,
    field: &PlacedPanel<'_>,
    series: &Series,
    slot: usize,
) {
    let mut path = String::new();
    for point in series.points.iter().filter(|point| drawable(point.x)) {
        let Some((low, high)) = point.ends() else { continue };
        let (top, bottom) = (field.y_of(high), field.y_of(low));
        let x = layout.x_of(point.x);
        if bottom - top < 1.0 {
            continue;
        }
        let (left, y) = (Px(x - 3.5), Px(top));
        let _ = write!(path, "M{left} {y}h7M{} {y}V{}M{left} {}h7", Px(x), Px(bottom), Px(bottom));
    }
    if !path.is_empty() {
        let class = format!("w s{slot}");
        xml.empty("path", &[("class", &class), ("d", &path)]);
    }
}

/// A marker for each value, which tells it when pointed at.
fn draw_points(
    xml: &mut Xml,
    layout: &Layout<'_>,
    field: &PlacedPanel<'_>,
    series: &Series,
    slot: usize,
) {
    let class = shapes::marker_class(slot, series.reference);
    let told = series.points.len() <= MOST_TOLD;
    let mut path = String::new();
    for point in series.points.iter().filter(|point| drawable(point.x) && drawable(point.y)) {
        let shape = shapes::marker(slot, layout.spot(field, point.x, point.y));
        if told {
            xml.open("path", &[("class", &class), ("d", &shape)]);
            xml.leaf("title", &[], &telling(layout, field, series, point));
            xml.close("path");
        } else {
            path.push_str(&shape);
        }
    }
    if !path.is_empty() {
        xml.empty("path", &[("class", &class), ("d", &path)]);
    }
}

/// A dot for each value, in one path.
fn draw_dots(
    xml: &mut Xml,
    layout: &Layout<'_>,
    field: &PlacedPanel<'_>,
    series: &Series,
    slot: usize,
) {
    let mut path = String::new();
    for point in series.points.iter().filter(|point| drawable(point.x) && drawable(point.y)) {
        let spot = layout.spot(field, point.x, point.y);
        let _ = write!(path, "M{} {}h.1", Px(spot.x), Px(spot.y));
    }
    if !path.is_empty() {
        let class = shapes::line_class(slot, series.reference);
        xml.empty("path", &[("class", &class), ("d", &path)]);
    }
}

/// A marker now and then along a line, at different places for different series.
fn draw_signs(
    xml: &mut Xml,
    layout: &Layout<'_>,
    field: &PlacedPanel<'_>,
    series: &Series,
    slot: usize,
) {
    let offset = u16::try_from(slot).map_or(0.0, f64::from) * SIGN_EVERY / 8.0;
    let mut next = offset + 8.0;
    let mut path = String::new();
    for point in series.points.iter().filter(|point| drawable(point.x) && drawable(point.y)) {
        let spot = layout.spot(field, point.x, point.y);
        if spot.x >= next {
            path.push_str(&shapes::marker(slot, spot));
            next = ((spot.x - offset - 8.0) / SIGN_EVERY).floor() * SIGN_EVERY
                + offset
                + 8.0
                + SIGN_EVERY;
        }
    }
    if !path.is_empty() {
        let class = shapes::marker_class(slot, series.reference);
        xml.empty("path", &[("class", &class), ("d", &path)]);
    }
}

/// The text that a point shows of itself.
pub(super) fn telling(
    layout: &Layout<'_>,
    field: &PlacedPanel<'_>,
    series: &Series,
    point: &Point,
) -> String {
    let (x, y) = (axes::name(&layout.chart.x, layout.x), axes::name(&field.panel.y, field.y));
    let mut text = String::new();
    if !series.name.is_empty() {
        let _ = writeln!(text, "{}", series.name);
    }
    let _ = write!(text, "{x}: {}\n{y}: {}", reading(point.x), reading(point.y));
    if let Some((low, high)) = point.ends() {
        let _ = write!(text, " ({} to {})", reading(low), reading(high));
    }
    text
}

/// The values of a series between its gaps.
fn runs(series: &Series) -> Vec<&[Point]> {
    split(&series.points, |point| drawable(point.x) && drawable(point.y))
}

fn split(points: &[Point], is_there: impl Fn(&Point) -> bool) -> Vec<&[Point]> {
    points.split(|point| !is_there(point)).filter(|run| !run.is_empty()).collect()
}

/// If a series has at most this number of points, each shows its value.
const MOST_TOLD: usize = 300;

/// Distance of markers along a line, in pixels.
const SIGN_EVERY: f64 = 96.0;
