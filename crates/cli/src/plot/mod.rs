//! `punctual plot`: draws figures from files of statistics and metrics.

mod figures;
mod source;
mod summary;

use std::fs;
use std::path::{Path, PathBuf};

use punctual_figures::{Chart, Fonts, Page, Text, Theme, slug};
use punctual_stats::read::TableKind;

use crate::args::{PlotArgs, PlotFormat};
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
        PlotFormat::Svg => {
            let draw = |chart: &Chart| Ok(chart.to_svg(Theme::Auto).into_bytes());
            write_each(args, &charts, "svg", Chart::recognises_svg, draw)
        }
        PlotFormat::Png => {
            let fonts = Fonts::system().map_err(|error| Failure::runtime(error.to_string()))?;
            write_each(args, &charts, "png", Chart::recognises_png, |chart| {
                let image = chart.to_png(args.width, &fonts);
                image.map_err(|error| Failure::runtime(error.to_string()))
            })
        }
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

fn write_each(
    args: &PlotArgs,
    charts: &[Chart],
    extension: &str,
    is_ours: fn(&[u8]) -> bool,
    draw: impl Fn(&Chart) -> Result<Vec<u8>, Failure>,
) -> Result<(), Failure> {
    let folder = match &args.output {
        Some(path) if path == Path::new("-") => {
            let what = format!("several {extension} files cannot go to standard output");
            return Err(Failure::usage(what + "; name a folder by --output"));
        }
        Some(path) => path.clone(),
        None => args.files[0].with_extension("figures"),
    };
    fs::create_dir_all(&folder).map_err(|error| Failure::file(&folder, &error))?;
    for (index, chart) in charts.iter().enumerate() {
        let name = format!("{:02}-{}.{extension}", index + 1, slug(chart.title()));
        let path: PathBuf = folder.join(name);
        written::replace(&path, draw(chart)?, "figure", is_ours)?;
    }
    tracing::info!("wrote {} figures to {}", charts.len(), folder.display());
    Ok(())
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
