//! Figures: lines of points become charts.

use punctual_figures::{Axis, Chart, Marker, Point, Series, Style};

use super::words;
use crate::plan::{Figure, Horizontal, RunParts};
use crate::results::drawing::{Drawing, DrawnLine};
use crate::results::{self, Results};

/// The chart of a figure; `None` if there is no point.
pub(super) fn chart(results: &Results, figure: &Figure, drawing: &Drawing) -> Option<Chart> {
    let x = match &figure.x {
        Horizontal::Time => Axis::time("Time"),
        Horizontal::Column(_) | Horizontal::Places(_) => columns_axis(figure, drawing),
    };
    let panels: Vec<(String, String, Vec<&DrawnLine>)> = match &figure.x {
        Horizontal::Time => panels_of_time(results, drawing),
        Horizontal::Column(_) | Horizontal::Places(_) => panels_of_metrics(results, drawing),
    };
    let several = panels.len() > 1;
    let mut chart: Option<Chart> = None;
    let mut labels_events = true;
    for (label, unit, lines) in panels {
        let label = match (several, figure.y_title.as_str()) {
            (false, title) if !title.is_empty() => words::capital(title),
            _ => label,
        };
        let (unit, factor) = readable(unit, &lines);
        let y = if figure.log { Axis::log(label, unit) } else { Axis::linear(label, unit) };
        let y = if is_heat_map(figure) { around(y, &lines, |point| point.y.value) } else { y };
        let with = match chart {
            Some(chart) => chart.panel(y),
            None => {
                let title = match figure.title.starts_with("Figure") {
                    true => figure.title.clone(),
                    false => format!("Figure {}. {}", figure.name, figure.title),
                };
                let chart = Chart::new(title, x.clone(), y).caption(figure.caption.clone());
                chart.quotation(figure.published.clone())
            }
        };
        let with = with.all_series(series(results, figure, drawing, &lines, factor));
        // The panels below have the same axis; one label of each event is enough.
        let is_first = std::mem::take(&mut labels_events);
        let marked = drawing.marks.iter().fold(with, |chart, (at, label)| {
            chart.marker(Marker::vertical(*at, if is_first { label.as_str() } else { "" }))
        });
        chart = Some(marked);
    }
    chart
}

/// An axis of a parameter: of numbers, or of names in their order. Box plots stand by names.
fn columns_axis(figure: &Figure, drawing: &Drawing) -> Axis {
    let points = || drawing.lines.iter().flat_map(|line| &line.points);
    let label = words::capital(&drawing.x.title);
    if !figure.boxes && points().all(|point| point.x_text.parse::<f64>().is_ok()) {
        let axis = Axis::linear(label, drawing.x.unit.clone());
        let lines: Vec<&DrawnLine> = drawing.lines.iter().collect();
        return if is_heat_map(figure) { around(axis, &lines, |point| point.x) } else { axis };
    }
    let mut names: Vec<(f64, &str)> = points().map(|point| (point.x, &*point.x_text)).collect();
    names.sort_by(|one, other| one.0.total_cmp(&other.0));
    names.dedup();
    Axis::names(label, names.into_iter().map(|(_, name)| name))
}

fn is_heat_map(figure: &Figure) -> bool {
    figure.parts.as_ref().is_some_and(|parts| parts.heat.is_some())
}

/// An axis with room for the cells around the outermost points.
fn around(axis: Axis, lines: &[&DrawnLine], value: fn(&results::DrawnPoint) -> f64) -> Axis {
    let values = || lines.iter().flat_map(|line| &line.points).map(value);
    let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
    if least > most { axis } else { axis.from(least - 0.5).to(most + 0.5) }
}

/// A panel for each metric.
fn panels_of_metrics<'a>(
    results: &Results,
    drawing: &'a Drawing,
) -> Vec<(String, String, Vec<&'a DrawnLine>)> {
    let mut panels: Vec<(&str, Vec<&DrawnLine>)> = Vec::new();
    for line in &drawing.lines {
        match panels.iter_mut().find(|(metric, _)| *metric == line.metric) {
            Some((_, lines)) => lines.push(line),
            None => panels.push((&line.metric, vec![line])),
        }
    }
    let named = |(metric, lines): (&str, Vec<&'a DrawnLine>)| {
        let label = words::capital(&words::title(results, metric));
        (label, words::unit(results, metric), lines)
    };
    panels.into_iter().map(named).collect()
}

/// A panel for each unit, and a separate one for lines that would lie flat on the axis beside the
/// others.
fn panels_of_time<'a>(
    results: &Results,
    drawing: &'a Drawing,
) -> Vec<(String, String, Vec<&'a DrawnLine>)> {
    let greatest =
        |line: &DrawnLine| line.points.iter().map(|point| point.y.value).fold(0.0, f64::max);
    let mut panels: Vec<(String, bool, Vec<&DrawnLine>)> = Vec::new();
    for line in drawing.lines.iter().filter(|line| !line.points.is_empty()) {
        let unit = words::unit(results, &line.metric);
        let alike = drawing.lines.iter().filter(|l| words::unit(results, &l.metric) == unit);
        let small = greatest(line) < 0.2 * alike.map(greatest).fold(0.0, f64::max);
        match panels.iter_mut().find(|(known, is_small, _)| (known, *is_small) == (&unit, small)) {
            Some((_, _, lines)) => lines.push(line),
            None => panels.push((unit, small, vec![line])),
        }
    }
    let named = |(unit, _, lines): (String, bool, Vec<&'a DrawnLine>)| {
        let mut titles: Vec<String> =
            lines.iter().map(|line| words::title(results, &line.metric)).collect();
        titles.dedup();
        let counts = lines.iter().all(|line| words::is_count(&line.metric));
        let label = match (counts, titles.as_slice()) {
            (true, _) => "Packets".to_owned(),
            (false, titles) => words::capital(&words::shared_title(titles, &unit)),
        };
        let unit = if counts { period(&lines) } else { unit };
        (label, unit, lines)
    };
    panels.into_iter().map(named).collect()
}

/// The time that a count of a series is of.
fn period(lines: &[&DrawnLine]) -> String {
    let steps = lines.iter().filter_map(|line| match line.points.as_slice() {
        [_, one, other, ..] => Some(other.x - one.x),
        _ => None,
    });
    match steps.reduce(f64::min) {
        Some(step) if step < 0.95 => format!("in {:.0} ms", step * 1e3),
        Some(step) if step < 1.05 => "a second".to_owned(),
        Some(step) => format!("in {step:.0} s"),
        None => String::new(),
    }
}

/// Points of a figure that have markers of full size.
const MOST_MARKERS: usize = 300;

/// A unit that long times can be read in, and what values are multiplied with for it.
fn readable(unit: String, lines: &[&DrawnLine]) -> (String, f64) {
    let values = || lines.iter().flat_map(|line| &line.points).map(|point| point.y.value.abs());
    match unit.as_str() {
        "µs" if values().fold(0.0, f64::max) >= 10_000.0 => ("ms".to_owned(), 1e-3),
        _ => (unit, 1.0),
    }
}

fn series(
    results: &Results,
    figure: &Figure,
    drawing: &Drawing,
    lines: &[&DrawnLine],
    factor: f64,
) -> Vec<Series> {
    let is_time = figure.x == Horizontal::Time;
    let bands: Vec<Band<'_>> = lines.iter().filter_map(|line| Band::of(line, lines)).collect();
    let in_band = |line: &DrawnLine| {
        bands.iter().any(|band| std::ptr::eq(band.least, line) || std::ptr::eq(band.most, line))
    };
    lines
        .iter()
        .filter(|line| !in_band(line))
        .map(|line| {
            if let Some(band) = bands.iter().find(|band| std::ptr::eq(band.mean, *line)) {
                let name = name(results, figure, drawing, line);
                let name = name.replacen(", mean", ": mean, and least to greatest", 1);
                let series = Series::new(name, band.points(factor));
                return series.slot(slot(figure, drawing, line)).style(Style::Band);
            }
            let points = line.points.iter().map(|point| {
                let drawn = Point::new(point.x, point.y.value * factor);
                let drawn = match point.quartiles {
                    Some(quartiles) => drawn.quartiles(quartiles.map(|value| value * factor)),
                    None => drawn,
                };
                let drawn = point.heat.map_or(drawn, |heat| drawn.heat(heat));
                let interval = point.y.interval;
                interval.map_or(drawn, |(low, high)| drawn.within(low * factor, high * factor))
            });
            let series = Series::new(name(results, figure, drawing, line), points);
            let series = series.slot(slot(figure, drawing, line));
            let series = series.style(match (&figure.parts, figure.boxes, is_time) {
                (Some(RunParts { heat: Some(_), .. }), ..) => Style::Cells,
                (Some(_), ..) if line.points.len() > MOST_MARKERS => Style::Dots,
                (Some(_), ..) => Style::Points,
                (None, true, _) => Style::Box,
                (None, false, true) => Style::Line,
                (None, false, false) => Style::LinePoints,
            });
            if line.reference.is_some() { series.reference() } else { series }
        })
        .collect()
}

/// A mean over time between the least and the greatest value of each period.
struct Band<'a> {
    mean: &'a DrawnLine,
    least: &'a DrawnLine,
    most: &'a DrawnLine,
}

impl<'a> Band<'a> {
    /// The band around `mean`, if it is a mean whose least and greatest values are there, too.
    fn of(mean: &'a DrawnLine, lines: &[&'a DrawnLine]) -> Option<Self> {
        let start = mean.metric.strip_suffix("Avg")?;
        let beside = |end: &str| {
            let same = |line: &&&DrawnLine| {
                line.metric.strip_prefix(start) == Some(end)
                    && line.group == mean.group
                    && line.backend == mean.backend
            };
            lines.iter().find(same).copied()
        };
        Some(Self { mean, least: beside("Min")?, most: beside("Max")? })
    }

    fn points(&self, factor: f64) -> Vec<Point> {
        let value = |line: &DrawnLine, x: f64| {
            line.points.iter().find(|point| point.x == x).map(|point| point.y.value * factor)
        };
        let points = self.mean.points.iter().map(|point| {
            let drawn = Point::new(point.x, point.y.value * factor);
            match (value(self.least, point.x), value(self.most, point.x)) {
                (Some(least), Some(most)) => drawn.within(least, most),
                _ => drawn,
            }
        });
        points.collect()
    }
}

/// The name of a line within its panel, above which the metric is written.
fn name(results: &Results, figure: &Figure, drawing: &Drawing, line: &DrawnLine) -> String {
    let mut parts: Vec<String> = Vec::new();
    if figure.x == Horizontal::Time && figure.y.len() > 1 {
        let end = |name: &str| name.rsplit_once('.').map(|(end, _)| end.to_owned());
        let one_end = figure.y.iter().all(|name| end(name) == end(&line.metric));
        let column = line.metric.rsplit_once('.').map_or(&*line.metric, |(_, column)| column);
        let name = if one_end { column } else { &line.metric };
        parts.push(words::title(results, name));
    }
    parts.extend(line.group.iter().map(|(name, value)| words::parameter(results, name, value)));
    let ours = || drawing.lines.iter().filter(|line| line.reference.is_none());
    match &line.reference {
        Some(reference) => {
            let known = results.plan.references.iter().find(|known| known.name == *reference);
            parts.push(known.map_or_else(|| reference.clone(), |known| known.title.clone()));
        }
        None if ours().any(|other| other.backend != line.backend) => {
            parts.push(line.backend.clone());
        }
        None if is_heat_map(figure) => parts.push(heat_of(figure)),
        None if parts.is_empty() && drawing.lines.len() > 1 => parts.push("Punctual".to_owned()),
        None => {}
    }
    parts.join(", ")
}

/// The meaning of the colours of a heat map.
fn heat_of(figure: &Figure) -> String {
    let parts = figure.parts.as_ref();
    let (column, hottest) = parts.and_then(|parts| parts.heat.clone()).unwrap_or_default();
    let unit = column.split('_').next().filter(|unit| matches!(*unit, "ms" | "s"));
    format!("0 to {hottest} {} late and more", unit.unwrap_or_default())
}

/// The colour of a line: that of its group, which the first reference shares; other backends and
/// references have their own. In figures of time each column has its own.
fn slot(figure: &Figure, drawing: &Drawing, line: &DrawnLine) -> usize {
    let is_time = figure.x == Horizontal::Time;
    let first = |of: fn(&DrawnLine) -> Option<&str>| drawing.lines.iter().find_map(of);
    let backend = first(|line| line.reference.is_none().then_some(line.backend.as_str()));
    let reference = first(|line| line.reference.as_deref());
    let key = |line: &DrawnLine| {
        let metric = if is_time { line.metric.clone() } else { String::new() };
        let other = match &line.reference {
            Some(name) => Some(name.as_str()).filter(|name| Some(*name) != reference),
            None => Some(line.backend.as_str()).filter(|name| Some(*name) != backend),
        };
        (metric, line.group.clone(), other.unwrap_or_default().to_owned())
    };
    let mut keys = Vec::new();
    for line in &drawing.lines {
        let key = key(line);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.iter().position(|known| *known == key(line)).unwrap_or(0)
}
