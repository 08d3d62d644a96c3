//! The command line: one file a command, with its help.

mod callers;
mod connection;
mod demo;
#[cfg(test)]
mod documented;
mod emulate;
mod file;
mod generate;
mod link;
pub(crate) mod metrics;
mod options;
mod output;
mod plot;
mod probe;
mod receive;
mod route;
mod spool;
mod stamp;
mod stats;
mod threads;
mod tun;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use punctual_program::args::LogArgs;
pub(crate) use punctual_program::args::value;

pub(crate) use callers::CallerArgs;
pub(crate) use connection::ConnectionArgs;
pub(crate) use demo::DemoArgs;
pub(crate) use emulate::EmulateArgs;
pub(crate) use file::{FileArgs, FileCommand, FileProtocol, FileReceiveArgs, FileSendArgs};
pub(crate) use generate::GenerateArgs;
pub(crate) use metrics::MetricsArgs;
pub(crate) use options::OptionsArgs;
pub(crate) use output::OutputArgs;
pub(crate) use plot::{PlotArgs, PlotFormat, TimeAlignment};
pub(crate) use probe::ProbeArgs;
pub(crate) use receive::ReceiveArgs;
pub(crate) use route::{EndOfRoute, RouteArgs, SlowDestination};
pub(crate) use spool::SpoolArgs;
pub(crate) use stats::{StatsArgs, StatsFormat};
pub(crate) use threads::ThreadArgs;
#[cfg(target_os = "linux")]
pub(crate) use tun::{TunArgs, Until};

/// Live streams that arrive on time, over networks that don't: SRT, measured.
#[derive(Debug, Parser)]
#[command(name = "punctual", version, max_term_width = 100)]
#[command(after_help = EXAMPLES, after_long_help = AFTER_LONG)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Generate(GenerateArgs),
    Receive(ReceiveArgs),
    Route(Box<RouteArgs>),
    File(Box<FileArgs>),
    Emulate(Box<EmulateArgs>),
    Probe(Box<ProbeArgs>),
    Plot(PlotArgs),
    /// Run experiments and models: all arguments go to the program `punctual-lab`
    #[command(disable_help_flag = true)]
    Lab {
        /// The arguments of `punctual-lab`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    /// Run a relay, into which others publish and from which they view: all arguments go to the
    /// program `punctual-relay`
    #[command(disable_help_flag = true)]
    Relay {
        /// The arguments of `punctual-relay`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
    Options(OptionsArgs),
    /// List every form of URI and every key, with unit, range and default
    #[command(long_about = punctual_uri::topic())]
    Uri,
    /// Print a completion script for a shell
    #[command(long_about = COMPLETIONS, hide = true)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// The process under which `emulate --tun` runs a command, and which it starts itself
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    RunInNamespace {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<std::ffi::OsString>,
    },
}

const EXAMPLES: &str = "\
Examples:
  punctual demo                                      compare SRT with UDP, in under a minute
  punctual generate 'srt://host:4200' --sendrate 5Mbps --duration 60s --enable-metrics
  punctual receive 'srt://:4200?latency=200ms' --enable-metrics
  ffmpeg -re -i in.mp4 -c copy -f mpegts - | punctual route - 'srt://host:4200'

`punctual help COMMAND` explains a command, `punctual help uri` every form and key of a URI,
`punctual completions SHELL` prints a completion script.";

const AFTER_LONG: &str = "\
Examples:
  Compare SRT with bare UDP on a bad link, in under a minute, with nothing to set up:
      punctual demo

  Measure a link: send 5 Mb/s for a minute; at the other end write delay, jitter and loss:
      punctual receive 'srt://:4200?latency=200ms' --enable-metrics --metricsfile metrics.csv
      punctual generate 'srt://host:4200' --sendrate 5Mbps --duration 60s --enable-metrics

  Find the right SRT settings for a link: run the first at the other end, then the second here:
      punctual probe --listen :4200
      punctual probe srt://host:4200

  Compute the latency that a link needs, by `punctual-lab`, as all of `punctual lab`:
      punctual latency --rtt 40ms --loss 5% --target 1e-6

  Send FFmpeg's output, and play it at the other end:
      ffmpeg -re -i in.mp4 -c copy -f mpegts - | punctual route - 'srt://host:4200'
      punctual route 'srt://:4200' - | ffplay -

  Send a folder; after an interruption the same command goes on where it was:
      punctual file receive 'srt://:4200' incoming
      punctual file send recordings 'srt://host:4200'

  Put a bad network between any two UDP programs:
      punctual emulate :5000 host:4200 --rtt 40ms --loss 2% --rate 20Mbps

Data goes to standard output; messages and the live line go to standard error.
Ctrl-C ends a stream in good order: buffered messages are still sent. A second Ctrl-C closes the
connections at once, and a third one does not wait for that.

Exit codes:
  0    done: the stream ended, or Ctrl-C or SIGTERM ended it in good order
  1    failed: a connection was lost, or reading or writing was not possible
  2    the command line is wrong: an option, a URI, a key, a value or a unit
  3    the peer refused the call; its code is printed
  4    nobody was there: no answer, no caller, or no connection until the end
  130  a second Ctrl-C ended the command before its work was done

`punctual help COMMAND` explains a command, `punctual help uri` every form and key of a URI,
`punctual completions SHELL` prints a completion script.";

const COMPLETIONS: &str = "\
Print a completion script for a shell.

  bash   punctual completions bash > ~/.local/share/bash-completion/completions/punctual
  zsh    punctual completions zsh > \"${fpath[1]}/_punctual\"
  fish   punctual completions fish > ~/.config/fish/completions/punctual.fish";

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
