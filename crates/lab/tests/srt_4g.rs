//! The findings of "Examining SRT Streaming over 4G Networks" also appear in the plan `srt-4g`, in
//! virtual time and with the plan's seeds.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use punctual_lab::backend::{Backend, Outcome, Sim};
use punctual_lab::plan::Plan;
use punctual_lab::published;
use punctual_lab::run::{Selection, runs};

/// The first repeats of an experiment of the plan.
fn outcomes(experiment: &str) -> Vec<Outcome> {
    let text = published::plan("srt-4g").unwrap();
    let plan = Plan::parse("srt-4g.toml", text).unwrap();
    let specs = runs(&plan, &Selection::default()).unwrap();
    let wanted = specs.iter().filter(|it| it.experiment == experiment && it.repeat <= 3);
    wanted.map(|spec| Sim.run(spec).unwrap()).collect()
}

/// The sum of a column between two times in seconds.
fn sum(outcome: &Outcome, column: &str, from: f64, to: f64) -> f64 {
    let series = outcome.series.as_ref().unwrap();
    let column = series.columns.iter().position(|name| name == column).unwrap();
    let rows = series.rows.iter().filter(|row| row[0] > from && row[0] <= to);
    rows.map(|row| row[column]).sum()
}

#[test]
fn bare_udp_loses_one_or_two_packets_a_second_and_jitters_by_4_ms() {
    for outcome in outcomes("udp") {
        let lost = outcome.numbers["pktLost"] / 120.0;
        assert!((1.0..3.0).contains(&lost), "{lost} packets a second");
        let jitter = outcome.numbers["usJitterP50"];
        assert!((3_000.0..5_000.0).contains(&jitter), "{jitter} µs");
    }
}

#[test]
fn the_round_trip_time_is_150_ms_with_spikes() {
    for outcome in outcomes("rtt") {
        let (rtt, most) = (outcome.numbers["msRTTMean"], outcome.numbers["msRTTMax"]);
        assert!((130.0..170.0).contains(&rtt), "{rtt} ms");
        assert!((250.0..450.0).contains(&most), "{most} ms");
    }
}

#[test]
fn the_ramp_finds_the_usable_rate() {
    let usable: Vec<f64> =
        outcomes("ramp").iter().map(|outcome| outcome.numbers["mbpsUsable"]).collect();
    assert!(usable.iter().all(|rate| (7.5..=12.5).contains(rate)), "{usable:?}");
    assert!(usable.contains(&10.0), "{usable:?}");
}

#[test]
fn with_750_ms_the_event_drops_packets_and_late_ones_come_in_order() {
    for outcome in outcomes("srt-750") {
        let number = |name: &str| outcome.numbers[name];
        let dropped = sum(&outcome, "receiver.pktRcvDrop", 19.0, 25.0);
        assert!((60.0..130.0).contains(&dropped), "{dropped} dropped in the event");
        // Small loss all the time, and hardly any of it is not made good.
        let lost = number("receiver.pktRcvLoss");
        let else_dropped = number("receiver.pktRcvDrop") - dropped;
        assert!(lost > 180.0 && else_dropped < 0.3 * lost, "{else_dropped} of {lost}");
        assert_eq!((number("messagesDisordered"), number("messagesDoubled")), (0.0, 0.0));
        assert!((700.0..1_000.0).contains(&number("msLateMax")), "{}", number("msLateMax"));
        assert!((11.0..13.0).contains(&number("mbpsBurst")), "{}", number("mbpsBurst"));
        assert!((900.0..1_300.0).contains(&number("msRTTMax")), "{}", number("msRTTMax"));
        assert!((30.0..80.0).contains(&number("usJitterP50")), "{}", number("usJitterP50"));
    }
}

/// In 24 runs with other seeds the receiver dropped 1.4 packets on average, and the sender 50.
#[test]
fn with_1200_ms_the_receiver_drops_a_tenth_of_what_the_sender_does() {
    let outcomes = outcomes("srt-1200");
    let sum_of = |name: &str| outcomes.iter().map(|outcome| outcome.numbers[name]).sum::<f64>();
    let dropped = sum_of("sender.pktSndDrop");
    assert!(dropped > 0.0);
    assert!(sum_of("receiver.pktRcvDrop") < 0.1 * dropped);
    assert!(sum_of("pktLost") < 0.1 * dropped);
    for outcome in &outcomes {
        let number = |name: &str| outcome.numbers[name];
        assert!(number("receiver.pktRcvLoss") > 180.0);
        assert!((300.0..700.0).contains(&number("msRTTMax")), "{}", number("msRTTMax"));
        assert!((30.0..80.0).contains(&number("usJitterP50")), "{}", number("usJitterP50"));
    }
}
