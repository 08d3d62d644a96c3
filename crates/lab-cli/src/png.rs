//! `punctual-lab png`: figures as images.

use std::fs;
use std::path::Path;

use punctual_figures::{Chart, Fonts};
use punctual_program::exit::Failure;
use punctual_program::written;

use crate::args::PngArgs;

/// Draws each figure into its image.
pub(crate) fn run(args: &PngArgs) -> Result<(), Failure> {
    args.files.iter().for_each(|file| written::note(file));
    let fonts = Fonts::system().map_err(|error| Failure::runtime(error.to_string()))?;
    if let Some(folder) = &args.output {
        fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    }
    for file in &args.files {
        let svg = figure(file)?;
        let image = fonts.draw(&svg, args.width);
        let image =
            image.map_err(|error| Failure::runtime(error.to_string()).at(file.display()))?;
        let beside = file.with_extension("png");
        let path = match (&args.output, beside.file_name()) {
            (Some(folder), Some(name)) => folder.join(name),
            _ => beside,
        };
        written::replace(&path, image, "figure", Chart::recognises_png)?;
    }
    tracing::info!("drew {} figures", args.files.len());
    Ok(())
}

/// The text of a figure that Punctual made.
fn figure(file: &Path) -> Result<String, Failure> {
    let svg = punctual_units::read_text(file).map_err(|error| Failure::file(file, &error))?;
    if !Chart::recognises_svg(svg.as_bytes()) {
        return Err(Failure::usage(format!("{} is no SVG figure of Punctual's", file.display())));
    }
    Ok(svg)
}
