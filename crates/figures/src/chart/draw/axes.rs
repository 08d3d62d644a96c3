//! Axes: fine lines, numbers and titles.

use std::fmt::Display;

use super::Look;
use super::layout::{Layout, PlacedPanel};
use crate::axis::{Axis, Scale};
use crate::scale::Range;
use crate::svg::{Px, Xml};

/// The fine lines of a plot, its frame, and the numbers at its left.
pub(crate) fn draw_grid(xml: &mut Xml, layout: &Layout<'_>, field: &PlacedPanel<'_>) {
    let (width, height) = (layout.plot_width, field.height);
    let (mut path, mut fine) = (String::new(), String::new());
    for tick in &field.y_ticks {
        let path = if tick.label.is_empty() { &mut fine } else { &mut path };
        *path += &format!("M0 {}H{}", Px((1.0 - tick.at) * height), Px(width));
    }
    for tick in layout.x_ticks.iter().filter(|tick| !tick.label.is_empty()) {
        path += &format!("M{} 0V{}", Px(layout.x_at(tick.at)), Px(height));
    }
    if !fine.is_empty() {
        xml.empty("path", &[("class", &"g q"), ("d", &fine)]);
    }
    xml.empty("path", &[("class", &"g"), ("d", &path)]);
    let floor = format!("M0 {0}H{1}", Px(height), Px(width));
    xml.empty("path", &[("class", &"f"), ("d", &floor)]);
    for tick in field.y_ticks.iter().filter(|tick| !tick.label.is_empty()) {
        let attributes: [(&str, &dyn Display); 4] = [
            ("class", &"u"),
            ("x", &Px(-6.0)),
            ("y", &Px((1.0 - tick.at) * height + 0.35 * layout.font)),
            ("text-anchor", &"end"),
        ];
        xml.leaf("text", &attributes, &tick.label);
    }
}

/// The title of a panel, above it.
pub(crate) fn draw_heading(xml: &mut Xml, layout: &Layout<'_>, field: &PlacedPanel<'_>) {
    let name = name(&field.panel.y, field.y);
    let attributes: [(&str, &dyn Display); 4] =
        [("class", &"t"), ("x", &Px(6.0)), ("y", &Px(field.heading)), ("font-weight", &"600")];
    if !name.is_empty() {
        let room = layout.left + layout.plot_width - 6.0;
        xml.leaf("text", &attributes, &crate::width::shorten(&name, layout.font * 1.05, room));
    }
}

/// Numbers and name of the common axis, below the last panel.
pub(crate) fn draw_x(xml: &mut Xml, layout: &Layout<'_>, look: &Look) {
    let Some(last) = layout.fields.last() else { return };
    let y = last.top + last.height + layout.font + 4.0;
    for tick in layout.x_ticks.iter().filter(|tick| !tick.label.is_empty()) {
        let attributes: [(&str, &dyn Display); 4] = [
            ("class", &"u"),
            ("x", &Px(layout.left + layout.x_at(tick.at))),
            ("y", &Px(y)),
            ("text-anchor", &"middle"),
        ];
        xml.leaf("text", &attributes, &tick.label);
    }
    let attributes: [(&str, &dyn Display); 4] = [
        ("class", &"t"),
        ("x", &Px(look.width - 14.0)),
        ("y", &Px(y + layout.font + 5.0)),
        ("text-anchor", &"end"),
    ];
    xml.leaf("text", &attributes, &name(&layout.chart.x, layout.x));
}

/// Label and unit of an axis.
pub(crate) fn name(axis: &Axis, range: Range) -> String {
    let unit = if axis.scale == Scale::Time { range.time_unit() } else { &axis.unit };
    match (axis.label.as_str(), unit) {
        (label, "") => label.to_owned(),
        ("", unit) => unit.to_owned(),
        (label, unit) => format!("{label}, {unit}"),
    }
}
