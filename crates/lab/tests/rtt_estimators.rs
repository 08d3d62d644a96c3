//! The plan `rtt-estimators`: what an estimator changes, and what it does not.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use punctual_lab::backend::{Backend, Outcome, Sim};
use punctual_lab::plan::Plan;
use punctual_lab::published;
use punctual_lab::run::{RunSpec, Selection, runs};

fn specs() -> Vec<RunSpec> {
    let plan = Plan::parse("rtt-estimators.toml", published::plan("rtt-estimators").unwrap());
    runs(&plan.unwrap(), &Selection::default()).unwrap()
}

/// The share of packets that arrived more than once in the first repeats of a cell, 200 ms with
/// jitter of up to 20 ms.
fn spurious(specs: &[RunSpec], algorithm: &str, estimator: &str) -> f64 {
    let cell = [
        ("options.retransmitalgo", algorithm),
        ("options.rttestimator", estimator),
        ("link.rtt", "200 ms"),
        ("link.jitter", "uniform:20ms"),
    ];
    let is_of_cell = |spec: &&RunSpec| {
        let has = |(key, wanted): &(&str, &str)| {
            spec.values.iter().any(|(known, value)| known == key && value.to_string() == *wanted)
        };
        spec.experiment == "jitter" && spec.repeat <= 4 && cell.iter().all(has)
    };
    let found: Vec<_> = specs.iter().filter(is_of_cell).collect();
    assert_eq!(found.len(), 4, "{algorithm}, {estimator}");
    let shares = found.into_iter().map(|spec| {
        let outcome = Sim.run(spec).unwrap();
        assert_eq!(outcome.status, Outcome::OK);
        outcome.numbers["receiver.pktRcvDuplicate"] / outcome.numbers["sender.pktSentUnique"]
    });
    shares.sum::<f64>() / 4.0
}

#[test]
fn a_greater_deviation_delays_periodic_naks_and_weakens_suppression() {
    let specs = specs();
    let of = |algorithm, estimator| spurious(&specs, algorithm, estimator);
    let aggressive = ["draft", "once-strict"].map(|it| of("aggressive", it));
    assert!(aggressive[1] < 0.95 * aggressive[0], "later NAKs repeat less: {aggressive:?}");
    let efficient = ["draft", "once-strict"].map(|it| of("efficient", it));
    assert!(efficient[1] > 1.3 * efficient[0], "less is suppressed: {efficient:?}");
    let deadline = ["draft", "once-strict"].map(|it| of("deadline", it));
    assert!(deadline.iter().all(|share| *share < 0.1 * efficient[0]), "{deadline:?}");
}

#[test]
fn a_wrong_estimator_names_the_right_ones() {
    let text = "name = 'n'\n[stream]\nbitrate = '1Mbps'\nduration = '1s'\n\
        [options]\nrttestimator = ['draft', 'once-strikt']\n";
    let plan = Plan::parse("n.toml", text);
    let error = plan.and_then(|plan| runs(&plan, &Selection::default())).unwrap_err();
    assert!(error.to_string().contains("draft, rfc9002, once-strict, once-published"), "{error}");
}
