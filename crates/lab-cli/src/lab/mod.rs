//! Finds plans, runs them, and writes their reports.

mod progress;
mod report;
mod show;
mod summary;

use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use punctual_lab::backend::{Backend, External, Net, QuicModel, Sim};
use punctual_lab::plan::Plan;
use punctual_lab::published;
use punctual_lab::results::Results;
use punctual_lab::sweep::{Adjustments, Execution, LeftOut, Sweep, merge};
use punctual_units::DisplayDuration;
use punctual_uri::did_you_mean;

use punctual_program::exit::Failure;
use punctual_program::output::{self, print};
use punctual_program::stop;

use crate::args::{MergeArgs, ReportArgs, ReportFormat, RunArgs, ShowArgs};
use crate::lab::progress::LiveProgress;
pub(crate) use show::list;

/// Prints a plan.
pub(crate) fn show(args: &ShowArgs) -> Result<(), Failure> {
    let plan = find(&args.plan)?;
    print(if args.text { plan.text.clone() } else { show::plan(&plan)? })
}

/// Runs a plan.
pub(crate) async fn run(args: RunArgs, quiet: bool) -> Result<(), Failure> {
    let stop = stop::on_signals(None);
    let flag = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&flag);
    let watch = tokio::spawn(async move {
        stop.told().await;
        tracing::info!("waiting for the runs that are under way");
        told.store(true, Ordering::Relaxed);
    });
    // A sweep is long work, and some runs have their own runtime.
    let result = tokio::task::spawn_blocking(move || sweep(args, quiet, &flag)).await;
    watch.abort();
    result.map_err(|error| Failure::runtime(error.to_string()))?
}

/// Writes the report of results again.
pub(crate) fn report(args: &ReportArgs) -> Result<(), Failure> {
    let results = Results::load(&args.folder).map_err(Failure::runtime)?;
    // Printed tables are a document, into which no other line belongs.
    if args.format != ReportFormat::Markdown {
        print(summary::of(&results))?;
    }
    report::write(&results, &args.folder, args.format)?;
    all_ended_well(&results)
}

/// A plan by its name or file.
fn find(name: &str) -> Result<Plan, Failure> {
    let (file, text) = match published::plan(name) {
        Some(text) => (format!("{name} (built in)"), text.to_owned()),
        None if Path::new(name).exists() => {
            let path = Path::new(name);
            let text =
                punctual_units::read_text(path).map_err(|error| Failure::file(path, &error))?;
            (name.to_owned(), text)
        }
        None => {
            let names = published::plans().iter().map(|(name, _)| *name);
            let suggestion = did_you_mean(name, names);
            return Err(Failure::usage(format!(
                "no plan `{name}`{suggestion} (neither built in nor a file; `punctual lab list` \
                 lists the built-in ones)"
            )));
        }
    };
    Plan::parse(&file, &text).map_err(|error| Failure::usage(error.to_string()))
}

fn sweep(args: RunArgs, quiet: bool, stop: &AtomicBool) -> Result<(), Failure> {
    let plan = find(&args.plan)?;
    let folder = args.output.unwrap_or_else(|| PathBuf::from(&plan.name));
    let mut set = args.set;
    set.extend(args.repeats.map(|repeats| format!("repeats={repeats}")));
    if !args.no_report {
        report::check(&folder)?;
    }
    let external = External::new(plan.external.as_ref());
    let adjustments = Adjustments {
        quick: args.quick,
        set,
        backends: args.backend,
        shard: args.shard.unwrap_or_default(),
    };
    let sweep =
        Sweep::new(plan, &adjustments).map_err(|error| Failure::usage(error.to_string()))?;
    let mut backends: Vec<&dyn Backend> = vec![&Sim, &Net, &QuicModel];
    match &external {
        Ok(external) => backends.push(external),
        Err(message) if sweep.plan().run.backends.iter().any(|name| name == "external") => {
            return Err(Failure::usage(message.as_str()));
        }
        Err(_) => {}
    }
    let progress = LiveProgress::new(sweep.runs().len(), quiet);
    let execution = Execution {
        backends: &backends,
        jobs: args.jobs.map_or_else(cores, NonZero::get),
        resume: args.resume,
        stop,
        progress: &|done, all, spec| progress.tell(done, all, spec),
    };
    let ended = sweep.run(&folder, &execution);
    let took = progress.finish();
    let ended = ended.map_err(Failure::runtime)?;
    let done = ended.results.sheet.rows().len();
    if ended.stopped {
        let all = sweep.runs().len();
        let message = format!("interrupted after {done} of {all} runs; --resume goes on with it");
        return Err(Failure::runtime(message));
    }
    print(summary::of(&ended.results))?;
    for LeftOut { reason, runs } in &ended.left_out {
        say(format_args!("{runs} runs are left out: {reason}"));
    }
    if !quiet {
        let skipped = match ended.skipped {
            0 => String::new(),
            skipped => format!(", {skipped} of which were there already"),
        };
        say(format_args!("{done} runs{skipped}, in {:#}", DisplayDuration(took)));
    }
    if !args.no_report {
        report::write(&ended.results, &folder, ReportFormat::Html)?;
    }
    all_ended_well(&ended.results)
}

/// A failure if a run failed, so that scripts notice it; the other runs have their results.
fn all_ended_well(results: &Results) -> Result<(), Failure> {
    let failed = results.failed_runs();
    let Some(first) = failed.first() else { return Ok(()) };
    let text = |column| results.sheet.text(*first, column);
    Err(Failure::runtime(format!(
        "{} of {} runs failed; {}: {}",
        failed.len(),
        results.sheet.rows().len(),
        text("run"),
        text("status")
    )))
}

/// Merges the parts of a sweep.
pub(crate) fn put_together(args: &MergeArgs) -> Result<(), Failure> {
    let results = merge(&args.parts, &args.output).map_err(Failure::runtime)?;
    print(summary::of(&results))?;
    if results.sheet.rows().len() < results.meta.runs {
        let (rows, runs) = (results.sheet.rows().len(), results.meta.runs);
        say(format_args!("the parts have {rows} of {runs} runs"));
    }
    report::write(&results, &args.output, ReportFormat::Html)?;
    all_ended_well(&results)
}

/// Writes a line on standard error.
fn say(text: std::fmt::Arguments<'_>) {
    output::message(format!("{text}\n"));
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}
