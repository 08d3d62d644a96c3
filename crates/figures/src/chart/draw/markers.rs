//! Lines that mark a value, with labels that do not touch each other.

use std::fmt::Display;

use super::Spot;
use super::layout::{Layout, PlacedPanel};
use crate::chart::Panel;
use crate::series::{Marker, SeriesPlace, drawable};
use crate::svg::{Px, Xml};
use crate::width::text_width;

/// The label of a vertical line, above the plot.
pub(crate) struct Label<'a> {
    text: &'a str,
    /// Left end, from the left edge of the plot.
    x: f64,
    /// Row, counted upwards from the plot.
    row: f64,
}

/// Gives the labels of vertical lines their places, and tells how high their rows are together.
pub(crate) fn place_labels<'a>(layout: &Layout<'_>, panel: &'a Panel) -> (Vec<Label<'a>>, f64) {
    let lines = panel.markers.iter().filter_map(|marker| match marker {
        Marker { at: SeriesPlace::X(x), label } if drawable(*x) => Some((layout.x_of(*x), label)),
        _ => None,
    });
    let mut lines: Vec<(f64, &String)> = lines.filter(|(_, label)| !label.is_empty()).collect();
    lines.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut labels = Vec::new();
    // For each row, how far to the right it is taken.
    let mut rows: Vec<f64> = Vec::new();
    for (x, text) in lines {
        let width = text_width(text, layout.font - 1.0);
        let left = x.min(layout.plot_width - width).max(-layout.left);
        let free = rows.iter().position(|taken| *taken <= left);
        let row = free.unwrap_or(rows.len());
        rows.resize(rows.len().max(row + 1), f64::NEG_INFINITY);
        rows[row] = left + width + 8.0;
        labels.push(Label { text, x: left, row: number(row) });
    }
    (labels, number(rows.len()) * ROW)
}

/// Draws the lines, below the data. Vertical ones go through all panels.
pub(crate) fn draw_lines(xml: &mut Xml, layout: &Layout<'_>, field: &PlacedPanel<'_>) {
    let all = layout.chart.panels.iter().flat_map(|panel| &panel.markers);
    let mut path = String::new();
    for marker in all {
        if let SeriesPlace::X(x) = marker.at
            && drawable(x)
        {
            path += &format!("M{} 0V{}", Px(layout.x_of(x)), Px(field.height));
        }
    }
    for (value, _) in heights(field) {
        path += &format!("M0 {}H{}", Px(field.y_of(value)), Px(layout.plot_width));
    }
    if !path.is_empty() {
        xml.empty("path", &[("class", &"m"), ("d", &path)]);
    }
}

/// Draws the labels: of vertical lines above the plot, of horizontal ones near their line, where
/// they cover the least, with a rim so that they can be read over data.
pub(crate) fn draw_labels(xml: &mut Xml, layout: &Layout<'_>, field: &PlacedPanel<'_>) {
    let size = layout.font - 1.0;
    for label in &field.labels {
        let attributes: [(&str, &dyn Display); 4] = [
            ("class", &"u"),
            ("x", &Px(label.x)),
            ("y", &Px(-4.0 - label.row * ROW)),
            ("font-size", &Px(size)),
        ];
        xml.leaf("text", &attributes, label.text);
    }
    let mut crowd = if heights(field).next().is_some() { crowd(layout, field) } else { Vec::new() };
    for (value, text) in heights(field).filter(|(_, text)| !text.is_empty()) {
        let (width, line) = (text_width(text, size), field.y_of(value));
        let far = layout.plot_width - 4.0 - width;
        let places = [far, 4.0, (far + 4.0) / 2.0, far * 0.75, far * 0.25];
        let boxes = places.iter().flat_map(|left| {
            [line - 5.0, line + size + 3.0].map(|bottom| Stand { left: *left, bottom, width, size })
        });
        let cost = |place: &Stand| {
            let outside = place.bottom - size < 0.0 || place.bottom > field.height;
            let covered = crowd.iter().filter(|spot| place.covers(**spot)).count();
            covered + if outside { 100_000 } else { 0 }
        };
        let Some(best) = boxes.min_by_key(cost) else { continue };
        crowd.extend(best.corners());
        let attributes: [(&str, &dyn Display); 4] = [
            ("class", &"u h"),
            ("x", &Px(best.left)),
            ("y", &Px(best.bottom)),
            ("font-size", &Px(size)),
        ];
        xml.leaf("text", &attributes, text);
    }
}

/// A possible place of a label.
struct Stand {
    left: f64,
    bottom: f64,
    width: f64,
    size: f64,
}

impl Stand {
    fn covers(&self, spot: Spot) -> bool {
        let across = (self.left - 4.0..=self.left + self.width + 4.0).contains(&spot.x);
        across && (self.bottom - self.size - 3.0..=self.bottom + 4.0).contains(&spot.y)
    }

    /// Spots that keep other labels away, in such a number that data gives way to them.
    fn corners(&self) -> impl Iterator<Item = Spot> {
        let (left, width, y) = (self.left, self.width, self.bottom - self.size / 2.0);
        (0..=200_u8).map(move |part| Spot { x: left + width * f64::from(part) / 200.0, y })
    }
}

/// The horizontal lines of a panel: value and label.
fn heights<'a>(field: &PlacedPanel<'a>) -> impl Iterator<Item = (f64, &'a str)> {
    let panel = field.panel;
    panel.markers.iter().filter_map(|marker| match marker.at {
        SeriesPlace::Y(value) if drawable(value) => Some((value, marker.label.as_str())),
        _ => None,
    })
}

/// Spots that labels should not cover: values, the ends of their intervals, and the lines between
/// values.
fn crowd(layout: &Layout<'_>, field: &PlacedPanel<'_>) -> Vec<Spot> {
    let mut crowd: Vec<Spot> = Vec::new();
    for series in &field.panel.series {
        let mut before: Option<Spot> = None;
        for point in series.points.iter().filter(|point| drawable(point.x) && drawable(point.y)) {
            let spot = layout.spot(field, point.x, point.y);
            crowd.push(spot);
            if let Some((low, high)) = point.ends() {
                crowd.extend([low, high].map(|end| layout.spot(field, point.x, end)));
            }
            if let Some(before) = before.filter(|_| series.style.has_line()) {
                // Lines between near values are known by their ends.
                let parts = ((spot.x - before.x).abs() / 6.0).min(40.0).floor();
                let mut part = 1.0;
                while part < parts {
                    let share = part / parts;
                    crowd.push(Spot {
                        x: before.x + share * (spot.x - before.x),
                        y: before.y + share * (spot.y - before.y),
                    });
                    part += 1.0;
                }
            }
            before = Some(spot);
        }
    }
    crowd
}

fn number(count: usize) -> f64 {
    f64::from(u16::try_from(count).unwrap_or(u16::MAX))
}

const ROW: f64 = 14.0;
