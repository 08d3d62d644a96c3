//! Charts as PNG images.

use std::sync::Arc;

use resvg::{tiny_skia, usvg};

use crate::chart::Chart;
use crate::theme::Theme;

/// The fonts that letters in PNG images are drawn with.
#[derive(Clone, Debug)]
pub struct Fonts {
    database: Arc<usvg::fontdb::Database>,
}

/// Why a chart could not become a PNG image.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PngError {
    /// There is nothing to draw letters with.
    #[error(
        "no font was found to draw letters with: install one, such as DejaVu Sans \
         (Debian: fonts-dejavu-core), or write SVG, which needs none"
    )]
    NoFont,
    /// The image would be too large or has no size at all.
    #[error("an image {0} pixels wide is not possible: between 100 and 10000 are")]
    Size(u32),
    /// The drawing or the image could not be made.
    #[error("the image could not be made: {0}")]
    Image(String),
}

impl Fonts {
    /// The fonts that are installed on this system.
    ///
    /// # Errors
    ///
    /// [`PngError::NoFont`] where there are none.
    pub fn system() -> Result<Self, PngError> {
        let mut database = usvg::fontdb::Database::new();
        database.load_system_fonts();
        Self::of(database)
    }

    /// The fonts in a font file (TrueType or OpenType).
    ///
    /// # Errors
    ///
    /// [`PngError::NoFont`] if there are none in it.
    pub fn from_file(content: Vec<u8>) -> Result<Self, PngError> {
        let mut database = usvg::fontdb::Database::new();
        database.load_font_data(content);
        Self::of(database)
    }

    /// The figure of an SVG file ([`Chart::to_svg`]) as a PNG image on white, `width` pixels wide.
    ///
    /// # Errors
    ///
    /// The width is out of range, or the text is no SVG.
    pub fn draw(&self, svg: &str, width: u32) -> Result<Vec<u8>, PngError> {
        draw(svg, width, self)
    }

    fn of(mut database: usvg::fontdb::Database) -> Result<Self, PngError> {
        let family = best_family(&database).ok_or(PngError::NoFont)?;
        database.set_sans_serif_family(family);
        Ok(Self { database: Arc::new(database) })
    }
}

/// The family to draw with: a common and legible one, or else any.
fn best_family(database: &usvg::fontdb::Database) -> Option<String> {
    let names: Vec<&String> =
        database.faces().flat_map(|face| face.families.first()).map(|family| &family.0).collect();
    let known = COMMON.iter().find(|known| names.iter().any(|name| name == *known));
    known.map(ToString::to_string).or_else(|| names.iter().min().map(ToString::to_string))
}

const COMMON: [&str; 9] = [
    "Helvetica",
    "Arial",
    "Liberation Sans",
    "DejaVu Sans",
    "Noto Sans",
    "Roboto",
    "Ubuntu",
    "Cantarell",
    "Segoe UI",
];

/// The chart as a PNG image on white, `width` pixels wide.
pub(crate) fn png(chart: &Chart, width: u32, fonts: &Fonts) -> Result<Vec<u8>, PngError> {
    fonts.draw(&chart.to_svg(Theme::Light), width)
}

/// The figure of an SVG file as a PNG image on white.
fn draw(svg: &str, width: u32, fonts: &Fonts) -> Result<Vec<u8>, PngError> {
    if !(100..=10_000).contains(&width) {
        return Err(PngError::Size(width));
    }
    let options = usvg::Options { fontdb: Arc::clone(&fonts.database), ..usvg::Options::default() };
    let tree =
        usvg::Tree::from_str(svg, &options).map_err(|error| PngError::Image(error.to_string()))?;
    let size = tree.size().to_int_size().scale_to_width(width).ok_or(PngError::Size(width))?;
    let mut image =
        tiny_skia::Pixmap::new(size.width(), size.height()).ok_or(PngError::Size(width))?;
    let scale = size.width() as f32 / tree.size().width();
    let transform = tiny_skia::Transform::from_scale(scale, scale);
    resvg::render(&tree, transform, &mut image.as_mut());
    image.encode_png().map_err(|error| PngError::Image(error.to_string()))
}
