use crate::outcome::Outcome;
use crate::plan::{Plan, RunParts};
use crate::run::{RunSpec, Selection, runs};

use super::*;
use crate::results::layout::Layout;

const PLAN: &str = r#"
name = "n"
[stream]
bitrate = "5Mbps"
duration = "1s"
[link]
rtt = "20ms"
loss = ["5%", "10%"]
[options]
latency = ["20ms", "40ms", "80ms"]
[run]
repeats = 2
[metrics]
overhead = { mean = "pktRetrans / pktSentUnique", unit = "%" }
unrecovered = { share = "pktRcvDrop / pktSentUnique" }
drops = { count = "pktRcvDrop" }
[[reference]]
name = "file"
rows = [
  { loss = "5%", latency_ms = 40, again = 90, dropped = 7, all = 1000 },
  { loss = "5%", latency_ms = 80, again = 110, dropped = 0, all = 1000 },
]
columns = { overhead = "again / all", unrecovered = "dropped / all" }
[[reference]]
name = "means"
rows = [{ loss = "10%", overhead = "12.5%" }]
[[reference]]
name = "hour"
span = "1h"
rows = [{ loss = "5%", drops = 3600, overhead = "9%" }]
[[figure]]
name = "1"
x = "latency"
y = ["overhead", "unrecovered"]
by = "loss"
where = { latency = { from = "2 * RTT" } }
reference = "file"
[[figure]]
name = "2"
x = [0.5, 1]
x_title = "half and whole"
y = ["overhead", "unrecovered"]
expected = ["unrecovered", "overhead"]
by = "loss"
[[figure]]
name = "3"
x = "latency"
y = "overhead"
expected = "unrecovered"
by = "loss"
[[table]]
name = "1"
value = "overhead"
rows = "loss"
where = { latency = { from = "2 * RTT" } }
reference = ["file", "means"]
[[table]]
name = "2"
value = "overhead"
rows = "latency"
ratio = { loss = ["10%", "5%"] }
[[table]]
name = "3"
value = ["drops", "overhead"]
rows = "loss"
reference = "hour"
"#;

/// Each run sends 1000 packets; it retransmits ten times its loss in percent, and its repeat more,
/// and drops one if its latency is short.
fn outcome(spec: &RunSpec) -> Outcome {
    let value = |key: &str| {
        let value = spec.values.iter().find(|(known, _)| known == key).unwrap();
        value.1.quantity().unwrap().plain().to_f64()
    };
    let mut outcome = Outcome { status: Outcome::OK.to_owned(), ..Outcome::default() };
    outcome.set("sender.pktSentUnique", 1_000.0);
    let retransmitted = value("link.loss") * 1_000.0 + f64::from(spec.repeat);
    outcome.set("sender.pktRetrans", retransmitted);
    let dropped = if value("options.latency") < 80.0 { 1.0 } else { 0.0 };
    outcome.set("receiver.pktRcvDrop", dropped);
    outcome
}

fn results() -> Results {
    let plan = Plan::parse("n.toml", PLAN).unwrap();
    let specs = runs(&plan, &Selection::default()).unwrap();
    let layout = Layout::new(&plan, &specs);
    let mut sheet = Sheet::new(layout.columns());
    specs.iter().for_each(|spec| sheet.push(layout.row(spec, &outcome(spec))));
    let meta = Meta {
        program: String::new(),
        plan: plan.name.clone(),
        sweep: String::new(),
        seed: 1,
        backends: vec!["sim".to_owned()],
        quick: false,
        set: Vec::new(),
        runs: specs.len(),
        shard: "1/1".to_owned(),
        parameters: layout.parameters.clone(),
    };
    Results { plan, meta, sheet, folder: None, plan_folder: None }
}

#[test]
fn a_row_has_parameters_in_plain_units_statistics_and_metrics() {
    let results = results();
    let sheet = &results.sheet;
    assert_eq!(sheet.rows().len(), 12);
    for (column, expected) in [
        ("bitrate_mbps", "5"),
        ("loss", "0.05"),
        ("latency_ms", "20"),
        ("repeat", "1"),
        ("status", "ok"),
        ("sender.pktRetrans", "51"),
        ("overhead", "0.051"),
        ("usJitter", ""),
    ] {
        assert_eq!(sheet.text(0, column), expected, "{column}");
    }
}

/// The lines of a figure: their values of loss, whether they are expected ones, and their places.
fn lines(drawing: &Drawing) -> Vec<(&str, bool, Vec<f64>)> {
    let line = |line: &'_ DrawnLine| line.points.iter().map(|point| point.x).collect();
    let lines = drawing.lines.iter();
    lines.map(|it| (it.group[0].1.as_str(), it.reference.is_some(), line(it))).collect()
}

#[test]
fn metrics_may_be_the_points_of_a_line() {
    let results = results();
    let drawing = results.drawing(&results.plan.figures[1]);
    assert_eq!((drawing.x.title.as_str(), drawing.problems.len()), ("half and whole", 0));
    let places = || vec![0.5, 1.0];
    let all = ["0.05", "0.1"].map(|loss| [(loss, false, places()), (loss, true, places())]);
    assert_eq!(lines(&drawing), all.concat());
    let value = |line: usize, point: usize| drawing.lines[line].points[point].y.value;
    // The expected metrics are the same, the other way round.
    assert!((value(0, 0) - 5.15).abs() < 1e-9);
    assert_eq!((value(0, 0), value(0, 1)), (value(1, 1), value(1, 0)));
    assert!(drawing.lines.iter().all(|line| line.metric == "overhead"), "one panel has them");
}

#[test]
fn an_expected_metric_is_drawn_beside_the_measured_one() {
    let results = results();
    let drawing = results.drawing(&results.plan.figures[2]);
    let places = || vec![20.0, 40.0, 80.0];
    let expected = [
        ("0.05", false, places()),
        ("0.1", false, places()),
        ("0.05", true, places()),
        ("0.1", true, places()),
    ];
    assert_eq!(lines(&drawing), expected);
    assert!(drawing.lines[2].points[2].y.value < 1e-9, "no packet is dropped there");
}

#[test]
fn a_figure_has_a_line_for_each_group_and_the_reference_beside() {
    let results = results();
    let drawing = results.drawing(&results.plan.figures[0]);
    assert_eq!(drawing.problems, Vec::<String>::new());
    assert_eq!((drawing.x.unit.as_str(), drawing.y.unit.as_str()), ("ms", "%"));
    let line = |metric: &str, loss: &str, reference: bool| {
        let is_it = |line: &&DrawnLine| {
            line.metric == metric
                && line.group[0].1 == loss
                && line.reference.is_some() == reference
        };
        drawing.lines.iter().find(is_it)
    };
    let ours = line("overhead", "0.05", false).unwrap();
    let at: Vec<f64> = ours.points.iter().map(|point| point.x).collect();
    assert_eq!(at, [40.0, 80.0]);
    assert!((ours.points[0].y.value - 5.15).abs() < 1e-9);
    assert!(ours.points[0].y.covers(5.15));
    let none = &line("unrecovered", "0.05", false).unwrap().points[1].y;
    assert_eq!((none.value, none.runs), (0.0, 2));
    assert!(none.interval.unwrap().1 > 0.1);
    let theirs = line("overhead", "0.05", true).unwrap();
    assert!((theirs.points[1].y.value - 11.0).abs() < 1e-9);
    assert!(line("unrecovered", "0.05", true).unwrap().points[0].y.covers(0.7));
    assert!(line("overhead", "0.1", true).is_none());
}

#[test]
fn a_table_averages_over_other_axes_and_shows_references() {
    let results = results();
    let table = results.tabulation(&results.plan.tables[0]);
    let sources: Vec<Option<&str>> =
        table.columns.iter().map(|column| column.reference.as_deref()).collect();
    assert_eq!(sources, [None, Some("file"), Some("means")]);
    let value = |row: usize, column: usize| table.rows[row].1[column].map(|cell| cell.value);
    let near = |found: Option<f64>, expected: f64| (found.unwrap() - expected).abs() < 1e-9;
    assert!(near(value(0, 0), 5.15) && near(value(1, 0), 10.15));
    assert!(near(value(0, 1), 10.0), "{:?}", table.rows);
    assert_eq!((value(1, 1), value(0, 2)), (None, None));
    assert!(near(value(1, 2), 12.5));
}

#[test]
fn counts_of_a_reference_are_scaled_to_the_time_of_ours() {
    let results = results();
    let table = results.tabulation(&results.plan.tables[2]);
    let cells: Vec<f64> = table.rows[0].1.iter().map(|cell| cell.unwrap().value).collect();
    // Six runs of a second, of which four drop a packet, beside an hour with 3600 drops; a mean of
    // the reference is the same for any time.
    assert_eq!((cells[0], cells[1]), (4.0, 6.0), "{cells:?}");
    assert!((cells[3] - 9.0).abs() < 1e-9, "{cells:?}");
}

#[test]
fn groups_are_compared_cell_by_cell() {
    let results = results();
    let table = results.tabulation(&results.plan.tables[1]);
    assert_eq!(table.rows.len(), 3);
    let ratio = table.rows[0].1[0].unwrap();
    assert!((ratio.value - 10.15 / 5.15).abs() < 1e-9);
    assert!(ratio.covers(ratio.value));
    assert_eq!(table.columns[0].unit, "");
}

#[test]
fn a_summary_has_a_row_for_each_combination() {
    let summary = results().summary();
    assert_eq!(summary.row_names, ["loss", "latency_ms"]);
    assert_eq!(summary.rows.len(), 6);
    assert_eq!(summary.columns.len(), 3);
}

#[test]
fn runs_are_selected_by_conditions_and_grouped_by_values() {
    let results = results();
    let runs = Runs::selected(&results, &results.plan.figures[0].filters);
    // Of three latencies, two are at least twice the round-trip time.
    assert_eq!(runs.rows().len(), 8);
    assert_eq!(runs.values_of("latency"), ["40", "80"]);
    let groups = runs.grouped(&["loss".to_owned()]);
    let keys: Vec<&str> = groups.iter().map(|(key, _)| key[0].as_str()).collect();
    assert_eq!(keys, ["0.05", "0.1"]);
    // Of 4000 packets, two were dropped: those with 40 ms.
    let dropped = groups[0].1.estimate("unrecovered").unwrap();
    assert!((dropped.value - 0.05).abs() < 1e-9, "{dropped:?}");
    let none = runs.filtered(|_| false);
    assert_eq!((none.first(), none.estimate("overhead")), (None, None));
}

#[test]
fn runs_as_parts_give_one_point_each() {
    let results = results();
    let parts = RunParts { record: parts::RUNS.to_owned(), heat: Some(("loss".to_owned(), 0.2)) };
    let by = ["loss".to_owned()];
    let mut points = parts::PartPoints::new(&results, &parts, ["latency", "overhead"], &by);
    (0..4).for_each(|row| points.add_run(row).unwrap());
    let groups = points.groups();
    assert_eq!(
        (groups.len(), &groups[0].0[..], groups[0].1.len()),
        (1, &["0.05".to_owned()][..], 4)
    );
    assert_eq!(groups[0].1[0].heat, Some(0.25));
}
