//! Reports: the questions of a plan and its results, as a page to read.
//!
//! [`page`] makes the whole page, [`figures`] its figures one by one, [`markdown`](fn@markdown) its
//! tables for documents. All depend on nothing but the results, so that the same results give the
//! same bytes.

mod agreement;
mod figure;
mod markdown;
mod number;
mod table;
mod words;

use std::collections::BTreeSet;

use punctual_figures::{Chart, Page, Text};

use crate::plan::{Condition, Filter, Metric, MetricKind, hidden};
use crate::published;
use crate::results::{LATE_US, Results};

pub use self::markdown::markdown;

/// A figure of a report.
#[derive(Clone, Debug)]
pub struct ReportFigure {
    /// Short, for file names: `2a`.
    pub name: String,
    /// The chart.
    pub chart: Chart,
}

/// The figures of the plan, in its order; a figure without any point is left out.
pub fn figures(results: &Results) -> Vec<ReportFigure> {
    let there = results.plan.figures.iter().filter(|it| was_run(results, &it.filters));
    let drawn = there.filter_map(|figure| {
        let drawing = results.drawing(figure);
        let chart = figure::chart(results, figure, &drawing)?;
        Some(ReportFigure { name: figure.name.clone(), chart })
    });
    drawn.collect()
}

/// The report of results.
pub fn page(results: &Results) -> Page {
    let plan = &results.plan;
    let title = if plan.title.is_empty() { &plan.name } else { &plan.title };
    let mut page = Page::new(title.clone());
    if !plan.about.is_empty() {
        page.lead(plan.about.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    // Findings are those of the plan as it is written.
    if !plan.findings.is_empty() && !is_changed(results) {
        page.heading("Findings");
        page.list(plan.findings.iter().map(String::as_str));
    }
    source(&mut page, results);
    let tables = plan.tables.iter().filter(|table| was_run(results, &table.filters));
    let tables: Vec<_> = tables.map(|table| (table, results.tabulation(table))).collect();
    table::key_figures(&mut page, results, &tables);
    for note in shortcomings(results) {
        page.note(note);
    }
    let mut problems = Vec::new();
    agreement::write(&mut page, results, &tables);
    if !plan.figures.is_empty() {
        page.heading("Figures");
    }
    for figure in plan.figures.iter().filter(|figure| was_run(results, &figure.filters)) {
        let drawing = results.drawing(figure);
        problems
            .extend(drawing.problems.iter().map(|what| format!("Figure {}: {what}", figure.name)));
        if let Some(chart) = figure::chart(results, figure, &drawing) {
            page.chart(chart);
        }
    }
    if !tables.is_empty() {
        page.heading("Tables");
        if let Some(text) = gaps(plan.tables.iter().map(|table| table.name.as_str())) {
            page.text(text);
        }
    }
    let mut group = String::new();
    for (table, tabulation) in &tables {
        let title = experiment_of(results, &table.filters);
        if tables.len() > MOST_UNGROUPED && title != group {
            page.subheading(words::capital(&title));
            group = title;
        }
        problems
            .extend(tabulation.problems.iter().map(|what| format!("Table {}: {what}", table.name)));
        table::write(&mut page, results, table, tabulation);
    }
    if plan.figures.is_empty() && plan.tables.is_empty() {
        page.heading("Results");
        page.table(table::summary(results));
    }
    if !problems.is_empty() {
        page.heading("Left out");
        page.list(problems);
    }
    method(&mut page, results);
    page.foot(format!("Made by {}.", results.meta.program));
    page
}

/// Whether the command line changed the plan.
fn is_changed(results: &Results) -> bool {
    results.meta.quick || !results.meta.set.is_empty()
}

/// Whether one of the backends was run that conditions name, if they name any.
fn was_run(results: &Results, filters: &[Filter]) -> bool {
    filters.iter().filter(|filter| filter.name == "backend").all(|filter| {
        let Condition::OneOf(names) = &filter.condition else { return true };
        names.iter().any(|name| results.meta.backends.contains(name))
    })
}

/// The title of the one experiment that conditions name, or a word for several.
fn experiment_of(results: &Results, filters: &[Filter]) -> String {
    let named = filters.iter().find(|filter| filter.name == "experiment");
    let Some(Condition::OneOf(names)) = named.map(|filter| &filter.condition) else {
        return "all experiments".to_owned();
    };
    let title = |name: &String| {
        let known = results.plan.experiments.iter().find(|known| known.name == *name);
        known.map(|known| known.title.clone()).filter(|title| !title.is_empty())
    };
    names
        .iter()
        .map(|name| title(name).unwrap_or_else(|| name.clone()))
        .collect::<Vec<_>>()
        .join("; ")
}

/// If there are more tables, they get headings with the names of their experiments.
const MOST_UNGROUPED: usize = 12;

/// A word on numbers that are left out, where names are numbers: a publication's, as a rule.
fn gaps<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    let leading = |name: &str| {
        let end = name.find(|c: char| !c.is_ascii_digit()).unwrap_or(name.len());
        name[..end].parse::<u32>().ok()
    };
    let numbers: BTreeSet<u32> = names.filter_map(leading).collect();
    let (first, last) = (numbers.first()?, numbers.last()?);
    let missing: Vec<String> = (1.min(*first)..=*last)
        .filter(|number| *number > 0 && !numbers.contains(number))
        .map(|number| number.to_string())
        .collect();
    match missing.as_slice() {
        [] => None,
        [one] => Some(format!(
            "The numbers are those of the publication; its number {one} has no counterpart here."
        )),
        several => Some(format!(
            "The numbers are those of the publication; its numbers {} have no counterpart here.",
            several.join(", ")
        )),
    }
}

/// The publication that is repeated, and the sources beside our results.
fn source(page: &mut Page, results: &Results) {
    let plan = &results.plan;
    if !plan.source.is_empty() {
        let text = Text::default().plain("After ");
        page.text(match plan.url.as_str() {
            "" => text.plain(&plan.source),
            url => text.link(&plan.source, url),
        });
    }
    let told = plan.references.iter().filter(|reference| !reference.source.is_empty());
    let drawn = |name: &String| plan.figures.iter().any(|figure| figure.references.contains(name));
    let items: Vec<Text> = told
        .map(|reference| {
            let text = Text::default().strong(&reference.title);
            let place = if drawn(&reference.name) { "" } else { " (in tables alone)" };
            text.plain(format!("{place}: {}.", reference.source.trim_end_matches('.')))
        })
        .collect();
    if !items.is_empty() {
        let is_drawn = plan.references.iter().any(|reference| drawn(&reference.name));
        let how = if is_drawn { ", in figures with hollow markers and dashed lines" } else { "" };
        page.text(format!("Published results beside ours{how}:"));
        page.list(items);
    }
}

/// Says it where results are only a part, a first look, or have runs that failed.
fn shortcomings(results: &Results) -> Vec<String> {
    let mut notes = Vec::new();
    let rows = results.sheet.rows().len();
    if results.meta.quick {
        notes.push(
            "This was run quickly, as the plan's [quick] has it: a first look, no result."
                .to_owned(),
        );
    }
    if !results.meta.set.is_empty() {
        let set = results.meta.set.iter().map(|set| punctual_uri::redacted(set));
        let set = set.collect::<Vec<_>>().join(", ");
        notes.push(format!("These runs differ from the plan: {set}."));
    }
    if is_changed(results) {
        let findings = match results.plan.findings.is_empty() {
            true => "",
            false => " Its findings do not hold for these runs, and are left out.",
        };
        notes.push(format!("The captions describe the plan as it is written.{findings}"));
    }
    let all = results.meta.runs;
    if rows < all {
        notes.push(format!("{rows} of {all} runs are there; the others have not been run."));
    }
    let late = results.late_runs().len();
    if late > 0 {
        notes.push(format!(
            "In {late} of {rows} runs the machine stalled: the emulator sent more than 1 % of \
             packets later than {} ms after their time. Such runs tell of the machine rather than \
             of the link; see the columns `up.usLateP99` and `down.usLateP99`.",
            LATE_US / 1e3,
        ));
    }
    let failed = results.failed_runs().len();
    if failed > 0 {
        notes.push(format!("{failed} of {rows} runs did not end well; see the column `status`."));
    }
    notes
}

/// How it was run, how to run it again, and the plan.
fn method(page: &mut Page, results: &Results) {
    page.heading("How it was run");
    page.list(facts(results));
    page.text("To run it again, with the same rows to the last digit where time is virtual:");
    page.code(again(results));
    page.details("The plan", |page| page.code(hidden(&results.plan.text)));
}

/// The backends, the number of runs, and the meaning of the intervals.
fn facts(results: &Results) -> Vec<Text> {
    let meta = &results.meta;
    let backends: Vec<&str> = meta.backends.iter().map(|name| words::backend(name)).collect();
    let is_count = |metric: &Metric| metric.kind == MetricKind::Count;
    let counts = match results.plan.metrics.iter().any(is_count) {
        true => ", of counts Garwood's",
        false => "",
    };
    let mut facts = vec![
        Text::from(format!("Program: {}", meta.program)),
        Text::from(format!("Run by: {}", backends.join(", "))),
        Text::from(format!(
            "Runs: {}; seed of the plan: {}. The seed of each run comes from that, its parameters \
             and its repeat, and is written in its row",
            results.sheet.rows().len(),
            meta.seed
        )),
        Text::from(format!(
            "Intervals hold the true value in 95 of 100 cases: of means over repeats Student's t, \
             of shares Wilson's or Clopper and Pearson's{counts}",
        )),
    ];
    if meta.shard != "1/1" {
        facts.push(Text::from(format!("Part of the sweep: {}", meta.shard)));
    }
    facts
}

/// The command line that gives these results.
fn again(results: &Results) -> String {
    let meta = &results.meta;
    // A custom plan lies beside its results.
    let is_built_in = published::plan(&meta.plan).is_some();
    let plan = if is_built_in { &*meta.plan } else { "plan.toml" };
    let mut command = format!("punctual lab run {}", words::quoted(plan));
    if !meta.backends.is_empty() && meta.backends != ["sim"] {
        command += &format!(" --backend {}", meta.backends.join(","));
    }
    if meta.quick {
        command += " --quick";
    }
    for set in &meta.set {
        command += &format!(" --set {}", words::quoted(&punctual_uri::redacted(set)));
    }
    command
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
