//! Columns computed from other columns.

use crate::plan::document::{DocumentEntry, DocumentTable};
use crate::plan::error::{PlanError, PlanPlace};
use crate::plan::expression::{Expression, Operator};

/// A column computed from other columns of the same run.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its column.
    pub name: String,
    /// For people; the name if the plan gives none.
    pub title: String,
    /// Its unit, empty for none. `%` means that a value of 1 is shown as 100 %.
    pub unit: String,
    /// How it is computed and how runs are put together.
    pub kind: MetricKind,
    /// The formula as it is written.
    pub formula: String,
    pub(crate) expression: Expression,
    pub(crate) place: PlanPlace,
}

/// How the metric of several runs is put together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MetricKind {
    /// The mean over runs, with Student's t interval.
    Mean,
    /// A count out of another: both are summed over runs. A score interval after Wilson.
    Share,
    /// A number of events: summed over runs, with the exact interval of a Poisson mean after
    /// Garwood.
    Count,
    /// A number that is not counted, such as one of a model: summed over runs.
    Sum,
    /// As `Share`, with the exact interval after Clopper and Pearson, which is wider.
    ExactShare,
}

impl MetricKind {
    /// Whether the value of several runs is the sum of theirs, so that more runs have more.
    pub(crate) fn grows_with_runs(self) -> bool {
        matches!(self, Self::Count | Self::Sum)
    }
}

impl Metric {
    /// The metrics of a `[metrics]` table.
    pub(crate) fn read_all(table: Option<&DocumentTable>) -> Result<Vec<Self>, PlanError> {
        table.map_or(Ok(Vec::new()), |table| table.entries.iter().map(Self::read).collect())
    }

    fn read(entry: &DocumentEntry) -> Result<Self, PlanError> {
        let Some(formula) = entry.value.text() else {
            return Self::from_table(entry, entry.table()?);
        };
        Self::new(entry, entry, formula.to_owned(), MetricKind::Mean)
    }

    fn from_table(entry: &DocumentEntry, table: &DocumentTable) -> Result<Self, PlanError> {
        table.only("a metric", &["mean", "share", "count", "sum", "interval", "title", "unit"])?;
        let kinds = [
            ("mean", MetricKind::Mean),
            ("share", MetricKind::Share),
            ("count", MetricKind::Count),
            ("sum", MetricKind::Sum),
        ];
        let mut given = kinds.into_iter().filter_map(|(key, kind)| Some((kind, table.get(key)?)));
        let (Some((kind, at)), None) = (given.next(), given.next()) else {
            let message = "needs one of `mean`, `share`, `count` and `sum`, which are formulas";
            return Err(entry.error(message));
        };
        let mut metric = Self::new(entry, at, at.text()?.to_owned(), kind)?;
        if let Some(interval) = table.get("interval") {
            metric.kind = match (kind, interval.text()?) {
                (MetricKind::Share, "clopper-pearson") => MetricKind::ExactShare,
                (MetricKind::Share, "wilson") => MetricKind::Share,
                (MetricKind::Share, _) => {
                    return Err(interval.error("must be `wilson` or `clopper-pearson`"));
                }
                _ => return Err(interval.error("is for shares; other metrics have one kind of it")),
            };
        }
        metric.title = table.text("title")?.unwrap_or(metric.title);
        let percent = if kind == MetricKind::Share { "%" } else { "" };
        metric.unit = table.text("unit")?.unwrap_or(percent.to_owned());
        Ok(metric)
    }

    fn new(
        entry: &DocumentEntry,
        at: &DocumentEntry,
        formula: String,
        kind: MetricKind,
    ) -> Result<Self, PlanError> {
        let expression = Expression::parse(&formula)
            .map_err(|problem| at.place.error(format!("`{formula}` is no formula: {problem}")))?;
        let quotient = matches!(expression, Expression::Binary(_, Operator::Over, _));
        if kind == MetricKind::Share && !quotient {
            return Err(at.error("must be a quotient of two counts: `pktRcvDrop / pktSentUnique`"));
        }
        let name = entry.key.clone();
        let (title, unit, place) = (name.clone(), String::new(), at.place.clone());
        Ok(Self { name, title, unit, kind, formula, expression, place })
    }

    /// The columns that its formula names.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.expression.names()
    }

    /// Its value, from the values of other columns.
    pub(crate) fn value(&self, column: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        self.expression.number(column)
    }

    /// The counted part and the whole, for a share.
    pub(crate) fn counts(&self, column: &dyn Fn(&str) -> Option<f64>) -> Option<(f64, f64)> {
        match &self.expression {
            Expression::Binary(part, Operator::Over, whole) => {
                Some((part.number(column)?, whole.number(column)?))
            }
            _ => None,
        }
    }
}
