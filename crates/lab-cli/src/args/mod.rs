//! The command line: one file a command, with its help.

mod lab;
mod latency;
mod model;
mod png;

use clap::{Parser, Subcommand};
use clap_complete::Shell;
use punctual_program::args::LogArgs;
pub(crate) use punctual_program::args::value;

pub(crate) use lab::{MergeArgs, ReportArgs, ReportFormat, RunArgs, ShowArgs};
pub(crate) use latency::LatencyArgs;
pub(crate) use model::ModelArgs;
pub(crate) use png::PngArgs;

/// Experiments with streams over links, in virtual time or in real time, and models of them
///
/// A plan is a short TOML file that names the stream, the link and the options. A list of values
/// makes an axis, and every combination is run. Some plans that repeat published experiments are
/// built in. `punctual lab`, `punctual model` and `punctual latency` run this program.
#[derive(Debug, Parser)]
#[command(name = "punctual-lab", version, max_term_width = 100)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct LabCli {
    #[command(flatten)]
    pub(crate) log: LogArgs,
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the plans that are built in
    List,
    /// Print a plan: its purpose, the factors that it varies, the number of its runs
    Show(ShowArgs),
    /// Run a plan and write its report
    Run(Box<RunArgs>),
    /// Merge the parts of a sweep (--shard)
    Merge(MergeArgs),
    /// Write the report of existing results again
    Report(ReportArgs),
    Latency(LatencyArgs),
    Model(Box<ModelArgs>),
    Png(PngArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

const EXAMPLES: &str = "\
Examples:
  Compare the cost of SRT's two retransmission algorithms with the published figures:
      punctual-lab run srt-retransmission --quick
      punctual-lab run srt-retransmission

  The same question at another round-trip time:
      punctual-lab run srt-retransmission --set rtt=80ms -o rtt-80

  The same plan in virtual time, over real sockets, and with libsrt's own programs:
      punctual-lab run srt-retransmission --backend sim,net,external

  A custom plan:
      punctual-lab show srt-retransmission --text > mine.toml
      punctual-lab run mine.toml -o mine

  A plan on four machines, whose results are merged:
      punctual-lab run mine.toml --shard 1/4 -o part-1
      punctual-lab merge part-1 part-2 part-3 part-4 -o all

Ctrl-C ends a sweep after the runs that are under way; --resume goes on with it. The results do not
depend on the number of jobs or parts. docs/plans.md describes the format of plans.";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definitions_are_sound() {
        LabCli::command().debug_assert();
    }

    #[test]
    fn commands_in_pages_and_examples_are_understood() {
        let (mut count, mut problems) = (0, String::new());
        let mut all = interop::documented_commands("punctual-lab");
        for (file, mut words) in interop::documented_commands("punctual") {
            match words[1].as_str() {
                "lab" => drop(words.remove(1)),
                "latency" | "model" => {}
                _ => continue,
            }
            all.push((file, words));
        }
        for (file, words) in all {
            count += 1;
            if let Err(error) = LabCli::try_parse_from(&words)
                && error.use_stderr()
            {
                problems.push_str(&format!("{}: {words:?}\n{error}\n", file.display()));
            }
        }
        assert!(count > 20, "{count} commands were found");
        assert!(problems.is_empty(), "{problems}");
    }
}
