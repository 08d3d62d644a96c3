//! The report of results, and its figures one by one.

use std::fs;
use std::path::Path;

use punctual_figures::{Chart, Fonts, Theme};
use punctual_lab::report;
use punctual_lab::results::Results;

use crate::args::ReportFormat;
use crate::exit::Failure;
use crate::print::print;

/// Writes the report, or a file for each figure, into the folder of the results, and prints the
/// paths; or prints the tables.
pub(super) fn write(results: &Results, folder: &Path, format: ReportFormat) -> Result<(), Failure> {
    if format != ReportFormat::Markdown {
        eprintln!("results: {}", shown(&folder.join("results.csv")));
    }
    match format {
        ReportFormat::Markdown => print(report::markdown(results)),
        ReportFormat::Html => {
            let path = folder.join("report.html");
            let html = report::page(results).to_html();
            fs::write(&path, html).map_err(|error| Failure::file(&path, &error))?;
            eprintln!("report: {}", shown(&path));
            Ok(())
        }
        ReportFormat::Svg => {
            write_each(results, folder, "svg", |chart| Ok(chart.to_svg(Theme::Auto).into_bytes()))
        }
        ReportFormat::Png => {
            let fonts = Fonts::system().map_err(|error| Failure::runtime(error.to_string()))?;
            write_each(results, folder, "png", |chart| {
                let image = chart.to_png(2 * Chart::WIDTH, &fonts);
                image.map_err(|error| Failure::runtime(error.to_string()))
            })
        }
    }
}

/// A path in one line, without control characters.
fn shown(path: &Path) -> String {
    punctual_units::one_line(&path.display().to_string()).into_owned()
}

fn write_each(
    results: &Results,
    folder: &Path,
    extension: &str,
    draw: impl Fn(&Chart) -> Result<Vec<u8>, Failure>,
) -> Result<(), Failure> {
    let figures = report::figures(results);
    let folder = folder.join("figures");
    fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, &error))?;
    for figure in &figures {
        let name = punctual_figures::slug(&format!("figure {}", figure.name));
        let path = folder.join(format!("{name}.{extension}"));
        let content = draw(&figure.chart)?;
        fs::write(&path, content).map_err(|error| Failure::file(&path, &error))?;
    }
    eprintln!("{} figures: {}", figures.len(), shown(&folder));
    Ok(())
}
