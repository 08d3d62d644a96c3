//! The places of all parts of a chart: sizes that follow from the widths of the labels.

use super::legend::Legend;
use super::markers::{self, Label};
use super::{Look, Spot};
use crate::axis::{Axis, Scale};
use crate::chart::{Chart, Panel};
use crate::scale::{Ends, Range, Tick};
use crate::series::{Marker, Point, Series, SeriesPlace, Style, drawable};
use crate::svg::Px;
use crate::theme::COLOURS;
use crate::width::text_width;

/// A chart with a place for each of its parts.
pub(crate) struct Layout<'a> {
    pub(crate) chart: &'a Chart,
    pub(crate) height: f64,
    pub(crate) font: f64,
    /// Left edge of the plots.
    pub(crate) left: f64,
    pub(crate) plot_width: f64,
    pub(crate) x: Range,
    pub(crate) x_ticks: Vec<Tick>,
    pub(crate) fields: Vec<PlacedPanel<'a>>,
    /// The legend above all panels, empty where each has its own.
    pub(crate) shared_legend: Legend,
    /// Room left free at both ends of the horizontal axis, for markers at its ends.
    inset: f64,
}

/// A panel with its place.
pub(crate) struct PlacedPanel<'a> {
    pub(crate) index: usize,
    pub(crate) panel: &'a Panel,
    /// Slot of each series.
    pub(crate) slots: Vec<usize>,
    pub(crate) legend: Legend,
    /// Baseline of the heading.
    pub(crate) heading: f64,
    /// Upper edge of the plot.
    pub(crate) top: f64,
    pub(crate) height: f64,
    pub(crate) y: Range,
    pub(crate) y_ticks: Vec<Tick>,
    /// Labels of the vertical lines, in rows above the plot.
    pub(crate) labels: Vec<Label<'a>>,
    /// Whether values may lie beyond the ends of an axis.
    pub(crate) clipped: bool,
    pub(crate) empty: bool,
}

impl<'a> Layout<'a> {
    /// Lays out a chart whose own heading ends at `top`.
    pub(crate) fn new(chart: &'a Chart, look: &Look, top: f64) -> Self {
        let font = look.font();
        let slots = slots(chart);
        let shared = share_a_legend(chart);
        let x = x_range(chart);
        let plot_height = plot_height(chart, look);
        let mut fields: Vec<PlacedPanel<'a>> = Vec::new();
        for (index, panel) in chart.panels.iter().enumerate() {
            fields.push(field(index, panel, slots[index].clone(), plot_height));
        }
        let labels = fields.iter().flat_map(|field| &field.y_ticks);
        let widest = labels.map(|tick| text_width(&tick.label, font)).fold(20.0, f64::max);
        let left = (widest + 9.0).ceil();
        let plot_width = (look.width - left - 14.0).max(60.0);
        let inset = if chart.x.scale == Scale::Time { 0.0 } else { 14.0 };
        let x_ticks = x_ticks(&chart.x, x, plot_width - 2.0 * inset, font);
        let mut layout = Self {
            chart,
            height: 0.0,
            font,
            left,
            plot_width,
            x,
            x_ticks,
            fields: Vec::new(),
            shared_legend: Legend::default(),
            inset,
        };
        layout.stack(fields, shared, top, look);
        layout
    }

    /// Puts the panels below each other.
    fn stack(&mut self, fields: Vec<PlacedPanel<'a>>, shared: bool, top: f64, look: &Look) {
        let room = look.width - 2.0 * LEGEND_EDGE;
        let mut y = top;
        if shared {
            let entries = fields.iter().flat_map(|field| {
                field.panel.series.iter().zip(&field.slots).map(|(series, slot)| (series, *slot))
            });
            self.shared_legend = Legend::new(entries, LEGEND_EDGE, y, room, self.font);
            y += self.shared_legend.height;
        }
        for mut field in fields {
            y += self.font + 6.0;
            field.heading = y - 4.0;
            if !shared {
                let entries = field.panel.series.iter().zip(field.slots.iter().copied());
                field.legend = Legend::new(entries, LEGEND_EDGE, y + 1.0, room, self.font);
                y += field.legend.height;
            }
            let (labels, rows) = markers::place_labels(self, field.panel);
            field.labels = labels;
            y += rows + 8.0;
            field.top = y;
            y += field.height + 12.0;
            self.fields.push(field);
        }
        // Numbers and label of the horizontal axis.
        self.height = (y + 2.0 * self.font + 8.0).ceil();
    }

    /// Distance of a value from the left edge of the plots.
    pub(crate) fn x_of(&self, value: f64) -> f64 {
        self.x_at(self.x.place(value))
    }

    /// The horizontal position of a place from 0 to 1 along the axis.
    pub(crate) fn x_at(&self, place: f64) -> f64 {
        self.inset + place * (self.plot_width - 2.0 * self.inset)
    }

    /// How the script gets values from places along the plot.
    pub(crate) fn x_ends(&self) -> String {
        ends(self.x, self.inset, self.plot_width - self.inset)
    }

    /// Where a value of a panel is drawn, within its plot.
    pub(crate) fn spot(&self, field: &PlacedPanel<'_>, x: f64, y: f64) -> Spot {
        Spot { x: self.x_of(x), y: field.y_of(y) }
    }
}

impl PlacedPanel<'_> {
    /// Distance of a value from the upper edge of the plot.
    pub(crate) fn y_of(&self, value: f64) -> f64 {
        (1.0 - self.y.place(value)) * self.height
    }

    /// How the script gets values from heights.
    pub(crate) fn y_ends(&self) -> String {
        ends(self.y, self.height, 0.0)
    }
}

fn field(index: usize, panel: &Panel, slots: Vec<usize>, height: f64) -> PlacedPanel<'_> {
    let count = (height / 42.0).max(2.0);
    let y = Range::of(&panel.y, y_values(panel), Ends::Round(count));
    let y_ticks = without_collisions(y.ticks(count), |tick| ((1.0 - tick.at) * height, 13.0));
    let clipped = panel.y.low.is_some() || panel.y.high.is_some();
    let empty = !points(panel).any(|point| point.y.is_finite());
    PlacedPanel {
        index,
        panel,
        slots,
        legend: Legend::default(),
        heading: 0.0,
        top: 0.0,
        height,
        y,
        y_ticks,
        labels: Vec::new(),
        clipped,
        empty,
    }
}

fn plot_height(chart: &Chart, look: &Look) -> f64 {
    match (chart.panels.len(), look.small()) {
        (1, false) => 290.0,
        (2, false) => 190.0,
        (_, false) => 140.0,
        (1, true) => 210.0,
        (2, true) => 150.0,
        (_, true) => 120.0,
    }
}

fn points(panel: &Panel) -> impl Iterator<Item = &Point> {
    panel.series.iter().flat_map(|series| &series.points)
}

fn y_values(panel: &Panel) -> impl Iterator<Item = f64> {
    let values = points(panel).flat_map(|point| {
        let (low, high) = point.ends().unwrap_or((point.y, point.y));
        [point.y, low, high]
    });
    let marked = panel.markers.iter().filter_map(|marker| match marker {
        Marker { at: SeriesPlace::Y(y), .. } => Some(*y),
        Marker { at: SeriesPlace::X(_), .. } => None,
    });
    values.chain(marked)
}

fn x_range(chart: &Chart) -> Range {
    let values = chart.panels.iter().flat_map(|panel| {
        let marked = panel.markers.iter().filter_map(|marker| match marker {
            Marker { at: SeriesPlace::X(x), .. } => Some(*x),
            Marker { at: SeriesPlace::Y(_), .. } => None,
        });
        let there = points(panel).filter(|point| drawable(point.y) || point.ends().is_some());
        there.map(|point| point.x).chain(marked)
    });
    let last = u16::try_from(chart.x.names.len()).map_or(0.0, f64::from) - 1.0;
    // Boxes of several series stand beside the place of their name.
    let has_boxes = |panel: &Panel| panel.series.iter().any(|it| it.style == Style::Box);
    let margin = if chart.panels.iter().any(has_boxes) { 0.5 } else { 0.0 };
    let named = [-margin, last + margin].into_iter().filter(|_| last >= 0.0);
    Range::of(&chart.x, values.chain(named), Ends::Exact)
}

/// The numbers at the horizontal axis: as many as fit without touching each other.
fn x_ticks(axis: &Axis, range: Range, width: f64, font: f64) -> Vec<Tick> {
    let span = |tick: &Tick| (tick.at * width, text_width(&tick.label, font) + 8.0);
    if !axis.names.is_empty() {
        let ticks = (0_u16..).map(f64::from).zip(&axis.names);
        let ticks = ticks.map(|(at, name)| Tick { at: range.place(at), label: name.clone() });
        return without_collisions(ticks.collect(), span);
    }
    let mut count = (width / 60.0).max(2.0);
    let widest =
        |ticks: &[Tick]| ticks.iter().map(|tick| text_width(&tick.label, font)).fold(0.0, f64::max);
    let mut ticks = range.ticks(count);
    while count > 2.0 && (widest(&ticks) + 12.0) * count > width {
        count -= 1.0;
        ticks = range.ticks(count);
    }
    without_collisions(ticks, span)
}

/// Takes the labels away that would touch the one before. `span` gives the middle of a label and
/// its length.
fn without_collisions(mut ticks: Vec<Tick>, span: impl Fn(&Tick) -> (f64, f64)) -> Vec<Tick> {
    let mut taken: Option<(f64, f64)> = None;
    for tick in ticks.iter_mut().filter(|tick| !tick.label.is_empty()) {
        let (middle, length) = span(tick);
        match taken {
            Some((other, reach)) if (middle - other).abs() < (length + reach) / 2.0 => {
                tick.label.clear();
            }
            _ => taken = Some((middle, length)),
        }
    }
    ticks
}

/// The slot of each series of each panel: its own, or the next free one for its name.
fn slots(chart: &Chart) -> Vec<Vec<usize>> {
    let mut names: Vec<(&str, usize)> = Vec::new();
    let mut next = 0;
    let mut slot_of = |series: &'_ Series| match series.slot {
        Some(slot) => slot % COLOURS,
        None => next_slot(&mut next),
    };
    let mut all = Vec::new();
    for panel in &chart.panels {
        let mut found = Vec::new();
        for series in &panel.series {
            let known = names.iter().find(|(name, _)| *name == series.name).map(|known| known.1);
            let slot = match (series.slot, known) {
                (None, Some(slot)) => slot,
                _ => slot_of(series),
            };
            if known.is_none() {
                names.push((&series.name, slot));
            }
            found.push(slot);
        }
        all.push(found);
    }
    all
}

fn next_slot(next: &mut usize) -> usize {
    *next += 1;
    (*next - 1) % COLOURS
}

/// Whether all panels show the same series, so that one legend is enough.
fn share_a_legend(chart: &Chart) -> bool {
    let names = |panel: &Panel| -> Vec<(String, Style)> {
        panel.series.iter().map(|series| (series.name.clone(), series.style)).collect()
    };
    let first = chart.panels.first().map(names);
    chart.panels.iter().all(|panel| Some(names(panel)) == first)
}

fn ends(range: Range, from: f64, to: f64) -> String {
    let (log, low, high) = range.ends();
    let scale = if log { "log" } else { "lin" };
    format!("{scale} {low:e} {high:e} {} {}", Px(from), Px(to))
}

const LEGEND_EDGE: f64 = 6.0;
