//! `punctual plot`: draws figures from files of statistics and metrics.

mod figures;
mod source;
mod summary;

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use punctual_figures::{Chart, Page, Text, Theme, slug};
use punctual_stats::read::TableKind;

use crate::args::{PlotArgs, PlotFormat};
use crate::companion::LAB;
use crate::exit::Failure;
use crate::output::print;
use crate::written;
use source::{Loaded, load};

/// Reads the files and writes the report or the figures.
pub(crate) fn run(args: &PlotArgs) -> Result<(), Failure> {
    args.files.iter().for_each(|file| written::note(file));
    let loaded = load(&args.files, args.align)?;
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let parts =
        [TableKind::Metrics, TableKind::Statistics].map(|kind| figures::charts(&loaded, kind));
    let charts = parts.concat();
    if charts.is_empty() {
        return Err(Failure::runtime("there is nothing to draw: the files have no rows of data"));
    }
    match args.format {
        PlotFormat::Html => write_page(args, &loaded, parts),
        PlotFormat::Svg => write_each(args, &charts),
        PlotFormat::Png => draw_each(args, &charts),
    }
}

fn write_page(args: &PlotArgs, loaded: &Loaded, parts: [Vec<Chart>; 2]) -> Result<(), Failure> {
    let title = args.title.clone().unwrap_or_else(|| title(loaded));
    let mut page = Page::new(title);
    page.lead(loaded.lead());
    summary::write(&mut page, loaded);
    for (charts, heading) in parts.into_iter().zip(["At the application", "On the connection"]) {
        if !charts.is_empty() {
            page.heading(heading);
        }
        charts.into_iter().for_each(|chart| page.chart(chart));
    }
    if !loaded.warnings.is_empty() {
        page.heading("Faults of the files");
        page.list(loaded.warnings.iter().map(String::as_str));
    }
    let files = args.files.iter().map(|file| quoted(file)).collect::<Vec<_>>().join(" ");
    let again = Text::default()
        .plain(concat!("Drawn by Punctual ", env!("CARGO_PKG_VERSION"), ": "))
        .code(format!("punctual plot {files}"));
    page.foot(again);
    let html = page.to_html();
    let path = match &args.output {
        Some(path) if path == Path::new("-") => return print(html),
        Some(path) => path.clone(),
        None => args.files[0].with_extension("html"),
    };
    written::replace(&path, html, "report", Page::recognises)?;
    tracing::info!("wrote {}", path.display());
    Ok(())
}

fn write_each(args: &PlotArgs, charts: &[Chart]) -> Result<(), Failure> {
    let folder = folder(args, "SVG")?;
    fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, &error))?;
    for (index, chart) in charts.iter().enumerate() {
        let path = folder.join(file_name(index, chart));
        written::replace(&path, chart.to_svg(Theme::Auto), "figure", Chart::recognises_svg)?;
    }
    tracing::info!("wrote {} figures to {}", charts.len(), folder.display());
    Ok(())
}

/// Lets `punctual-lab` draw the figures as images.
fn draw_each(args: &PlotArgs, charts: &[Chart]) -> Result<(), Failure> {
    let folder = folder(args, "PNG")?;
    let drawings = tempfile::tempdir()?;
    let mut arguments = ["png", "--quiet", "--width"].map(OsString::from).to_vec();
    arguments.extend([args.width.to_string().into(), "--output".into(), folder.clone().into()]);
    for (index, chart) in charts.iter().enumerate() {
        let path = drawings.path().join(file_name(index, chart));
        let written = fs::write(&path, chart.to_svg(Theme::Light));
        written.map_err(|error| Failure::file(&path, &error))?;
        arguments.push(path.into());
    }
    LAB.call(&arguments)?;
    tracing::info!("wrote {} figures to {}", charts.len(), folder.display());
    Ok(())
}

/// The folder for files of this kind.
fn folder(args: &PlotArgs, kind: &str) -> Result<PathBuf, Failure> {
    match &args.output {
        Some(path) if path == Path::new("-") => Err(Failure::usage(format!(
            "several {kind} files cannot go to standard output; name a folder by --output"
        ))),
        Some(path) => Ok(path.clone()),
        None => Ok(args.files[0].with_extension("figures")),
    }
}

fn file_name(index: usize, chart: &Chart) -> String {
    format!("{:02}-{}.svg", index + 1, slug(chart.title()))
}

fn title(loaded: &Loaded) -> String {
    let mut names: Vec<&str> = loaded.sources.iter().map(|source| &*source.file).collect();
    names.dedup();
    match names[..] {
        [one] => one.to_owned(),
        [one, other] => format!("{one} and {other}"),
        [first, ..] => format!("{first} and {} more", names.len() - 1),
        [] => String::new(),
    }
}

fn quoted(file: &Path) -> String {
    let text = file.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+,=:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
