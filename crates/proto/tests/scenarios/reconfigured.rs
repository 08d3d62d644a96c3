//! Options that are changed during a connection: each takes effect at once, and options that the
//! handshake has settled are refused.

use punctual_netem::{LinkConfig, Reorder};
use punctual_proto::{
    BufferSize, Config, MaxBandwidth, OptionPhase, RatePolicy, RetransmitAlgorithm,
    RetransmitBandwidth, SendOptions,
};
use punctual_units::Bitrate;

use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link, lossy};

const MBPS: fn(u64) -> Bitrate = Bitrate::from_mbps;

/// A send buffer that keeps everything, and libsrt's retransmission.
fn keeping_everything() -> Config {
    latency(120)
        .with_send_drop_delay(None)
        .with_send_buffer(BufferSize::Packets(100_000))
        .with_retransmit_algorithm(RetransmitAlgorithm::Efficient)
}

fn connected(config: &Config, there: LinkConfig) -> Pair {
    let mut pair = Pair::new(1, there, link());
    pair.connect(config.clone(), config.clone());
    pair
}

/// Submits 10.9 Mb/s for a second. Returns the number of packets that were sent in it.
fn sent_in_a_second(pair: &mut Pair) -> u64 {
    let before = pair.statistics(Side::Caller).packets_sent;
    for _ in 0..1_000 {
        pair.send(Side::Caller, vec![7; 1_316], SendOptions::default()).expect("room");
        pair.run_for(MS(1));
    }
    pair.statistics(Side::Caller).packets_sent - before
}

/// Changes the caller's options.
#[track_caller]
fn change(pair: &mut Pair, change: impl FnOnce(Config) -> Config) {
    pair.configure(Side::Caller, |config| Ok(change(config))).expect("it can be changed");
}

/// Checks the number of packets of 1360 bytes in a second against this rate, within 3 %.
#[track_caller]
fn assert_rate(packets: u64, rate: Bitrate) {
    let expected = rate.as_bits_per_sec() / 8 / 1_360;
    let range = expected * 97 / 100..=expected * 103 / 100;
    assert!(range.contains(&packets), "{packets} packets instead of {expected}");
}

/// The packets that a running transfer of `data` sends in a second.
fn written_in_a_second(pair: &mut Pair, data: &mut bytes::Bytes) -> u64 {
    let before = pair.statistics(Side::Caller).packets_sent;
    for _ in 0..1_000 {
        let _ = pair.write(Side::Caller, data);
        pair.run_for(MS(1));
    }
    pair.statistics(Side::Caller).packets_sent - before
}

#[test]
fn a_new_maximum_bandwidth_limits_a_running_stream() {
    let mut pair = connected(&keeping_everything(), link());
    assert!(sent_in_a_second(&mut pair) > 980);
    change(&mut pair, |config| config.with_max_bandwidth(MaxBandwidth::Absolute(MBPS(5))));
    sent_in_a_second(&mut pair);
    assert_rate(sent_in_a_second(&mut pair), MBPS(5));
    change(&mut pair, |config| config.with_max_bandwidth(MaxBandwidth::Unlimited));
    assert!(sent_in_a_second(&mut pair) > 1_900, "waiting packets are sent");
}

#[test]
fn a_new_input_bandwidth_and_overhead_set_the_relative_limit() {
    let relative = keeping_everything().with_max_bandwidth(MaxBandwidth::Relative);
    let mut pair = connected(&relative.with_input_bandwidth(MBPS(4)), link());
    sent_in_a_second(&mut pair);
    assert_rate(sent_in_a_second(&mut pair), MBPS(5));
    change(&mut pair, |config| config.with_overhead_bandwidth(50).expect("in range"));
    assert_rate(sent_in_a_second(&mut pair), MBPS(6));
    change(&mut pair, |config| config.with_input_bandwidth(MBPS(8)));
    assert_rate(sent_in_a_second(&mut pair), MBPS(12));
}

#[test]
fn a_new_least_input_bandwidth_raises_the_relative_limit() {
    let mut pair =
        connected(&keeping_everything().with_max_bandwidth(MaxBandwidth::Relative), link());
    sent_in_a_second(&mut pair);
    let limit = |pair: &mut Pair| pair.statistics(Side::Caller).max_bandwidth;
    assert!(limit(&mut pair) < MBPS(15));
    change(&mut pair, |config| config.with_min_input_bandwidth(MBPS(80)));
    assert_eq!(limit(&mut pair), MBPS(100));
}

#[test]
fn a_new_limit_of_retransmissions_holds_at_once() {
    let mut pair = connected(&keeping_everything(), lossy(0.1));
    let retransmitted = |pair: &mut Pair| {
        let before = pair.statistics(Side::Caller).packets_retransmitted;
        sent_in_a_second(pair);
        pair.statistics(Side::Caller).packets_retransmitted - before
    };
    assert!(retransmitted(&mut pair) > 80);
    let none = RetransmitBandwidth::Absolute(Bitrate::ZERO);
    change(&mut pair, |config| config.with_max_retransmit_bandwidth(none));
    assert_eq!(retransmitted(&mut pair), 0);
    change(&mut pair, |config| {
        config.with_max_retransmit_bandwidth(RetransmitBandwidth::Unlimited)
    });
    assert!(retransmitted(&mut pair) > 80);
}

#[test]
fn a_new_drop_delay_lets_the_sender_drop_or_keep_late_messages() {
    let mut pair = connected(&keeping_everything(), link());
    pair.drop_where(|_, _| true);
    let dropped = |pair: &mut Pair| {
        sent_in_a_second(pair);
        pair.statistics(Side::Caller).packets_send_dropped
    };
    dropped(&mut pair);
    assert_eq!(dropped(&mut pair), 0, "it never drops");
    change(&mut pair, |config| config.with_send_drop_delay(Some(MS(0))));
    let after = dropped(&mut pair);
    assert!((1_500..=2_100).contains(&after), "all but the last second: {after}");
    change(&mut pair, |config| config.with_send_drop_delay(None));
    assert_eq!(dropped(&mut pair), after);
}

#[test]
fn a_new_linger_lets_a_close_send_buffered_messages() {
    let limited = keeping_everything().with_max_bandwidth(MaxBandwidth::Absolute(MBPS(1)));
    let received = |linger| {
        let mut pair = connected(&limited, link());
        if let Some(linger) = linger {
            change(&mut pair, |config| config.with_linger(linger));
        }
        for _ in 0..200 {
            pair.send_next(Side::Caller);
        }
        pair.close(Side::Caller);
        pair.run_for(SECS(6));
        pair.delivered(Side::Caller).len()
    };
    assert!(received(None) < 100);
    assert_eq!(received(Some(SECS(5))), 200);
}

#[test]
fn drift_is_followed_as_soon_as_the_tracer_is_turned_on() {
    let config = latency(1_000).with_drift_tracer(false);
    let mut pair = Pair::symmetric(1, link()).with_drift(Side::Caller, 200);
    pair.connect(config.clone(), config);
    let drift_after_two_minutes = |pair: &mut Pair| {
        pair.stream(Side::Caller, 12_000, MS(10));
        pair.statistics(Side::Listener).drift_micros
    };
    assert_eq!(drift_after_two_minutes(&mut pair), 0);
    let trace = |pair: &mut Pair, on| {
        pair.configure(Side::Listener, |config| Ok(config.with_drift_tracer(on))).expect("it can");
    };
    trace(&mut pair, true);
    let drift = drift_after_two_minutes(&mut pair).abs();
    // In two minutes, 200 ppm are 24 ms.
    assert!((20_000..28_000).contains(&drift), "{drift}");
    trace(&mut pair, false);
    let before = pair.statistics(Side::Listener).drift_micros;
    assert_eq!(drift_after_two_minutes(&mut pair), before, "the correction remains");
    trace(&mut pair, true);
    let drift = drift_after_two_minutes(&mut pair).abs();
    assert!((68_000..76_000).contains(&drift), "in all that time: {drift}");
}

#[test]
fn a_new_reorder_tolerance_holds_naks_back() {
    let reorder = Reorder::Late { share: 0.05, by: MS(5) };
    let mut pair = connected(&keeping_everything(), link().with_reorder(reorder).expect("a share"));
    let retransmitted = |pair: &mut Pair| {
        let before = pair.statistics(Side::Caller).packets_retransmitted;
        sent_in_a_second(pair);
        pair.statistics(Side::Caller).packets_retransmitted - before
    };
    let eager = retransmitted(&mut pair);
    let tolerate = |config: Config| config.with_reorder_tolerance(30);
    pair.configure(Side::Listener, tolerate).expect("in range");
    assert_eq!(pair.statistics(Side::Listener).reorder_tolerance, 30);
    let tolerant = retransmitted(&mut pair);
    assert!(eager > 20 && tolerant * 4 < eager, "{eager} retransmitted, then {tolerant}");
}

#[test]
fn a_new_maximum_bandwidth_limits_a_running_file_transfer() {
    let mut pair = connected(&Config::file(), link());
    let mut data = vec![3; 8_000_000].into();
    change(&mut pair, |config| config.with_max_bandwidth(MaxBandwidth::Absolute(MBPS(6))));
    written_in_a_second(&mut pair, &mut data);
    let limited = written_in_a_second(&mut pair, &mut data);
    assert!((485..=515).contains(&limited), "500 packets of 1500 bytes: {limited}");
    change(&mut pair, |config| config.with_max_bandwidth(MaxBandwidth::Unlimited));
    assert!(written_in_a_second(&mut pair, &mut data) > 1_000);
}

#[test]
fn options_that_the_handshake_settled_are_refused_without_a_change() {
    let mut pair = connected(&keeping_everything(), link());
    let slower = |config: Config| config.with_max_bandwidth(MaxBandwidth::Absolute(MBPS(1)));
    let error = pair.configure(Side::Caller, |config| slower(config).with_latency(MS(500)));
    assert_eq!(
        error.unwrap_err().to_string(),
        "latency is 500 ms; it must be left as it was, because it cannot be changed after \
         connecting"
    );
    let secret = |config: Config| config.with_passphrase("another secret");
    let error = pair.configure(Side::Caller, secret).unwrap_err().to_string();
    assert!(error.contains("cannot be changed after connecting"), "{error}");
    assert!(!error.contains("secret"), "{error}");
    assert!(sent_in_a_second(&mut pair) > 980, "the limit was not taken either");
}

#[test]
fn new_rates_of_control_by_delay_limit_a_running_stream() {
    let mut pair = connected(&Config::file(), link());
    let mut data = vec![3; 30_000_000].into();
    change(&mut pair, |config| config.with_target_rate(MBPS(6)));
    written_in_a_second(&mut pair, &mut data);
    let limited = written_in_a_second(&mut pair, &mut data);
    assert!((485..=515).contains(&limited), "500 packets of 1500 bytes: {limited}");
    change(&mut pair, |config| {
        config.with_target_rate(MBPS(24)).with_rate_policy(RatePolicy::Fixed)
    });
    let fixed = written_in_a_second(&mut pair, &mut data);
    assert!((1_900..=2_060).contains(&fixed), "2000 packets at once: {fixed}");
    change(&mut pair, |config| config.with_target_rate(MBPS(6)).with_min_rate(MBPS(5)));
    let above = |config: Config| Ok(config.with_min_rate(MBPS(7)));
    let error = pair.configure(Side::Caller, above).unwrap_err().to_string();
    assert_eq!(error, "minrate is 7 Mb/s; it must be at most the target rate, targetrate");
    let queue = |config: Config| config.with_queue_target(MS(30));
    pair.configure(Side::Caller, queue).expect("it can be changed");
}

/// Each of these options has a test above.
#[test]
fn the_changeable_options_are_those_of_libsrt_and_of_the_rate() {
    let options = punctual_proto::CONNECTION_OPTIONS.iter().map(|option| option.info);
    let changeable = options.filter(|info| info.phase == OptionPhase::AnyTime);
    let mut names: Vec<_> = changeable.map(|info| info.name).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "drifttracer",
            "inputbw",
            "linger",
            "lossmaxttl",
            "maxbw",
            "maxrexmitbw",
            "mininputbw",
            "minrate",
            "oheadbw",
            "queuetarget",
            "snddropdelay",
            "targetrate"
        ]
    );
}
