//! `punctual plot`.

use std::path::PathBuf;

/// Draw statistics and metrics files: packets, rates, RTT, buffers, latency, jitter
///
/// Reads the files of --statsfile and --metricsfile, of Punctual, of srt-xtransmit and of libsrt's
/// tools (srt-live-transmit -statsout FILE -pf:csv), as CSV and JSON, and finds out their kind by
/// itself. Each connection of each file becomes a series; several files share the axes. The report
/// is one HTML file that needs no network and can be read on a screen, a phone and on paper.
#[derive(Clone, Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PlotArgs {
    /// Files of statistics (CSV or JSON) or of metrics (CSV)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The place to write to: a file for html (`-` for standard output), a folder for svg and png.
    /// The default is beside the first FILE, under its name
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Option<PathBuf>,
    /// The form: one report, or a file for each figure
    #[arg(long, value_enum, default_value = "html", value_name = "FORMAT")]
    pub(crate) format: PlotFormat,
    /// The common time axis of several files: the clock (their `Timepoint`), or the time since the
    /// start of each. The default is the clock if the times of all files overlap
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) align: Option<TimeAlignment>,
    /// The title of the report
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// The width of PNG images, in pixels
    #[arg(long, value_name = "PIXELS", default_value = "1520",
          value_parser = clap::value_parser!(u32).range(100..=10_000))]
    pub(crate) width: u32,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum PlotFormat {
    /// One self-contained report
    Html,
    /// A drawing for each figure, which browsers show in light or dark
    Svg,
    /// An image for each figure, drawn by `punctual-lab` with the fonts of this system
    Png,
}

/// The common time axis of several files.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub(crate) enum TimeAlignment {
    /// The time since each file's first row
    Start,
    /// The time of day in `Timepoint`
    Clock,
}

const EXAMPLES: &str = "\
Examples:
  Statistics and metrics of one stream, sender's and receiver's, into snd.html:
      punctual plot snd.csv rcv.csv metrics.csv

  Two runs that were made one after the other, both from their start:
      punctual plot monday.csv tuesday.csv --align start -o compare.html

  Statistics of srt-live-transmit (-s 1000 -statsout slt.csv -pf:csv), as images for a paper:
      punctual plot slt.csv --format png -o figures/";
