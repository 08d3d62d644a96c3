//! The findings of "Live Streaming using SRT with QUIC Datagrams" also appear in the plan
//! `srt-over-quic`, in virtual time and with the plan's seeds: its experiments, cut to two minutes.

#![cfg(feature = "quic")]
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use punctual_lab::backend::{Backend, Outcome, Sim};
use punctual_lab::plan::Plan;
use punctual_lab::published;
use punctual_lab::run::{Selection, runs};

/// The outcomes of the streams `quic`, `srt+quic`, `udp` and `srt` of an experiment.
fn outcomes(experiment: &str) -> Vec<Outcome> {
    let text = published::plan("srt-over-quic").unwrap();
    let text = text.replace("15min", "2min").replace("60min", "2min");
    let plan = Plan::parse("srt-over-quic.toml", &text).unwrap();
    let specs = runs(&plan, &Selection::default()).unwrap();
    let wanted = specs.iter().filter(|it| it.experiment == experiment);
    wanted.map(|spec| Sim.run(spec).unwrap()).collect()
}

#[test]
fn srt_over_quic_recovers_losses_and_evens_out_delays() {
    for experiment in ["1", "2", "3", "4"] {
        let outcomes = outcomes(experiment);
        let [quic, srt_quic, udp, srt] = &outcomes[..] else { panic!("four streams") };
        let share = |it: &Outcome, name: &str| it.numbers[name] / it.numbers["messagesSent"];
        for bare in [quic, udp] {
            let lost = share(bare, "pktLost");
            // One in a thousand, in bursts: two minutes are a small sample.
            assert!((0.000_6..0.002).contains(&lost), "{lost}");
            let ts_df = bare.numbers["usDelayFactorMean"];
            assert!((28_000.0..38_000.0).contains(&ts_df), "{ts_df} µs");
        }
        for it in [srt_quic, srt] {
            assert_eq!((it.numbers["pktLost"], it.numbers["pktReordered"]), (0.0, 0.0));
            let ts_df = it.numbers["usDelayFactorMean"];
            assert!(ts_df < 1_000.0, "{ts_df} µs");
        }
        // QUIC adds nothing to the round-trip time of SRT.
        let [over_quic, over_udp] = [srt_quic, srt].map(|it| it.numbers["msRTTMean"]);
        assert!((over_quic - over_udp).abs() < 1.0, "{over_quic} and {over_udp} ms");
        assert_eq!(quic.numbers["quicDatagramsDropped"], 0.0);
    }
}

#[test]
fn all_streams_of_an_experiment_are_one_world() {
    let outcomes = outcomes("1");
    for link in ["up.pktSent", "up.pktLost", "down.pktSent", "up.pktReordered"] {
        let counts: Vec<f64> = outcomes.iter().map(|it| it.numbers[link]).collect();
        assert!(counts.iter().all(|count| *count == counts[0]), "{link}: {counts:?}");
    }
}
