//! Figures of a plan as lines of points, ready to be drawn.

use crate::numbers::number_of;
use crate::plan::{Figure, Filter, Horizontal};
use crate::results::Results;
use crate::results::box_plot::BoxPlot;
use crate::results::estimate::scale;
use crate::results::interval::Estimate;
use crate::results::reference::Beside;
use crate::results::sheet::Sheet;

/// A figure as lines of points.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Ours, then the references'.
    pub lines: Vec<Line>,
    /// Events on an axis of time: when, in seconds, and which.
    pub marks: Vec<(f64, String)>,
    /// Lines that could not be drawn, and why.
    pub problems: Vec<String>,
}

/// An axis.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Axis {
    /// Its title.
    pub title: String,
    /// Its unit; empty for none.
    pub unit: String,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Its label among the others: `efficient`, `unrecovered, sim`.
    pub label: String,
    /// The metric or column.
    pub metric: String,
    /// The values of what parts the runs, by the names that the figure gives.
    pub group: Vec<(String, String)>,
    /// The backend; empty for a reference.
    pub backend: String,
    /// The name of the reference that it is; `None` for ours.
    pub reference: Option<String>,
    /// Its points, from left to right.
    pub points: Vec<Point>,
}

/// A point of a line.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Its place; the place among all values if these are no numbers.
    pub x: f64,
    /// The value of `x` as it is written in results.
    pub x_text: String,
    /// How high; of a box plot, the mean and the ends of the whiskers.
    pub y: Estimate,
    /// The quartiles, of a box plot.
    pub quartiles: Option<[f64; 3]>,
    /// How hot it is in a heat map: 0 is green, 1 is white.
    pub heat: Option<f64>,
}

impl Point {
    /// A point of a line, at a value of `x` as it is written in results.
    pub(super) fn at(x: f64, x_text: &str, y: Estimate) -> Self {
        Self { x, x_text: x_text.to_owned(), y, quartiles: None, heat: None }
    }
}

impl Line {
    /// The line as one of expected values: it is drawn as published ones are.
    pub(super) fn expected(self) -> Self {
        Self { reference: Some(EXPECTED.to_owned()), backend: String::new(), ..self }
    }
}

impl Results {
    /// A figure of the plan as lines of points.
    pub fn drawing(&self, figure: &Figure) -> Drawing {
        let mut drawing = Drawing {
            x: self.x_axis(figure),
            y: self.y_axis(figure),
            lines: Vec::new(),
            marks: Vec::new(),
            problems: Vec::new(),
        };
        match &figure.x {
            Horizontal::Column(x) if figure.parts.is_some() => {
                self.draw_parts(figure, x, &mut drawing);
            }
            Horizontal::Column(x) if figure.boxes => self.draw_boxes(figure, x, &mut drawing),
            Horizontal::Column(x) => self.draw_groups(figure, x, &mut drawing),
            Horizontal::Places(places) => self.draw_places(figure, places, &mut drawing),
            Horizontal::Time => self.draw_series(figure, &mut drawing),
        }
        self.label(figure, &mut drawing.lines);
        drawing
    }

    fn x_axis(&self, figure: &Figure) -> Axis {
        match &figure.x {
            Horizontal::Time => Axis { title: "time".to_owned(), unit: "s".to_owned() },
            Horizontal::Places(_) => Axis { title: figure.x_title.clone(), unit: String::new() },
            Horizontal::Column(name) => {
                let parameter = self.meta.parameters.iter().find(|p| p.is(name));
                let unit = parameter.map_or(String::new(), |p| p.unit.clone());
                let title = if figure.x_title.is_empty() { name } else { &figure.x_title };
                Axis { title: title.clone(), unit }
            }
        }
    }

    fn y_axis(&self, figure: &Figure) -> Axis {
        let metrics = figure.y.iter().filter_map(|name| self.metric(name));
        let units: Vec<&str> = metrics.clone().map(|metric| metric.unit.as_str()).collect();
        let one = units.first().filter(|first| units.iter().all(|unit| unit == *first));
        let unit = match (one, units.len() == figure.y.len()) {
            (Some(unit), true) => (*unit).to_owned(),
            _ => String::new(),
        };
        let title = match figure.y.as_slice() {
            _ if !figure.y_title.is_empty() => figure.y_title.clone(),
            [name] => self.title_of(name),
            _ => String::new(),
        };
        Axis { title, unit }
    }

    /// The title of a metric or a column.
    pub fn title_of(&self, name: &str) -> String {
        self.metric(name).map_or_else(|| name.to_owned(), |metric| metric.title.clone())
    }

    fn draw_groups(&self, figure: &Figure, x: &str, drawing: &mut Drawing) {
        let rows = self.selected(&figure.filters);
        let by = with_backend(&figure.by);
        let groups = self.grouped(&rows, &by);
        let places: Vec<String> = self
            .grouped(&rows, &[x.to_owned()])
            .into_iter()
            .map(|(mut key, _)| key.remove(0))
            .collect();
        let points = |rows: &[usize], metric: &str| {
            let groups = self.grouped(rows, &[x.to_owned()]).into_iter();
            let point = |(at, rows): (Vec<String>, Vec<usize>)| {
                let y = self.estimate(&rows, metric)?;
                Some(Point::at(place(&at[0], &places), &at[0], y))
            };
            groups.filter_map(point).collect::<Vec<_>>()
        };
        for (index, metric) in figure.y.iter().enumerate() {
            for (key, rows) in &groups {
                drawing.lines.push(self.line(metric, &by, key, points(rows, metric)));
            }
            if let Some(expected) = figure.expected.get(index) {
                let lines = groups
                    .iter()
                    .map(|(key, rows)| self.line(metric, &by, key, points(rows, expected)));
                drawing.lines.extend(lines.map(Line::expected));
            }
            for name in &figure.references {
                self.draw_reference(figure, metric, x, name, &groups, &places, drawing);
            }
        }
        drawing.lines.retain(|line| !line.points.is_empty());
        if drawing.lines.is_empty() {
            drawing.problems.push("no run gives a point".to_owned());
        }
    }

    /// A line for each group of runs, with a point of each metric at its place.
    fn draw_places(&self, figure: &Figure, places: &[String], drawing: &mut Drawing) {
        let rows = self.selected(&figure.filters);
        let by = with_backend(&figure.by);
        // All metrics are of one panel.
        let panel = figure.y.first().map_or("", String::as_str);
        for (key, rows) in &self.grouped(&rows, &by) {
            let line = |metrics: &[String]| {
                let points = places.iter().zip(metrics).filter_map(|(at, metric)| {
                    let y = self.estimate(rows, metric)?;
                    Some(Point::at(place(at, places), at, y))
                });
                self.line(panel, &by, key, points.collect())
            };
            drawing.lines.push(line(&figure.y));
            drawing.lines.push(line(&figure.expected).expected());
        }
        drawing.lines.retain(|line| !line.points.is_empty());
        if drawing.lines.is_empty() {
            drawing.problems.push("no run gives a point".to_owned());
        }
    }

    /// A box for each group and each value of `x`: the values over time of the group's first run.
    fn draw_boxes(&self, figure: &Figure, x: &str, drawing: &mut Drawing) {
        let rows = self.selected(&figure.filters);
        let by = with_backend(&figure.by);
        let places = self.grouped(&rows, &[x.to_owned()]);
        let places: Vec<String> = places.into_iter().map(|(mut key, _)| key.remove(0)).collect();
        for metric in &figure.y {
            for (key, rows) in &self.grouped(&rows, &by) {
                let mut points = Vec::new();
                for (at, rows) in self.grouped(rows, &[x.to_owned()]) {
                    let series = match self.series_of(rows[0]) {
                        Ok(series) => series,
                        Err(problem) => {
                            drawing.problems.push(problem);
                            continue;
                        }
                    };
                    let values = self.series_points(&series, metric).unwrap_or_default();
                    // The stream's tail, in which the last messages arrive, is no full period.
                    let duration = self.number_of(rows[0], "duration").map(|ms| ms / 1e3);
                    let end = duration.unwrap_or(f64::INFINITY);
                    let settled = values.iter().filter(|it| it.x > SETTLING && it.x <= end);
                    let values = settled.map(|point| point.y.value).collect();
                    let Some(it) = BoxPlot::of(values) else { continue };
                    let x = places.iter().position(|place| *place == at[0]).unwrap_or(0);
                    points.extend(it.points(number_of(x), &at[0]));
                }
                drawing.lines.push(self.line(metric, &by, key, points));
            }
        }
        drawing.lines.retain(|line| !line.points.is_empty());
        if drawing.lines.is_empty() {
            drawing.problems.push("no run has a series".to_owned());
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one loop over lines")]
    fn draw_reference(
        &self,
        figure: &Figure,
        metric: &str,
        x: &str,
        name: &str,
        groups: &[(Vec<String>, Vec<usize>)],
        places: &[String],
        drawing: &mut Drawing,
    ) {
        let beside = match self.beside(name) {
            Ok(beside) => beside,
            Err(problem) => return drawing.problems.push(problem),
        };
        let mut keys: Vec<Vec<String>> =
            groups.iter().map(|(key, _)| key[..figure.by.len()].to_vec()).collect();
        keys.dedup();
        let mut seen: Vec<Vec<String>> = Vec::new();
        for key in keys {
            if seen.contains(&key) {
                continue;
            }
            let names = [figure.by.clone(), vec![x.to_owned()]].concat();
            let points = (places.iter())
                .filter_map(|at| {
                    let at_key = [key.clone(), vec![at.clone()]].concat();
                    let rows = beside.rows(self, &names, &at_key, &figure.filters);
                    let y = beside.estimate(self, &rows, metric)?;
                    Some(Point::at(place(at, places), at, y))
                })
                .collect();
            let mut line = self.line(metric, &figure.by, &key, points);
            line.reference = Some(name.to_owned());
            line.backend = String::new();
            drawing.lines.push(line);
            seen.push(key);
        }
    }

    pub(crate) fn beside(&self, name: &str) -> Result<Beside<'_>, String> {
        let reference = self.plan.references.iter().find(|reference| reference.name == name);
        let reference = reference.ok_or_else(|| format!("no reference `{name}`"))?;
        Beside::read(self, reference)
    }

    pub(super) fn line(
        &self,
        metric: &str,
        by: &[String],
        key: &[String],
        points: Vec<Point>,
    ) -> Line {
        let mut points = points;
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        let group: Vec<(String, String)> = by.iter().cloned().zip(key.iter().cloned()).collect();
        let backend = group.iter().find(|(name, _)| name == "backend").map(|(_, v)| v.clone());
        let group = group.into_iter().filter(|(name, _)| name != "backend").collect();
        Line {
            label: String::new(),
            metric: metric.to_owned(),
            group,
            backend: backend.unwrap_or_default(),
            reference: None,
            points,
        }
    }

    /// Lines of time: the series of the first run of each group.
    fn draw_series(&self, figure: &Figure, drawing: &mut Drawing) {
        let rows = self.selected(&figure.filters);
        let by = with_backend(&figure.by);
        for (key, rows) in self.grouped(&rows, &by) {
            let series = match self.series_of(rows[0]) {
                Ok(series) => series,
                Err(problem) => {
                    drawing.problems.push(problem);
                    continue;
                }
            };
            for metric in &figure.y {
                match self.series_points(&series, metric) {
                    Some(points) => drawing.lines.push(self.line(metric, &by, &key, points)),
                    None => drawing.problems.push(format!("no column `{metric}` in the series")),
                }
            }
        }
        match rows.first() {
            None => drawing.problems.push("no run is to be seen".to_owned()),
            Some(first) => drawing.marks = self.marks(figure, *first),
        }
    }

    /// The events of a run that a figure marks.
    pub(super) fn marks(&self, figure: &Figure, row: usize) -> Vec<(f64, String)> {
        let mark = |name: &String| {
            let estimate = self.estimate(&[row], name)?;
            Some((estimate.value, self.title_of(name)))
        };
        figure.marks.iter().filter_map(mark).collect()
    }

    fn series_points(&self, series: &Sheet, name: &str) -> Option<Vec<Point>> {
        let metric = self.metric(name);
        let named = |name: &str| {
            let full = crate::results::full_name(name);
            series.column(name).or_else(|| series.column(&full?))
        };
        if metric.is_none() {
            named(name)?;
        }
        let scale = scale(metric);
        let number = |row: &Vec<String>, name: &str| row[named(name)?].parse::<f64>().ok();
        let value = |row: &Vec<String>| match metric {
            Some(metric) => metric.value(&|name| number(row, name)),
            None => number(row, name),
        };
        let point = |row: &Vec<String>| {
            let y = Estimate::single(value(row)? * scale);
            Some(Point::at(row[0].parse().ok()?, &row[0], y))
        };
        Some(series.rows().iter().filter_map(point).collect())
    }

    /// Gives each line a name that tells it from the others.
    fn label(&self, figure: &Figure, lines: &mut [Line]) {
        let several = |of: &dyn Fn(&Line) -> String| {
            let mut all: Vec<String> = lines.iter().map(of).collect();
            all.sort();
            all.dedup();
            all.len() > 1
        };
        let metrics = several(&|line| line.metric.clone());
        let backends = several(&|line| line.backend.clone())
            && lines.iter().any(|line| {
                line.reference.is_none()
                    && lines
                        .iter()
                        .any(|other| other.reference.is_none() && other.backend != line.backend)
            });
        for line in lines {
            let mut parts: Vec<String> = Vec::new();
            if metrics || figure.by.is_empty() {
                parts.push(self.title_of(&line.metric));
            }
            parts.extend(line.group.iter().map(|(name, value)| match value.parse::<f64>() {
                Ok(_) => format!("{name} {}", self.shown(name, value)),
                Err(_) => value.clone(),
            }));
            match &line.reference {
                Some(name) => {
                    let title = self.plan.references.iter().find(|r| r.name == *name);
                    parts.push(title.map_or_else(|| name.clone(), |r| r.title.clone()));
                }
                None if backends => parts.push(line.backend.clone()),
                None => {}
            }
            line.label = parts.join(", ");
        }
    }

    /// A value of a parameter with its unit, for people.
    pub fn shown(&self, name: &str, value: &str) -> String {
        let parameter = self.meta.parameters.iter().find(|parameter| parameter.is(name));
        let unit = parameter.map_or("", |parameter| parameter.unit.as_str());
        if value.is_empty() || unit.is_empty() {
            value.to_owned()
        } else {
            format!("{value} {unit}")
        }
    }

    /// Whether any run fulfils these conditions.
    pub fn has(&self, filters: &[Filter]) -> bool {
        !self.selected(filters).is_empty()
    }
}

/// The names that part the runs of a figure into lines: its parameters, and the backend.
pub(super) fn with_backend(by: &[String]) -> Vec<String> {
    let backend = "backend".to_owned();
    let is_there = by.contains(&backend);
    by.iter().cloned().chain((!is_there).then_some(backend)).collect()
}

/// The name of lines of expected values.
const EXPECTED: &str = "expected";

/// The start of a series, in which everything starts, s.
const SETTLING: f64 = 1.0;

/// The place of a value on an axis.
fn place(text: &str, all: &[String]) -> f64 {
    match text.parse() {
        Ok(number) => number,
        Err(_) => number_of(all.iter().position(|other| other == text).unwrap_or(0)),
    }
}
