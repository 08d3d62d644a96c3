//! Plans, their runs and their reports.

use std::num::NonZero;
use std::path::PathBuf;

use punctual_lab::run::SweepShard;

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// A built-in plan's name, or a file
    #[arg(value_name = "PLAN")]
    pub(crate) plan: String,
    /// Print the plan's text, as a start for a custom plan
    #[arg(long)]
    pub(crate) text: bool,
}

#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = super::EXAMPLES)]
pub(crate) struct RunArgs {
    /// A built-in plan's name, or a file
    #[arg(value_name = "PLAN")]
    pub(crate) plan: String,
    /// The backends that run it: sim (virtual time), net (real sockets), external (other programs),
    /// quic-model (plans with [quic]); the results of several are beside each other
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    #[arg(value_parser = ["sim", "net", "external", "quic-model"], hide_possible_values = true)]
    pub(crate) backend: Vec<String>,
    /// Replace a value of the plan: latency=120ms, loss='["1%","2%"]', link.up.rate=10Mbps; may be
    /// given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// The number of runs of each combination, with different seeds
    #[arg(long, value_name = "N")]
    pub(crate) repeats: Option<u32>,
    /// Use the values in the plan's [quick], for a first look
    #[arg(long)]
    pub(crate) quick: bool,
    /// The folder for the results; default: the plan's name
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The number of runs at the same time; default: one for each core
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZero<usize>>,
    /// Go on with the results that are in the folder
    #[arg(long)]
    pub(crate) resume: bool,
    /// Run one of N parts, to be merged with the others
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<SweepShard>,
    /// Write no report, only results
    #[arg(long)]
    pub(crate) no_report: bool,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MergeArgs {
    /// The folders of the parts
    #[arg(value_name = "PART", required = true, num_args = 1..)]
    pub(crate) parts: Vec<PathBuf>,
    /// The folder for the merged results
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// A folder of results
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The form of the report: one file, a file for each figure, or tables in Markdown, which are
    /// printed
    #[arg(long, value_enum, default_value = "html", value_name = "FORMAT")]
    pub(crate) format: ReportFormat,
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// One self-contained report
    Html,
    /// A drawing for each figure, which browsers show in light or dark
    Svg,
    /// An image for each figure, drawn with the fonts of this system
    Png,
    /// The tables in Markdown, printed to standard output, for documents
    Markdown,
}
