//! A figure on its way from runs to lines of points.

use crate::numbers::number_of;
use crate::plan::{Figure, Horizontal, RunParts};
use crate::results::Results;
use crate::results::box_plot::BoxPlot;
use crate::results::course::RecordedCourse;
use crate::results::drawing::{Drawing, DrawnAxis, DrawnLine, DrawnPoint};
use crate::results::parts::PartPoints;
use crate::results::reference::Beside;
use crate::results::runs::{GroupKey, Runs};

/// A figure that is being drawn.
pub(super) struct Plot<'a> {
    results: &'a Results,
    figure: &'a Figure,
    /// The runs that the figure shows.
    runs: Runs<'a>,
    /// The names that part these runs into lines: the figure's, and the backend.
    by: Vec<String>,
    lines: Vec<DrawnLine>,
    marks: Vec<(f64, String)>,
    problems: Vec<String>,
}

impl<'a> Plot<'a> {
    /// A figure without lines.
    pub(super) fn new(results: &'a Results, figure: &'a Figure) -> Self {
        let runs = Runs::selected(results, &figure.filters);
        let backend = "backend".to_owned();
        let is_there = figure.by.contains(&backend);
        let by = figure.by.iter().cloned().chain((!is_there).then_some(backend)).collect();
        let (lines, marks, problems) = (Vec::new(), Vec::new(), Vec::new());
        Self { results, figure, runs, by, lines, marks, problems }
    }

    /// Draws all lines.
    pub(super) fn draw(mut self) -> Drawing {
        let figure = self.figure;
        match (&figure.x, &figure.parts) {
            (Horizontal::Column(x), Some(parts)) => self.draw_parts(x, parts),
            (Horizontal::Column(x), None) if figure.boxes => self.draw_boxes(x),
            (Horizontal::Column(x), None) => self.draw_groups(x),
            (Horizontal::Places(places), _) => self.draw_places(places),
            (Horizontal::Time, _) => self.draw_courses(),
        }
        self.label();
        Drawing {
            x: self.x_axis(),
            y: self.y_axis(),
            lines: self.lines,
            marks: self.marks,
            problems: self.problems,
        }
    }

    fn x_axis(&self) -> DrawnAxis {
        match &self.figure.x {
            Horizontal::Time => DrawnAxis { title: "time".to_owned(), unit: "s".to_owned() },
            Horizontal::Places(_) => {
                DrawnAxis { title: self.figure.x_title.clone(), unit: String::new() }
            }
            Horizontal::Column(name) => {
                let unit = self.results.parameter(name).map_or(String::new(), |p| p.unit.clone());
                let title = &self.figure.x_title;
                let title = if title.is_empty() { name } else { title };
                DrawnAxis { title: title.clone(), unit }
            }
        }
    }

    fn y_axis(&self) -> DrawnAxis {
        let figure = self.figure;
        let metrics = figure.y.iter().filter_map(|name| self.results.metric(name));
        let units: Vec<&str> = metrics.clone().map(|metric| metric.unit.as_str()).collect();
        let one = units.first().filter(|first| units.iter().all(|unit| unit == *first));
        let unit = match (one, units.len() == figure.y.len()) {
            (Some(unit), true) => (*unit).to_owned(),
            _ => String::new(),
        };
        let title = match figure.y.as_slice() {
            _ if !figure.y_title.is_empty() => figure.y_title.clone(),
            [name] => self.results.title_of(name),
            _ => String::new(),
        };
        DrawnAxis { title, unit }
    }

    /// A line for each group of runs, with a point for each value of `x`.
    fn draw_groups(&mut self, x: &str) {
        let figure = self.figure;
        let groups = self.runs.grouped(&self.by);
        let places = self.runs.values_of(x);
        let points = |runs: &Runs<'_>, metric: &str| {
            let point = |(at, runs): (GroupKey, Runs<'_>)| {
                Some(DrawnPoint::at(place(&at[0], &places), &at[0], runs.estimate(metric)?))
            };
            runs.grouped(&[x.to_owned()]).into_iter().filter_map(point).collect::<Vec<_>>()
        };
        for (index, metric) in figure.y.iter().enumerate() {
            let lines =
                groups.iter().map(|(key, runs)| self.line(metric, key, points(runs, metric)));
            let mut lines: Vec<DrawnLine> = lines.collect();
            if let Some(expected) = figure.expected.get(index) {
                let line = |(key, runs): &(GroupKey, Runs<'_>)| {
                    self.line(metric, key, points(runs, expected)).expected()
                };
                lines.extend(groups.iter().map(line));
            }
            self.lines.extend(lines);
            for name in &figure.references {
                match self.results.beside(name) {
                    Ok(beside) => {
                        let lines = self.published(&beside, metric, x, &groups, &places);
                        self.lines.extend(lines);
                    }
                    Err(problem) => self.problems.push(problem),
                }
            }
        }
        self.keep_lines_with_points("no run gives a point");
    }

    /// The lines of a reference beside ours: one for each group of runs, whatever their backends.
    fn published(
        &self,
        beside: &Beside<'_>,
        metric: &str,
        x: &str,
        groups: &[(GroupKey, Runs<'_>)],
        places: &[String],
    ) -> Vec<DrawnLine> {
        let by = &self.figure.by;
        let mut keys: Vec<&[String]> = Vec::new();
        for (key, _) in groups {
            let key = &key[..by.len()];
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let names = [&by[..], &[x.to_owned()]].concat();
        let line = |key: &[String]| {
            let point = |at: &String| {
                let values = [key, std::slice::from_ref(at)].concat();
                let rows = beside.rows(self.results, &names, &values, &self.figure.filters);
                let runs = self.runs.having(&names, &values);
                let y = beside.estimate(self.results, &rows, metric, &runs)?;
                Some(DrawnPoint::at(place(at, places), at, y))
            };
            let points = places.iter().filter_map(point).collect();
            DrawnLine::new(metric, by, key, points).published(&beside.reference.name)
        };
        keys.into_iter().map(line).collect()
    }

    /// A line for each group of runs, with a point of each metric at its place.
    fn draw_places(&mut self, places: &[String]) {
        // All metrics are of one panel.
        let panel = self.figure.y.first().map_or("", String::as_str);
        for (key, runs) in &self.runs.grouped(&self.by) {
            let line = |metrics: &[String]| {
                let points = places.iter().zip(metrics).filter_map(|(at, metric)| {
                    Some(DrawnPoint::at(place(at, places), at, runs.estimate(metric)?))
                });
                self.line(panel, key, points.collect())
            };
            let lines = [line(&self.figure.y), line(&self.figure.expected).expected()];
            self.lines.extend(lines);
        }
        self.keep_lines_with_points("no run gives a point");
    }

    /// A box for each group and each value of `x`: the values over time of the group's first run.
    fn draw_boxes(&mut self, x: &str) {
        let places = self.runs.values_of(x);
        for metric in &self.figure.y {
            for (key, runs) in &self.runs.grouped(&self.by) {
                let mut points = Vec::new();
                for (at, runs) in runs.grouped(&[x.to_owned()]) {
                    let Some(course) = self.course(&runs) else { continue };
                    let Some(it) = BoxPlot::of(course.settled(metric)) else { continue };
                    let x = places.iter().position(|place| *place == at[0]).unwrap_or(0);
                    points.extend(it.points(number_of(x), &at[0]));
                }
                self.lines.push(self.line(metric, key, points));
            }
        }
        self.keep_lines_with_points("no run has a series");
    }

    /// Lines of time: the course of the first run of each group.
    fn draw_courses(&mut self) {
        for (key, runs) in self.runs.grouped(&self.by) {
            let Some(course) = self.course(&runs) else { continue };
            for metric in &self.figure.y {
                match course.points(metric) {
                    Some(points) => self.lines.push(self.line(metric, &key, points)),
                    None => self.problems.push(format!("no column `{metric}` in the series")),
                }
            }
        }
        match self.runs.first() {
            None => self.problems.push("no run is to be seen".to_owned()),
            Some(first) => self.mark(first),
        }
    }

    /// A point for each part of each run.
    fn draw_parts(&mut self, x: &str, parts: &RunParts) {
        let Some(y) = self.figure.y.first() else { return };
        let mut found = PartPoints::new(self.results, parts, [x, y], &self.by);
        for row in self.runs.rows() {
            self.problems.extend(found.add_run(*row).err());
        }
        for (key, points) in found.groups() {
            self.lines.push(self.line(y, &key, points));
        }
        match self.runs.first() {
            Some(first) if !self.lines.is_empty() => self.mark(first),
            _ => self.problems.push("no run has a point".to_owned()),
        }
    }

    /// The course of the first of these runs. If it is missing, the figure tells why.
    fn course(&mut self, runs: &Runs<'_>) -> Option<RecordedCourse<'a>> {
        let course = RecordedCourse::of(self.results, runs.first()?);
        course.map_err(|problem| self.problems.push(problem)).ok()
    }

    /// Marks the events of a run that the figure names.
    fn mark(&mut self, row: usize) {
        let run = Runs::of(self.results, vec![row]);
        let mark = |name: &String| Some((run.estimate(name)?.value, self.results.title_of(name)));
        self.marks = self.figure.marks.iter().filter_map(mark).collect();
    }

    /// Our line for a group of runs.
    fn line(&self, metric: &str, key: &[String], points: Vec<DrawnPoint>) -> DrawnLine {
        DrawnLine::new(metric, &self.by, key, points)
    }

    /// Leaves out lines without points; without any line left, `problem` is the figure's.
    fn keep_lines_with_points(&mut self, problem: &str) {
        self.lines.retain(|line| !line.points.is_empty());
        if self.lines.is_empty() {
            self.problems.push(problem.to_owned());
        }
    }

    /// Gives each line a name that tells it from the others.
    fn label(&mut self) {
        let (figure, results) = (self.figure, self.results);
        let metrics = self.lines.iter().any(|line| line.metric != self.lines[0].metric);
        let mut ours = self.lines.iter().filter(|line| line.reference.is_none());
        let first = ours.next().map(|line| &line.backend);
        let backends = ours.any(|line| Some(&line.backend) != first);
        for line in &mut self.lines {
            let mut parts: Vec<String> = Vec::new();
            if metrics || figure.by.is_empty() {
                parts.push(results.title_of(&line.metric));
            }
            parts.extend(line.group.iter().map(|(name, value)| match value.parse::<f64>() {
                Ok(_) => format!("{name} {}", results.shown(name, value)),
                Err(_) => value.clone(),
            }));
            match &line.reference {
                Some(name) => {
                    let title = results.plan.references.iter().find(|r| r.name == *name);
                    parts.push(title.map_or_else(|| name.clone(), |r| r.title.clone()));
                }
                None if backends => parts.push(line.backend.clone()),
                None => {}
            }
            line.label = parts.join(", ");
        }
    }
}

/// The place of a value on an axis.
fn place(text: &str, all: &[String]) -> f64 {
    match text.parse() {
        Ok(number) => number,
        Err(_) => number_of(all.iter().position(|other| other == text).unwrap_or(0)),
    }
}
