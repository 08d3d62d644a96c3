//! Retransmission: which packets, when, and at what overhead.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Jitter, LinkConfig, Loss, Reorder};
use punctual_proto::{
    ClassicRtt, Config, Decision, NakTimer, ReportedPacket, RetransmitAlgorithm,
    RetransmitBandwidth, RetransmitPolicy, Rtt, RttAlgorithm, RttEstimator, RttSample, SenderView,
    Statistics,
};
use punctual_testbed::{run_due, transmit};
use punctual_units::{Bitrate, Instant};
use punctual_wire::{Control, Extension, HsFlags};

use crate::datagram::{Kind, control, data_header, edit_handshake, kind};
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link, lossy};

/// The options of ends with periodic NAKs.
fn periodic(ms: u64) -> Config {
    latency(ms).with_retransmit_algorithm(RetransmitAlgorithm::Efficient)
}

/// Two minutes of a stream of 5 Mb/s in the setting of a published comparison: a round-trip time of
/// 20 ms, 5 % of loss both ways, a latency of 80 ms. Returns the statistics of both ends.
///
/// The additional tenth of a millisecond each way represents real hosts.
fn two_minutes(seed: u64, algorithm: RetransmitAlgorithm) -> (Statistics, Statistics) {
    let config = latency(80).with_retransmit_algorithm(algorithm);
    let micros = Duration::from_micros;
    let jitter = Jitter::Uniform { spread: micros(50) };
    let link = lossy(0.05).with_delay(micros(10_100)).with_jitter(jitter);
    let mut pair = Pair::symmetric(seed, link);
    pair.connect(config.clone(), config);
    pair.stream_at(Bitrate::from_mbps(5), SECS(120))
}

/// libsrt 1.5.5 measured in this setting retransmits 9.60 % of its packets with the aggressive and
/// 5.98 % with the efficient policy, and leaves 0.0035 % and 0.0124 % unrecovered.
#[test]
fn the_overhead_of_both_policies_is_that_of_published_measurements() {
    for (algorithm, overheads) in
        [(RetransmitAlgorithm::Aggressive, 9.1..10.6), (RetransmitAlgorithm::Efficient, 5.0..6.3)]
    {
        let (mut sent, mut again, mut dropped) = (0, 0, 0);
        for seed in 0..4 {
            let (sender, receiver) = two_minutes(seed, algorithm.clone());
            let overhead = percent(sender.packets_retransmitted, sender.packets_sent_unique);
            assert!(overheads.contains(&overhead), "{algorithm:?}, seed {seed}: {overhead} %");
            sent += sender.packets_sent_unique;
            again += sender.packets_retransmitted;
            dropped += receiver.packets_receive_dropped;
        }
        let unrecovered = percent(dropped, sent);
        println!(
            "{algorithm:?}: overhead {:.2} %, unrecovered {unrecovered:.4} % of {sent}",
            percent(again, sent)
        );
        assert!(unrecovered < 0.05, "{algorithm:?}: {unrecovered} % unrecovered");
    }
}

/// So the second NAK may come before the retransmission that answers the first one.
#[test]
fn the_nak_period_begins_with_the_last_packet_before_the_loss() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(periodic(300), periodic(300));
    pair.stream(Side::Caller, 100, MS(2));
    let lost = Rc::new(RefCell::new(None));
    let naks = Rc::new(RefCell::new(Vec::new()));
    let (seen, losing) = (Rc::clone(&naks), Rc::clone(&lost));
    pair.tap(move |at, side, datagram| {
        match side {
            Side::Caller if kind(&datagram) == Kind::Data && losing.borrow().is_none() => {
                *losing.borrow_mut() = Some(at);
                return Vec::new();
            }
            Side::Listener if kind(&datagram) == Kind::Nak => seen.borrow_mut().push(at),
            _ => {}
        }
        vec![datagram]
    });
    pair.stream(Side::Caller, 100, MS(2));
    let lost = lost.borrow().expect("a packet was lost");
    let delays: Vec<_> = naks.borrow().iter().map(|at| *at - lost).collect();
    // The next packet shows the gap 2 ms later, after a delay of 10 ms. The NAK period of 20 ms
    // counts from a packet that arrived in the 4 ms before that, such as the packet before the lost
    // one.
    assert_eq!(delays[0], MS(12));
    assert!((MS(28)..MS(32)).contains(&delays[1]), "{delays:?}");
}

/// Nothing is sent for 50 ms after a loss was found: an exact timer repeats the NAK after 20 ms,
/// and one that waits for packets at most 10 ms later.
#[test]
fn a_nak_that_waits_for_packets_waits_at_most_10_ms() {
    let second_nak = |timer| {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(periodic(300), periodic(300).with_nak_timer(timer));
        pair.stream(Side::Caller, 100, MS(2));
        // The way back is cut, so that neither retransmissions nor ACKACKs come.
        let naks = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&naks);
        let lose = Rc::new(RefCell::new(true));
        let losing = Rc::clone(&lose);
        pair.tap(move |at, side, datagram| match side {
            Side::Caller if std::mem::take(&mut *losing.borrow_mut()) => Vec::new(),
            Side::Caller => vec![datagram],
            Side::Listener => {
                if kind(&datagram) == Kind::Nak {
                    seen.borrow_mut().push(at);
                }
                Vec::new()
            }
        });
        pair.stream(Side::Caller, 2, MS(2));
        pair.run_for(MS(50));
        let naks = naks.borrow();
        naks[1] - naks[0]
    };
    let exact = second_nak(NakTimer::Exact);
    assert!((MS(16)..MS(20)).contains(&exact), "{exact:?}");
    assert_eq!(second_nak(NakTimer::WithPackets), exact + MS(10));
}

#[expect(clippy::cast_precision_loss, reason = "counts of packets are small")]
fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// Retransmits each packet at most once, and none that is older than 50 ms.
#[derive(Debug)]
struct OnceWhileFresh;

impl RetransmitPolicy for OnceWhileFresh {
    fn decide(&mut self, now: Instant, packet: &ReportedPacket, _view: &SenderView) -> Decision {
        if packet.retransmissions > 0 {
            Decision::Suppress
        } else if now - packet.origin < MS(50) {
            Decision::ONCE
        } else {
            Decision::TooLate
        }
    }
}

#[test]
fn a_custom_retransmission_policy_is_used() {
    for seed in 0..3 {
        let custom = RetransmitAlgorithm::custom(|| OnceWhileFresh);
        let config = latency(200).with_retransmit_algorithm(custom);
        let mut pair = Pair::symmetric(seed, lossy(0.1));
        pair.connect(config, latency(200));
        let record = pair.record();
        pair.stream(Side::Caller, 2_000, MS(2));
        pair.run_for(SECS(1));
        let mut again: Vec<_> = record
            .of_kind(Side::Caller, Kind::Retransmission)
            .into_iter()
            .map(|(_, datagram)| data_header(&datagram).expect("data").seq.value())
            .collect();
        let sent = again.len();
        assert!(sent > 100);
        again.sort_unstable();
        again.dedup();
        assert_eq!(again.len(), sent, "none twice");
        let dropped = pair.statistics(Side::Listener).packets_receive_dropped;
        assert!((5..80).contains(&dropped), "{dropped}: a tenth of the tenth");
    }
}

/// Estimates 70 ms, regardless of the samples.
#[derive(Debug, Default)]
struct Constant {
    samples: u32,
}

impl RttEstimator for Constant {
    fn acknowledged(&mut self, sample: &RttSample) {
        assert_eq!(sample.rtt, MS(20), "the samples are the link's round trips");
        self.samples += 1;
    }

    fn estimate(&self) -> Option<Rtt> {
        (self.samples > 0).then_some(Rtt { smoothed: MS(70), variance: MS(1) })
    }
}

#[test]
fn a_custom_rtt_estimator_is_used() {
    let custom = RttAlgorithm::custom(Constant::default);
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120).with_rtt_algorithm(custom));
    let record = pair.record();
    pair.stream(Side::Caller, 100, MS(2));
    assert_eq!(pair.statistics(Side::Listener).rtt, MS(70));
    assert_eq!(pair.statistics(Side::Listener).rtt_variance, MS(1));
    let datagram = record.of_kind(Side::Listener, Kind::Ack).pop().expect("ACKs").1;
    let Some(Control::Ack(ack)) = control(&datagram) else { panic!("no ACK") };
    assert_eq!(ack.link().expect("full or small").rtt_us, 70_000, "the peer gets the estimate");
    assert_eq!(pair.statistics(Side::Caller).rtt, MS(70), "a sender uses the receiver's estimate");
    let classic = RttAlgorithm::custom(ClassicRtt::default);
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120).with_rtt_algorithm(classic));
    pair.stream(Side::Caller, 100, MS(2));
    assert_eq!(pair.statistics(Side::Listener).rtt, MS(20));
}

/// The estimate follows the path, even at an end that received a little and then only sends.
#[test]
fn the_round_trip_time_follows_the_path_at_both_ends() {
    for talks_back in [false, true] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(latency(300), latency(300));
        if talks_back {
            pair.stream(Side::Listener, 100, MS(2));
        }
        pair.stream(Side::Caller, 500, MS(2));
        for side in [Side::Caller, Side::Listener] {
            assert!(pair.statistics(side).rtt.abs_diff(MS(20)) < MS(1), "{side:?}");
        }
        for side in [Side::Caller, Side::Listener] {
            pair.set_link(side, LinkConfig::default().with_delay(MS(50)));
        }
        pair.stream(Side::Caller, 1_000, MS(2));
        for side in [Side::Caller, Side::Listener] {
            let rtt = pair.statistics(side).rtt;
            assert!(rtt.abs_diff(MS(100)) < MS(2), "{side:?}, talked back {talks_back}: {rtt:?}");
        }
    }
}

#[test]
fn the_budget_bounds_retransmissions() {
    for seed in 0..3 {
        // 1360 bytes per packet: ten per second, and a burst for a pause of 100 ms.
        let budget = Bitrate::from_bytes_per_sec(13_600);
        let config =
            latency(120).with_max_retransmit_bandwidth(RetransmitBandwidth::Absolute(budget));
        let mut pair = Pair::symmetric(seed, lossy(0.1));
        pair.connect(config, latency(120));
        let record = pair.record();
        pair.stream(Side::Caller, 5_000, MS(2));
        let again = record.of_kind(Side::Caller, Kind::Retransmission);
        assert!((90..=103).contains(&again.len()), "{} in 10 s", again.len());
        for (i, (at, _)) in again.iter().enumerate() {
            let within = again[i..].iter().take_while(|(later, _)| *later < *at + SECS(1));
            assert!(within.count() <= 12, "in the second from {at:?} on");
        }
    }
    let none =
        latency(120).with_max_retransmit_bandwidth(RetransmitBandwidth::Absolute(Bitrate::ZERO));
    let mut pair = Pair::symmetric(1, lossy(0.1));
    pair.connect(none, latency(120));
    pair.stream(Side::Caller, 1_000, MS(2));
    pair.run_for(SECS(1));
    assert_eq!(pair.statistics(Side::Caller).packets_retransmitted, 0);
    let dropped = pair.statistics(Side::Listener).packets_receive_dropped;
    assert!((60..150).contains(&dropped), "{dropped}");
}

#[test]
fn a_lost_nak_is_repeated() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(periodic(300), periodic(300));
    pair.stream(Side::Caller, 200, MS(2));
    let naks = Rc::new(RefCell::new(0));
    let count = Rc::clone(&naks);
    let mut lost = false;
    pair.drop_where(move |_, datagram| {
        if kind(datagram) == Kind::Nak {
            *count.borrow_mut() += 1;
            return *count.borrow() <= 3;
        }
        let first = kind(datagram) == Kind::Data && !lost;
        lost |= first;
        first
    });
    pair.stream(Side::Caller, 200, MS(2));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
    let naks = *naks.borrow();
    assert!((4..=6).contains(&naks), "{naks} NAKs, three of them lost");
}

/// After a machine slept or a program was stopped, no answers could come in between.
#[test]
fn a_sender_that_wakes_up_late_retransmits_only_once() {
    assert_eq!(retransmitted_after_sleep(&Config::file()), 2, "the newest ones");
    let untimed = Config::file().with_timed_requests(false);
    assert_eq!(retransmitted_after_sleep(&untimed), 3, "the oldest one, too");
}

/// The packets that a sender of files retransmits after four seconds without a turn, with five
/// packets in flight.
fn retransmitted_after_sleep(config: &Config) -> u64 {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config.clone(), config.clone());
    pair.run_for(SECS(1));
    pair.drop_where(|_, _| true);
    pair.write(Side::Caller, &mut Bytes::from(vec![7; 5 * 1_456])).expect("room");
    pair.run_for(MS(100));
    let before = pair.statistics(Side::Caller).packets_sent;
    let late = pair.caller.local(pair.now) + SECS(4);
    let endpoint = &mut pair.caller.endpoint;
    for _ in 0..100 {
        run_due(endpoint, late);
        transmit(endpoint, late, |_, _| {});
    }
    let id = pair.caller.connection.expect("a connection");
    let statistics = endpoint.connections().get(id).expect("a connection").statistics(late);
    statistics.packets_sent - before
}

#[test]
fn without_periodic_naks_the_sender_retransmits_after_a_timeout() {
    // The receiver neither repeats its NAKs, nor announces that it does.
    let once = latency(500).with_periodic_nak(false);
    for seed in 0..5 {
        for at_listener in [&once, &latency(500)] {
            let mut pair = Pair::symmetric(seed, lossy(0.1));
            pair.tap(|_, _, datagram| {
                let without = |hs: &mut punctual_wire::HsExtension| {
                    let bits = hs.flags.bits() & !HsFlags::PERIODIC_NAK.bits();
                    hs.flags = HsFlags::from_bits(bits);
                };
                vec![edit_handshake(datagram, |handshake| {
                    for extension in &mut handshake.extensions {
                        if let Extension::HsReq(hs) | Extension::HsRsp(hs) = extension {
                            without(hs);
                        }
                    }
                })]
            });
            pair.connect(latency(500), at_listener.clone());
            pair.stream(Side::Caller, 500, MS(10));
            pair.run_for(SECS(2));
            pair.assert_complete(Side::Caller);
        }
    }
}

#[test]
fn the_tail_of_a_stream_is_recovered() {
    for seed in 0..10 {
        for lost in [1, 2, 30, 63, 64, 65, 100, 200] {
            let mut pair = Pair::symmetric(seed, link());
            pair.connect(latency(500), latency(500));
            pair.stream(Side::Caller, 200, MS(1));
            pair.set_link(Side::Caller, lossy(1.0));
            pair.stream(Side::Caller, lost, MS(1));
            pair.set_link(Side::Caller, lossy(0.1));
            pair.run_for(SECS(2));
            pair.assert_complete(Side::Caller);
            assert_eq!(pair.statistics(Side::Caller).flight_size, 0);
        }
    }
}

#[test]
fn a_slow_stream_without_loss_causes_no_retransmissions() {
    for interval in [5, 50, 200, 700] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(latency(120), latency(120));
        pair.stream(Side::Caller, 100, MS(interval));
        pair.run_for(SECS(1));
        assert_eq!(pair.statistics(Side::Caller).packets_retransmitted, 0, "{interval} ms");
        assert_eq!(pair.statistics(Side::Listener).naks_sent, 0);
    }
}

#[test]
fn reorder_tolerance_avoids_needless_naks() {
    for seed in 0..4 {
        let reorder = Reorder::Late { share: 0.05, by: MS(5) };
        let link = link().with_reorder(reorder).expect("a share");
        let run = |tolerance| {
            let config = periodic(120).with_reorder_tolerance(tolerance).expect("in range");
            let mut pair = Pair::symmetric(seed, link.clone());
            pair.connect(config.clone(), config);
            pair.stream(Side::Caller, 3_000, MS(1));
            pair.run_for(SECS(1));
            pair.assert_complete(Side::Caller);
            (pair.statistics(Side::Listener), pair.statistics(Side::Caller))
        };
        let (receiver, sender) = run(0);
        assert!(receiver.naks_sent > 100 && sender.packets_retransmitted > 100);
        assert_eq!(receiver.reorder_tolerance, 0);
        let (receiver, sender) = run(20);
        assert!(receiver.naks_sent < 10, "{} NAKs", receiver.naks_sent);
        assert!(sender.packets_retransmitted < 10, "{}", sender.packets_retransmitted);
        assert!(receiver.packets_receive_lost > 100, "a gap is counted with or without a NAK");
        // 5 ms are four or five packets.
        assert!((4..=6).contains(&receiver.reorder_distance), "{}", receiver.reorder_distance);
        assert!((1..=20).contains(&receiver.reorder_tolerance));
    }
}

#[test]
fn reorder_tolerance_delays_no_nak_beyond_recovery() {
    for seed in 0..4 {
        for tolerance in [1, 20, 1_000_000] {
            let config = latency(400).with_reorder_tolerance(tolerance).expect("in range");
            let mut pair = Pair::symmetric(seed, lossy(0.05));
            pair.connect(config.clone(), config);
            // So few packets that the tolerance alone would delay NAKs for too long.
            pair.stream(Side::Caller, 300, MS(30));
            pair.run_for(SECS(1));
            pair.assert_complete(Side::Caller);
        }
    }
}

#[test]
fn the_efficient_policy_suppresses_duplicates_on_a_steady_path() {
    for seed in 0..3 {
        let run = |algorithm| {
            let config = latency(600).with_retransmit_algorithm(algorithm);
            let link = LinkConfig::default().with_delay(MS(50));
            let there = link.clone().with_loss(Loss::Random(0.05)).expect("a share");
            let mut pair = Pair::new(seed, there, link);
            pair.connect(config.clone(), config);
            pair.stream(Side::Caller, 5_000, MS(2));
            pair.run_for(SECS(1));
            pair.assert_complete(Side::Caller);
            let statistics = pair.statistics(Side::Caller);
            percent(statistics.packets_retransmitted, statistics.packets_sent_unique)
        };
        let aggressive = run(RetransmitAlgorithm::Aggressive);
        let efficient = run(RetransmitAlgorithm::Efficient);
        // A NAK comes every 50 ms, and the retransmission 100 ms later: every second one is
        // needless.
        assert!(aggressive > 9.0, "{aggressive} %");
        assert!(efficient < 6.5, "{efficient} %");
    }
}
