//! NAK timers for single packets: reordered packets, and custom policies.

use std::time::Duration;

use punctual_netem::{LinkConfig, Reorder};
use punctual_proto::{
    Config, MissingPackets, NakAlgorithm, NakPolicy, ReceiverView, RetransmitAlgorithm, SentNak,
    Statistics,
};
use punctual_units::{Bitrate, Instant};

use super::datagram::data_header;
use super::pair::{Pair, Side};
use super::{MS, SECS, latency, lossy};

/// Streams over a link with a round-trip time of 60 ms, and returns the statistics of both ends.
fn stream(seed: u64, link: &LinkConfig, config: &Config) -> (Statistics, Statistics) {
    let mut pair = Pair::symmetric(seed, link.clone().with_delay(MS(30)));
    pair.connect(config.clone(), config.clone());
    pair.stream_at(Bitrate::from_mbps(10), SECS(20))
}

fn deadline(ms: u64) -> Config {
    latency(ms).with_retransmit_algorithm(RetransmitAlgorithm::Deadline)
}

fn reordering(loss: f64) -> LinkConfig {
    lossy(loss).with_reorder(Reorder::Late { share: 0.02, by: MS(5) }).expect("a share")
}

#[test]
fn reordered_packets_cause_no_naks() {
    for seed in 0..3 {
        let (sender, receiver) = stream(seed, &reordering(0.0), &deadline(150));
        let reordered = receiver.packets_reordered;
        assert!(reordered > 200, "seed {seed}: {reordered}");
        // The first ones are taken for lost, until their delay is known.
        let again = sender.packets_retransmitted;
        assert!(again < reordered / 5, "seed {seed}: {again} retransmissions of {reordered}");
        assert_eq!(receiver.packets_receive_dropped, 0, "seed {seed}");
    }
}

/// Packets are reordered as often as lost, and lost ones are still reported in time.
#[test]
fn waiting_for_reordered_packets_costs_no_losses() {
    let (mut without, mut with) = (0, 0);
    for seed in 0..3 {
        let (sender, receiver) = stream(seed, &reordering(0.02), &deadline(240));
        let (orderly, _) = stream(seed, &lossy(0.02), &deadline(240));
        assert_eq!(receiver.packets_receive_dropped, 0, "seed {seed}");
        without += orderly.packets_retransmitted;
        with += sender.packets_retransmitted;
    }
    assert!(with < without * 5 / 4, "{with} retransmissions, {without} without reordering");
}

/// A queue that overflows loses a hundred packets, and the packets after them come without a pause.
/// The latency leaves time for one retransmission, but not for waiting for a silence of the stream.
#[test]
fn a_long_burst_within_a_stream_is_reported_at_once() {
    let mut pair = Pair::symmetric(1, LinkConfig::default().with_delay(MS(150)));
    pair.connect(latency(450), latency(450));
    pair.drop_where(|_, datagram| {
        data_header(datagram).is_some_and(|header| {
            !header.retransmitted && (1_000..1_100).contains(&header.msgno.value())
        })
    });
    pair.stream(Side::Caller, 2_000, MS(1));
    pair.run_for(SECS(2));
    pair.assert_complete(Side::Caller);
    assert_eq!(pair.statistics(Side::Listener).packets_receive_dropped, 0);
}

/// If only one retransmission fits the latency and no time is left to wait, a reordered packet is
/// reported.
#[test]
fn reordered_packets_are_reported_if_waiting_costs_the_retransmission() {
    let (sender, receiver) = stream(1, &reordering(0.0), &deadline(62));
    let reordered = receiver.packets_reordered;
    assert!(sender.packets_retransmitted > reordered / 2, "{sender:?} {reordered}");
}

/// Reports a loss at once, and then every 10 ms, regardless of measurements, without copies.
#[derive(Debug)]
struct Impatient;

impl NakPolicy for Impatient {
    fn nak_at(&self, missing: &MissingPackets, view: &ReceiverView) -> Instant {
        assert!((0.0..0.2).contains(&view.loss) && view.rtt.smoothed > Duration::ZERO);
        assert!(missing.deadline.is_none_or(|deadline| deadline > missing.detected));
        missing.last_nak.map_or(missing.detected, |last| last + MS(10))
    }

    fn copy_after(&self, _n: u32, _report: &SentNak, _view: &ReceiverView) -> Option<Duration> {
        None
    }
}

#[test]
fn a_custom_nak_policy_is_used() {
    let custom = NakAlgorithm::custom(|| Impatient);
    let sender = RetransmitAlgorithm::Aggressive;
    let config = latency(200).with_retransmit_algorithm(sender).with_nak_algorithm(custom);
    for seed in 0..3 {
        let (_, receiver) = stream(seed, &lossy(0.05), &config);
        let lost = receiver.packets_receive_lost;
        let again = receiver.packets_requested_again;
        // The retransmission takes 60 ms.
        assert!((lost * 5..lost * 8).contains(&again), "seed {seed}: {again} for {lost}");
        assert!(receiver.packets_receive_dropped < lost / 20, "seed {seed}: {receiver:?}");
    }
}
