//! How a chart looks: from the value to SVG.

mod axes;
mod boxes;
mod cells;
mod layout;
mod legend;
mod markers;
mod series;
mod shapes;

use crate::chart::Chart;
use crate::svg::{Px, Xml};
use crate::theme::{self, Theme};
use crate::width::wrap;
use layout::{Layout, PlacedPanel};

/// A place in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spot {
    pub(crate) x: f64,
    pub(crate) y: f64,
}

/// For where a chart is drawn.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    /// Width in CSS pixels.
    pub(crate) width: f64,
    /// The colours of a separate file. In a page the colours and the title are the page's.
    pub(crate) alone: Option<Theme>,
    /// Distinguishes the chart from others in one page.
    pub(crate) id: String,
}

impl Look {
    /// For a separate file.
    pub(crate) fn alone(theme: Theme, width: u32) -> Self {
        Self { width: f64::from(width), alone: Some(theme), id: "c".to_owned() }
    }

    /// Whether it is drawn for a phone.
    fn small(&self) -> bool {
        self.width < 500.0
    }

    /// Size of the text at axes and in legends.
    fn font(&self) -> f64 {
        if self.small() { 11.0 } else { 12.0 }
    }
}

/// The chart as an SVG element.
pub(crate) fn draw(chart: &Chart, look: &Look) -> String {
    let heading = heading(chart, look);
    let layout = Layout::new(chart, look, heading.height);
    let mut xml = Xml::default();
    let (width, height) = (Px(look.width), Px(layout.height));
    let view = format!("0 0 {width} {height}");
    let mut attributes: Vec<(&str, &dyn std::fmt::Display)> = Vec::new();
    if look.alone.is_some() {
        attributes.push(("xmlns", &"http://www.w3.org/2000/svg"));
        attributes.push(("width", &width));
        attributes.push(("height", &height));
        attributes.push(("font-family", &"Helvetica, Arial, 'DejaVu Sans', sans-serif"));
    }
    let font = Px(look.font());
    attributes.extend::<[(&str, &dyn std::fmt::Display); 4]>([
        ("viewBox", &view),
        ("font-size", &font),
        ("role", &"img"),
        ("aria-label", &chart.title),
    ]);
    xml.open("svg", &attributes);
    if let Some(theme) = look.alone {
        xml.leaf("style", &[], &style(theme));
        let all: [(&str, &dyn std::fmt::Display); 3] =
            [("class", &"p"), ("width", &"100%"), ("height", &"100%")];
        xml.empty("rect", &all);
        heading.draw(&mut xml);
    }
    layout.shared_legend.draw(&mut xml);
    for field in &layout.fields {
        draw_field(&mut xml, &layout, field, look);
    }
    axes::draw_x(&mut xml, &layout, look);
    xml.close("svg");
    xml.finish()
}

fn draw_field(xml: &mut Xml, layout: &Layout, field: &PlacedPanel<'_>, look: &Look) {
    field.legend.draw(xml);
    axes::draw_heading(xml, layout, field);
    let clip = format!("{}-{}", look.id, field.index);
    if field.clipped {
        xml.open("clipPath", &[("id", &clip)]);
        let (width, height) = (Px(layout.plot_width), Px(field.height));
        xml.empty("rect", &[("width", &width), ("height", &height)]);
        xml.close("clipPath");
    }
    let place = format!("translate({} {})", Px(layout.left), Px(field.top));
    let (x, y) = (layout.x_ends(), field.y_ends());
    let attributes: [(&str, &dyn std::fmt::Display); 4] =
        [("class", &"plot"), ("transform", &place), ("data-x", &x), ("data-y", &y)];
    xml.open("g", &attributes);
    axes::draw_grid(xml, layout, field);
    markers::draw_lines(xml, layout, field);
    if field.clipped {
        let url = format!("url(#{clip})");
        xml.open("g", &[("clip-path", &url)]);
    }
    series::draw(xml, layout, field);
    if field.clipped {
        xml.close("g");
    }
    markers::draw_labels(xml, layout, field);
    if field.empty {
        let attributes: [(&str, &dyn std::fmt::Display); 4] = [
            ("class", &"u"),
            ("x", &Px(layout.plot_width / 2.0)),
            ("y", &Px(field.height / 2.0)),
            ("text-anchor", &"middle"),
        ];
        xml.leaf("text", &attributes, "no data");
    }
    xml.close("g");
}

/// The style of a separate file.
fn style(theme: Theme) -> String {
    let rules = |dark| theme::chart_rules(|name| theme::colour(name, dark));
    match theme {
        Theme::Light => rules(false),
        Theme::Dark => rules(true),
        Theme::Auto => {
            let (light, dark) = (rules(false), rules(true));
            format!("{light}@media (prefers-color-scheme:dark){{{dark}}}")
        }
    }
}

/// Title, caption and quotation above a chart in a separate file.
struct Heading {
    title: Vec<String>,
    caption: Vec<String>,
    quotation: Vec<String>,
    height: f64,
}

fn heading(chart: &Chart, look: &Look) -> Heading {
    if look.alone.is_none() {
        let (title, caption, quotation) = (Vec::new(), Vec::new(), Vec::new());
        return Heading { title, caption, quotation, height: 4.0 };
    }
    let room = look.width - 2.0 * MARGIN;
    // Bold letters are wider than the estimate takes them for.
    let title = wrap(&chart.title, TITLE * 1.08, room);
    let caption = wrap(&chart.caption, CAPTION, room);
    let quotation = wrap(&chart.quotation, CAPTION, room - INDENT);
    let lines = |lines: &[String], size: f64| {
        f64::from(u16::try_from(lines.len()).unwrap_or(u16::MAX)) * size * LINE
    };
    let texts = lines(&caption, CAPTION) + lines(&quotation, CAPTION);
    let height = MARGIN + lines(&title, TITLE) + texts + 10.0;
    Heading { title, caption, quotation, height }
}

impl Heading {
    fn draw(&self, xml: &mut Xml) {
        let mut y = MARGIN + 0.2 * TITLE;
        for (lines, x, size, class, style) in [
            (&self.title, 6.0, TITLE, "t", ("font-weight", "bold")),
            (&self.caption, 6.0, CAPTION, "u", ("font-weight", "normal")),
            (&self.quotation, 6.0 + INDENT, CAPTION, "u", ("font-style", "italic")),
        ] {
            for line in lines {
                y += size * LINE;
                let attributes: [(&str, &dyn std::fmt::Display); 5] = [
                    ("class", &class),
                    ("x", &Px(x)),
                    ("y", &Px(y - 0.4 * size)),
                    ("font-size", &Px(size)),
                    (style.0, &style.1),
                ];
                xml.leaf("text", &attributes, line);
            }
        }
    }
}

const MARGIN: f64 = 12.0;
const TITLE: f64 = 16.0;
const CAPTION: f64 = 12.5;
const LINE: f64 = 1.35;
/// The distance of a quotation from the left.
const INDENT: f64 = 14.0;
