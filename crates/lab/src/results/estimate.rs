//! Groups of runs, and what a metric is for a group.

use std::collections::BTreeMap;

use crate::backend::Outcome;
use crate::plan::expression::Expression;
use crate::plan::value::literal;
use crate::plan::{Condition, Filter, LABELS, Metric, MetricKind, keys};
use crate::results::Results;
use crate::results::columns::full_name;
use crate::results::interval::Estimate;

/// The values that runs of a group have in common, in the order of what groups them.
pub(crate) type GroupKey = Vec<String>;

impl Results {
    /// The name of the column that a figure or formula means by `name`.
    pub(crate) fn column_of(&self, name: &str) -> Option<String> {
        if self.sheet.column(name).is_some() {
            return Some(name.to_owned());
        }
        let parameter = self.meta.parameters.iter().find(|parameter| parameter.is(name));
        parameter
            .map(|parameter| parameter.column.clone())
            .or_else(|| full_name(name).filter(|name| self.sheet.column(name).is_some()))
    }

    /// The number of a run that a figure or formula means by `name`.
    pub(crate) fn number_of(&self, row: usize, name: &str) -> Option<f64> {
        self.sheet.number(row, &self.column_of(name)?)
    }

    /// The rows that fulfil all conditions and ended well.
    pub(crate) fn selected(&self, filters: &[Filter]) -> Vec<usize> {
        (0..self.sheet.rows().len())
            .filter(|row| self.sheet.text(*row, "status") == Outcome::OK)
            .filter(|row| filters.iter().all(|filter| self.fulfils(*row, filter)))
            .collect()
    }

    /// Whether a run fulfils a condition.
    fn fulfils(&self, row: usize, filter: &Filter) -> bool {
        let Some(column) = self.column_of(&filter.name) else { return false };
        let found = self.sheet.text(row, &column);
        match &filter.condition {
            Condition::OneOf(wanted) => {
                wanted.iter().any(|wanted| found == self.plain(&filter.name, wanted))
            }
            Condition::Within(from, to) => {
                let Ok(found) = found.parse::<f64>() else { return false };
                let bound = |text: &Option<String>, open: f64| match text {
                    None => open,
                    Some(text) => self.bound(row, &filter.name, text).unwrap_or(f64::NAN),
                };
                let slack = found.abs() * 1e-9;
                found >= bound(from, f64::NEG_INFINITY) - slack
                    && found <= bound(to, f64::INFINITY) + slack
            }
        }
    }

    /// A bound of a condition, which may name the run's other parameters.
    fn bound(&self, row: usize, name: &str, text: &str) -> Option<f64> {
        let measure = self.key_of(name).and_then(keys::measure);
        if let Some(quantity) = literal(text, measure).quantity() {
            return Some(quantity.plain().to_f64());
        }
        let expression = Expression::parse(text).ok()?;
        expression.number(&|name| self.number_of(row, name))
    }

    /// The full key of a parameter.
    pub(crate) fn key_of(&self, name: &str) -> Option<&str> {
        let parameter = self.meta.parameters.iter().find(|parameter| parameter.is(name));
        parameter.map(|parameter| parameter.key.as_str())
    }

    /// A written value of a parameter as it stands in results.
    pub(crate) fn plain(&self, name: &str, written: &str) -> String {
        if LABELS.contains(&name) {
            return written.to_owned();
        }
        literal(written, self.key_of(name).and_then(keys::measure)).plain()
    }

    /// Rows by the values that they have in these columns, in the order of the results.
    pub(crate) fn grouped(&self, rows: &[usize], by: &[String]) -> Vec<(GroupKey, Vec<usize>)> {
        let columns: Vec<String> =
            by.iter().map(|name| self.column_of(name).unwrap_or_else(|| name.clone())).collect();
        let mut places: BTreeMap<GroupKey, usize> = BTreeMap::new();
        let mut groups: Vec<(GroupKey, Vec<usize>)> = Vec::new();
        for row in rows {
            let key: GroupKey =
                columns.iter().map(|column| self.sheet.text(*row, column).to_owned()).collect();
            let place = *places.entry(key.clone()).or_insert_with(|| {
                groups.push((key, Vec::new()));
                groups.len() - 1
            });
            groups[place].1.push(*row);
        }
        groups
    }

    /// The metric of this name.
    pub fn metric(&self, name: &str) -> Option<&Metric> {
        self.plan.metrics.iter().find(|metric| metric.name == name)
    }

    /// What a metric or a column is for a group of runs, as it is shown: shares in percent where
    /// the metric says so. `None` if no run knows it.
    pub(crate) fn estimate(&self, rows: &[usize], name: &str) -> Option<Estimate> {
        let metric = self.metric(name);
        let estimate = match metric.map(|metric| (metric, metric.kind)) {
            Some((metric, kind @ (MetricKind::Share | MetricKind::ExactShare))) => {
                let (mut part, mut whole, mut runs) = (0.0, 0.0, 0);
                for row in rows {
                    if let Some(counts) = metric.counts(&|name| self.number_of(*row, name)) {
                        (part, whole, runs) = (part + counts.0, whole + counts.1, runs + 1);
                    }
                }
                match kind {
                    MetricKind::ExactShare => Estimate::exact_share(part, whole, runs),
                    _ => Estimate::share(part, whole, runs),
                }
            }
            _ => self.mean(rows, name),
        };
        estimate.map(|estimate| estimate.times(scale(metric)))
    }

    /// The mean of a column over repeats. Within a repeat, runs with other parameters are averaged
    /// first: their differences are no uncertainty.
    fn mean(&self, rows: &[usize], name: &str) -> Option<Estimate> {
        let mut repeats: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        let mut runs = 0;
        for row in rows {
            if let Some(value) = self.number_of(*row, name) {
                let (sum, count) =
                    repeats.entry(self.sheet.text(*row, "repeat")).or_insert((0.0, 0.0));
                *sum += value;
                *count += 1.0;
                runs += 1;
            }
        }
        let means: Vec<f64> = repeats.values().map(|(sum, count)| sum / count).collect();
        Estimate::mean(&means).map(|estimate| Estimate { runs, ..estimate })
    }
}

/// What a metric's values are multiplied with to be shown.
pub(crate) fn scale(metric: Option<&Metric>) -> f64 {
    if metric.is_some_and(|metric| metric.unit == "%") { 100.0 } else { 1.0 }
}
