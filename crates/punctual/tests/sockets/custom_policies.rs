//! Custom policies, estimators and congestion controls, written against this crate alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use punctual::{
    Bitrate, Config, CongestionControl, Decision, Instant, Listener, MissingPackets, NakAlgorithm,
    NakPolicy, PacketNumber, PathState, ReceiverView, ReportedPacket, RetransmitAlgorithm,
    RetransmitPolicy, Rtt, RttAlgorithm, RttEstimator, RttSample, SenderView, SentNak, SeqNo,
    Socket,
};

use crate::common::{config, local, message, pair, within};
use crate::custom_congestion_example::{ByDelay, Limits, by_delay};
use crate::custom_nak_example::{FixedTimes, fixed_times};
use crate::custom_retransmission_example::{AtMost, at_most};
use crate::custom_rtt_example::{Median, median_of_last};

const NOW: Instant = Instant::from_millis(9_000);

fn view() -> SenderView {
    let rtt = Rtt { smoothed: Duration::from_millis(40), variance: Duration::from_millis(2) };
    let limit = Some(Bitrate::from_mbps(10));
    SenderView { rtt, originals: 1_000, loss: 0.1, limit, round: Duration::from_millis(45) }
}

/// A packet with a number of retransmissions, the last of which left `ago` milliseconds ago.
fn packet(retransmissions: u32, ago: Option<u64>) -> ReportedPacket {
    let last_retransmit = ago.map(|ms| NOW - Duration::from_millis(ms));
    let origin = NOW - Duration::from_millis(100);
    let seq = SeqNo::new(7);
    ReportedPacket {
        seq,
        origin,
        last_retransmit,
        retransmissions,
        deadline: None,
        next_deadline: None,
    }
}

#[test]
fn a_packet_is_retransmitted_as_often_as_the_parameter_says() {
    let mut policy = AtMost { limit: 2 };
    assert_eq!(policy.decide(NOW, &packet(0, None), &view()), Decision::ONCE);
    assert_eq!(policy.decide(NOW, &packet(1, Some(20)), &view()), Decision::Suppress);
    assert_eq!(policy.decide(NOW, &packet(1, Some(50)), &view()), Decision::ONCE);
    assert_eq!(policy.decide(NOW, &packet(2, Some(50)), &view()), Decision::TooLate);
}

const MS: fn(u64) -> Duration = Duration::from_millis;

#[test]
fn the_nak_example_sends_its_naks_at_fixed_times() {
    let policy = FixedTimes { wait: MS(5), interval: MS(60) };
    let rtt = Rtt { smoothed: MS(40), variance: MS(2) };
    let view = ReceiverView {
        rtt,
        response_time: MS(45),
        answered: NOW,
        last_answer: NOW,
        reordering_delay: MS(3),
        loss: 0.01,
        copies_allowed: true,
        spare_copies: 9.0,
    };
    let missing = MissingPackets {
        first: SeqNo::new(7),
        last: SeqNo::new(9),
        detected: NOW,
        last_nak: None,
        naks: 0,
        passed_over: None,
        deadline: None,
    };
    assert_eq!(policy.nak_at(&missing, &view), NOW + MS(5));
    let repeated = MissingPackets { last_nak: Some(NOW + MS(5)), naks: 1, ..missing };
    assert_eq!(policy.nak_at(&repeated, &view), NOW + MS(65));
    let nak = SentNak { at: NOW, last_chance: None };
    assert_eq!(policy.copy_after(1, &nak, &view), None);
}

#[test]
fn the_rtt_example_takes_the_median_of_the_last_samples() {
    let mut median = Median::of_last(3);
    assert_eq!(median.estimate(), None);
    for (number, (rtt, smoothed)) in (1..).zip([(20, 20), (900, 900), (22, 22), (24, 24)]) {
        let (number, rtt) = (PacketNumber::new(number), MS(rtt));
        median.acknowledged(&RttSample { now: NOW, number, rtt, ack_delay: Duration::ZERO });
        assert_eq!(median.estimate().map(|rtt| rtt.smoothed), Some(MS(smoothed)));
    }
    assert_eq!(median.estimate().map(|rtt| rtt.variance), Some(MS(2)));
}

#[test]
fn the_congestion_example_keeps_between_its_least_and_its_target_rate() {
    let (least, target) = (Bitrate::from_mbps(2), Bitrate::from_mbps(20));
    let mut control = ByDelay::new(Limits { least, target, queue: 30_000 });
    let path = |latest_rtt| PathState {
        rtt: Rtt { smoothed: latest_rtt, variance: Duration::ZERO },
        latest_rtt,
        base_rtt: MS(40),
        in_flight: 10,
        arrived: None,
        packet_size: 1_500,
        delivery_rate: 0,
        capacity: 0,
        in_loss_list: 0,
        newly_lost: 0,
        blocked: Duration::ZERO,
        next_new: SeqNo::new(1),
    };
    assert_eq!(control.rate(), Some(least));
    for round in 0..100 {
        control.round_trip(NOW + MS(40) * round, &path(MS(40)));
    }
    assert_eq!(control.rate(), Some(target), "no queue");
    control.lost(NOW + MS(5_000), SeqNo::new(1), &path(MS(40)));
    assert_eq!(control.rate(), Some(target), "a loss does not slow it down");
    for round in 0..100 {
        control.round_trip(NOW + MS(10_000) + MS(400) * round, &path(MS(400)));
    }
    assert_eq!(control.rate(), Some(least), "a long queue");
}

#[tokio::test]
async fn streams_pass_with_the_example_of_each_policy() {
    let configs =
        [at_most(2), fixed_times(FixedTimes { wait: MS(1), interval: MS(20) }), median_of_last(5)];
    for config in configs {
        let (a, b) = pair(config.with_latency(MS(20)).unwrap()).await;
        for number in 0..20 {
            a.send(message(number)).await.unwrap();
            assert_eq!(within(b.recv()).await.unwrap().payload, message(number));
        }
    }
}

#[tokio::test]
async fn a_byte_stream_passes_at_the_rate_of_a_custom_congestion_control() {
    let (least, target) = (Bitrate::from_mbps(40), Bitrate::from_mbps(80));
    let limits = Limits { least, target, queue: 30_000 };
    let (a, b) = pair(by_delay(limits).with_linger(Duration::from_secs(10))).await;
    let data = Bytes::from_iter((0..1_000_000_u32).map(|i| i.to_le_bytes()[1]));
    let sending = async {
        a.write_all(data.clone()).await.unwrap();
        let statistics = a.statistics();
        assert_eq!(statistics.max_bandwidth, target);
        a.close().await;
    };
    let receiving = async {
        let mut received = Vec::new();
        while received.len() < data.len() {
            received.extend_from_slice(&b.recv().await.unwrap().payload);
        }
        assert!(received == data, "each byte is as it was sent");
    };
    within(async { tokio::join!(sending, receiving) }).await;
}

/// Options with custom policies, and the number of estimators that were made for connections.
fn counting() -> (Config, Arc<AtomicU32>) {
    let made = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&made);
    let config = config()
        .with_retransmit_algorithm(RetransmitAlgorithm::custom(|| AtMost { limit: 3 }))
        .with_nak_algorithm(NakAlgorithm::custom(|| FixedTimes { wait: MS(1), interval: MS(9) }))
        .with_rtt_algorithm(RttAlgorithm::custom(move || {
            count.fetch_add(1, Ordering::Relaxed);
            Median::of_last(9)
        }));
    (config, made)
}

#[tokio::test]
async fn policies_are_chosen_for_a_socket_a_listener_and_a_caller() {
    let (of_listener, made_for_listener) = counting();
    let (of_socket, made_for_socket) = counting();
    let listener = Listener::bind(local(), of_listener).await.unwrap();
    let address = listener.local_addr();
    for calls in 1..=2 {
        let (call, accept) = (Socket::connect(address, of_socket.clone()), listener.accept());
        let _pair = within(async { tokio::try_join!(call, accept) }).await.unwrap();
        assert_eq!(made_for_listener.load(Ordering::Relaxed), calls);
        assert_eq!(made_for_socket.load(Ordering::Relaxed), calls);
    }
    let (of_caller, made_for_caller) = counting();
    let mut gate = listener.gate(move |caller| {
        let of_caller = of_caller.clone();
        async move { Ok(if caller.stream_id == "special" { of_caller } else { config() }) }
    });
    for (id, made) in [("special", 1), ("usual", 1)] {
        let call = Socket::connect(address, config().with_stream_id(id).unwrap());
        let _pair = within(async { tokio::try_join!(call, gate.accept()) }).await.unwrap();
        assert_eq!(made_for_caller.load(Ordering::Relaxed), made);
    }
}
