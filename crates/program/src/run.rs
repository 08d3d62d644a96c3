//! A command from its command line to its exit code.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;

use crate::exit::{Failure, code};
use crate::{output, stop};

/// Reads the command line. Help and faults are printed, the latter as `explained` says them.
///
/// # Errors
///
/// The exit code of a program that has no more to do.
pub fn parse<C: Parser>(
    command_line: &[OsString],
    explained: impl FnOnce(clap::Error) -> clap::Error,
) -> Result<C, ExitCode> {
    C::try_parse_from(command_line).map_err(|error| {
        // Nothing can be done if even that cannot be printed.
        let error = explained(error);
        let _ = error.print();
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    })
}

/// Does the work of the program of this name, prints its failure, and gives its exit code.
pub fn program(name: &str, work: impl FnOnce() -> Result<(), Failure>) -> ExitCode {
    let result = output::open().map_err(Failure::from).and_then(|()| work());
    let result = result.and(output::finish_results());
    if let Err(failure) = &result {
        output::message(format!("{name}: {failure}\n"));
    }
    output::finish();
    result.map_or_else(|failure| ExitCode::from(code(&failure)), |()| ExitCode::SUCCESS)
}

/// Runs a command's work to its end, on all cores.
///
/// # Errors
///
/// The work has failed, or the system has too few resources for it.
pub fn on_runtime<W>(work: W) -> Result<(), Failure>
where
    W: Future<Output = Result<(), Failure>> + Send + 'static,
{
    on_threads(None, work)
}

/// Runs a command's work to its end on this number of threads; `None` for one for each core.
///
/// # Errors
///
/// The work has failed, or the system has too few resources for it.
pub fn on_threads<W>(threads: Option<NonZeroUsize>, work: W) -> Result<(), Failure>
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
