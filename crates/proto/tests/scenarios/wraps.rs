//! Sequence numbers that wrap in the middle of a stream.

use std::cell::RefCell;
use std::rc::Rc;

use punctual_netem::{LinkConfig, Loss, Reorder};
use punctual_proto::{Config, SeqNo};
use punctual_wire::Control;

use crate::datagram::{control, data_header};
use crate::pair::{Pair, Side};
use crate::{MS, latency, link, lossy};

/// Seeds whose first sequence number is a few hundred below the wrap, found by trying 20 million
/// seeds.
pub const SEEDS: [u64; 3] = [7_873_753, 9_498_531, 12_914_410];

/// Streams 1,000 messages each way across the wrap.
fn stream_across(seed: u64, link: LinkConfig, config: &Config) -> Pair {
    let mut pair = Pair::symmetric(seed, link);
    pair.connect(config.clone(), config.clone());
    for _ in 0..1_000 {
        assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
        pair.run_for(MS(2));
    }
    pair.run_for(MS(1_000));
    for side in [Side::Caller, Side::Listener] {
        let received = &pair.node(side).received;
        let (first, last) = (received[0].message.seq, received[received.len() - 1].message.seq);
        let below = SeqNo::MAX.distance_from(first);
        assert!(
            (1..500).contains(&below),
            "{first} is not close below the wrap: find another seed"
        );
        assert!(last.value() < first.value() && last.is_after(first));
    }
    pair
}

#[test]
fn a_wrap_of_sequence_numbers_does_not_change_the_delay() {
    for seed in SEEDS {
        let mut pair = stream_across(seed, link(), &latency(120));
        for side in [Side::Caller, Side::Listener] {
            pair.assert_complete(side);
            assert!(pair.delays(side).iter().all(|&delay| delay == MS(130)));
            let statistics = pair.statistics(side);
            assert_eq!(statistics.packets_receive_lost, 0);
            assert_eq!(statistics.packets_ignored, 0);
            assert_eq!(statistics.flight_size, 0);
        }
    }
}

#[test]
fn losses_and_reordering_around_the_wrap_are_recovered() {
    for seed in SEEDS {
        let reorder = Reorder::Late { share: 0.1, by: MS(5) };
        for link in [
            lossy(0.1),
            lossy(0.05).with_reorder(reorder).expect("a share"),
            link().with_loss(Loss::bursts(0.1, 20.0)).expect("shares"),
        ] {
            let mut pair = stream_across(seed, link, &latency(900));
            for side in [Side::Caller, Side::Listener] {
                pair.assert_complete(side);
                assert!(pair.statistics(side).packets_receive_lost > 0);
            }
        }
    }
}

#[test]
fn a_gap_across_the_wrap_is_reported_as_one_range() {
    let mut pair = Pair::symmetric(SEEDS[0], link());
    pair.connect(latency(300), latency(300));
    let naks = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&naks);
    pair.drop_where(move |_, datagram| {
        if let Some(Control::Nak(list)) = control(datagram) {
            seen.borrow_mut().extend(list.ranges());
        }
        data_header(datagram).is_some_and(|header| {
            header.seq.distance_from(SeqNo::MAX).abs() <= 5 && !header.retransmitted
        })
    });
    pair.stream(Side::Caller, 500, MS(2));
    pair.run_for(MS(500));
    pair.assert_complete(Side::Caller);
    let expected = (SeqNo::MAX.minus(5), SeqNo::MAX.plus(5));
    assert!(naks.borrow().iter().all(|range| *range == expected), "{naks:?}");
    assert!(!naks.borrow().is_empty());
    assert_eq!(pair.statistics(Side::Listener).packets_receive_lost, 11);
    assert_eq!(pair.statistics(Side::Caller).packets_retransmitted, 11);
}

#[test]
fn a_stream_continues_after_an_outage_across_the_wrap() {
    for seed in SEEDS {
        let mut pair = Pair::symmetric(seed, link());
        pair.connect(latency(120), latency(120));
        pair.stream(Side::Caller, 100, MS(2));
        // The outage of 2 s after message 100 includes the wrap.
        let all = LinkConfig::default().with_loss(Loss::All).expect("no share in it");
        pair.set_link(Side::Caller, all.clone());
        pair.set_link(Side::Listener, all);
        pair.stream(Side::Caller, 1_000, MS(2));
        pair.set_link(Side::Caller, link());
        pair.set_link(Side::Listener, link());
        pair.stream(Side::Caller, 200, MS(2));
        pair.run_for(MS(500));
        let delivered = pair.delivered(Side::Caller);
        let dropped = pair.statistics(Side::Listener).packets_receive_dropped;
        assert_eq!(delivered.len() as u64 + dropped, 1_300);
        assert!(delivered.ends_with(&(1_100..1_300).collect::<Vec<_>>()));
        assert_eq!(pair.statistics(Side::Caller).flight_size, 0);
    }
}
