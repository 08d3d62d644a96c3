//! Plans: the runs, their values, and the figures of their results.
//!
//! `docs/plans.md` describes the format for those who write plans.

mod document;
mod error;
pub(crate) mod expression;
mod figure;
mod grid;
pub(crate) mod keys;
mod metric;
mod overlay;
pub(crate) mod parameter;
mod quantity;
mod ratio;
mod run;
mod secrets;
pub(crate) mod value;

use std::sync::Arc;

pub use error::PlanError;
pub use figure::{
    Compare, Comparison, Condition, Figure, Filter, Grouping, Horizontal, Reference, RunParts,
};
pub use grid::Values;
pub use metric::{Metric, MetricKind};
pub use overlay::Overlay;
use overlay::Overlays;
pub use parameter::Parameter;
pub use quantity::{Dimension, Quantity};
pub use ratio::Ratio;
pub use run::{ExternalPrograms, RunOptions};
pub use value::{ParameterValue, SecretText};

pub(crate) use grid::{Excluded, ParameterGrid};
pub(crate) use secrets::{hidden, hidden_word};

use document::{DocumentEntry, DocumentTable};
use error::{PlanPlace, Source};
use parameter::Names;
use punctual_uri::did_you_mean;

/// A plan: experiments, how often to run them, and what to make of the results.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Short, for folders and commands.
    pub name: String,
    /// One line, for people.
    pub title: String,
    /// Its purpose and its limits, in sentences.
    pub about: String,
    /// Its author's findings, a line each, for the head of a report; may be empty.
    pub findings: Vec<String>,
    /// The publication that it repeats, if any.
    pub source: String,
    /// Where that is found.
    pub url: String,
    /// The plan as it was read, for results to keep.
    pub text: String,
    /// The experiments. A plan without `[[experiment]]` has one, whose name is empty.
    pub experiments: Vec<Experiment>,
    /// How it is run.
    pub run: RunOptions,
    /// Columns computed from others.
    pub metrics: Vec<Metric>,
    /// The figures of a report.
    pub figures: Vec<Figure>,
    /// The tables of a report.
    pub tables: Vec<Grouping>,
    /// Published results to show beside ours.
    pub references: Vec<Reference>,
    /// Programs that the backend `external` runs.
    pub external: Option<ExternalPrograms>,
    /// The values that replace others in certain runs.
    pub(crate) overlays: Overlays,
}

/// One arrangement of hosts, links and streams, with the values that are tried.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// Short; empty for the only one of a plan.
    pub name: String,
    /// For people.
    pub title: String,
    pub(crate) grid: ParameterGrid,
    /// Runs of each combination of values, if it is not as often as the plan says.
    repeats: Option<u32>,
}

impl Plan {
    /// Reads a plan from `text`; `file` is its name in messages.
    ///
    /// # Errors
    ///
    /// The first error: the file, the line, the key, and what would be right.
    pub fn parse(file: &str, text: &str) -> Result<Self, PlanError> {
        let source = Source::file(file, text);
        let table = DocumentTable::parse(&source, text)?;
        table.only("a plan", TABLES)?;
        let base = Experiment::read(&table, &ParameterGrid::default())?;
        let experiments = match table.tables("experiment")? {
            none if none.is_empty() => vec![base],
            tables => experiments(&tables, &base.grid)?,
        };
        let plan = Self {
            name: table.required("a plan", "name")?,
            title: table.text("title")?.unwrap_or_default(),
            about: table.text("about")?.unwrap_or_default().trim().to_owned(),
            findings: table.texts("findings")?,
            source: table.text("source")?.unwrap_or_default(),
            url: table.text("url")?.unwrap_or_default(),
            text: text.to_owned(),
            experiments,
            run: RunOptions::read(table.table("run")?)?,
            metrics: Metric::read_all(table.table("metrics")?)?,
            figures: table
                .tables("figure")?
                .into_iter()
                .map(Figure::read)
                .collect::<Result<_, _>>()?,
            tables: table
                .tables("table")?
                .into_iter()
                .map(Grouping::read)
                .collect::<Result<_, _>>()?,
            references: table
                .tables("reference")?
                .into_iter()
                .map(Reference::read)
                .collect::<Result<_, _>>()?,
            external: table.table("external")?.map(ExternalPrograms::read).transpose()?,
            overlays: Overlays::read(&table)?,
        };
        check_name(&table, &plan.name)?;
        plan.check()?;
        Ok(plan)
    }

    /// The number of runs of each combination of values of an experiment.
    pub fn repeats(&self, experiment: &Experiment) -> u32 {
        experiment.repeats.unwrap_or(self.run.repeats)
    }

    /// Every parameter's full key, of all experiments, in the order of the plan.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for experiment in &self.experiments {
            for parameter in &experiment.grid.parameters {
                if !keys.contains(&parameter.key) {
                    keys.push(parameter.key.clone());
                }
            }
        }
        keys
    }

    /// The full key that a short name means: `loss` is `link.loss`.
    ///
    /// # Errors
    ///
    /// No parameter of the plan is called so, or more than one.
    pub fn key(&self, name: &str) -> Result<String, String> {
        let keys = self.keys();
        Names::new(keys.iter().map(String::as_str)).find(name).map(str::to_owned)
    }

    /// Checks what figures and tables name.
    fn check(&self) -> Result<(), PlanError> {
        let drawn = self.figures.iter().map(|figure| (&figure.place, &figure.references));
        let tabulated = self.tables.iter().map(|table| (&table.place, &table.references));
        for (place, names) in drawn.chain(tabulated) {
            for name in names {
                let known = || self.references.iter().map(|reference| reference.name.as_str());
                if !known().any(|known| known == name) {
                    let suggestion = did_you_mean(name, known());
                    return Err(place.error(format!("no reference `{name}`{suggestion}")));
                }
            }
        }
        let filters = (self.figures.iter().flat_map(|figure| &figure.filters))
            .chain(self.tables.iter().flat_map(|table| &table.filters));
        for filter in filters {
            self.check_filter(filter)?;
        }
        // Points of a record may be parted by its columns, which the results know.
        let means = self.figures.iter().filter(|figure| figure.parts.is_none());
        let parts = (means.map(|figure| (&figure.place, &figure.by)))
            .chain(self.tables.iter().map(|table| (&table.place, &table.rows)))
            .chain(self.tables.iter().map(|table| (&table.place, &table.columns)));
        for (place, names) in parts {
            for name in names.iter().filter(|name| !LABELS.contains(&name.as_str())) {
                self.key(name).map_err(|message| place.error(message))?;
            }
        }
        Ok(())
    }

    fn check_filter(&self, filter: &Filter) -> Result<(), PlanError> {
        if filter.name == "experiment" {
            let known = || self.experiments.iter().map(|experiment| experiment.name.as_str());
            if let Condition::OneOf(names) = &filter.condition
                && let Some(name) = names.iter().find(|name| !known().any(|k| k == name.as_str()))
            {
                let suggestion = did_you_mean(name, known());
                return Err(filter.place.error(format!("no experiment `{name}`{suggestion}")));
            }
            return Ok(());
        }
        if LABELS.contains(&filter.name.as_str()) {
            return Ok(());
        }
        self.key(&filter.name).map(drop).map_err(|message| filter.place.error(message))
    }

    /// Replaces values of this plan, for instance by those of a command line.
    ///
    /// # Errors
    ///
    /// An unknown key, or a value that its key does not take.
    pub fn overlay(&mut self, overlay: &Overlay) -> Result<(), PlanError> {
        overlay::overlay(self, overlay)
    }

    /// Replaces values by those of a command line, which also win over the plan's values for a
    /// backend.
    ///
    /// # Errors
    ///
    /// As [`overlay`](Self::overlay).
    pub fn adjust(&mut self, words: &Overlay) -> Result<(), PlanError> {
        overlay::adjust(self, words)
    }

    /// This plan as it is run quickly.
    ///
    /// # Errors
    ///
    /// An error in its `[quick]`.
    pub fn quick(&mut self) -> Result<(), PlanError> {
        overlay::quick(self)
    }

    /// This plan as it is run on a backend.
    ///
    /// # Errors
    ///
    /// An error in its table of that name.
    pub(crate) fn on(&self, backend: &str) -> Result<Self, PlanError> {
        overlay::on(self, backend)
    }
}

impl Experiment {
    /// Reads an experiment from its table, over the values of `base`.
    fn read(table: &DocumentTable, base: &ParameterGrid) -> Result<Self, PlanError> {
        let mut grid = base.clone();
        for section in keys::SECTIONS {
            if let Some(inner) = table.table(section)? {
                for parameter in Parameter::read_all(section, inner)? {
                    grid.set(parameter);
                }
            }
        }
        if let Some(entry) = table.get("together") {
            grid.together = together(entry, &grid)?;
        }
        if let Some(entry) = table.get("exclude") {
            grid.exclude = exclude(entry, &grid)?;
        }
        let title = table.text("title")?.unwrap_or_default();
        let repeats = table.get("repeats").map(run::repeats).transpose()?;
        Ok(Self { name: String::new(), title, grid, repeats })
    }
}

fn experiments(
    tables: &[&DocumentTable],
    base: &ParameterGrid,
) -> Result<Vec<Experiment>, PlanError> {
    let mut experiments: Vec<Experiment> = Vec::new();
    for table in tables {
        let known =
            [&["name", "title", "repeats", "together", "exclude"][..], &keys::SECTIONS].concat();
        table.only("[[experiment]]", &known)?;
        let name = table.required("an experiment", "name")?;
        check_name(table, &name)?;
        if experiments.iter().any(|other| other.name == name) {
            return Err(table.place.error(format!("there is an experiment `{name}` already")));
        }
        experiments.push(Experiment { name, ..Experiment::read(table, base)? });
    }
    Ok(experiments)
}

/// Names become parts of file names.
fn check_name(table: &DocumentTable, name: &str) -> Result<(), PlanError> {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !name.is_empty() && name.chars().all(is_fine) {
        return Ok(());
    }
    let place = table.get("name").map_or(&table.place, |entry| &entry.place);
    Err(place.error(format!("`{name}` is no name: letters, digits, `-`, `_` and `.` make one")))
}

/// Reads `together = [["rtt", "latency"]]`, or a single group.
fn together(entry: &DocumentEntry, grid: &ParameterGrid) -> Result<Vec<Vec<String>>, PlanError> {
    let document::DocumentContent::List(nodes) = &entry.value.content else {
        return Err(entry.error("must be a list of parameters: [\"rtt\", \"latency\"]"));
    };
    let names = grid.names();
    let find = |node: &document::DocumentNode| {
        let name = node.text().ok_or_else(|| entry.error("must list names of parameters"))?;
        names.find(name).map(str::to_owned).map_err(|message| node.place.error(message))
    };
    if nodes.iter().all(|node| node.text().is_some()) {
        return Ok(vec![nodes.iter().map(find).collect::<Result<_, _>>()?]);
    }
    nodes
        .iter()
        .map(|node| match &node.content {
            document::DocumentContent::List(inner) => inner.iter().map(find).collect(),
            _ => Err(entry.error("must be a list of names, or a list of such lists")),
        })
        .collect()
}

/// Reads `exclude = [{ loss = "10%", bitrate = "10Mbps" }]`.
fn exclude(entry: &DocumentEntry, grid: &ParameterGrid) -> Result<Vec<Excluded>, PlanError> {
    let names = grid.names();
    let condition = |entry: &DocumentEntry| {
        let key = names.find(&entry.key).map_err(|message| entry.place.error(message))?.to_owned();
        let values = entry.texts()?;
        let measure = keys::measure(&key);
        let read = |text: &String| match keys::is_secret(&key) {
            true => ParameterValue::Secret(SecretText::new(text)),
            false => value::literal(text, measure),
        };
        let values = values.iter().map(read).collect();
        Ok((key, values))
    };
    let holder = DocumentTable { place: entry.place.clone(), entries: vec![entry.clone()] };
    holder
        .tables("exclude")?
        .into_iter()
        .map(|table| table.entries.iter().map(condition).collect())
        .collect()
}

/// The tables that a plan may have.
const TABLES: &[&str] = &[
    "name",
    "title",
    "about",
    "findings",
    "source",
    "url",
    "stream",
    "link",
    "hosts",
    "options",
    "traffic",
    "quic",
    "tcp",
    "blocks",
    "together",
    "exclude",
    "experiment",
    "run",
    "metrics",
    "figure",
    "table",
    "reference",
    "external",
    "net",
    "quick",
];

/// The labels of runs, beside their parameters.
pub(crate) const LABELS: [&str; 3] = ["experiment", "backend", "repeat"];

/// A source for a value from a command line.
pub(crate) fn word_source(text: &str) -> Arc<Source> {
    Source::word(text)
}

/// A place in no file.
pub(crate) fn word_place(text: &str) -> PlanPlace {
    PlanPlace::new(&word_source(text), 0)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
