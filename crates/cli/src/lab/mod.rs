//! `punctual lab`: plans are found, run, and reported.

mod progress;
mod report;
mod show;
mod summary;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;

use punctual_lab::backend::{Backend, External, Net, Sim};
use punctual_lab::plan::Plan;
use punctual_lab::published;
use punctual_lab::results::Results;
use punctual_lab::run::Shard;
use punctual_lab::sweep::{Adjustments, Execution, Sweep, merge};
use punctual_uri::did_you_mean;

use crate::args::{LabArgs, LabCommand, MergeArgs, PlotFormat, RunArgs};
use crate::exit::{Failure, INTERRUPTED};
use crate::print::print;

/// Does what was asked for. Gives the exit code, which is not 0 for a sweep that was interrupted.
pub(crate) fn run(args: LabArgs, quiet: bool) -> Result<u8, Failure> {
    match args.command {
        LabCommand::List => print(show::list()).map(|()| 0),
        LabCommand::Show(args) => {
            let plan = find(&args.plan)?;
            let text = if args.text { plan.text.clone() } else { show::plan(&plan)? };
            print(text).map(|()| 0)
        }
        LabCommand::Run(args) => sweep(args, quiet),
        LabCommand::Merge(args) => put_together(&args).map(|()| 0),
        LabCommand::Report(args) => {
            let results = Results::load(&args.folder).map_err(Failure::runtime)?;
            print(summary::of(&results))?;
            report::write(&results, &args.folder, args.format)?;
            Ok(0)
        }
    }
}

/// A plan by its name or file.
fn find(name: &str) -> Result<Plan, Failure> {
    let (file, text) = match published::plan(name) {
        Some(text) => (format!("{name} (built in)"), text.to_owned()),
        None if Path::new(name).exists() => {
            let path = Path::new(name);
            let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
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

fn sweep(args: RunArgs, quiet: bool) -> Result<u8, Failure> {
    let plan = find(&args.plan)?;
    let folder = args.output.unwrap_or_else(|| PathBuf::from(&plan.name));
    let mut set = args.set;
    set.extend(args.repeats.map(|repeats| format!("repeats={repeats}")));
    let external = External::new(plan.external.as_ref()).map_err(Failure::usage);
    let adjustments = Adjustments {
        quick: args.quick,
        set,
        backends: args.backend,
        shard: args.shard.unwrap_or(Shard::default()),
    };
    let sweep = Sweep::new(plan, &adjustments).map_err(|error| Failure::usage(error.to_string()))?;
    let wanted = &sweep.plan().run.backends;
    let external = match external {
        Err(failure) if wanted.iter().any(|name| name == "external") => return Err(failure),
        other => other.ok(),
    };
    let mut backends: Vec<&dyn Backend> = vec![&Sim, &Net];
    backends.extend(external.as_ref().map(|external| external as &dyn Backend));
    let stop = AtomicBool::new(false);
    let progress = progress::Progress::new(sweep.runs().len(), quiet);
    let ended = thread::scope(|scope| {
        let watch = crate::stop::Watch::start(scope, &stop);
        let ended = sweep.run(
            &folder,
            &Execution {
                backends: &backends,
                jobs: args.jobs.unwrap_or_else(cores),
                resume: args.resume,
                stop: &stop,
                progress: &|done, all, spec| progress.tell(done, all, spec),
            },
        );
        watch.end();
        ended
    });
    progress.finish();
    let ended = ended.map_err(Failure::runtime)?;
    if ended.stopped {
        eprintln!(
            "interrupted with {} of {} runs done; --resume goes on",
            ended.results.sheet.rows().len(),
            sweep.runs().len()
        );
        return Ok(INTERRUPTED);
    }
    print(summary::of(&ended.results))?;
    if !args.no_report {
        report::write(&ended.results, &folder, PlotFormat::Html)?;
    }
    Ok(0)
}

fn put_together(args: &MergeArgs) -> Result<(), Failure> {
    let results = merge(&args.parts, &args.output).map_err(Failure::runtime)?;
    print(summary::of(&results))?;
    if results.sheet.rows().len() < results.meta.runs {
        eprintln!("{} of {} runs are there", results.sheet.rows().len(), results.meta.runs);
    }
    report::write(&results, &args.output, PlotFormat::Html)
}

fn cores() -> usize {
    thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
