//! The promises of live mode: each message is delivered once, in order, unchanged, and at its
//! origin time plus the latency.

use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Jitter, LinkConfig, Loss, QueueLimit, Reorder};
use punctual_proto::{BufferSize, Config, Readiness, SendError, SendOptions};
use punctual_units::Bitrate;

use crate::pair::{Pair, Side};
use crate::{MS, latency, link, lossy};

/// Streams 1,000 messages each way over `link`, and expects each one when it is due: the latency
/// after it was sent, plus the transit time of the handshake. Returns both transit times.
#[track_caller]
fn expect_on_time(seed: u64, link: &LinkConfig, config: &Config) -> [Duration; 2] {
    let mut pair = Pair::symmetric(seed, link.clone());
    pair.connect(config.clone(), config.clone());
    for side in [Side::Caller, Side::Listener] {
        pair.stream(side, 1_000, MS(2));
        pair.run_for(MS(1_500));
        pair.assert_complete(side);
    }
    [Side::Caller, Side::Listener].map(|side| {
        let delays = pair.delays(side);
        assert!(delays.iter().all(|&delay| delay == delays[0]), "{delays:?}");
        delays[0] - config.receive_latency()
    })
}

/// Without the drift tracer, only the timestamps determine the delivery time.
fn untraced(ms: u64) -> Config {
    latency(ms).with_drift_tracer(false)
}

#[test]
fn over_a_perfect_link_each_message_is_delivered_when_due() {
    for (seed, ms) in [(1, 20), (2, 120), (3, 1_000)] {
        assert_eq!(expect_on_time(seed, &link(), &latency(ms)), [MS(10); 2]);
    }
}

#[test]
fn readiness_can_be_read_at_any_time() {
    let buffer = BufferSize::Packets(4);
    let config = untraced(120).with_send_buffer(buffer);
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config, untraced(120));
    pair.listener.reads = false;
    let ready = |readable, writable, broken| Readiness { readable, writable, broken };
    assert_eq!(pair.readiness(Side::Caller), ready(false, true, false));
    while pair.send_next(Side::Caller) {}
    assert_eq!(pair.readiness(Side::Caller), ready(false, false, false), "the buffer is full");
    pair.run_for(MS(100));
    assert_eq!(pair.readiness(Side::Caller), ready(false, true, false));
    assert_eq!(pair.readiness(Side::Listener), ready(false, true, false), "nothing is due");
    pair.run_for(MS(100));
    for _ in 0..2 {
        assert_eq!(pair.readiness(Side::Listener), ready(true, true, false));
    }
    pair.close(Side::Caller);
    pair.run_for(MS(1_000));
    assert_eq!(pair.readiness(Side::Caller), ready(false, false, true));
    assert_eq!(pair.readiness(Side::Listener), ready(true, false, true), "it can still be read");
    pair.read(Side::Listener);
    assert_eq!(pair.readiness(Side::Listener), ready(false, false, true));
}

#[test]
fn messages_are_early_by_at_most_what_the_driver_allows() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(untraced(120), untraced(120));
    pair.stream(Side::Caller, 3, MS(2));
    // The transit time, the latency, and two milliseconds for the first message.
    pair.run_for(MS(110));
    let listener = &mut pair.listener;
    let id = listener.connection.expect("accepted");
    let first = listener.endpoint.next_delivery().expect("a message waits");
    let mut take = |at, early| {
        listener.endpoint.set_early_delivery(early);
        let mut connection = listener.endpoint.connection(at, id).expect("not released");
        connection.recv().expect("open").map(|message| message.due)
    };
    assert_eq!(take(first - MS(3), MS(2)), None);
    assert_eq!(take(first - MS(2), MS(2)), Some(first));
    assert_eq!(take(first, MS(2)), Some(first + MS(2)));
    assert_eq!(take(first, MS(2)), None);
    assert_eq!(take(first + MS(4), MS(0)), Some(first + MS(4)));
}

#[test]
fn jitter_does_not_change_the_delivery_time() {
    for seed in 0..6 {
        let jitter = Jitter::Uniform { spread: MS(10) };
        let link = LinkConfig::default().with_delay(MS(20)).with_jitter(jitter);
        for transit in expect_on_time(seed, &link.with_keep_order(seed % 2 == 0), &untraced(120)) {
            assert!((MS(10)..=MS(30)).contains(&transit), "{transit:?}");
        }
    }
}

#[test]
fn the_drift_tracer_does_not_mistake_jitter_for_drift() {
    for seed in 0..6 {
        let jitter = Jitter::Normal { std_dev: MS(4) };
        let link = LinkConfig::default().with_delay(MS(20)).with_jitter(jitter);
        let mut pair = Pair::symmetric(seed, link);
        pair.connect(latency(120), latency(120));
        pair.stream(Side::Caller, 6_000, MS(10));
        pair.run_for(MS(500));
        assert_eq!(pair.delivered(Side::Caller).len(), 6_000);
        let delays = pair.delays(Side::Caller);
        let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
        assert!(*most - *least < MS(6), "{least:?} to {most:?}");
    }
}

#[test]
fn losses_are_recovered_in_time() {
    // The latency leaves time for enough round trips that all transmissions of a packet fail once
    // in many millions.
    for (share, ms) in [(0.05, 300), (0.1, 600)] {
        for seed in 0..5 {
            expect_on_time(seed, &lossy(share), &untraced(ms));
        }
    }
}

#[test]
fn bursts_of_losses_are_recovered_in_time() {
    for seed in 0..5 {
        let link = link().with_loss(Loss::bursts(0.05, 5.0)).expect("shares");
        expect_on_time(seed, &link, &untraced(700));
    }
}

#[test]
fn reordered_packets_are_delivered_in_order() {
    for seed in 0..4 {
        let by = MS(7);
        for reorder in [Reorder::Late { share: 0.1, by }, Reorder::Ahead { share: 0.1, by }] {
            let link = link().with_reorder(reorder).expect("a share");
            expect_on_time(seed, &link, &untraced(120));
        }
    }
}

#[test]
fn duplicates_are_delivered_once_and_counted() {
    for seed in 0..4 {
        let link = link().with_duplicate(0.3).expect("a share");
        let mut pair = Pair::symmetric(seed, link);
        pair.connect(latency(120), latency(120));
        pair.stream(Side::Caller, 1_000, MS(2));
        pair.run_for(MS(500));
        pair.assert_complete(Side::Caller);
        let statistics = pair.statistics(Side::Listener);
        assert!(statistics.packets_duplicate > 200);
        assert_eq!(statistics.packets_received_unique, 1_000);
        assert_eq!(statistics.packets_belated, statistics.packets_duplicate);
        assert_eq!(statistics.packets_received, 1_000 + statistics.packets_duplicate);
    }
}

#[test]
fn bursts_over_a_slow_link_are_delivered_on_time() {
    for seed in 0..4 {
        // 40 packets at once every 100 ms are 4.3 Mb/s; the link needs 71 ms for them.
        let link = link().with_rate(Some(Bitrate::from_mbps(6)));
        let mut pair = Pair::symmetric(seed, link);
        pair.connect(untraced(150), untraced(150));
        for _ in 0..50 {
            for _ in 0..40 {
                assert!(pair.send_next(Side::Caller));
            }
            pair.run_for(MS(100));
        }
        pair.run_for(MS(300));
        pair.assert_complete(Side::Caller);
        assert_eq!(pair.statistics(Side::Listener).packets_receive_lost, 0);
        let delays = pair.delays(Side::Caller);
        assert!(delays.iter().all(|&delay| delay == delays[0]), "{delays:?}");
    }
}

#[test]
fn packets_that_a_full_queue_drops_are_recovered() {
    for seed in 0..4 {
        let link =
            link().with_rate(Some(Bitrate::from_mbps(6))).with_queue(QueueLimit::Packets(25));
        let mut pair = Pair::symmetric(seed, link);
        pair.connect(untraced(400), untraced(400));
        for _ in 0..50 {
            for _ in 0..40 {
                assert!(pair.send_next(Side::Caller));
            }
            pair.run_for(MS(100));
        }
        pair.run_for(MS(500));
        pair.assert_complete(Side::Caller);
        assert!(pair.statistics(Side::Listener).packets_receive_lost > 100);
    }
}

#[test]
fn both_ends_can_send_at_the_same_time() {
    for seed in 0..5 {
        let mut pair = Pair::symmetric(seed, lossy(0.05));
        pair.connect(untraced(300), untraced(300));
        for _ in 0..2_000 {
            assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
            pair.run_for(MS(2));
        }
        pair.run_for(MS(500));
        for side in [Side::Caller, Side::Listener] {
            pair.assert_complete(side);
            let delays = pair.delays(side);
            assert!(delays.iter().all(|&delay| delay == delays[0]), "{delays:?}");
        }
    }
}

#[test]
fn without_tsbpd_a_message_is_delivered_when_it_arrives() {
    let on = latency(120);
    let off = latency(120).with_tsbpd(false);
    for (caller, listener) in [(on.clone(), off.clone()), (off.clone(), on), (off.clone(), off)] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(caller, listener);
        pair.stream(Side::Caller, 100, MS(2));
        pair.run_for(MS(100));
        pair.assert_complete(Side::Caller);
        assert!(pair.delays(Side::Caller).iter().all(|&delay| delay == MS(10)));
    }
}

#[test]
fn without_tsbpd_everything_is_delivered_in_order() {
    for seed in 0..4 {
        let mut pair = Pair::symmetric(seed, lossy(0.2));
        pair.connect(Config::default().with_tsbpd(false), Config::default().with_tsbpd(false));
        pair.stream(Side::Caller, 2_000, MS(2));
        pair.run_for(MS(3_000));
        pair.assert_complete(Side::Caller);
        assert_eq!(pair.statistics(Side::Listener).packets_receive_dropped, 0);
        assert_eq!(pair.statistics(Side::Caller).packets_send_dropped, 0);
    }
}

#[test]
fn payloads_of_every_size_arrive_unchanged() {
    let config = latency(120).with_payload_size(1_456).expect("in range");
    let payload = |size: usize| -> Bytes { (0..size).map(|at| (at * size) as u8).collect() };
    for (mut pair, most) in [
        (Pair::symmetric(1, lossy(0.01)), 1_456),
        (Pair::symmetric(2, lossy(0.01)).over_ipv6(), 1_436),
    ] {
        pair.connect(config.clone(), config.clone());
        assert_eq!(pair.info(Side::Caller).max_payload, most);
        for size in 1..=most {
            let sent = pair.send(Side::Caller, payload(size), SendOptions::default());
            assert_eq!(sent, Ok(()), "{size} bytes");
            pair.run_for(MS(1));
        }
        for size in [0, most + 1] {
            let refused = pair.send(Side::Caller, vec![0; size], SendOptions::default());
            assert_eq!(refused, Err(SendError::Size { size, max: most }));
        }
        pair.run_for(MS(500));
        let received = &pair.listener.received;
        assert_eq!(received.len(), most);
        for (delivery, size) in received.iter().zip(1..) {
            assert_eq!(delivery.message.payload, payload(size), "{size} bytes");
        }
    }
}

#[test]
fn a_smaller_mss_at_either_end_bounds_the_payload() {
    let small = Config::default().with_mss(576).expect("in range");
    for (caller, listener) in [(small.clone(), Config::default()), (Config::default(), small)] {
        for (mut pair, headers) in
            [(Pair::symmetric(1, link()), 28), (Pair::symmetric(1, link()).over_ipv6(), 48)]
        {
            pair.connect(caller.clone(), listener.clone());
            for side in [Side::Caller, Side::Listener] {
                let most = 576 - headers - 16;
                assert_eq!(pair.info(side).max_payload, most, "{side:?}");
                let refused = pair.send(side, vec![0; most + 1], SendOptions::default());
                assert_eq!(refused, Err(SendError::Size { size: most + 1, max: most }));
            }
        }
    }
}

#[test]
fn a_message_may_be_older_or_younger_than_its_submission() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    pair.run_for(MS(1_000));
    for age in [0, 1, 30, 119] {
        let origin = pair.now - MS(age);
        let options = SendOptions { origin: Some(origin), ..SendOptions::default() };
        pair.send_next_with(Side::Caller, options).expect("room");
        pair.run_for(MS(200));
        let delivery = pair.listener.received.last().expect("delivered");
        assert_eq!(delivery.message.origin, origin + MS(10), "{age} ms old");
        assert_eq!(delivery.message.due, delivery.message.origin + MS(120));
    }
    pair.assert_complete(Side::Caller);
    let future = Some(pair.now + MS(500));
    pair.send_next_with(Side::Caller, SendOptions { origin: future, ..SendOptions::default() })
        .expect("room");
    pair.run_for(MS(630));
    assert_eq!(pair.delays(Side::Caller).last(), Some(&MS(630)), "it waits for its time");
}

#[test]
fn sequence_and_message_numbers_increase_by_one() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    pair.stream(Side::Caller, 100, MS(2));
    pair.run_for(MS(200));
    let received = &pair.listener.received;
    for (i, delivery) in (0..).zip(received) {
        assert_eq!(delivery.message.seq, received[0].message.seq.plus(i));
        assert_eq!(delivery.message.msgno.value(), i + 1);
        assert_eq!(delivery.message.lost_before, 0);
    }
    assert_eq!(received.len(), 100);
}
