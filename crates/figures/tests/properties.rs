//! Rules for any data: the drawing is XML, has only finite positions, and is the same each time.

use proptest::prelude::*;
use punctual_figures::{Axis, Chart, Marker, Page, Point, Series, Style, Theme};

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => -1e3..1e4,
        1 => any::<f64>(),
        1 => prop::sample::select(vec![
            0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-300, 5e-324, 1e150, -1e150,
            f64::MAX, f64::MIN,
        ]),
    ]
}

fn axis() -> impl Strategy<Value = Axis> {
    let kind = (0..3_u8, ".{0,12}", ".{0,4}");
    (kind, prop::option::of(value()), prop::option::of(value())).prop_map(
        |((kind, label, unit), low, high)| {
            let axis = match kind {
                0 => Axis::linear(label, unit),
                1 => Axis::log(label, unit),
                _ => Axis::time(label),
            };
            let axis = low.into_iter().fold(axis, Axis::from);
            high.into_iter().fold(axis, Axis::to)
        },
    )
}

fn series() -> impl Strategy<Value = Series> {
    let point = (value(), value(), prop::option::of((value(), value())));
    let points = prop::collection::vec(point, 0..30);
    (".{0,30}", points, 0..5_u8, any::<bool>(), prop::option::of(any::<usize>())).prop_map(
        |(name, points, style, reference, slot)| {
            let points = points.into_iter().map(|(x, y, interval)| Point {
                x,
                y,
                interval,
                quartiles: None,
                heat: None,
            });
            let style = [Style::Line, Style::Points, Style::LinePoints, Style::Step, Style::Band]
                [usize::from(style)];
            let series = Series::new(name, points).style(style);
            let series = slot.into_iter().fold(series, Series::slot);
            if reference { series.reference() } else { series }
        },
    )
}

fn chart() -> impl Strategy<Value = Chart> {
    let marker = (value(), ".{0,20}", any::<bool>()).prop_map(|(at, label, vertical)| {
        if vertical { Marker::vertical(at, label) } else { Marker::horizontal(at, label) }
    });
    let panel =
        (axis(), prop::collection::vec(series(), 0..4), prop::collection::vec(marker, 0..3));
    (".{0,40}", ".{0,200}", axis(), axis(), prop::collection::vec(panel, 0..3)).prop_map(
        |(title, caption, x, y, panels)| {
            let mut chart = Chart::new(title, x, y).caption(caption);
            for (y, series, markers) in panels {
                chart = chart.panel(y).all_series(series);
                chart = markers.into_iter().fold(chart, Chart::marker);
            }
            chart
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_data_gives_xml_whose_places_are_numbers(chart in chart()) {
        for theme in [Theme::Auto, Theme::Light, Theme::Dark] {
            let svg = chart.to_svg(theme);
            let document = roxmltree::Document::parse(&svg);
            prop_assert!(document.is_ok(), "{:?}\n{svg}", document.err());
            let document = document.unwrap();
            for node in document.descendants() {
                for name in ["d", "x", "y", "width", "height", "transform"] {
                    let place = node.attribute(name).unwrap_or_default();
                    prop_assert!(!place.contains("NaN") && !place.contains("inf"), "{name}={place}");
                }
            }
        }
    }

    #[test]
    fn the_same_data_gives_the_same_page(chart in chart()) {
        let html = |chart: Chart| {
            let mut page = Page::new("page");
            page.chart(chart);
            page.to_html()
        };
        prop_assert_eq!(html(chart.clone()), html(chart));
    }
}
