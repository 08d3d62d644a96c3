//! The conditions on runs of a figure or a table.

use crate::plan::expression::Expression;
use crate::plan::value::literal;
use crate::plan::{Condition, Filter, keys};
use crate::results::Results;

/// A condition, its column, and the values that it wants as they are written in results.
pub(super) struct Test {
    column: Option<String>,
    wanted: WantedValue,
}

enum WantedValue {
    OneOf(Vec<String>),
    Within(Bound, Bound),
}

enum Bound {
    Fixed(f64),
    /// From the run's parameters.
    Computed(Expression),
}

impl Test {
    /// A condition, whose constant part is evaluated here for all runs.
    pub(super) fn new(results: &Results, filter: &Filter) -> Self {
        let wanted = match &filter.condition {
            Condition::OneOf(wanted) => {
                let plain = wanted.iter().map(|wanted| results.plain(&filter.name, wanted));
                WantedValue::OneOf(plain.collect())
            }
            Condition::Within(from, to) => {
                let bound = |text: &Option<String>, open: f64| match text {
                    None => Bound::Fixed(open),
                    Some(text) => Bound::new(results, &filter.name, text),
                };
                WantedValue::Within(bound(from, f64::NEG_INFINITY), bound(to, f64::INFINITY))
            }
        };
        Self { column: results.column_of(&filter.name), wanted }
    }

    /// Whether the run in this row fulfils the condition.
    pub(super) fn accepts(&self, results: &Results, row: usize) -> bool {
        let Self { column: Some(column), wanted } = self else { return false };
        let found = results.sheet.text(row, column);
        match wanted {
            WantedValue::OneOf(wanted) => wanted.iter().any(|wanted| found == wanted),
            WantedValue::Within(from, to) => {
                let Ok(found) = found.parse::<f64>() else { return false };
                let slack = found.abs() * 1e-9;
                found >= from.value(results, row) - slack && found <= to.value(results, row) + slack
            }
        }
    }
}

impl Bound {
    /// A bound of the parameter `name`, which may name the run's other parameters.
    fn new(results: &Results, name: &str, text: &str) -> Self {
        let measure = results.key_of(name).and_then(keys::measure);
        match literal(text, measure).quantity() {
            Some(quantity) => Self::Fixed(quantity.plain().to_f64()),
            None => Expression::parse(text).map_or(Self::Fixed(f64::NAN), Self::Computed),
        }
    }

    /// The bound for a run. If it cannot be computed, it excludes every run.
    fn value(&self, results: &Results, row: usize) -> f64 {
        match self {
            Self::Fixed(number) => *number,
            Self::Computed(expression) => {
                expression.number(&|name| results.number_of(row, name)).unwrap_or(f64::NAN)
            }
        }
    }
}
