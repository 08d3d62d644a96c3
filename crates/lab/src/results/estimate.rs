//! Groups of runs, and the value of a metric for a group.

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

/// A condition, its column, and the values that it wants as they are written in results.
struct Test {
    column: Option<String>,
    wanted: Wanted,
}

enum Wanted {
    OneOf(Vec<String>),
    Within(Bound, Bound),
}

enum Bound {
    Fixed(f64),
    /// From the run's parameters.
    Computed(Expression),
}

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
        let tests: Vec<Test> = filters.iter().map(|filter| self.test(filter)).collect();
        (0..self.sheet.rows().len())
            .filter(|row| self.sheet.text(*row, "status") == Outcome::OK)
            .filter(|row| tests.iter().all(|test| self.fulfils(*row, test)))
            .collect()
    }

    /// A condition whose constant part has been evaluated for all rows.
    fn test(&self, filter: &Filter) -> Test {
        let wanted = match &filter.condition {
            Condition::OneOf(wanted) => {
                let plain = wanted.iter().map(|wanted| self.plain(&filter.name, wanted));
                Wanted::OneOf(plain.collect())
            }
            Condition::Within(from, to) => {
                let bound = |text: &Option<String>, open: f64| match text {
                    None => Bound::Fixed(open),
                    Some(text) => self.bound(&filter.name, text),
                };
                Wanted::Within(bound(from, f64::NEG_INFINITY), bound(to, f64::INFINITY))
            }
        };
        Test { column: self.column_of(&filter.name), wanted }
    }

    /// Whether a run fulfils a condition.
    fn fulfils(&self, row: usize, test: &Test) -> bool {
        let Test { column: Some(column), wanted } = test else { return false };
        let found = self.sheet.text(row, column);
        match wanted {
            Wanted::OneOf(wanted) => wanted.iter().any(|wanted| found == wanted),
            Wanted::Within(from, to) => {
                let Ok(found) = found.parse::<f64>() else { return false };
                let slack = found.abs() * 1e-9;
                found >= self.bound_of(row, from) - slack && found <= self.bound_of(row, to) + slack
            }
        }
    }

    /// A bound of a condition, which may name the run's other parameters.
    fn bound(&self, name: &str, text: &str) -> Bound {
        let measure = self.key_of(name).and_then(keys::measure);
        match literal(text, measure).quantity() {
            Some(quantity) => Bound::Fixed(quantity.plain().to_f64()),
            None => Expression::parse(text).map_or(Bound::Fixed(f64::NAN), Bound::Computed),
        }
    }

    /// A bound for a run. If it cannot be computed, it excludes every run.
    fn bound_of(&self, row: usize, bound: &Bound) -> f64 {
        match bound {
            Bound::Fixed(number) => *number,
            Bound::Computed(expression) => {
                expression.number(&|name| self.number_of(row, name)).unwrap_or(f64::NAN)
            }
        }
    }

    /// The full key of a parameter.
    pub(crate) fn key_of(&self, name: &str) -> Option<&str> {
        let parameter = self.meta.parameters.iter().find(|parameter| parameter.is(name));
        parameter.map(|parameter| parameter.key.as_str())
    }

    /// A written value of a parameter as it is written in results.
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

    /// The value of a metric or a column for a group of runs, as it is shown: a share in percent if
    /// the metric says so. `None` if no run knows it.
    pub(crate) fn estimate(&self, rows: &[usize], name: &str) -> Option<Estimate> {
        let metric = self.metric(name);
        let estimate = match metric.map(|metric| (metric, metric.kind)) {
            Some((metric, kind @ (MetricKind::Share | MetricKind::ExactShare))) => {
                let (mut part, mut whole, mut runs) = (0.0, 0.0, 0);
                let columns: BTreeMap<&str, Option<String>> =
                    metric.names().into_iter().map(|name| (name, self.column_of(name))).collect();
                for row in rows {
                    let number =
                        |name: &str| self.sheet.number(*row, columns.get(name)?.as_deref()?);
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
                let column = self.column_of(name)?;
                let found = rows.iter().filter_map(|row| self.sheet.number(*row, &column));
                let (runs, sum) = found.fold((0, 0.0), |(runs, sum), it| (runs + 1, sum + it));
                match kind {
                    _ if runs == 0 => None,
                    MetricKind::Count => Some(Estimate::count(sum, runs)),
                    _ => Some(Estimate { runs, ..Estimate::single(sum) }),
                }
            }
            _ => self.mean(rows, name),
        };
        estimate.map(|estimate| estimate.times(scale(metric)))
    }

    /// The mean of a column over repeats. Within a repeat, runs with other parameters are averaged
    /// first: their differences are no uncertainty.
    fn mean(&self, rows: &[usize], name: &str) -> Option<Estimate> {
        let column = self.column_of(name)?;
        let mut repeats: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
        let mut runs = 0;
        for row in rows {
            if let Some(value) = self.sheet.number(*row, &column) {
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

/// The factor by which a metric's values are multiplied to be shown.
pub(crate) fn scale(metric: Option<&Metric>) -> f64 {
    if metric.is_some_and(|metric| metric.unit == "%") { 100.0 } else { 1.0 }
}
