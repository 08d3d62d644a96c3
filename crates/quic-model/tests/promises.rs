//! Promises for any scenario: the object arrives, whatever the path does, and the same scenario has
//! the same outcome.

use std::time::Duration;

use proptest::prelude::*;
use punctual_netem::{LinkConfig, Loss, QueueLimit};
use punctual_quic_model::{
    AckPolicy, Control, LossDetection, Outcome, Scenario, SenderConfig, run,
};
use punctual_rtt::{BuiltInRtt, TimerRule};
use punctual_units::Bitrate;

const MS: fn(u64) -> Duration = Duration::from_millis;

const RULES: [TimerRule; 4] = [
    TimerRule::FourVariances,
    TimerRule::ThreeVariances,
    TimerRule::GreatestOfLifetime,
    TimerRule::GreatestOfEpoch,
];

fn senders() -> impl Strategy<Value = SenderConfig> {
    let timing = (0..BuiltInRtt::ALL.len(), 0..RULES.len(), any::<bool>(), 0..3_usize);
    let acks = (1..33_u64, 1..40_u64, any::<bool>());
    let mtu = (any::<bool>(), 0..4_u32);
    (timing, acks, mtu).prop_map(|(timing, (packets, delay, negotiated), mtu)| {
        let (estimator, rule, is_rfc, control) = timing;
        let every = AckPolicy::Every { packets, delay: MS(delay) };
        SenderConfig {
            estimator: BuiltInRtt::ALL[estimator],
            timer: RULES[rule],
            detection: if is_rfc { LossDetection::Rfc9002 } else { LossDetection::Picoquic2023 },
            control: Control::ALL[control],
            acks: if negotiated { AckPolicy::RETUNED } else { every },
            probes_at_base_mtu: mtu.0,
            timeouts_reset_mtu: (is_rfc || mtu.1 > 0).then_some(mtu.1.max(1)),
            ..SenderConfig::default()
        }
    })
}

fn scenarios() -> impl Strategy<Value = Scenario> {
    let path = (200..20_000_u64, 1..200_u64, 20..400_u64, 0..4_u32, any::<bool>());
    let load = (1..300_000_u64, 0..4_u64, any::<u64>());
    (senders(), path, load).prop_map(|(sender, path, (object, lost_tail, seed))| {
        let (kilobits, delay, queue, percent, mtu_falls) = path;
        let link = LinkConfig::default()
            .with_rate(Some(Bitrate::from_bits_per_sec(kilobits * 1_000)))
            .with_delay(MS(delay))
            .with_queue(QueueLimit::Time(MS(queue)))
            .with_loss(Loss::Random(f64::from(percent) / 100.0))
            .expect("it is a probability");
        let mtu_drop = mtu_falls.then_some((MS(delay * 3), 1_300));
        let (up, down, limit) = (link.clone(), link, Duration::from_secs(3_600));
        Scenario { sender, object, up, down, mtu_drop, lost_tail, seed, limit }
    })
}

/// Everything that a run tells.
fn told(outcome: &Outcome) -> String {
    format!("{outcome:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_object_arrives_and_the_same_seed_gives_the_same_outcome(scenario in scenarios()) {
        let outcome = run(&scenario);
        let may_stall = scenario.sender.timeouts_reset_mtu.is_none() && scenario.mtu_drop.is_some();
        let of = |name| outcome.events.iter().filter(|(_, event)| format!("{event:?}") == name).count();
        prop_assert_eq!((of("HandshakeDone"), of("Request")), (1, 1));
        let ends = (of("Completed"), of("GaveUp"));
        prop_assert!(ends == (1, 0) || may_stall && ends == (0, 1), "{outcome:?}");
        prop_assert_eq!(outcome.completed.is_some(), ends.0 == 1);
        prop_assert!(outcome.samples.windows(2).all(|pair| pair[0].at <= pair[1].at));
        prop_assert!(outcome.updates <= outcome.round_trips);
        prop_assert_eq!(told(&run(&scenario)), told(&outcome));
    }

    #[test]
    fn a_lost_tail_is_found(scenario in scenarios()) {
        let scenario = Scenario { lost_tail: 2, mtu_drop: None, ..scenario };
        let outcome = run(&scenario);
        prop_assert!(outcome.completed.is_some());
        prop_assert!(outcome.tail_found.is_some());
    }
}

#[test]
fn a_clean_path_loses_nothing_and_repeats_nothing() {
    for control in Control::ALL {
        for detection in [LossDetection::Rfc9002, LossDetection::Picoquic2023] {
            let link = LinkConfig::default()
                .with_rate(Some(Bitrate::from_mbps(10)))
                .with_delay(MS(20))
                .with_queue(QueueLimit::Unlimited);
            let sender = SenderConfig { control, detection, ..SenderConfig::default() };
            let outcome = run(&Scenario {
                up: link.clone(),
                down: link,
                mtu_drop: None,
                ..Scenario::mtu_drop(sender)
            });
            let counts = outcome.counts;
            assert_eq!((counts.lost, counts.repeated, counts.spurious), (0, 0, 0), "{control:?}");
            assert_eq!(outcome.duplicate_bytes, 0);
            // 0.83 s at the rate, and a few round trips of slow start.
            let seconds = outcome.completed.expect("it ends").as_secs_f64();
            assert!((0.85..1.6).contains(&seconds), "{control:?}: {seconds} s");
        }
    }
}

#[test]
fn rarer_acknowledgements_are_fewer() {
    let acks = |packets| {
        let acks = AckPolicy::Every { packets, delay: MS(25) };
        let sender = SenderConfig { acks, ..SenderConfig::default() };
        let link = LinkConfig::default()
            .with_rate(Some(Bitrate::from_mbps(10)))
            .with_delay(MS(20))
            .with_queue(QueueLimit::Unlimited);
        let scenario = Scenario { up: link.clone(), down: link, ..Scenario::mtu_drop(sender) };
        run(&Scenario { mtu_drop: None, ..scenario }).acks
    };
    assert!(acks(1) > 600 && acks(2) < acks(1) * 6 / 10 && acks(8) < acks(2) / 2);
}
