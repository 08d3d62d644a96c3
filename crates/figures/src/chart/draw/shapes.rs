//! Markers: a shape for each colour, so that series differ in black and white, too.

use super::Spot;
use crate::svg::Px;

/// The path of the marker of a slot.
pub(crate) fn marker(slot: usize, at: Spot) -> String {
    let shape = SHAPES[slot % SHAPES.len()];
    format!("M{} {}{shape}", Px(at.x), Px(at.y))
}

/// The class of a marker: hollow for a reference.
pub(crate) fn marker_class(slot: usize, reference: bool) -> String {
    let letter = if reference { 'o' } else { 'd' };
    format!("{letter}{slot}")
}

/// The class of a line: dashed for a reference.
pub(crate) fn line_class(slot: usize, reference: bool) -> String {
    let dashed = if reference { " r" } else { "" };
    format!("l s{slot}{dashed}")
}

/// Shapes of about the same area, drawn from their middle.
const SHAPES: [&str; 8] = [
    "m-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0z", // circle
    "m-3.3-3.3h6.6v6.6h-6.6z",                          // square
    "m0-4.6l4.2 7.4h-8.4z",                             // triangle upwards
    "m0-4.8l4.3 4.8l-4.3 4.8l-4.3-4.8z",                // diamond
    "m0 4.6l4.2-7.4h-8.4z",                             // triangle downwards
    "m-1.5-4.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z",            // upright cross
    "m-2.2-4.1h4.4l2.2 4.1l-2.2 4.1h-4.4l-2.2-4.1z",    // hexagon
    "m-4.6 0l7.4-4.2v8.4z",                             // triangle to the left
];
