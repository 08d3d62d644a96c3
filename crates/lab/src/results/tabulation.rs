//! Tables of a plan as rows of cells, ready to be shown.

use crate::plan::{Comparison, Grouping};
use crate::results::Results;
use crate::results::interval::Estimate;

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

impl Results {
    /// A table of the plan as rows of cells.
    pub fn tabulation(&self, table: &Grouping) -> Tabulation {
        let rows = self.selected(&table.filters);
        let mut problems = Vec::new();
        if rows.is_empty() {
            problems.push("no run gives a cell".to_owned());
        }
        let row_keys: Vec<Vec<String>> = keys(self.grouped(&rows, &table.rows));
        let column_keys: Vec<Vec<String>> = keys(self.grouped(&rows, &table.columns));
        let backends: Vec<Vec<String>> = keys(self.grouped(&rows, &["backend".to_owned()]));
        let mut columns = Vec::new();
        for key in &column_keys {
            for metric in &table.values {
                for backend in &backends {
                    columns.push(self.column(table, key, metric, &backend[0], None));
                }
                for reference in &table.references {
                    columns.push(self.column(table, key, metric, "", Some(reference)));
                }
            }
        }
        let row = |key: Vec<String>| {
            let cells =
                columns.iter().map(|column| self.cell(table, &rows, &key, column)).collect();
            (key, cells)
        };
        let rows = row_keys.into_iter().map(row).collect();
        for name in &table.references {
            problems.extend(self.beside(name).err());
        }
        Tabulation {
            row_names: table.rows.clone(),
            column_names: table.columns.clone(),
            columns,
            rows,
            problems,
        }
    }

    fn column(
        &self,
        table: &Grouping,
        key: &[String],
        metric: &str,
        backend: &str,
        reference: Option<&String>,
    ) -> Column {
        let is_ratio = table.compare.as_ref().is_some_and(|c| c.how == Comparison::Ratio);
        let unit = self.metric(metric).map_or(String::new(), |metric| metric.unit.clone());
        Column {
            key: key.to_vec(),
            metric: metric.to_owned(),
            unit: if is_ratio { String::new() } else { unit },
            backend: backend.to_owned(),
            reference: reference.cloned(),
        }
    }

    fn cell(
        &self,
        table: &Grouping,
        rows: &[usize],
        key: &[String],
        column: &Column,
    ) -> Option<Estimate> {
        let names = [&table.rows[..], &table.columns[..]].concat();
        let values = [key, &column.key[..]].concat();
        let of = |extra: Option<(&str, &str)>| {
            let mut names = names.clone();
            let mut values = values.clone();
            if let Some((name, written)) = extra {
                names.push(name.to_owned());
                values.push(self.plain(name, written));
            }
            self.estimate_of(table, rows, &names, &values, column)
        };
        match &table.compare {
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

    fn estimate_of(
        &self,
        table: &Grouping,
        rows: &[usize],
        names: &[String],
        values: &[String],
        column: &Column,
    ) -> Option<Estimate> {
        if let Some(reference) = &column.reference {
            let beside = self.beside(reference).ok()?;
            let rows = beside.rows(self, names, values, &table.filters);
            return beside.estimate(self, &rows, &column.metric);
        }
        let columns: Vec<String> =
            names.iter().map(|name| self.column_of(name).unwrap_or_else(|| name.clone())).collect();
        let is_there = |row: &usize| {
            let text = |column: &String| self.sheet.text(*row, column);
            columns.iter().zip(values).all(|(column, value)| text(column) == value)
                && self.sheet.text(*row, "backend") == column.backend
        };
        let rows: Vec<usize> = rows.iter().copied().filter(is_there).collect();
        self.estimate(&rows, &column.metric)
    }

    /// One summary for each group of runs that differ in more than their repeat: for the end of a
    /// command.
    pub fn summary(&self) -> Tabulation {
        let rows: Vec<usize> = (0..self.sheet.rows().len()).collect();
        let varies = |column: &str| {
            let mut texts: Vec<&str> =
                rows.iter().map(|row| self.sheet.text(*row, column)).collect();
            texts.sort_unstable();
            texts.dedup();
            texts.len() > 1
        };
        let parameters = self.meta.parameters.iter().map(|parameter| parameter.column.clone());
        let by: Vec<String> = ["experiment".to_owned()]
            .into_iter()
            .chain(parameters)
            .filter(|column| varies(column))
            .collect();
        let values: Vec<String> = match self.plan.metrics.as_slice() {
            [] => ["sender.pktRetrans", "receiver.pktRcvDrop"].map(str::to_owned).to_vec(),
            metrics => metrics.iter().map(|metric| metric.name.clone()).collect(),
        };
        let place = crate::plan::word_place("summary");
        self.tabulation(&Grouping {
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
        })
    }
}

fn keys(groups: Vec<(Vec<String>, Vec<usize>)>) -> Vec<Vec<String>> {
    groups.into_iter().map(|(key, _)| key).collect()
}
