//! The look of drawings, by example.

use punctual_figures::{Axis, Chart, Marker, Point, Series, Style, Theme};

fn small() -> Chart {
    let ours = [(1.0, 4.0), (2.0, 8.0), (3.0, 9.4)];
    let ours = ours.map(|(x, y)| Point::new(x, y).within(y - 0.5, y + 0.5));
    Chart::new("Overhead", Axis::linear("Latency", "× RTT"), Axis::linear("Overhead", "%"))
        .caption("Means with 95 % intervals.")
        .series(Series::new("ours", ours).style(Style::LinePoints))
        .series(Series::new("published", [(2.0, 8.5)]).style(Style::Points).slot(0).reference())
        .marker(Marker::vertical(2.0, "recommended"))
        .marker(Marker::horizontal(9.66, "published mean"))
}

#[test]
fn a_small_chart_looks_like_this() {
    insta::assert_snapshot!(small().to_svg(Theme::Light).replace("><", ">\n<"));
}

#[test]
fn labels_of_lines_do_not_touch_each_other() {
    let mut chart = Chart::new("", Axis::linear("", ""), Axis::linear("", ""))
        .series(Series::new("", [(0.0, 0.0), (10.0, 10.0)]));
    for i in 0..6_u8 {
        let x = 5.0 + f64::from(i) * 0.05;
        chart = chart.marker(Marker::vertical(x, "an event that takes long to name"));
        chart = chart.marker(Marker::horizontal(x, "a limit that takes long to name"));
    }
    let svg = chart.to_svg(Theme::Light);
    let document = roxmltree::Document::parse(&svg).unwrap();
    let mut places = Vec::new();
    for text in document.descendants().filter(|node| node.has_tag_name("text")) {
        if text.text().is_some_and(|text| text.starts_with("an event")) {
            let place = |name| text.attribute(name).unwrap().parse::<f64>().unwrap();
            places.push((place("x"), place("y")));
        }
    }
    assert_eq!(places.len(), 6);
    for (index, one) in places.iter().enumerate() {
        for other in &places[index + 1..] {
            assert!((one.1 - other.1).abs() >= 12.0, "{one:?} {other:?}");
        }
    }
}

#[test]
fn a_legend_names_each_series_once_and_wraps() {
    let axis = || Axis::linear("", "");
    let series = |panel: u8| {
        (0..12).map(move |i| {
            let y = f64::from(i + panel);
            Series::new(format!("a rather long name {i}"), [(0.0, y), (1.0, y)])
        })
    };
    let chart = Chart::new("", axis(), axis()).all_series(series(0));
    let svg = chart.panel(axis()).all_series(series(1)).to_svg(Theme::Light);
    for i in 0..12 {
        assert_eq!(svg.matches(&format!(">a rather long name {i}<")).count(), 1);
    }
}

#[test]
fn an_axis_of_names_has_each_at_its_place() {
    let x = Axis::names("Link", ["laboratory", "4G", "satellite"]);
    let chart = Chart::new("", x, Axis::linear("", ""))
        .series(Series::new("", [(0.0, 1.0), (2.0, 3.0)]).style(Style::Points));
    let svg = chart.to_svg(Theme::Light);
    for name in ["laboratory", "4G", "satellite"] {
        assert_eq!(svg.matches(&format!(">{name}<")).count(), 1, "{name}");
    }
}

#[cfg(feature = "png")]
mod png {
    use std::io::Write as _;

    use punctual_figures::{Fonts, PngError};

    use super::small;

    #[test]
    fn a_chart_becomes_an_image_of_the_given_width() {
        let fonts = match Fonts::system() {
            Ok(fonts) => fonts,
            Err(error) => {
                let problem = error.to_string();
                let required = std::env::var("PUNCTUAL_REQUIRE_PEERS");
                assert!(required.as_deref() != Ok("1"), "{problem}");
                // Past the capture of the test harness, so that nobody takes it for a test that
                // passed.
                let _ = writeln!(std::io::stdout(), "\nskipped: {problem}");
                return;
            }
        };
        let image = small().to_png(640, &fonts).unwrap();
        assert_eq!(&image[..8], b"\x89PNG\r\n\x1a\n");
        assert_eq!(image[16..20], 640_u32.to_be_bytes());
        assert_eq!(image, small().to_png(640, &fonts).unwrap());
        assert!(matches!(small().to_png(0, &fonts), Err(PngError::Size(0))));
    }

    #[test]
    fn without_a_font_there_is_an_error_that_tells_what_to_do() {
        let error = Fonts::from_file(b"no font".to_vec()).unwrap_err().to_string();
        assert!(error.contains("install one") && error.contains("SVG"), "{error}");
    }
}
