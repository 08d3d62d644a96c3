use super::*;
use crate::{Axis, Series};

#[test]
fn everything_that_is_written_is_escaped() {
    let evil = "<script>alert(1)</script>\"'&";
    let mut page = Page::new(evil);
    page.lead(evil);
    page.foot(evil);
    page.heading(evil);
    page.text(Text::default().plain(evil).strong(evil).code(evil).link(evil, evil));
    page.note(evil);
    page.list([evil]);
    page.code(evil);
    page.key_figures([[evil, evil, evil]]);
    let mut table = Table::new(evil, [TableColumn::number(evil).group(evil)]);
    table.row([evil]);
    page.table(table);
    let chart = Chart::new(evil, Axis::linear(evil, evil), Axis::linear(evil, evil));
    page.quotation(evil);
    page.chart(chart.caption(evil).quotation(evil).series(Series::new(evil, [(1.0, 1.0)])));
    page.details(evil, |page| page.text(evil));
    let html = page.to_html();
    assert!(!html.contains("<script>alert") && !html.contains("\"'&\""), "{html}");
    assert!(html.matches("&lt;script&gt;alert").count() > 17);
}

#[test]
fn numbers_keep_their_units_and_cells_break_before_intervals() {
    let mut page = Page::new("");
    page.text("In 95 % of 12 runs, 30 ms; at 2 Mb/s. 5 µs or 7 apples ± 3");
    let mut table = Table::new("", [TableColumn::number("")]);
    table.row(["0.021 (0.011 to 0.036)"]);
    table.row(["9.41 ± 0.10"]);
    table.row(["(none)"]);
    page.table(table);
    let html = page.to_html();
    for text in [
        "In 95\u{a0}% of 12 runs, 30\u{a0}ms; at 2\u{a0}Mb/s. 5\u{a0}µs or 7 apples ±\u{a0}3",
        ">0.021 <span>(0.011 to 0.036)</span><",
        ">9.41 <span>±\u{a0}0.10</span><",
        ">(none)<",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn addresses_that_could_run_code_are_not_linked() {
    let mut page = Page::new("");
    page.text(Text::default().link("here", "javascript:alert(1)").link("there", "https://x.y/z"));
    let html = page.to_html();
    assert!(!html.contains("javascript:"));
    assert!(html.contains("<a href=\"https://x.y/z\">there</a>"));
}

#[test]
fn a_page_fetches_nothing() {
    let mut page = Page::new("");
    page.chart(Chart::new("", Axis::time(""), Axis::log("", "")));
    let html = page.to_html();
    for word in ["src=", "url(", "@import", "<link", "href=", "fetch(", "https:"] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn headings_of_the_same_name_have_different_anchors() {
    let mut page = Page::new("");
    for _ in 0..3 {
        page.heading("Überlast: what then?");
    }
    let html = page.to_html();
    for anchor in ["berlast-what-then", "berlast-what-then-2", "berlast-what-then-3"] {
        assert_eq!(html.matches(&format!("\"{anchor}\"")).count(), 1, "{anchor}");
        assert_eq!(html.matches(&format!("\"#{anchor}\"")).count(), 2, "{anchor}");
    }
}

#[test]
fn charts_are_found_in_folded_parts_too() {
    let mut page = Page::new("");
    let chart = |title: &str| Chart::new(title, Axis::time(""), Axis::time(""));
    page.chart(chart("one"));
    page.details("more", |page| page.chart(chart("two")));
    let titles: Vec<&str> = page.charts().iter().map(|chart| chart.title()).collect();
    assert_eq!(titles, ["one", "two"]);
}

#[test]
fn files_that_were_written_are_recognised_and_others_are_not() {
    let chart = Chart::new("A", Axis::time(""), Axis::time(""));
    let (page, svg) = (Page::new("A").to_html(), chart.to_svg(crate::Theme::Auto));
    assert!(Page::recognises(page.as_bytes()) && Chart::recognises_svg(svg.as_bytes()));
    assert!(!Page::recognises(b"<!doctype html>\n<html lang=\"en\">\n<p>mine</p>"));
    assert!(!Chart::recognises_svg(b"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1\"/>"));
    assert!(!Chart::recognises_png(b"Timepoint,msRTT\n"));
}

#[test]
fn names_of_files_are_short_and_harmless() {
    assert_eq!(slug("Fig. 2a: Overhead, 5 %"), "fig-2a-overhead-5");
    assert_eq!(slug("../../etc"), "etc");
    assert_eq!(slug("†"), "figure");
    assert!(slug(&"long ".repeat(50)).len() <= 60);
}

#[test]
fn a_small_page_looks_like_this() {
    let mut page = Page::new("Title");
    page.lead("What it is about.");
    page.heading("First");
    let columns = [
        TableColumn::text("algorithm"),
        TableColumn::number("mean, %"),
        TableColumn::number("±").group("ours"),
    ];
    let mut table = Table::new("Overhead", columns);
    table.row(["aggressive", "9.66", "0.1"]);
    table.row(["efficient"]);
    page.table(table);
    page.details("More", |page| page.code("a < b"));
    let html = page.to_html();
    let body = html.split_once("</head>").map(|parts| parts.1).unwrap();
    insta::assert_snapshot!(body);
}
