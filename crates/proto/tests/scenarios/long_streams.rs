//! Long streams over a lossy link: across key refreshes, wraps of the numbers and changes of
//! address, nothing is lost that the latency leaves time for.

use punctual_proto::MsgNo;

use crate::encryption::secured;
use crate::node::number_of;
use crate::pair::{Pair, Side};
use crate::wraps::SEEDS;
use crate::{MS, lossy};

use std::time::Duration;

/// Sends `count` messages, one every `interval`, over a link that loses one packet in two hundred.
fn expect_nothing_lost(seed: u64, count: u32, interval: Duration) {
    let config = secured(Some("correct horse"), true)
        .with_latency(MS(600))
        .and_then(|config| config.with_key_refresh_rate(7_000))
        .and_then(|config| config.with_key_pre_announce(1_000))
        .expect("in range");
    let near_the_wrap = MsgNo::new(MsgNo::MAX.value() - 2_000);
    let mut pair = Pair::symmetric(seed, lossy(0.005)).count_from(near_the_wrap);
    pair.connect(config.clone(), config);
    let (mut delivered, mut first, mut wraps) = (0, None, 0);
    let mut take = |pair: &mut Pair| {
        for delivery in pair.listener.received.drain(..) {
            assert_eq!(number_of(&delivery.message.payload), delivered);
            assert_eq!(delivery.message.lost_before, 0);
            let seq = delivery.message.seq.value();
            wraps += u32::from(first.is_some_and(|first| seq < first));
            first = Some(seq);
            delivered += 1;
        }
        pair.strays.clear();
        (delivered, wraps)
    };
    for i in 0..count {
        assert!(pair.send_next(Side::Caller), "the send buffer is full");
        pair.run_for(interval);
        if i % 1_000 == 999 {
            take(&mut pair);
        }
        if i % 20_000 == 10_000 {
            pair.caller.address.set_port(10_000 + (i / 20_000) as u16);
        }
    }
    pair.run_for(MS(2_000));
    assert_eq!(take(&mut pair), (count, 1), "all of them, across one wrap");
    let (sender, receiver) = (pair.statistics(Side::Caller), pair.statistics(Side::Listener));
    assert_eq!(receiver.packets_receive_dropped, 0);
    assert_eq!(receiver.packets_undecrypted, 0);
    assert!(sender.packets_retransmitted > u64::from(count) / 250);
    assert!(sender.key_refreshes >= u64::from(count) / 7_000 - 1, "{}", sender.key_refreshes);
    assert_eq!(receiver.path_changes, u64::from((count + 9_999) / 20_000));
}

/// 83 minutes: timestamps wrap after 72 minutes, sequence numbers soon after the start.
#[test]
fn a_long_stream_loses_nothing() {
    expect_nothing_lost(SEEDS[0], 200_000, MS(25));
}

#[test]
#[ignore = "it takes minutes: cargo test --release -p punctual-proto --test scenarios millions -- --ignored"]
fn millions_of_packets_lose_nothing() {
    expect_nothing_lost(SEEDS[1], 3_000_000, MS(2));
}
