//! The plan `quic-once-per-rtt` meets the printed table, in its order, and says what it is of.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use punctual_lab::backend::{Backend, Outcome, QuicModel, Sim};
use punctual_lab::plan::Plan;
use punctual_lab::published;
use punctual_lab::run::{RunSpec, Selection, runs};

fn specs(name: &str) -> Vec<RunSpec> {
    let text = published::plan(name).unwrap();
    let plan = Plan::parse(name, text).unwrap();
    runs(&plan, &Selection::default()).unwrap()
}

/// The outcome of a published arm with BBR.
fn arm(specs: &[RunSpec], experiment: &str) -> Outcome {
    let has = |spec: &&RunSpec, key: &str, wanted: &str| {
        spec.values.iter().any(|(known, value)| known == key && value.to_string() == wanted)
    };
    let of = specs.iter().filter(|spec| spec.experiment == experiment);
    let spec = of.clone().find(|spec| has(spec, "quic.control", "bbr")).unwrap();
    QuicModel.run(spec).unwrap()
}

#[test]
fn the_printed_table_is_met_within_5_percent_and_in_its_order() {
    let specs = specs("quic-once-per-rtt");
    let printed = [
        ("once-3v", 10.518_160, 48.0),
        ("once-4v", 10.703_308, 50.0),
        ("classic", 11.333_842, 79.0),
        ("once-max", 11.480_734, 48.0),
    ];
    let mut before = 0.0;
    for (experiment, seconds, losses) in printed {
        let outcome = arm(&specs, experiment);
        let found = |name: &str| outcome.numbers[&format!("quic.{name}")];
        let (completed, lost) = (found("sCompleted"), found("pktLost"));
        assert!((completed / seconds - 1.0).abs() < 0.05, "{experiment}: {completed} s");
        assert!((lost / losses - 1.0).abs() < 0.2, "{experiment}: {lost} losses");
        assert!(completed > before, "{experiment} is out of order");
        assert_eq!((found("timeouts"), found("pktSpurious")), (2.0, 0.0), "{experiment}");
        before = completed;
    }
}

#[test]
fn a_run_records_the_course_of_the_timer() {
    let outcome = arm(&specs("quic-once-per-rtt"), "once-3v");
    let series = outcome.series.unwrap();
    assert_eq!(series.columns[..2], ["time_s", "quic.msLatest"]);
    let timer = series.columns.iter().position(|name| name == "quic.msTimer").unwrap();
    assert!(series.rows.iter().any(|row| row[timer] > 500.0));
    assert!(series.rows.len() > 1_000, "every 10 ms of more than 10 s");
}

#[test]
fn a_transfer_is_run_by_its_own_backend_alone() {
    let specs = specs("quic-once-per-rtt");
    let error = Sim.run(&specs[0]).unwrap_err();
    assert!(error.contains("`quic-model`"), "{error}");
    let streams = "name = 'n'\n[stream]\nbitrate = '1Mbps'\nduration = '1s'\n";
    let streams = Plan::parse("n.toml", streams).unwrap();
    let error = QuicModel.run(&runs(&streams, &Selection::default()).unwrap()[0]).unwrap_err();
    assert!(error.contains("[quic]"), "{error}");
}

#[test]
fn a_wrong_value_names_the_right_ones() {
    for (value, expected) in [
        ("estimator = 'once-strikt'", "did you mean `once-strict`?"),
        ("timer = '5V'", "one of: 4V, 3V, max-lifetime, max-epoch"),
        ("acks = 'often'", "`retuned`, `not-retuned`, or 1 to 1000 packets"),
        ("acks = 0", "1 to 1000 packets"),
        ("mtureset = '0'", "`never` or a number of timeouts"),
        ("object = 0", "must be 1 to 1000000000 bytes"),
        ("mtudrop = '1s'\nmtuto = 900", "at least 1252 bytes"),
        ("probess = 'base'", "did you mean `probes`?"),
    ] {
        let text = format!("name = 'n'\n[run]\nbackends = ['quic-model']\n[quic]\n{value}\n");
        let plan = Plan::parse("n.toml", &text);
        let error = plan.and_then(|plan| runs(&plan, &Selection::default())).unwrap_err();
        assert!(error.to_string().contains(expected), "{value}: {error}");
    }
}

#[test]
fn a_plan_of_transfers_needs_no_stream_and_no_link() {
    let text = "name = 'n'\n[run]\nbackends = ['quic-model']\n[quic]\nobject = 20000\n";
    let plan = Plan::parse("n.toml", text).unwrap();
    let specs = runs(&plan, &Selection::default()).unwrap();
    let outcome = QuicModel.run(&specs[0]).unwrap();
    assert_eq!(outcome.status, Outcome::OK);
    let with_events = text.to_owned() + "[link]\nat = '1s: outage 1s'\n";
    let plan = Plan::parse("n.toml", &with_events).unwrap();
    let error = QuicModel.run(&runs(&plan, &Selection::default()).unwrap()[0]).unwrap_err();
    assert!(error.contains("without events"), "{error}");
}
