//! Published figures to lay beside ours.

use crate::plan::expression::{Expression, Operator};
use crate::plan::value::literal;
use crate::plan::{Filter, MetricKind, Reference, keys};
use crate::published;
use crate::results::Results;
use crate::results::interval::Estimate;
use crate::results::runs::{Runs, scale};
use crate::results::sheet::Sheet;

/// Published rows whose columns are known by our names.
pub(crate) struct Beside<'a> {
    pub(crate) reference: &'a Reference,
    sheet: Sheet,
}

impl<'a> Beside<'a> {
    /// Reads the results that a reference names.
    pub(crate) fn read(results: &Results, reference: &'a Reference) -> Result<Self, String> {
        let sheet = match &reference.file {
            Some(name) => {
                Sheet::parse(&file(results, name)?).map_err(|error| format!("{name}: {error}"))?
            }
            None => in_plan(&reference.rows),
        };
        Ok(Self { reference, sheet })
    }

    /// Its rows in which each of `names` has the value of `key`, and that fulfil those of our
    /// conditions which they know.
    pub(crate) fn rows(
        &self,
        results: &Results,
        names: &[String],
        key: &[String],
        filters: &[Filter],
    ) -> Vec<usize> {
        let matches = |row: usize| {
            let same = names.iter().zip(key).filter(|(name, _)| *name != "backend").all(
                |(name, value)| self.value(results, row, name).is_some_and(|v| same(&v, value)),
            );
            same && filters.iter().all(|filter| self.fulfils(results, row, filter))
        };
        (0..self.sheet.rows().len()).filter(|row| matches(*row)).collect()
    }

    /// Every value that it has of a parameter, for the lines of a figure.
    pub(crate) fn value(&self, results: &Results, row: usize, name: &str) -> Option<String> {
        let written = self.written(results, name)?;
        let text = self.sheet.text(row, &written);
        if text.is_empty() {
            return None;
        }
        // Numbers without a unit are in the unit of our column.
        if text.parse::<f64>().is_ok() {
            return Some(text.to_owned());
        }
        Some(literal(text, results.key_of(name).and_then(keys::measure)).plain())
    }

    fn fulfils(&self, results: &Results, row: usize, filter: &Filter) -> bool {
        use crate::plan::Condition;
        let Some(found) = self.value(results, row, &filter.name) else { return true };
        match &filter.condition {
            Condition::OneOf(wanted) => {
                wanted.iter().any(|wanted| same(&found, &results.plain(&filter.name, wanted)))
            }
            Condition::Within(from, to) => {
                let Ok(found) = found.parse::<f64>() else { return true };
                let bound = |text: &String| {
                    let expression = Expression::parse(text).ok()?;
                    expression.number(&|name| self.parameter(results, row, name))
                };
                let slack = found.abs() * 1e-9;
                from.as_ref().is_none_or(|from| bound(from).is_none_or(|b| found >= b - slack))
                    && to.as_ref().is_none_or(|to| bound(to).is_none_or(|b| found <= b + slack))
            }
        }
    }

    /// A parameter of a reference's row; one that it does not tell and that all our runs share is
    /// taken to be the same there.
    fn parameter(&self, results: &Results, row: usize, name: &str) -> Option<f64> {
        if let Some(value) = self.value(results, row, name) {
            return value.parse().ok();
        }
        let column = results.column_of(name)?;
        let first = results.sheet.number(0, &column)?;
        let all = (0..results.sheet.rows().len()).filter_map(|r| results.sheet.number(r, &column));
        all.into_iter().all(|number| number == first).then_some(first)
    }

    /// The value of a metric for these rows, in the unit in which it is shown. A count or a sum of
    /// a reference that tells its span is scaled to `ours`, the runs beside which it is shown.
    pub(crate) fn estimate(
        &self,
        results: &Results,
        rows: &[usize],
        name: &str,
        ours: &Runs<'_>,
    ) -> Option<Estimate> {
        let metric = results.metric(name);
        let grows = metric.is_some_and(|metric| metric.kind.grows_with_runs());
        let part = match &self.reference.span {
            Some(span) if grows => ours.of_first_backend().sum("duration")? / span.plain().to_f64(),
            _ => 1.0,
        };
        let formula = self.written(results, name)?;
        let expression = Expression::parse(&formula).ok()?;
        let number = |row: usize| {
            let lookup = |column: &str| self.number(row, column);
            let direct = self.number(row, &formula);
            direct.or_else(|| expression.number(&lookup))
        };
        let is_share = metric.is_some_and(|metric| {
            matches!(metric.kind, MetricKind::Share | MetricKind::ExactShare)
        });
        let estimate = match &expression {
            Expression::Binary(part, Operator::Over, whole) if is_share => {
                let sum = |expression: &Expression| -> f64 {
                    let of = |row: &usize| expression.number(&|name| self.number(*row, name));
                    rows.iter().filter_map(of).sum()
                };
                Estimate::share(sum(part), sum(whole), rows.len())
            }
            _ => {
                let numbers: Vec<f64> = rows.iter().filter_map(|row| number(*row)).collect();
                // Its rows are other arrangements, not repeats: their spread is no uncertainty.
                Estimate::mean(&numbers).map(|mean| Estimate { interval: None, ..mean })
            }
        };
        estimate.map(|estimate| estimate.times(part * scale(metric)))
    }

    fn number(&self, row: usize, column: &str) -> Option<f64> {
        let text = self.sheet.text(row, column);
        text.parse().ok().or_else(|| Some(literal(text, None).quantity()?.plain().to_f64()))
    }

    /// The column or formula of the reference for our `name`.
    fn written(&self, results: &Results, name: &str) -> Option<String> {
        let key = results.key_of(name);
        let is_it = |ours: &str| ours == name || (key.is_some() && results.key_of(ours) == key);
        let mapped = self.reference.columns.iter().find(|(ours, _)| is_it(ours));
        if let Some((_, theirs)) = mapped {
            return Some(theirs.clone());
        }
        let ours = results.column_of(name);
        self.sheet
            .columns()
            .iter()
            .find(|column| is_it(column) || ours.as_ref() == Some(column))
            .cloned()
    }
}

/// Whether two cells say the same: as numbers, or as texts.
fn same(a: &str, b: &str) -> bool {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 1e-9 * a.abs().max(b.abs()),
        _ => a == b,
    }
}

fn file(results: &Results, name: &str) -> Result<String, String> {
    if let Some(text) = published::file(name) {
        return Ok(text.to_owned());
    }
    let folder = results.plan_folder.clone().unwrap_or_default();
    let path = folder.join(name);
    punctual_units::read_text(&path).map_err(|error| format!("{}: {error}", path.display()))
}

fn in_plan(rows: &[Vec<(String, String)>]) -> Sheet {
    let mut columns: Vec<String> = Vec::new();
    for (column, _) in rows.iter().flatten() {
        if !columns.contains(column) {
            columns.push(column.clone());
        }
    }
    let mut sheet = Sheet::new(columns.clone());
    for row in rows {
        let cell = |column: &String| {
            row.iter().find(|(name, _)| name == column).map_or(String::new(), |(_, v)| v.clone())
        };
        sheet.push(columns.iter().map(cell).collect());
    }
    sheet
}
