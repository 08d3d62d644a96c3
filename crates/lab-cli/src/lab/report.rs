//! The report of results, and its figures one by one.

use std::fs;
use std::path::Path;

use punctual_figures::{Chart, Fonts, Page, Theme};
use punctual_lab::report;
use punctual_lab::results::Results;

use crate::args::ReportFormat;
use crate::lab::say;
use punctual_program::exit::Failure;
use punctual_program::output::print;
use punctual_program::written;

/// Writes the report, or a file for each figure, into the folder of the results, and prints the
/// paths; or prints the tables.
pub(super) fn write(results: &Results, folder: &Path, format: ReportFormat) -> Result<(), Failure> {
    if format != ReportFormat::Markdown {
        say(format_args!("results: {}", shown(&folder.join("results.csv"))));
    }
    match format {
        ReportFormat::Markdown => print(report::markdown(results)),
        ReportFormat::Html => {
            let path = folder.join(PAGE);
            let html = report::page(results).to_html();
            written::replace(&path, html, KIND, Page::recognises)?;
            say(format_args!("report: {}", shown(&path)));
            Ok(())
        }
        ReportFormat::Svg => {
            let draw = |chart: &Chart| Ok(chart.to_svg(Theme::Auto).into_bytes());
            write_each(results, folder, "svg", Chart::recognises_svg, draw)
        }
        ReportFormat::Png => {
            let fonts = Fonts::system().map_err(|error| Failure::runtime(error.to_string()))?;
            write_each(results, folder, "png", Chart::recognises_png, |chart| {
                let image = chart.to_png(2 * Chart::WIDTH, &fonts);
                image.map_err(|error| Failure::runtime(error.to_string()))
            })
        }
    }
}

/// Checks before the runs that the report can be written into the folder at their end.
pub(super) fn check(folder: &Path) -> Result<(), Failure> {
    written::check(&folder.join(PAGE), KIND, Page::recognises)
}

/// A path in one line, without control characters.
fn shown(path: &Path) -> String {
    punctual_units::one_line(&path.display().to_string()).into_owned()
}

fn write_each(
    results: &Results,
    folder: &Path,
    extension: &str,
    is_ours: fn(&[u8]) -> bool,
    draw: impl Fn(&Chart) -> Result<Vec<u8>, Failure>,
) -> Result<(), Failure> {
    let figures = report::figures(results);
    let folder = folder.join("figures");
    fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, &error))?;
    for figure in &figures {
        let name = punctual_figures::slug(&format!("figure {}", figure.name));
        let path = folder.join(format!("{name}.{extension}"));
        written::replace(&path, draw(&figure.chart)?, "figure", is_ours)?;
    }
    say(format_args!("{} figures: {}", figures.len(), shown(&folder)));
    Ok(())
}

/// The file of the report.
const PAGE: &str = "report.html";

/// The kind of that file.
const KIND: &str = "report";
