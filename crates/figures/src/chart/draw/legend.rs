//! The meaning of colours and shapes, in rows that wrap; above the plots, so that no data is
//! covered.

use std::fmt::Display;

use super::{Spot, cells, shapes};
use crate::series::{Series, Style};
use crate::svg::{Px, Xml};
use crate::width::{shorten, text_width};

/// The legend of a panel or a chart.
#[derive(Default)]
pub(crate) struct Legend {
    entries: Vec<LegendEntry>,
    pub(crate) height: f64,
    font: f64,
}

struct LegendEntry {
    name: String,
    slot: usize,
    style: Style,
    reference: bool,
    at: Spot,
}

impl Legend {
    /// A legend whose upper left corner is at `left`, `top`, in rows of `room`.
    pub(crate) fn new<'a>(
        series: impl Iterator<Item = (&'a Series, usize)>,
        left: f64,
        top: f64,
        room: f64,
        font: f64,
    ) -> Self {
        let row = font + 7.0;
        let mut entries: Vec<LegendEntry> = Vec::new();
        let mut at = Spot { x: left, y: top + row / 2.0 };
        for (series, slot) in series.filter(|(series, _)| !series.name.is_empty()) {
            let same = |known: &LegendEntry| {
                known.name == series.name
                    && known.slot == slot
                    && known.reference == series.reference
            };
            let name = shorten(&series.name, font, room - SWATCH - GAP);
            if entries.iter().any(same) {
                continue;
            }
            let width = SWATCH + text_width(&name, font) + GAP;
            if at.x > left && at.x + width - GAP > left + room {
                at = Spot { x: left, y: at.y + row };
            }
            entries.push(LegendEntry {
                name,
                slot,
                style: series.style,
                reference: series.reference,
                at,
            });
            at.x += width;
        }
        let height = if entries.is_empty() { 0.0 } else { at.y - top + row / 2.0 + 2.0 };
        Self { entries, height, font }
    }

    /// Draws it.
    pub(crate) fn draw(&self, xml: &mut Xml) {
        for entry in &self.entries {
            entry.draw(xml, self.font);
        }
    }
}

impl LegendEntry {
    fn draw(&self, xml: &mut Xml, font: f64) {
        let Spot { x, y } = self.at;
        let slot = self.slot;
        if matches!(self.style, Style::Band | Style::Box) {
            let class = format!("a{slot}");
            let attributes: [(&str, &dyn Display); 5] = [
                ("class", &class),
                ("x", &Px(x)),
                ("y", &Px(y - 5.0)),
                ("width", &Px(SWATCH - 6.0)),
                ("height", &Px(10.0)),
            ];
            xml.empty("rect", &attributes);
        }
        if self.style == Style::Cells {
            cells::draw_sign(xml, self.at, SWATCH - 6.0);
        }
        if self.style.has_line() {
            let class = shapes::line_class(slot, self.reference);
            let path = format!("M{} {}H{}", Px(x), Px(y), Px(x + SWATCH - 6.0));
            xml.empty("path", &[("class", &class), ("d", &path)]);
        }
        if !matches!(self.style, Style::Band | Style::Cells) {
            let class = shapes::marker_class(slot, self.reference);
            let middle = Spot { x: x + (SWATCH - 6.0) / 2.0, y };
            let path = shapes::marker(slot, middle);
            xml.empty("path", &[("class", &class), ("d", &path)]);
        }
        let attributes: [(&str, &dyn Display); 3] =
            [("class", &"t"), ("x", &Px(x + SWATCH)), ("y", &Px(y + 0.35 * font))];
        xml.leaf("text", &attributes, &self.name);
    }
}

const SWATCH: f64 = 30.0;
const GAP: f64 = 16.0;
