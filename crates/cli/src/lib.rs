//! The `punctual` program as a library: what its `main` calls.

#![forbid(unsafe_code)]
// A write to a place that stalls would hold up a stream: `output` writes.
#![warn(clippy::print_stderr, clippy::print_stdout)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a program has clocks and locks"
)]

mod args;
mod completions;
mod connections;
mod demo;
mod emulate;
mod endpoint;
mod exit;
mod file;
mod generate;
mod hangup;
mod lab;
mod last_rows;
mod latency;
mod live;
mod log;
mod model;
mod options;
mod output;
mod plot;
mod probe;
mod receive;
mod route;
mod stats;
mod stop;
mod stream_ids;
mod timepoint;
mod tries;
mod uris;
mod usage;
mod warnings;
mod written;

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use args::{Cli, Command};
use exit::Failure;
use output::{print, print_wrapped};

/// Runs the program with this command line, its own name first, and gives its exit code.
pub fn run(command_line: impl IntoIterator<Item = OsString>) -> ExitCode {
    let command_line: Vec<OsString> = command_line.into_iter().collect();
    let cli = match Cli::try_parse_from(&command_line) {
        Ok(cli) => cli,
        Err(error) => {
            // Nothing can be done if even that cannot be printed.
            let error = usage::explained(error, &command_line);
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    #[cfg(target_os = "linux")]
    if let Command::RunInNamespace { arguments } = cli.command {
        return emulate::run_in_namespace(arguments);
    }
    let result = output::open().map_err(Failure::from).and_then(|()| execute(cli));
    let result = result.and(output::finish_results());
    if let Err(failure) = &result {
        output::message(format!("punctual: {failure}\n"));
    }
    output::finish();
    result.map_or_else(|failure| ExitCode::from(failure.code()), |()| ExitCode::SUCCESS)
}

fn execute(cli: Cli) -> Result<(), Failure> {
    let quiet = cli.log.quiet;
    // The demonstration has a story of its own to tell.
    let level = if matches!(cli.command, Command::Demo(_)) { "warn" } else { "info" };
    log::start(&cli.log, level)?;
    match cli.command {
        Command::Completions { shell } => print(completions::script(shell)),
        Command::Plot(args) => plot::run(&args),
        Command::Options(args) => options::run(&args),
        Command::Latency(args) => latency::run(&args),
        Command::Model(args) => model::run(&args),
        Command::Uri => print_wrapped(&(punctual_uri::topic() + "\n")),
        Command::Generate(args) => on_threads(args.threads(), generate::run(args, quiet)),
        Command::Receive(args) => on_threads(args.threads(), receive::run(args, quiet)),
        Command::Route(args) => on_threads(args.threads(), route::run(args, quiet)),
        Command::File(args) => on_runtime(file::run(args, quiet)),
        Command::Probe(args) => on_runtime(probe::run(args, quiet)),
        Command::Emulate(args) => on_runtime(emulate::run(args, quiet)),
        Command::Lab(args) => on_runtime(lab::run(*args, quiet)),
        Command::Demo(args) => on_runtime(demo::run(args, quiet)),
        #[cfg(target_os = "linux")]
        Command::RunInNamespace { .. } => Ok(()),
    }
}

/// Runs a command's work to its end, on all cores.
fn on_runtime<W>(work: W) -> Result<(), Failure>
where
    W: Future<Output = Result<(), Failure>> + Send + 'static,
{
    on_threads(None, work)
}

/// Runs a command's work to its end on this number of threads; `None` for one for each core.
fn on_threads<W>(threads: Option<NonZeroUsize>, work: W) -> Result<(), Failure>
where
    W: Future<Output = Result<(), Failure>> + Send + 'static,
{
    check_descriptors()?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        runtime.worker_threads(threads.get());
    }
    let runtime = runtime.enable_all().build()?;
    // On a thread of the runtime: one that only waits for it would be woken by the sockets' drivers
    // for each message, which costs half as much again.
    let task = runtime.spawn(work);
    let result = runtime.block_on(ended(task));
    // While signals are still heard.
    let result = result.and(output::finish_results());
    // Threads that end in time are joined: with some versions of glibc, a thread that ends while it
    // is detached crashes the program. A read from standard input may be under way in a thread of
    // its own, and need not end.
    runtime.shutdown_timeout(SHUTDOWN);
    result
}

/// Checks that there are descriptors for the runtime, which panics if there are none for its
/// signals.
fn check_descriptors() -> std::io::Result<()> {
    (0..RUNTIME_PIPES).map(|_| std::io::pipe()).collect::<Result<Vec<_>, _>>().map(drop)
}

/// Pipes that have as many descriptors as a runtime.
const RUNTIME_PIPES: usize = 4;

/// Waits for the end of a command's work; if a second signal comes, only until the connections have
/// said goodbye to their peers.
async fn ended(mut work: tokio::task::JoinHandle<Result<(), Failure>>) -> Result<(), Failure> {
    tokio::select! {
        ended = &mut work => {
            ended.unwrap_or_else(|error| {
                output::finish();
                std::panic::resume_unwind(error.into_panic())
            })
        }
        () = stop::hurried() => {
            // The connections have been told, and end the work.
            let _ = tokio::time::timeout(GOODBYE, work).await;
            Err(Failure::interrupted())
        }
    }
}

/// How long the goodbye to the peers may take.
const GOODBYE: Duration = Duration::from_millis(500);

/// The time for which the program waits for its threads at the end.
const SHUTDOWN: Duration = Duration::from_millis(50);
