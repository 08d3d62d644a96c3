//! Links that carry less than the stream for a while: retransmissions displace originals.

use std::time::Duration;

use punctual_netem::{LinkConfig, Loss, QueueLimit};
use punctual_proto::{Config, MaxBandwidth, RetransmitAlgorithm, RetransmitBandwidth};
use punctual_units::Bitrate;

use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link};

/// A link with a delay of 10 ms, this rate, and a queue of 50 ms.
fn link_of(rate: Bitrate) -> LinkConfig {
    link().with_rate(Some(rate)).with_queue(QueueLimit::Time(MS(50)))
}

/// A stream of 5.4 Mb/s on a link of 20 Mb/s that carries only `collapsed` for five seconds.
/// Returns the number of delivered messages of 7,500, and of retransmissions.
fn collapse(config: Config, collapsed: Bitrate) -> (usize, u64) {
    let mut pair = Pair::new(1, link_of(Bitrate::from_mbps(20)), link());
    pair.connect(config.clone(), config);
    pair.stream(Side::Caller, 2_500, MS(2));
    pair.set_link(Side::Caller, link_of(collapsed));
    pair.stream(Side::Caller, 2_500, MS(2));
    pair.set_link(Side::Caller, link_of(Bitrate::from_mbps(20)));
    pair.stream(Side::Caller, 2_500, MS(2));
    pair.run_for(SECS(3));
    (pair.delivered(Side::Caller).len(), pair.statistics(Side::Caller).packets_retransmitted)
}

/// A stream of 4 Mb/s over a round trip of 40 ms, on a link of 20 Mb/s that falls to 1 Mb/s for
/// eight seconds.
struct Fall {
    /// Messages that were not delivered, of those submitted.
    lost: usize,
    /// The rates of originals and retransmissions in each second of the fall.
    rates: Vec<Bitrate>,
}

impl Fall {
    fn new(seed: u64, caller: Config, listener: Config) -> Self {
        let link_of = |rate| {
            let queue = QueueLimit::Time(MS(100));
            LinkConfig::default()
                .with_delay(MS(20))
                .with_rate(Some(Bitrate::from_mbps(rate)))
                .with_queue(queue)
        };
        let latency = caller.peer_latency();
        let mut pair = Pair::new(seed, link_of(20), link_of(20));
        pair.connect(caller, listener);
        let second = |pair: &mut Pair| {
            let before = pair.statistics(Side::Caller);
            pair.stream(Side::Caller, 380, Duration::from_micros(2_632));
            pair.statistics(Side::Caller).since(&before).send_rate()
        };
        (0..4).for_each(|_| _ = second(&mut pair));
        pair.set_link(Side::Caller, link_of(1));
        let rates = (0..8).map(|_| second(&mut pair)).collect();
        pair.set_link(Side::Caller, link_of(20));
        (0..6).for_each(|_| _ = second(&mut pair));
        pair.run_for(latency + SECS(1));
        let delivered = pair.delivered(Side::Caller).len();
        Self { lost: pair.caller.sent.len() - delivered, rates }
    }
}

fn limited(ms: u64, algorithm: RetransmitAlgorithm) -> Config {
    let limit = MaxBandwidth::Absolute(Bitrate::from_mbps(20));
    latency(ms).with_max_bandwidth(limit).with_retransmit_algorithm(algorithm)
}

#[test]
fn the_automatic_budget_prevents_a_storm_at_little_cost() {
    for algorithm in [RetransmitAlgorithm::Aggressive, RetransmitAlgorithm::Efficient] {
        for ms in [120, 300, 600] {
            for mbps in [1, 3, 5] {
                let rate = Bitrate::from_mbps(mbps);
                let with = limited(ms, algorithm.clone());
                let without =
                    with.clone().with_max_retransmit_bandwidth(RetransmitBandwidth::Unlimited);
                let ((kept, again), (kept_without, again_without)) =
                    (collapse(with, rate), collapse(without, rate));
                let case = format!("{algorithm:?}, {ms} ms, {mbps} Mb/s");
                // Half of the 2,500 messages, and those of a latency before and after.
                assert!(again <= 1_250 + ms, "{case}: {again} retransmissions");
                assert!(kept * 100 >= kept_without * 97, "{case}: {kept} of {kept_without}");
                assert!(again <= again_without, "{case}: {again} of {again_without}");
            }
        }
    }
}

/// A link that could almost carry the stream carries retransmissions instead.
#[test]
fn without_a_budget_a_storm_loses_more_than_the_collapse() {
    let rate = Bitrate::from_mbps(5);
    let with = limited(300, RetransmitAlgorithm::Aggressive);
    let without = with.clone().with_max_retransmit_bandwidth(RetransmitBandwidth::Unlimited);
    let ((kept, again), (kept_without, again_without)) =
        (collapse(with, rate), collapse(without, rate));
    assert!(again * 4 < again_without, "{again} of {again_without} retransmissions");
    let (lost, lost_without) = (7_500 - kept, 7_500 - kept_without);
    assert!(lost * 2 < lost_without, "{lost} lost, {lost_without} in the storm");
}

/// The messages of an outage that the latency allows for are recovered as without a limit.
#[test]
fn the_automatic_budget_allows_recovery_from_an_outage() {
    for budget in [RetransmitBandwidth::Auto, RetransmitBandwidth::Unlimited] {
        for limit in [MaxBandwidth::Absolute(Bitrate::from_mbps(20)), MaxBandwidth::Unlimited] {
            let config =
                latency(500).with_max_bandwidth(limit).with_max_retransmit_bandwidth(budget);
            let mut pair = Pair::symmetric(1, link());
            pair.connect(config.clone(), config);
            pair.stream(Side::Caller, 1_000, MS(2));
            for _ in 0..3 {
                pair.set_link(Side::Caller, link().with_loss(Loss::All).expect("no share in it"));
                pair.stream(Side::Caller, 175, MS(2));
                pair.set_link(Side::Caller, link());
                pair.stream(Side::Caller, 1_000, MS(2));
            }
            pair.run_for(SECS(1));
            pair.assert_complete(Side::Caller);
        }
    }
}

/// A listener of another program neither reports arrivals nor has NAK timers.
#[test]
fn a_falling_link_gets_no_storm_and_loses_no_more_than_in_one() {
    let mut lost_in_all = [0, 0];
    for ms in [1_000, 4_000] {
        for to_punctual in [true, false] {
            let caller = latency(ms);
            let listener = latency(ms).with_timed_requests(to_punctual);
            let stormy =
                caller.clone().with_max_retransmit_bandwidth(RetransmitBandwidth::Unlimited);
            let sum = |caller: &Config| {
                let falls = [1, 2, 3].map(|seed| Fall::new(seed, caller.clone(), listener.clone()));
                let lost: usize = falls.iter().map(|fall| fall.lost).sum();
                let highest = falls.iter().flat_map(|fall| fall.rates.iter().copied()).max();
                (lost, highest.expect("a second"))
            };
            let ((lost_in_storm, highest), (lost, calm)) = (sum(&stormy), sum(&caller));
            let case = format!("{ms} ms, to ours {to_punctual}: {calm} instead of {highest}");
            println!("{case}, {lost} lost instead of {lost_in_storm}");
            // Originals, and retransmissions as fast as packets arrive or as the stream, with the
            // burst.
            let most = if to_punctual { 7 } else { 10 };
            assert!(calm <= Bitrate::from_mbps(most), "{case}");
            assert!(highest > Bitrate::from_mbps(20), "too easy: {case}");
            assert!(lost * 100 <= lost_in_storm * 103, "{case}: {lost} of {lost_in_storm}");
            lost_in_all = [lost_in_all[0] + lost_in_storm, lost_in_all[1] + lost];
        }
    }
    assert!(
        lost_in_all[1] <= lost_in_all[0],
        "lost in storms, and with the limit: {lost_in_all:?}"
    );
}
