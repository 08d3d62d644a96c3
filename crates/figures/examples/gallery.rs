//! A page with one of each, to look at: `cargo run -p punctual-figures --example gallery > x.html`

#![forbid(unsafe_code)]

use punctual_figures::{
    Axis, Chart, Marker, Page, Point, Series, Style, Table, TableColumn, Text, Theme,
};

fn main() {
    let mut page = Page::new("Everything that a page can show");
    page.lead("Made up figures, to see whether all of it can be read.");
    page.key_figures([
        ["Overhead, aggressive", "9.41 %", "published 9.66 %"],
        ["Overhead, efficient", "5.38 %", "published 5.45 %"],
        ["Unrecovered at 4 × RTT", "0.0066 %", ""],
        ["Runs", "720", "10 repeats of 72 cells"],
    ]);
    page.heading("Charts");
    let charts = [overhead(), unrecovered(), many_panels(), band(), odd()];
    for chart in charts {
        page.chart(chart);
    }
    page.heading("A table");
    page.table(table());
    page.heading("Text");
    page.text(Text::default().plain("From ").link("the article", "https://example.org").plain("."));
    page.note("One host's clock was off by 3 ms.");
    page.list(["one", "two"]);
    page.details("How to run it again", |page| page.code("punctual lab run srt-retransmission"));
    page.foot("punctual 0.1.0");
    match std::env::args().nth(1).as_deref() {
        Some("svg") => println!("{}", overhead().to_svg(Theme::Light)),
        _ => println!("{}", page.to_html()),
    }
}

fn overhead() -> Chart {
    let curve = |height: f64, shift: f64| {
        (1..10).map(move |i| {
            let x = f64::from(i) * 0.5;
            let y = height * (1.0 - 0.8 / (x * x + 1.0)) + shift;
            Point::new(x, y).within(y - 0.15, y + 0.2)
        })
    };
    let x = Axis::linear("Latency", "× RTT");
    Chart::new(
        "Figure 2a: retransmission overhead, 5 % loss, 5 Mb/s",
        x,
        Axis::linear("Overhead", "%"),
    )
    .caption("Means of ten repeats with 95 % intervals, beside the published means and libsrt.")
    .series(Series::new("aggressive", curve(9.5, 0.0)).style(Style::LinePoints).slot(0))
    .series(Series::new("efficient", curve(5.4, 0.0)).style(Style::LinePoints).slot(1))
    .series(
        Series::new("aggressive, libsrt 1.5.5", curve(9.8, 0.1))
            .style(Style::LinePoints)
            .slot(0)
            .reference(),
    )
    .series(
        Series::new("efficient, libsrt 1.5.5", curve(5.6, 0.1))
            .style(Style::Points)
            .slot(1)
            .reference(),
    )
    .marker(Marker::horizontal(9.66, "published mean, aggressive"))
    .marker(Marker::horizontal(5.45, "published mean, efficient"))
}

fn unrecovered() -> Chart {
    let fall = |by: f64| {
        (1..10).map(move |i| {
            let x = f64::from(i) * 0.5;
            let y = if i > 7 { 0.0 } else { 5.0 * libm::exp(-x * by) };
            Point::new(x, y).within(y * 0.7, y * 1.3 + 0.002)
        })
    };
    Chart::new(
        "Unrecovered packets",
        Axis::linear("Latency", "× RTT"),
        Axis::log("Unrecovered", "%"),
    )
    .series(Series::new("aggressive", fall(2.0)).style(Style::LinePoints))
    .series(Series::new("efficient", fall(1.6)).style(Style::LinePoints))
    .marker(Marker::vertical(1.5, "1.5 × RTT"))
    .marker(Marker::vertical(1.6, "another one that is long"))
    .marker(Marker::vertical(4.4, "recommended by the article"))
}

fn wave(i: u32, phase: f64) -> f64 {
    let t = f64::from(i) * 0.1;
    150.0
        + 20.0 * libm::sin(t * 0.3 + phase)
        + f64::from(i * 7919 % 13)
        + if i == 600 { 900.0 } else { 0.0 }
}

fn many_panels() -> Chart {
    let line = |phase: f64| (0..1800).map(move |i| (f64::from(i) * 0.1, wave(i, phase)));
    let scaled = |phase: f64, by: f64| line(phase).map(move |(x, y)| (x, y * by));
    Chart::new("A 4G link, 8 Mb/s, 750 ms", Axis::time("Time"), Axis::linear("RTT", "ms"))
        .caption("Sender and receiver.")
        .series(Series::new("sender", line(0.0)))
        .series(Series::new("receiver", line(1.0)))
        .marker(Marker::vertical(60.0, "event"))
        .panel(Axis::linear("Packets", "a second"))
        .series(Series::new("sent", scaled(0.0, 100.0)).style(Style::Step))
        .series(Series::new("lost", scaled(2.0, 1.0)))
        .panel(Axis::linear("Rate", "Mb/s"))
        .series(Series::new("sender", scaled(0.3, 0.05)))
}

fn band() -> Chart {
    let points = (0..600).map(|i| {
        let y = wave(i, 0.0);
        let x = f64::from(i);
        Point::new(x, if (200..240).contains(&i) { f64::NAN } else { y }).within(y - 40.0, y + 90.0)
    });
    Chart::new("Latency", Axis::time("Time"), Axis::linear("Latency", "ms"))
        .series(Series::new("min to max, and mean", points).style(Style::Band))
        .marker(Marker::horizontal(750.0, "750 ms"))
}

fn odd() -> Chart {
    Chart::new("Odd data", Axis::linear("", ""), Axis::linear("empty", ""))
        .series(Series::new("nothing", [(0.0, f64::NAN)]))
        .panel(Axis::linear("all equal", ""))
        .series(Series::new("one", [(1.0, 7.0), (2.0, 7.0)]).style(Style::LinePoints))
        .panel(Axis::log("all zero", "%"))
        .series(Series::new("zero", [(1.0, 0.0), (2.0, 0.0)]).style(Style::LinePoints))
        .panel(Axis::linear("eight", ""))
        .all_series((0..8).map(|i| {
            let y = f64::from(i);
            Series::new(format!("series {i}"), [(1.0, y), (1.5, y + 1.0), (2.0, y)])
                .style(Style::LinePoints)
        }))
}

fn table() -> Table {
    let columns = [
        TableColumn::text("algorithm"),
        TableColumn::number("latency"),
        TableColumn::number("overhead, %").group("Punctual"),
        TableColumn::number("± 95 %").group("Punctual"),
        TableColumn::number("overhead, %").group("published"),
        TableColumn::number("overhead, %").group("libsrt 1.5.5"),
        TableColumn::number("unrecovered, %").group("libsrt 1.5.5"),
    ];
    let mut table = Table::new("Table 3: overhead of each cell", columns);
    for i in 0..30 {
        let latency = format!("{} ms", 10 + i * 10);
        table.row(["aggressive", &latency, "9.4112", "0.1", "9.66", "9.4590", "0.0212"]);
    }
    table
}
