//! Groups of runs, and the value of a metric for a group.

use std::collections::BTreeMap;

use crate::outcome::Outcome;
use crate::plan::{Filter, Metric, MetricKind};
use crate::results::Results;
use crate::results::condition::Test;
use crate::results::interval::Estimate;

/// The values that runs of a group have in common, in the order of what groups them.
pub(crate) type GroupKey = Vec<String>;

/// Some of the runs of [`Results`], in their order.
#[derive(Clone, Debug)]
pub(crate) struct Runs<'a> {
    results: &'a Results,
    rows: Vec<usize>,
}

impl<'a> Runs<'a> {
    /// The runs in these rows.
    pub(crate) fn of(results: &'a Results, rows: Vec<usize>) -> Self {
        Self { results, rows }
    }

    /// The runs that fulfil all conditions and ended well.
    pub(crate) fn selected(results: &'a Results, filters: &[Filter]) -> Self {
        let tests: Vec<Test> = filters.iter().map(|filter| Test::new(results, filter)).collect();
        let rows = (0..results.sheet.rows().len())
            .filter(|row| results.sheet.text(*row, "status") == Outcome::OK)
            .filter(|row| tests.iter().all(|test| test.accepts(results, *row)))
            .collect();
        Self { results, rows }
    }

    /// Their rows.
    pub(crate) fn rows(&self) -> &[usize] {
        &self.rows
    }

    /// The row of the first.
    pub(crate) fn first(&self) -> Option<usize> {
        self.rows.first().copied()
    }

    /// The runs for which `keep` is true of their row.
    pub(crate) fn filtered(&self, keep: impl Fn(usize) -> bool) -> Self {
        let rows = self.rows.iter().copied().filter(|row| keep(*row)).collect();
        Self { results: self.results, rows }
    }

    /// Runs by the values that they have in these columns, in the order of the results.
    pub(crate) fn grouped(&self, by: &[String]) -> Vec<(GroupKey, Self)> {
        let results = self.results;
        let columns: Vec<String> =
            by.iter().map(|name| results.column_of(name).unwrap_or_else(|| name.clone())).collect();
        let mut places: BTreeMap<GroupKey, usize> = BTreeMap::new();
        let mut groups: Vec<(GroupKey, Self)> = Vec::new();
        for row in &self.rows {
            let key: GroupKey =
                columns.iter().map(|column| results.sheet.text(*row, column).to_owned()).collect();
            let place = *places.entry(key.clone()).or_insert_with(|| {
                groups.push((key, Self { results, rows: Vec::new() }));
                groups.len() - 1
            });
            groups[place].1.rows.push(*row);
        }
        groups
    }

    /// The runs in which each of these parameters or columns has its value, as it is written in
    /// results.
    pub(crate) fn having(&self, names: &[String], values: &[String]) -> Self {
        let results = self.results;
        let column = |name: &String| results.column_of(name).unwrap_or_else(|| name.clone());
        let columns: Vec<String> = names.iter().map(column).collect();
        let text = |row: usize, column: &String| results.sheet.text(row, column);
        self.filtered(|row| {
            columns.iter().zip(values).all(|(column, value)| text(row, column) == value)
        })
    }

    /// Those of the backend that comes first.
    pub(crate) fn of_first_backend(&self) -> Self {
        let groups = self.grouped(&["backend".to_owned()]).into_iter();
        let first = groups.map(|(_, runs)| runs).next();
        first.unwrap_or_else(|| Self::of(self.results, Vec::new()))
    }

    /// The sum of a column; `None` if no run has a number there.
    pub(crate) fn sum(&self, name: &str) -> Option<f64> {
        let numbers = self.rows.iter().filter_map(|row| self.results.number_of(*row, name));
        numbers.reduce(|sum, number| sum + number)
    }

    /// The different values that they have in a column, in the order of the results.
    pub(crate) fn values_of(&self, name: &str) -> Vec<String> {
        let groups = self.grouped(&[name.to_owned()]).into_iter();
        groups.map(|(mut key, _)| key.remove(0)).collect()
    }

    /// The value of a metric or a column for all of them, as it is shown: a share in percent if
    /// the metric says so. `None` if no run knows it.
    pub(crate) fn estimate(&self, name: &str) -> Option<Estimate> {
        let results = self.results;
        let metric = results.metric(name);
        let estimate = match metric.map(|metric| (metric, metric.kind)) {
            Some((metric, kind @ (MetricKind::Share | MetricKind::ExactShare))) => {
                let (mut part, mut whole, mut runs) = (0.0, 0.0, 0);
                let columns: BTreeMap<&str, Option<String>> = metric
                    .names()
                    .into_iter()
                    .map(|name| (name, results.column_of(name)))
                    .collect();
                for row in &self.rows {
                    let number =
                        |name: &str| results.sheet.number(*row, columns.get(name)?.as_deref()?);
                    if let Some(counts) = metric.counts(&number) {
                        (part, whole, runs) = (part + counts.0, whole + counts.1, runs + 1);
                    }
                }
                match kind {
                    MetricKind::ExactShare => Estimate::exact_share(part, whole, runs),
                    _ => Estimate::share(part, whole, runs),
                }
            }
            Some((_, kind @ (MetricKind::Count | MetricKind::Sum))) => {
                let column = results.column_of(name)?;
                let found = self.filtered(|row| results.sheet.number(row, &column).is_some());
                let (runs, sum) = (found.rows.len(), found.sum(&column)?);
                match kind {
                    MetricKind::Count => Some(Estimate::count(sum, runs)),
                    _ => Some(Estimate { runs, ..Estimate::single(sum) }),
                }
            }
            _ => self.mean(name),
        };
        estimate.map(|estimate| estimate.times(scale(metric)))
    }

    /// The mean of a column over repeats. Within a repeat, runs with other parameters are averaged
    /// first: their differences are no uncertainty.
    fn mean(&self, name: &str) -> Option<Estimate> {
        let results = self.results;
        let column = results.column_of(name)?;
        let mut repeats: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        let mut runs = 0;
        for row in &self.rows {
            if let Some(value) = results.sheet.number(*row, &column) {
                let (sum, count) =
                    repeats.entry(results.sheet.text(*row, "repeat")).or_insert((0.0, 0.0));
                *sum += value;
                *count += 1.0;
                runs += 1;
            }
        }
        let means: Vec<f64> = repeats.values().map(|(sum, count)| sum / count).collect();
        Estimate::mean(&means).map(|estimate| Estimate { runs, ..estimate })
    }
}

/// The factor by which a metric's values are multiplied to be shown.
pub(crate) fn scale(metric: Option<&Metric>) -> f64 {
    if metric.is_some_and(|metric| metric.unit == "%") { 100.0 } else { 1.0 }
}
