//! The published table of "Update QUIC timers once per RTT", and the same code run with other arms:
//! how near the model comes. The figures are from runs of picoquic's simulator at the commit of
//! June 2023.

use punctual_quic_model::{Control, Event, Outcome, Scenario, SenderConfig, run};
use punctual_rtt::BuiltInRtt;
use punctual_rtt::TimerRule::{
    self, FourVariances, GreatestOfEpoch, GreatestOfLifetime, ThreeVariances,
};

/// An arm of the experiment: its sender, and what was measured.
struct Arm {
    name: &'static str,
    sender: SenderConfig,
    seconds: f64,
    losses: f64,
}

fn arm(
    control: Control,
    name: &'static str,
    (estimator, timer): (BuiltInRtt, TimerRule),
    (seconds, losses): (f64, f64),
) -> Arm {
    Arm { name, sender: SenderConfig::picoquic_2023(control, estimator, timer), seconds, losses }
}

/// The four rows of the table.
fn table() -> [Arm; 4] {
    let once = |name, timer, measured| {
        arm(Control::Bbr, name, (BuiltInRtt::OncePublished, timer), measured)
    };
    let rfc9002 = (BuiltInRtt::Rfc9002, FourVariances);
    let mut classic = arm(Control::Bbr, "Classic", rfc9002, (11.333_842, 79.0));
    classic.sender = classic.sender.without_retuned_acks();
    [
        classic,
        once("Once 4V", FourVariances, (10.703_308, 50.0)),
        once("Once MaxRTT", GreatestOfLifetime, (11.480_734, 48.0)),
        once("Once 3V", ThreeVariances, (10.518_160, 48.0)),
    ]
}

fn seconds(outcome: &Outcome) -> f64 {
    outcome.completed.expect("it ends within two minutes").as_secs_f64()
}

fn check(arm: &Arm, of_time: f64, of_losses: f64) -> Outcome {
    let outcome = run(&Scenario::mtu_drop(arm.sender.clone()));
    let (found, name) = (seconds(&outcome), arm.name);
    let difference = found / arm.seconds - 1.0;
    assert!(difference.abs() <= of_time, "{name}: {found} s is {difference:+.3} off");
    let lost = f64::from(u32::try_from(outcome.counts.lost).expect("few packets"));
    let difference = lost / arm.losses - 1.0;
    assert!(difference.abs() <= of_losses, "{name}: {lost} losses are {difference:+.3} off");
    assert_eq!(outcome.counts.spurious, 0, "{name}");
    outcome
}

#[test]
fn the_table_is_met_within_5_percent_and_in_its_order() {
    let outcomes: Vec<Outcome> = table().iter().map(|arm| check(arm, 0.05, 0.2)).collect();
    let [classic, four, max, three] = [0, 1, 2, 3].map(|row: usize| seconds(&outcomes[row]));
    assert!(three < four && four < classic && classic < max);
}

#[test]
fn two_timeouts_and_a_black_hole_come_before_the_mtu_is_reset() {
    // The first timeout and the reset in seconds since the server's first packet.
    let measured = [
        (1.832_104, 3.036_210),
        (1.672_146, 2.330_876),
        (1.938_342, 2.863_476),
        (1.617_484, 2.221_760),
    ];
    for (arm, (timeout, reset)) in table().iter().zip(measured) {
        let outcome = run(&Scenario::mtu_drop(arm.sender.clone()));
        let times = |wanted: fn(&Event) -> bool| -> Vec<f64> {
            let of = outcome.events.iter().filter(|(_, event)| wanted(event));
            of.map(|(at, _)| f64::from(u32::try_from(at.as_micros()).unwrap()) / 1e6).collect()
        };
        let timeouts = times(|event| matches!(event, Event::ProbeTimeout(_)));
        let resets = times(|event| matches!(event, Event::MtuReset));
        assert_eq!((timeouts.len(), resets.len()), (2, 1), "{}", arm.name);
        let server_began = 0.109_552;
        for (found, measured) in [(timeouts[0], timeout), (resets[0], reset)] {
            let difference = (found - server_began) / measured - 1.0;
            assert!(difference.abs() < 0.06, "{}: {found} is {difference:+.3} off", arm.name);
        }
        let swallowed = outcome.down.dropped_by_mtu;
        assert!((38..=48).contains(&swallowed), "{}: {swallowed} packets vanished", arm.name);
    }
}

#[test]
fn with_the_same_acknowledgements_most_of_the_gain_is_gone() {
    let fair = |name, timer, measured| {
        check(&arm(Control::Bbr, name, (BuiltInRtt::Rfc9002, timer), measured), 0.01, 0.1)
    };
    let four = fair("Classic fair, 4V", FourVariances, (10.704, 50.0));
    let three = fair("Classic fair, 3V", ThreeVariances, (10.634, 50.0));
    let once = run(&Scenario::mtu_drop(table()[1].sender.clone()));
    assert!((seconds(&once) - seconds(&four)).abs() < 0.02);
    assert!(seconds(&three) < seconds(&four));
}

#[test]
fn updates_that_are_really_once_per_round_trip_are_slower() {
    let strict = |name, timer, measured| {
        check(&arm(Control::Bbr, name, (BuiltInRtt::OnceStrict, timer), measured), 0.03, 0.1)
    };
    let four = strict("Strict 4V", FourVariances, (12.73, 50.0));
    strict("Strict 3V", ThreeVariances, (12.22, 50.0));
    strict("Strict MaxRTT, lifetime", GreatestOfLifetime, (12.01, 48.0));
    strict("Strict MaxRTT, epoch", GreatestOfEpoch, (11.53, 48.0));
    assert!(four.updates * 10 < four.round_trips, "{four:?}");
    let published = run(&Scenario::mtu_drop(table()[1].sender.clone()));
    assert!(published.updates * 10 > published.round_trips * 9, "{}", published.updates);
}

#[test]
fn newreno_and_cubic_are_met_within_5_percent_but_for_one_arm() {
    use BuiltInRtt::{OncePublished, OnceStrict, Rfc9002};
    for (control, name, timing, measured) in [
        (Control::NewReno, "fair 4V", (Rfc9002, FourVariances), (12.31, 29.0)),
        (Control::NewReno, "fair 3V", (Rfc9002, ThreeVariances), (12.25, 29.0)),
        (Control::NewReno, "4V", (OncePublished, FourVariances), (12.34, 29.0)),
        (Control::NewReno, "3V", (OncePublished, ThreeVariances), (12.27, 29.0)),
        (Control::NewReno, "MaxRTT", (OncePublished, GreatestOfLifetime), (13.00, 29.0)),
        (Control::NewReno, "epoch", (OncePublished, GreatestOfEpoch), (12.10, 29.0)),
        (Control::NewReno, "strict 4V", (OnceStrict, FourVariances), (14.03, 29.0)),
        (Control::NewReno, "strict 3V", (OnceStrict, ThreeVariances), (13.56, 29.0)),
        (Control::Cubic, "fair 4V", (Rfc9002, FourVariances), (10.84, 122.0)),
        (Control::Cubic, "fair 3V", (Rfc9002, ThreeVariances), (10.68, 122.0)),
        (Control::Cubic, "4V", (OncePublished, FourVariances), (10.84, 123.0)),
        (Control::Cubic, "3V", (OncePublished, ThreeVariances), (10.68, 122.0)),
        (Control::Cubic, "MaxRTT", (OncePublished, GreatestOfLifetime), (10.44, 122.0)),
        (Control::Cubic, "epoch", (OncePublished, GreatestOfEpoch), (9.82, 122.0)),
        (Control::Cubic, "strict 4V", (OnceStrict, FourVariances), (11.75, 124.0)),
        (Control::Cubic, "strict 3V", (OnceStrict, ThreeVariances), (11.22, 124.0)),
    ] {
        check(&arm(control, name, timing, measured), 0.05, 0.2);
    }
    // CUBIC with the published classic arm took 9.04 s. The start of its curve depends on which
    // packets the first full queue drops, and the model does not send exactly the same ones.
    let published = arm(Control::Cubic, "", (Rfc9002, FourVariances), (9.04, 115.0));
    let outcome = run(&Scenario::mtu_drop(published.sender.without_retuned_acks()));
    assert!(seconds(&outcome) > 9.04 * 1.05, "the exception is none: correct this test");
}

#[test]
fn probes_that_pass_end_the_black_hole_sooner() {
    let [_, four, ..] = table();
    let usual = seconds(&run(&Scenario::mtu_drop(four.sender.clone())));
    let base = SenderConfig { probes_at_base_mtu: true, ..four.sender.clone() };
    let reset = SenderConfig { timeouts_reset_mtu: Some(1), ..four.sender };
    assert!(seconds(&run(&Scenario::mtu_drop(base))) < usual);
    assert!(seconds(&run(&Scenario::mtu_drop(reset))) < usual);
}
