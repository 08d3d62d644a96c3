//! Clocks that drift apart, timestamps that wrap, and hours without data: the delay does not
//! change.

use std::time::Duration;

use punctual_netem::{Jitter, LinkConfig};
use punctual_proto::Config;

use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link};

const HOUR: Duration = Duration::from_secs(3_600);

/// Streams five messages per second each way for `time`.
fn stream_slowly(pair: &mut Pair, time: Duration) {
    let end = pair.now + time;
    while pair.now < end {
        assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
        pair.run_for(MS(200));
    }
}

#[track_caller]
fn expect_within(pair: &mut Pair, side: Side, expected: Duration, bound: Duration) {
    pair.delivered(side);
    let delays = pair.delays(side);
    assert_eq!(delays.len(), pair.node(side).sent.len(), "all are delivered");
    let worst = delays.iter().max_by_key(|delay| delay.abs_diff(expected)).expect("some");
    assert!(worst.abs_diff(expected) < bound, "{worst:?} instead of {expected:?}");
}

#[test]
fn drift_is_followed_for_an_hour() {
    let drifts = [(200, 0), (-200, 0), (0, 200), (100, -100)];
    for (seed, (caller, listener)) in (0..).zip(drifts) {
        let mut pair = Pair::symmetric(seed, link())
            .with_drift(Side::Caller, caller)
            .with_drift(Side::Listener, listener);
        pair.connect(latency(120), latency(120));
        stream_slowly(&mut pair, HOUR);
        pair.run_for(MS(500));
        for side in [Side::Caller, Side::Listener] {
            expect_within(&mut pair, side, MS(130), MS(4));
        }
        // In an hour, 200 ppm are 720 ms.
        let drift = pair.statistics(Side::Listener).drift_micros;
        let expected = (listener - caller) * 3_600;
        assert!((drift - expected).abs() < 4_000, "{drift} instead of {expected}");
    }
}

#[test]
fn drift_is_followed_through_jitter() {
    for seed in 0..2 {
        let jitter = Jitter::Normal { std_dev: MS(3) };
        let link = LinkConfig::default().with_delay(MS(20)).with_jitter(jitter);
        let mut pair = Pair::symmetric(seed, link).with_drift(Side::Caller, 200);
        pair.connect(latency(120), latency(120));
        stream_slowly(&mut pair, HOUR / 2);
        pair.run_for(MS(500));
        for side in [Side::Caller, Side::Listener] {
            let first = pair.delays(side)[0];
            expect_within(&mut pair, side, first, MS(8));
        }
    }
}

#[test]
fn without_the_drift_tracer_the_delay_changes_by_the_drift() {
    let config = latency(1_000).with_drift_tracer(false);
    let mut pair = Pair::symmetric(1, link()).with_drift(Side::Caller, 200);
    pair.connect(config.clone(), config);
    stream_slowly(&mut pair, HOUR);
    pair.run_for(MS(2_000));
    for (side, walk) in [(Side::Caller, 720), (Side::Listener, -720)] {
        let delays = pair.delays(side);
        let walked = delays[delays.len() - 1].as_millis() as i64 - delays[0].as_millis() as i64;
        assert!((walked - walk).abs() < 2, "{walked} ms instead of {walk} ms");
    }
    assert_eq!(pair.statistics(Side::Listener).drift_micros, 0);
}

/// An end that only sent for an hour knows the peer's clock too, from ACKs and keepalives.
#[test]
fn an_end_that_only_sends_follows_the_peer_as_well() {
    for (seed, ppm) in [(1, 200), (2, -200)] {
        let mut pair = Pair::symmetric(seed, link()).with_drift(Side::Caller, ppm);
        pair.connect(latency(120), latency(120));
        pair.stream(Side::Caller, 5 * 3_600, MS(200));
        pair.stream(Side::Listener, 100, MS(20));
        pair.run_for(MS(500));
        expect_within(&mut pair, Side::Listener, MS(130), MS(4));
    }
}

#[test]
fn a_wrap_of_the_timestamps_does_not_change_the_delay() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    // The first wrap is after 71 min 35 s.
    stream_slowly(&mut pair, SECS(75 * 60));
    pair.run_for(MS(500));
    for side in [Side::Caller, Side::Listener] {
        pair.assert_complete(side);
        assert!(pair.delays(side).iter().all(|&delay| delay == MS(130)));
    }
}

/// The timestamps of a peer may start anywhere, and wrap at any step of the handshake or soon after
/// it.
#[test]
fn timestamps_may_start_near_the_wrap() {
    for before_wrap in [0, 1, 5_000, 15_000, 25_000, 45_000, 100_000, 2_000_000] {
        let mut pair = Pair::symmetric(1, link());
        pair.tap(move |_, _, mut datagram| {
            let stamp = u32::from_be_bytes(datagram[8..12].try_into().expect("four bytes"));
            let moved = stamp.wrapping_sub(before_wrap);
            datagram[8..12].copy_from_slice(&moved.to_be_bytes());
            vec![datagram]
        });
        pair.connect(latency(120), latency(120));
        for _ in 0..500 {
            assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
            pair.run_for(MS(10));
        }
        pair.run_for(MS(500));
        for side in [Side::Caller, Side::Listener] {
            pair.assert_complete(side);
            assert!(
                pair.delays(side).iter().all(|&delay| delay == MS(130)),
                "{before_wrap} µs before the wrap"
            );
        }
    }
}

#[test]
fn hours_without_data_do_not_change_the_delay() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    for hours in [1, 5, 3] {
        pair.run_for(HOUR * hours);
        stream_slowly(&mut pair, SECS(4));
        pair.run_for(MS(500));
        for side in [Side::Caller, Side::Listener] {
            pair.assert_complete(side);
            assert!(pair.delays(side).iter().all(|&delay| delay == MS(130)), "{hours} h");
        }
    }
}

#[test]
fn drift_is_followed_during_hours_without_data() {
    for (seed, ppm) in [(1, 200), (2, -200)] {
        let mut pair = Pair::symmetric(seed, link()).with_drift(Side::Listener, ppm);
        pair.connect(Config::default(), Config::default());
        pair.run_for(HOUR * 5);
        stream_slowly(&mut pair, SECS(10));
        pair.run_for(MS(500));
        for side in [Side::Caller, Side::Listener] {
            expect_within(&mut pair, side, MS(130), MS(5));
        }
    }
}
