//! NAK timers of single packets: reordered packets that are waited for, and custom policies.

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

/// Streams over a link with a round trip of 60 ms, and returns what both ends count.
fn stream(seed: u64, link: &LinkConfig, config: &Config) -> (Statistics, Statistics) {
    let mut pair = Pair::symmetric(seed, link.clone().with_delay(MS(30)));
    pair.connect(config.clone(), config.clone());
    pair.stream_at(Bitrate::from_mbps(10), SECS(20))
}

fn deadline(ms: u64) -> Config {
    latency(ms).with_retransmit_algorithm(RetransmitAlgorithm::Deadline)
}

fn overtaken(loss: f64) -> LinkConfig {
    lossy(loss).with_reorder(Reorder::Late { share: 0.02, by: MS(5) }).expect("a share")
}

#[test]
fn what_others_overtook_is_not_asked_for() {
    for seed in 0..3 {
        let (sender, receiver) = stream(seed, &overtaken(0.0), &deadline(150));
        let reordered = receiver.packets_reordered;
        assert!(reordered > 200, "seed {seed}: {reordered}");
        // The first are taken for lost, until it is seen how late they come.
        let again = sender.packets_retransmitted;
        assert!(again < reordered / 5, "seed {seed}: {again} of {reordered} sent again");
        assert_eq!(receiver.packets_receive_dropped, 0, "seed {seed}");
    }
}

/// Packets are overtaken as often as lost, and all that is lost is still asked for as often.
#[test]
fn waiting_for_what_was_overtaken_costs_no_losses() {
    let (mut without, mut with) = (0, 0);
    for seed in 0..3 {
        let (sender, receiver) = stream(seed, &overtaken(0.02), &deadline(240));
        let (orderly, _) = stream(seed, &lossy(0.02), &deadline(240));
        assert_eq!(receiver.packets_receive_dropped, 0, "seed {seed}");
        without += orderly.packets_retransmitted;
        with += sender.packets_retransmitted;
    }
    assert!(with < without * 5 / 4, "{with} sent again, {without} where all keep their order");
}

/// A queue that overflows loses a hundred packets, and those behind them come without a pause. The
/// latency leaves time for one round, and not for waiting until the stream has been silent.
#[test]
fn a_long_burst_that_no_silence_announces_is_asked_for_at_once() {
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

/// Where one round fits, and nothing can be waited for, a packet that others overtook is asked for.
#[test]
fn what_costs_a_round_is_not_waited_for() {
    let (sender, receiver) = stream(1, &overtaken(0.0), &deadline(62));
    let reordered = receiver.packets_reordered;
    assert!(sender.packets_retransmitted > reordered / 2, "{sender:?} {reordered}");
}

/// Asks at once, and then each 10 ms, whatever is measured; no report is sent twice.
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
fn a_custom_nak_policy_decides() {
    let custom = NakAlgorithm::custom(|| Impatient);
    let sender = RetransmitAlgorithm::Aggressive;
    let config = latency(200).with_retransmit_algorithm(sender).with_nak_algorithm(custom);
    for seed in 0..3 {
        let (_, receiver) = stream(seed, &lossy(0.05), &config);
        let lost = receiver.packets_receive_lost;
        let again = receiver.packets_requested_again;
        // 60 ms pass until the answer is there.
        assert!((lost * 5..lost * 8).contains(&again), "seed {seed}: {again} for {lost}");
        assert!(receiver.packets_receive_dropped < lost / 20, "seed {seed}: {receiver:?}");
    }
}
