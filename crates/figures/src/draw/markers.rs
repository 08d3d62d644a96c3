//! Lines that mark a value, with labels that do not touch each other.

use std::fmt::Display;

use super::layout::{Field, Layout};
use crate::chart::Panel;
use crate::series::{Marker, Place, drawable};
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
        Marker { at: Place::X(x), label } if drawable(*x) => Some((layout.x_of(*x), label)),
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

/// Draws the lines, below the data.
pub(crate) fn draw_lines(xml: &mut Xml, layout: &Layout<'_>, field: &Field<'_>) {
    for marker in &field.panel.markers {
        let path = match marker.at {
            Place::X(x) if drawable(x) => {
                format!("M{} 0V{}", Px(layout.x_of(x)), Px(field.height))
            }
            Place::Y(y) if drawable(y) => {
                format!("M0 {}H{}", Px(field.y_of(y)), Px(layout.plot_width))
            }
            _ => continue,
        };
        xml.empty("path", &[("class", &"m"), ("d", &path)]);
    }
}

/// Draws the labels: of vertical lines above the plot, of horizontal ones at their right end, with
/// a rim so that they can be read over data.
pub(crate) fn draw_labels(xml: &mut Xml, layout: &Layout<'_>, field: &Field<'_>) {
    let size = Px(layout.font - 1.0);
    for label in &field.labels {
        let attributes: [(&str, &dyn Display); 4] = [
            ("class", &"u"),
            ("x", &Px(label.x)),
            ("y", &Px(-4.0 - label.row * ROW)),
            ("font-size", &size),
        ];
        xml.leaf("text", &attributes, label.text);
    }
    let mut taken: Vec<f64> = Vec::new();
    for marker in &field.panel.markers {
        let Place::Y(value) = marker.at else { continue };
        if !drawable(value) || marker.label.is_empty() {
            continue;
        }
        // Above its line, or below where the next label or the plot's edge is near.
        let above = field.y_of(value) - 4.0;
        let is_free = |y: f64| y > 10.0 && taken.iter().all(|other| (other - y).abs() >= 13.0);
        let y = if is_free(above) { above } else { above + layout.font + 4.0 };
        taken.push(y);
        let attributes: [(&str, &dyn Display); 5] = [
            ("class", &"u h"),
            ("x", &Px(layout.plot_width - 4.0)),
            ("y", &Px(y)),
            ("font-size", &size),
            ("text-anchor", &"end"),
        ];
        xml.leaf("text", &attributes, &marker.label);
    }
}

fn number(count: usize) -> f64 {
    f64::from(u16::try_from(count).unwrap_or(u16::MAX))
}

const ROW: f64 = 14.0;
