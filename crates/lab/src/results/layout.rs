//! Which columns the results of a plan have.

use serde::{Deserialize, Serialize};

use crate::outcome::Outcome;
use crate::plan::{Dimension, Metric, Plan, keys};
use crate::results::columns::{full_name, result_columns};
use crate::results::sheet::cell;
use crate::run::RunSpec;

/// The columns of a plan's results.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    pub(crate) parameters: Vec<ParameterColumn>,
    pub(crate) metrics: Vec<Metric>,
}

/// A parameter and its column.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ParameterColumn {
    /// The full key: `options.latency`.
    pub key: String,
    /// The column: `latency_ms`.
    pub column: String,
    /// The unit of the column, for people; empty for none.
    pub unit: String,
}

/// The first columns of each row.
pub(crate) const LABELS: [&str; 6] = ["run", "experiment", "backend", "repeat", "seed", "status"];

impl Layout {
    /// The columns for all runs of a plan, whichever part of them is run.
    pub(crate) fn new(plan: &Plan, specs: &[RunSpec]) -> Self {
        let mut keys: Vec<&str> = Vec::new();
        for (key, _) in specs.iter().flat_map(|spec| &spec.values) {
            // A sweep has many runs and few parameters.
            if !keys.contains(&key.as_str()) {
                keys.push(key);
            }
        }
        let parameters = keys.iter().map(|key| ParameterColumn::new(key, &keys, specs)).collect();
        Self { parameters, metrics: plan.metrics.clone() }
    }

    pub(crate) fn columns(&self) -> Vec<String> {
        let labels = LABELS.iter().map(|label| (*label).to_owned());
        let parameters = self.parameters.iter().map(|parameter| parameter.column.clone());
        let metrics = self.metrics.iter().map(|metric| metric.name.clone());
        labels.chain(parameters).chain(result_columns()).chain(metrics).collect()
    }

    /// The row of a run.
    pub(crate) fn row(&self, spec: &RunSpec, outcome: &Outcome) -> Vec<String> {
        let mut row = vec![
            spec.id.clone(),
            spec.experiment.clone(),
            spec.backend.clone(),
            spec.repeat.to_string(),
            spec.seed.to_string(),
            outcome.status.clone(),
        ];
        for parameter in &self.parameters {
            let value = spec.values.iter().find(|(key, _)| *key == parameter.key);
            row.push(value.map_or(String::new(), |(_, value)| value.plain()));
        }
        let number = |name: &str| outcome.numbers.get(name).copied();
        for column in result_columns() {
            row.push(number(&column).map_or(String::new(), cell));
        }
        let lookup = |name: &str| {
            let parameter = || {
                let column = self.parameters.iter().find(|parameter| parameter.is(name))?;
                let value = spec.values.iter().find(|(key, _)| *key == column.key)?;
                Some(value.1.quantity()?.plain().to_f64())
            };
            let found = number(name).or_else(|| number(&full_name(name)?)).or_else(parameter);
            found.filter(|number| number.is_finite())
        };
        for metric in &self.metrics {
            row.push(metric.value(&lookup).map_or(String::new(), cell));
        }
        row
    }
}

impl ParameterColumn {
    fn new(key: &str, all: &[&str], specs: &[RunSpec]) -> Self {
        let short = keys::name(key);
        let is_only = all.iter().filter(|other| keys::name(other) == short).count() == 1;
        let name = if is_only { short } else { key };
        let dimension = dimension(key, specs);
        let suffix = dimension.map_or("", Dimension::suffix);
        let unit = dimension.map_or("", Dimension::unit).to_owned();
        Self { key: key.to_owned(), column: format!("{name}{suffix}"), unit }
    }

    /// Whether a name means this parameter: its key, the end of it, or its column.
    pub(crate) fn is(&self, name: &str) -> bool {
        let same = |known: &str| known.eq_ignore_ascii_case(name);
        let start = self.key.len().checked_sub(name.len());
        // The end of a key begins behind a dot. All keys are ASCII.
        let ends = start.is_some_and(|start| {
            start > 0
                && self.key.as_bytes()[start - 1] == b'.'
                && self.key.get(start..).is_some_and(same)
        });
        ends || same(&self.key) || same(&self.column)
    }
}

/// The dimension of a parameter's values, if all have the same.
fn dimension(key: &str, specs: &[RunSpec]) -> Option<Dimension> {
    let values = specs.iter().flat_map(|spec| &spec.values).filter(|(other, _)| other == key);
    let mut found = None;
    for (_, value) in values {
        let dimension = value.quantity()?.dimension;
        if found.is_some_and(|found| found != dimension) {
            return None;
        }
        found = Some(dimension);
    }
    found
}
