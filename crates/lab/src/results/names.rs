//! The names that figures, tables and formulas may use, checked before anything is run: a name that
//! is misspelt would otherwise only show at the end, as a figure without a point.

use std::time::Duration;

use punctual_metrics::MeterReport;
use punctual_uri::did_you_mean;

use crate::plan::expression::Expression;
use crate::plan::value::literal;
use crate::plan::{
    Condition, Figure, Filter, Grouping, Horizontal, Metric, Plan, PlanError, Reference, RunParts,
    keys,
};
use crate::results::blocks::RECORDS;
use crate::results::columns::{full_name, report, statistics};
use crate::results::layout::{LABELS, Layout};
use crate::results::parts::RUNS;
use crate::results::quic_model::quic_state;

/// Every name that the results of a plan know.
#[derive(Debug)]
pub(crate) struct KnownNames<'a> {
    /// The plan with all its experiments, also the ones that a quick run leaves out.
    whole: &'a Plan,
    layout: &'a Layout,
    columns: Vec<String>,
    /// The columns of a time series.
    series: Vec<String>,
}

impl<'a> KnownNames<'a> {
    /// The names of `whole` as written, and of the `layout` of its results as it is run.
    pub(crate) fn new(whole: &'a Plan, layout: &'a Layout) -> Self {
        let numbers = [
            vec![("time_s".to_owned(), Duration::ZERO.as_secs_f64())],
            report(&MeterReport::default()),
            statistics("sender", &[]),
            statistics("receiver", &[]),
            quic_state(None),
        ];
        let series = numbers.concat().into_iter().map(|(name, _)| name).collect();
        Self { whole, layout, columns: layout.columns(), series }
    }

    /// Checks every name in the metrics, figures, tables and references of a plan.
    pub(crate) fn check(&self, plan: &Plan) -> Result<(), PlanError> {
        plan.metrics.iter().try_for_each(|metric| self.check_metric(metric))?;
        plan.references.iter().try_for_each(|reference| self.check_reference(reference))?;
        plan.figures.iter().try_for_each(|figure| self.check_figure(figure))?;
        plan.tables.iter().try_for_each(|table| self.check_table(table))
    }

    fn check_metric(&self, metric: &Metric) -> Result<(), PlanError> {
        metric.names().into_iter().try_for_each(|name| {
            self.find(name).map_err(|problem| {
                metric.place.error(format!("metric `{}`: {problem}", metric.name))
            })
        })
    }

    fn check_reference(&self, reference: &Reference) -> Result<(), PlanError> {
        reference.columns.iter().try_for_each(|(ours, _)| {
            self.find(ours).map_err(|problem| reference.place.error(problem))
        })
    }

    fn check_figure(&self, figure: &Figure) -> Result<(), PlanError> {
        if let Some(parts) = &figure.parts {
            return self.check_parts(figure, parts);
        }
        if let Horizontal::Column(x) = &figure.x {
            self.find(x).map_err(|problem| figure.x_place.error(problem))?;
        }
        for y in &figure.y {
            let found = match figure.x {
                Horizontal::Column(_) | Horizontal::Places(_) => self.find(y),
                Horizontal::Time => self.find_in_series(y),
            };
            found.map_err(|problem| figure.y_place.error(problem))?;
        }
        for expected in &figure.expected {
            self.find(expected).map_err(|problem| figure.place.error(problem))?;
        }
        for mark in &figure.marks {
            self.find(mark).map_err(|problem| figure.place.error(problem))?;
        }
        figure.filters.iter().try_for_each(|filter| self.check_bounds(filter))
    }

    /// Points of a figure have columns of their record, or of their run.
    fn check_parts(&self, figure: &Figure, parts: &RunParts) -> Result<(), PlanError> {
        let known = RECORDS.iter().map(|record| record.name).chain([RUNS]);
        let record = RECORDS.iter().find(|record| record.name == parts.record);
        if record.is_none() && parts.record != RUNS {
            let suggestion = did_you_mean(&parts.record, known.clone());
            let known = known.collect::<Vec<_>>().join(", ");
            let message = format!("no record `{}`{suggestion} (one of: {known})", parts.record);
            return Err(figure.place.error(message));
        }
        let find = |name: &String| {
            let is_there = record.is_some_and(|record| record.columns.contains(&name.as_str()));
            if is_there { Ok(()) } else { self.find(name) }
        };
        let Horizontal::Column(x) = &figure.x else {
            let message = "points of a record have a column on their axis, no time and no list";
            return Err(figure.x_place.error(message));
        };
        let [y] = figure.y.as_slice() else {
            return Err(figure.y_place.error("points of a record have one `y`"));
        };
        let heat = parts.heat.iter().map(|(column, _)| column);
        for name in heat.chain([x, y]).chain(&figure.by) {
            find(name).map_err(|problem| figure.place.error(problem))?;
        }
        for mark in &figure.marks {
            self.find(mark).map_err(|problem| figure.place.error(problem))?;
        }
        figure.filters.iter().try_for_each(|filter| self.check_bounds(filter))
    }

    fn check_table(&self, table: &Grouping) -> Result<(), PlanError> {
        for value in &table.values {
            self.find(value).map_err(|problem| table.values_place.error(problem))?;
        }
        if let Some(compare) = &table.compare {
            self.find(&compare.parameter).map_err(|problem| table.place.error(problem))?;
        }
        table.filters.iter().try_for_each(|filter| self.check_bounds(filter))
    }

    /// Bounds of a condition may be expressions.
    fn check_bounds(&self, filter: &Filter) -> Result<(), PlanError> {
        let Condition::Within(from, to) = &filter.condition else { return Ok(()) };
        let measure = self.whole.key(&filter.name).ok().and_then(|key| keys::measure(&key));
        for text in [from, to].into_iter().flatten() {
            if literal(text, measure).quantity().is_some() {
                continue;
            }
            let expression = Expression::parse(text).map_err(|problem| {
                filter.place.error(format!("`{text}` is no expression: {problem}"))
            })?;
            for name in expression.names() {
                self.find(name).map_err(|problem| filter.place.error(problem))?;
            }
        }
        Ok(())
    }

    /// Finds a parameter, a metric or a column.
    fn find(&self, name: &str) -> Result<(), String> {
        // Columns of parameters end in their unit: `latency_ms`.
        let without_unit = name.rsplit_once('_').map_or(name, |(start, _)| start);
        let known = self.columns.iter().any(|column| column == name)
            || full_name(name).is_some()
            || self.layout.parameters.iter().any(|parameter| parameter.is(name))
            || [name, without_unit].into_iter().any(|name| self.whole.key(name).is_ok());
        if known {
            return Ok(());
        }
        let parameters = self.whole.keys();
        let short = parameters.iter().map(|key| keys::name(key));
        let metrics = self.layout.metrics.iter().map(|metric| metric.name.as_str());
        let likely = short.chain(metrics).chain(LABELS);
        Err(unknown(name, "no parameter, metric or column", likely, &self.columns))
    }

    /// Finds a column of a time series, or a metric that is computed of such columns alone.
    fn find_in_series(&self, name: &str) -> Result<(), String> {
        let has = |name: &str| {
            let named = |wanted: &str| self.series.iter().any(|column| column == wanted);
            named(name) || full_name(name).is_some_and(|full| named(&full))
        };
        let metric = self.layout.metrics.iter().find(|metric| metric.name == name);
        match metric {
            None if has(name) => Ok(()),
            None => {
                let metrics = self.layout.metrics.iter().map(|metric| metric.name.as_str());
                Err(unknown(name, "a time series has no column", metrics, &self.series))
            }
            Some(metric) => match metric.names().into_iter().find(|name| !has(name)) {
                None => Ok(()),
                Some(part) => Err(format!(
                    "`{name}` cannot be drawn over time: it needs `{part}`, which is known of \
                     whole runs alone"
                )),
            },
        }
    }
}

/// The error of an unknown name, with a suggestion.
fn unknown<'a>(
    name: &str,
    what: &str,
    likely: impl Iterator<Item = &'a str>,
    columns: &'a [String],
) -> String {
    let names = columns.iter().map(String::as_str);
    let ends = names.clone().filter_map(|name| name.rsplit_once('.')).map(|(_, end)| end);
    format!("{what} `{name}`{}", did_you_mean(name, likely.chain(names).chain(ends)))
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
