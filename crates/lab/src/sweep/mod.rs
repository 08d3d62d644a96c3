//! Sweeps: every run of a plan, on all cores, resumable and in parts.

mod again;
mod left_out;
mod merge;
mod order;

pub use left_out::LeftOut;
pub use merge::merge;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use punctual_uri::did_you_mean;

use crate::backend::Backend;
use crate::plan::{Overlay, Plan, PlanError, hidden_word};
use crate::results::Results;
use crate::results::folder::Folder;
use crate::results::layout::Layout;
use crate::results::meta::Meta;
use crate::results::names::KnownNames;
use crate::results::sheet::{Sheet, csv_line};
use crate::run::{RunSpec, Selection, SweepShard, hash, runs};

/// A plan and which of its runs are wanted.
#[derive(Clone, Debug)]
pub struct Sweep {
    plan: Plan,
    meta: Meta,
    layout: Layout,
    /// All runs of the plan, in order; of those, the ones of this part.
    specs: Vec<RunSpec>,
}

/// How a plan is to be run otherwise than it says.
#[derive(Clone, Debug, Default)]
pub struct Adjustments {
    /// As its `[quick]` says.
    pub quick: bool,
    /// Values that replace others: `latency=120ms`.
    pub set: Vec<String>,
    /// Backends; empty for the plan's.
    pub backends: Vec<String>,
    /// The part of all runs.
    pub shard: SweepShard,
}

/// How a sweep is run.
#[derive(Clone, Copy)]
pub struct Execution<'a> {
    /// One backend for each name that the sweep has.
    pub backends: &'a [&'a dyn Backend],
    /// Runs at a time.
    pub jobs: usize,
    /// Whether runs whose rows are there are left out.
    pub resume: bool,
    /// Ends it after the runs that are under way, once it is true.
    pub stop: &'a AtomicBool,
    /// Is told of each run's end: how many are done, of how many.
    pub progress: &'a (dyn Fn(usize, usize, &RunSpec) + Sync),
}

impl<'a> Execution<'a> {
    fn backend(&self, name: &str) -> Result<&'a dyn Backend, String> {
        let known = self.backends.iter();
        known.clone().find(|known| known.name() == name).copied().ok_or_else(|| {
            let names: Vec<&str> = known.map(|known| known.name()).collect();
            let suggestion = did_you_mean(name, names.iter().copied());
            format!("no backend `{name}`{suggestion} (there are {})", names.join(", "))
        })
    }
}

/// How a sweep ended.
#[derive(Clone, Debug)]
pub struct SweepEnd {
    /// The results in the folder now.
    pub results: Results,
    /// Whether it was stopped before all runs were done.
    pub stopped: bool,
    /// Runs that were there already.
    pub skipped: usize,
    /// Runs that this machine cannot run.
    pub left_out: Vec<LeftOut>,
}

impl Sweep {
    /// The runs of a plan.
    ///
    /// # Errors
    ///
    /// A value, or a word of the adjustments, that is wrong.
    pub fn new(mut plan: Plan, adjustments: &Adjustments) -> Result<Self, PlanError> {
        let whole = plan.clone();
        if adjustments.quick {
            plan.quick()?;
        }
        plan.adjust(&Overlay::words(adjustments.set.iter().map(String::as_str))?)?;
        if !adjustments.backends.is_empty() {
            plan.run.backends.clone_from(&adjustments.backends);
        }
        let specs = runs(&plan, &Selection::default())?;
        let layout = Layout::new(&plan, &specs);
        KnownNames::new(&whole, &layout).check(&plan)?;
        let shard = adjustments.shard;
        let meta = Meta {
            program: concat!("punctual ", env!("CARGO_PKG_VERSION")).to_owned(),
            plan: plan.name.clone(),
            sweep: identity(&plan, &specs, &layout),
            seed: plan.run.seed,
            backends: plan.run.backends.clone(),
            quick: adjustments.quick,
            set: adjustments.set.iter().map(|word| hidden_word(word)).collect(),
            runs: specs.len(),
            shard: format!("{}/{}", shard.index, shard.count),
            parameters: layout.parameters.clone(),
        };
        let specs = specs.into_iter().filter(|spec| shard.holds(spec)).collect();
        Ok(Self { plan, meta, layout, specs })
    }

    /// The plan as it is run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The runs, in their order.
    pub fn runs(&self) -> &[RunSpec] {
        &self.specs
    }

    /// Runs them, and writes rows into `folder` as they come.
    ///
    /// # Errors
    ///
    /// The folder cannot be written, or holds other results; or a backend cannot run at all.
    pub fn run(&self, folder: &Path, execution: &Execution<'_>) -> Result<SweepEnd, String> {
        let folder = Folder::new(folder);
        self.meta.backends.iter().try_for_each(|name| execution.backend(name).map(drop))?;
        let before = self.rows_there(&folder, execution.resume)?;
        folder.create(&self.plan.text, &self.meta)?;
        let there: BTreeSet<(String, String)> = (0..before.rows().len())
            .map(|row| (before.text(row, "run").to_owned(), before.text(row, "backend").to_owned()))
            .collect();
        let is_there = |spec: &&RunSpec| there.contains(&(spec.id.clone(), spec.backend.clone()));
        let missing: Vec<&RunSpec> = self.specs.iter().filter(|spec| !is_there(spec)).collect();
        let (missing, left_out) = left_out::parted(missing, execution)?;
        let beyond: usize = left_out.iter().map(|it| it.runs).sum();
        let work = SweepUnderWay {
            sweep: self,
            folder: &folder,
            execution,
            all: self.specs.len() - beyond,
            done: AtomicUsize::new(there.len()),
            sink: Mutex::new(RowSink {
                file: folder.begin(&before)?,
                sheet: before,
                problem: None,
            }),
        };
        for backend in &self.meta.backends {
            let specs: Vec<&RunSpec> =
                missing.iter().copied().filter(|spec| spec.backend == *backend).collect();
            work.run_all(backend, &specs)?;
        }
        let RowSink { sheet, problem, .. } =
            work.sink.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(problem) = problem {
            return Err(problem);
        }
        let stopped = sheet.rows().len() + beyond < self.specs.len();
        let sheet = order::ordered(&sheet, &self.specs);
        if !stopped {
            folder.finish(&sheet)?;
        }
        let results = self.results(sheet, &folder);
        Ok(SweepEnd { results, stopped, skipped: there.len(), left_out })
    }

    fn results(&self, sheet: Sheet, folder: &Folder) -> Results {
        Results {
            plan: self.plan.clone(),
            meta: self.meta.clone(),
            sheet,
            folder: Some(folder.path().to_owned()),
            plan_folder: Some(folder.path().to_owned()),
        }
    }

    /// The rows that the folder holds of this sweep.
    fn rows_there(&self, folder: &Folder, resume: bool) -> Result<Sheet, String> {
        let empty = || Sheet::new(self.layout.columns());
        let path = folder.path().display();
        let Some(meta) = folder.meta()? else { return Ok(empty()) };
        if !resume {
            return Err(format!(
                "{path}: results lie there already; --resume goes on with them, -o names another \
                 folder"
            ));
        }
        if meta.sweep != self.meta.sweep {
            return Err(format!(
                "{path}: these results are of another plan, or of this one with other values; \
                 -o names another folder"
            ));
        }
        if meta.shard != self.meta.shard {
            return Err(format!("{path}: this is part {} of the sweep", meta.shard));
        }
        Ok(folder.rows()?.unwrap_or_else(empty))
    }
}

/// A sweep under way.
struct SweepUnderWay<'a> {
    sweep: &'a Sweep,
    folder: &'a Folder,
    execution: &'a Execution<'a>,
    all: usize,
    done: AtomicUsize,
    sink: Mutex<RowSink>,
}

/// Where rows go to.
struct RowSink {
    file: std::fs::File,
    sheet: Sheet,
    /// The problem that ended the sweep.
    problem: Option<String>,
}

impl SweepUnderWay<'_> {
    /// Does the missing runs of one backend, several at a time.
    fn run_all(&self, backend: &str, specs: &[&RunSpec]) -> Result<(), String> {
        if specs.is_empty() {
            return Ok(());
        }
        let backend = self.execution.backend(backend)?;
        let next = AtomicUsize::new(0);
        let workers = backend.at_a_time(self.execution.jobs).clamp(1, specs.len());
        thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    while !self.execution.stop.load(Ordering::Relaxed) {
                        let place = next.fetch_add(1, Ordering::Relaxed);
                        let Some(spec) = specs.get(place) else { break };
                        if let Err(problem) = self.run_one(backend, spec) {
                            self.execution.stop.store(true, Ordering::Relaxed);
                            self.sink().problem.get_or_insert(problem);
                        }
                    }
                });
            }
        });
        Ok(())
    }

    fn run_one(&self, backend: &dyn Backend, spec: &RunSpec) -> Result<(), String> {
        let outcome =
            again::run(backend, spec).map_err(|problem| format!("{}: {problem}", spec.id))?;
        self.folder.record(&spec.id, &spec.backend, &outcome)?;
        let row = self.sweep.layout.row(spec, &outcome);
        let mut sink = self.sink();
        let written =
            sink.file.write_all(csv_line(&row).as_bytes()).and_then(|()| sink.file.flush());
        written.map_err(|error| format!("{}: {error}", self.folder.path().display()))?;
        sink.sheet.push(row);
        drop(sink);
        let done = self.done.fetch_add(1, Ordering::Relaxed) + 1;
        (self.execution.progress)(done, self.all, spec);
        Ok(())
    }

    /// A worker that panicked leaves whole rows behind.
    fn sink(&self) -> std::sync::MutexGuard<'_, RowSink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Identifies the runs and columns of a sweep, whichever part of it is run.
fn identity(plan: &Plan, specs: &[RunSpec], layout: &Layout) -> String {
    let mut text = layout.columns().join(",");
    for metric in &plan.metrics {
        text += &format!("\n{}={}", metric.name, metric.formula);
    }
    text += &format!("\nseries={:?} captures={}", plan.run.series, plan.run.captures);
    for spec in specs {
        text += &format!("\n{} {}", spec.backend, spec.id);
    }
    format!("{:016x}", hash(&text))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
