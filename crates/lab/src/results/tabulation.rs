//! Tables of a plan as rows of cells, ready to be shown.

use crate::plan::{Comparison, Grouping};
use crate::results::Results;
use crate::results::interval::Estimate;
use crate::results::runs::{GroupKey, Runs};

/// A table as rows of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Tabulation {
    /// Names of the parameters that differ from row to row.
    pub row_names: Vec<String>,
    /// Names of the parameters that differ from column to column.
    pub column_names: Vec<String>,
    /// The columns, in their order.
    pub columns: Vec<Column>,
    /// The rows: the values of these parameters, and a cell for each column.
    pub rows: Vec<(Vec<String>, Vec<Option<Estimate>>)>,
    /// Cells that could not be computed, and why.
    pub problems: Vec<String>,
}

/// A column of a table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Column {
    /// The values of the columns' parameters, as they are written in results.
    pub key: Vec<String>,
    /// The metric or column of results.
    pub metric: String,
    /// Its unit; empty for none.
    pub unit: String,
    /// The backend; empty for a reference.
    pub backend: String,
    /// The name of the reference that it is; `None` for ours.
    pub reference: Option<String>,
}

impl Tabulation {
    /// A table of the plan.
    pub(super) fn of(results: &Results, table: &Grouping) -> Self {
        Tabulator { results, table, runs: Runs::selected(results, &table.filters) }.tabulation()
    }

    /// A table with one row for each group of runs that differ in more than their repeat.
    pub(super) fn summary(results: &Results) -> Self {
        let rows: Vec<usize> = (0..results.sheet.rows().len()).collect();
        let runs = Runs::of(results, rows);
        let parameters = results.meta.parameters.iter().map(|it| it.column.clone());
        let by = ["experiment".to_owned()].into_iter().chain(parameters);
        let by: Vec<String> = by.filter(|column| runs.values_of(column).len() > 1).collect();
        let values: Vec<String> = match results.plan.metrics.as_slice() {
            [] => ["sender.pktRetrans", "receiver.pktRcvDrop"].map(str::to_owned).to_vec(),
            metrics => metrics.iter().map(|metric| metric.name.clone()).collect(),
        };
        let place = crate::plan::word_place("summary");
        let table = Grouping {
            name: "summary".to_owned(),
            title: String::new(),
            caption: String::new(),
            published: String::new(),
            values,
            rows: by,
            columns: Vec::new(),
            filters: Vec::new(),
            compare: None,
            references: Vec::new(),
            values_place: place.clone(),
            place,
        };
        Self::of(results, &table)
    }
}

/// A table on its way from runs to cells.
struct Tabulator<'a> {
    results: &'a Results,
    table: &'a Grouping,
    /// The runs that the table shows.
    runs: Runs<'a>,
}

impl Tabulator<'_> {
    fn tabulation(&self) -> Tabulation {
        let table = self.table;
        let mut problems = Vec::new();
        if self.runs.rows().is_empty() {
            problems.push("no run gives a cell".to_owned());
        }
        let columns = self.columns();
        let row = |(key, _): (GroupKey, Runs<'_>)| {
            let cells = columns.iter().map(|column| self.cell(&key, column)).collect();
            (key, cells)
        };
        let rows = self.runs.grouped(&table.rows).into_iter().map(row).collect();
        for name in &table.references {
            problems.extend(self.results.beside(name).err());
        }
        Tabulation {
            row_names: table.rows.clone(),
            column_names: table.columns.clone(),
            columns,
            rows,
            problems,
        }
    }

    /// For each group and each metric: a column of each backend, and of each reference.
    fn columns(&self) -> Vec<Column> {
        let table = self.table;
        let backends = self.runs.values_of("backend");
        let mut columns = Vec::new();
        for (key, _) in self.runs.grouped(&table.columns) {
            for metric in &table.values {
                columns.extend(backends.iter().map(|it| self.column(&key, metric, it, None)));
                let references = table.references.iter();
                columns.extend(references.map(|it| self.column(&key, metric, "", Some(it))));
            }
        }
        columns
    }

    fn column(
        &self,
        key: &[String],
        metric: &str,
        backend: &str,
        reference: Option<&String>,
    ) -> Column {
        let compare = self.table.compare.as_ref();
        let is_ratio = compare.is_some_and(|it| it.how == Comparison::Ratio);
        let unit = self.results.metric(metric).map_or(String::new(), |it| it.unit.clone());
        Column {
            key: key.to_vec(),
            metric: metric.to_owned(),
            unit: if is_ratio { String::new() } else { unit },
            backend: backend.to_owned(),
            reference: reference.cloned(),
        }
    }

    fn cell(&self, key: &[String], column: &Column) -> Option<Estimate> {
        let names = [&self.table.rows[..], &self.table.columns[..]].concat();
        let values = [key, &column.key[..]].concat();
        let of = |extra: Option<(&str, &str)>| {
            let mut names = names.clone();
            let mut values = values.clone();
            if let Some((name, written)) = extra {
                names.push(name.to_owned());
                values.push(self.results.plain(name, written));
            }
            self.estimate(&names, &values, column)
        };
        match &self.table.compare {
            None => of(None),
            Some(compare) => {
                let first = of(Some((&compare.parameter, &compare.first)))?;
                let second = of(Some((&compare.parameter, &compare.second)))?;
                match compare.how {
                    Comparison::Ratio => first.over(&second),
                    Comparison::Difference => Some(first.minus(&second)),
                }
            }
        }
    }

    /// The value of a column for the runs, or published rows, that have these values.
    fn estimate(&self, names: &[String], values: &[String], column: &Column) -> Option<Estimate> {
        let results = self.results;
        let runs = self.runs.having(names, values);
        if let Some(reference) = &column.reference {
            let beside = results.beside(reference).ok()?;
            let rows = beside.rows(results, names, values, &self.table.filters);
            return beside.estimate(results, &rows, &column.metric, &runs);
        }
        let is_its = |row| results.sheet.text(row, "backend") == column.backend;
        runs.filtered(is_its).estimate(&column.metric)
    }
}
