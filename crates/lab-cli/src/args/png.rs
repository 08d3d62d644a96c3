//! `punctual-lab png`.

use std::path::PathBuf;

/// Draw figures that Punctual wrote as SVG as PNG images, with the fonts of this system
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PngArgs {
    /// SVG figures of `punctual plot` and of reports
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The folder for the images. The default is beside each FILE, under its name
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// The width of the images, in pixels
    #[arg(long, value_name = "PIXELS", default_value = "1520",
          value_parser = clap::value_parser!(u32).range(100..=10_000))]
    pub(crate) width: u32,
}
