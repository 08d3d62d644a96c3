//! `punctual plot`.

use std::path::PathBuf;

/// Draw statistics and metrics files: packets, rates, RTT, buffers, latency, jitter
///
/// Reads the files of --statsfile and --metricsfile, ours, srt-xtransmit's and those of libsrt's
/// tools (srt-live-transmit -statsout FILE -pf:csv), as CSV and JSON, told apart by what they hold.
/// Each
/// connection of each file becomes a series; several files are laid over each other. The report is
/// one HTML file that needs no network and can be read on a screen, a phone and on paper.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PlotArgs {
    /// Files of statistics (CSV or JSON) or of metrics (CSV)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Where to write: a file for html (`-` for standard output), a folder for svg and png. By
    /// default beside the first FILE, under its name
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// What to write: one report, or a file for each figure
    #[arg(long, value_enum, default_value = "html", value_name = "FORMAT")]
    pub(crate) format: PlotFormat,
    /// How to lay several files over each other: by the clock (their `Timepoint`), or each from its
    /// own start. By default by the clock where the times of all files overlap
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) align: Option<Align>,
    /// Title of the report
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Width of PNG images, in pixels
    #[arg(long, value_name = "PIXELS", default_value = "1520",
          value_parser = clap::value_parser!(u32).range(100..=10_000))]
    pub(crate) width: u32,
}

/// What is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum PlotFormat {
    /// One self-contained report
    Html,
    /// A drawing for each figure, which browsers show in light or dark
    Svg,
    /// An image for each figure, drawn with the fonts of this system
    Png,
}

/// How times of several files become places on one axis.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum Align {
    /// Each file from its first row
    Start,
    /// By the time of day in `Timepoint`
    Clock,
}

const EXAMPLES: &str = "\
Examples:
  Statistics and metrics of one stream, sender's and receiver's, into snd.html:
      punctual plot snd.csv rcv.csv metrics.csv

  Two runs made one after the other, each from its start:
      punctual plot monday.csv tuesday.csv --align start -o compare.html

  What srt-live-transmit wrote (-s 1000 -statsout slt.csv -pf:csv), as images for a paper:
      punctual plot slt.csv --format png -o figures/";
