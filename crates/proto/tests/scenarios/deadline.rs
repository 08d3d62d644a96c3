//! Deadline-aware retransmission: what it loses and what it costs, beside the other algorithms and
//! with one end that knows nothing of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use punctual_netem::{Jitter, LinkConfig, Loss, QueueLimit};
use punctual_proto::{Config, NakTimer, RetransmitAlgorithm, Statistics};
use punctual_units::Bitrate;
use punctual_wire::{Extension, HsFlags};

use super::datagram::{edit_handshake, handshake};
use super::pair::{Pair, Side};
use super::{MS, SECS, latency, lossy};

use RetransmitAlgorithm::{Aggressive, Deadline, Efficient};

/// A stream of 10 Mb/s over a link with a round trip of 20 ms.
#[derive(Clone)]
struct Trial {
    sender: Config,
    receiver: Config,
    link: LinkConfig,
    /// The ends do not tell each other what they can.
    strangers: bool,
    runs: u64,
}

/// Shares of the originals.
#[derive(Debug)]
struct Outcome {
    overhead: f64,
    unrecovered: f64,
    sender: Statistics,
    receiver: Statistics,
}

impl Trial {
    fn new(latency_ms: u64, link: LinkConfig) -> Self {
        let config = latency(latency_ms);
        let jitter = Jitter::Uniform { spread: Duration::from_micros(50) };
        let link = link.with_delay(MS(10)).with_jitter(jitter);
        Self { sender: config.clone(), receiver: config, link, strangers: false, runs: 3 }
    }

    fn both(mut self, algorithm: RetransmitAlgorithm) -> Self {
        self.sender = self.sender.with_retransmit_algorithm(algorithm.clone());
        self.receiver = self.receiver.with_retransmit_algorithm(algorithm);
        self
    }

    /// Each end with an algorithm of its own, and like libsrt in what is not asked about: the
    /// receiver looks at its clock when packets come.
    fn strangers(mut self, sender: RetransmitAlgorithm, receiver: RetransmitAlgorithm) -> Self {
        self.sender = self.sender.with_retransmit_algorithm(sender);
        self.receiver = self.receiver.with_retransmit_algorithm(receiver);
        self.receiver = self.receiver.with_nak_timer(NakTimer::WithPackets);
        self.strangers = true;
        self
    }

    fn run(&self) -> Outcome {
        let (mut sent, mut again, mut missing) = (0, 0, 0);
        let mut last = None;
        for seed in 0..self.runs {
            let (sender, receiver) = self.stream(seed);
            sent += sender.packets_sent_unique;
            again += sender.packets_retransmitted;
            missing += receiver.packets_receive_dropped;
            last = Some((sender, receiver));
        }
        let (sender, receiver) = last.expect("a run");
        let share = |part: u64| part as f64 / sent as f64;
        Outcome { overhead: share(again), unrecovered: share(missing), sender, receiver }
    }

    fn stream(&self, seed: u64) -> (Statistics, Statistics) {
        let mut pair = Pair::symmetric(seed, self.link.clone());
        if self.strangers {
            let own = HsFlags::TIMED_REQUESTS | HsFlags::DEADLINE;
            pair.tap(move |_, _, datagram| vec![without(own, datagram)]);
        }
        pair.connect(self.sender.clone(), self.receiver.clone());
        pair.stream_at(Bitrate::from_mbps(10), SECS(40))
    }
}

fn without(flags: HsFlags, datagram: Vec<u8>) -> Vec<u8> {
    edit_handshake(datagram, |handshake| {
        for extension in &mut handshake.extensions {
            if let Extension::HsReq(hs) | Extension::HsRsp(hs) = extension {
                hs.flags = hs.flags.without(flags);
            }
        }
    })
}

/// The aim of the algorithm, with room for chance: a tenth is asked for over many more runs.
#[test]
fn few_are_lost_for_the_efficient_algorithms_overhead() {
    let trial = Trial::new(50, lossy(0.05));
    let [aggressive, efficient, deadline] =
        [Aggressive, Efficient, Deadline].map(|algorithm| trial.clone().both(algorithm).run());
    assert!(deadline.unrecovered * 5.0 < aggressive.unrecovered, "{deadline:?} {aggressive:?}");
    // On hosts that are a little late the efficient algorithm sends 3 % more than here.
    assert!(deadline.overhead < efficient.overhead * 1.03, "{deadline:?} {efficient:?}");
    assert!(deadline.sender.packets_copied > 0);
    assert!(deadline.receiver.packets_requested_again > 0);
    assert!(deadline.receiver.recovered_second_round > 0);
}

/// Copies may cost as much as the aggressive algorithm's repeated answers, some of which come too
/// late to be of use.
#[test]
fn where_one_round_fits_half_is_lost_and_less_is_sent_than_by_aggressive() {
    for (latency, fewer) in [(30, 2.0), (40, 1.2)] {
        let trial = Trial::new(latency, lossy(0.05));
        let [aggressive, deadline] =
            [Aggressive, Deadline].map(|algorithm| trial.clone().both(algorithm).run());
        let context = format!("{latency} ms: {deadline:?} {aggressive:?}");
        assert!(deadline.unrecovered * fewer < aggressive.unrecovered, "{context}");
        assert!(deadline.overhead < aggressive.overhead, "{context}");
        assert!(deadline.overhead > 0.06, "copies are sent: {context}");
    }
}

/// p / (1 - p) and a tenth of p: the losses of so short a run are not exactly p.
#[test]
fn where_more_rounds_fit_little_more_is_sent_than_must_be() {
    for (latency, loss) in [(60, 0.05), (60, 0.1), (80, 0.1), (60, 0.2)] {
        let deadline = Trial::new(latency, lossy(loss)).both(Deadline).run();
        let most = loss / (1.0 - loss) + loss / 10.0;
        assert!(deadline.overhead < most * 1.03, "{latency} ms, {loss}: {deadline:?}");
        assert!(deadline.unrecovered < 0.01, "{latency} ms, {loss}: {deadline:?}");
    }
}

/// A stream that all but fills a bottleneck, on a link that loses some packets besides. Copies
/// would fill its queue, the queue would take the time for retransmissions, and earn more copies.
#[test]
fn copies_do_not_fill_a_bottleneck_that_the_stream_all_but_fills() {
    for latency in [60, 80] {
        let link = lossy(0.01)
            .with_rate(Some(Bitrate::from_bits_per_sec(10_150_000)))
            .with_queue(QueueLimit::Time(MS(50)));
        let mut trial = Trial::new(latency, link).both(Deadline);
        trial.link = trial.link.with_delay(MS(20));
        let outcome = trial.run();
        assert!(outcome.unrecovered < 2e-3, "{latency} ms: {outcome:?}");
    }
}

#[test]
fn short_bursts_cost_half_of_what_the_aggressive_algorithm_loses() {
    let bursts = LinkConfig::default().with_loss(Loss::bursts(0.05, 3.0)).expect("shares");
    let trial = Trial::new(50, bursts);
    let [aggressive, deadline] =
        [Aggressive, Deadline].map(|algorithm| trial.clone().both(algorithm).run());
    assert!(deadline.unrecovered * 2.0 < aggressive.unrecovered, "{deadline:?} {aggressive:?}");
    let lost = 0.05;
    assert!(deadline.overhead < (lost / (1.0 - lost) + lost / 10.0) * 1.05, "{deadline:?}");
}

/// Toward a receiver that asks at once and then once a period, copies make up for the requests that
/// it does not repeat in time.
#[test]
fn a_sender_alone_loses_half_of_what_the_efficient_one_does() {
    let trial = Trial::new(50, lossy(0.05));
    let [aggressive, efficient] = [Aggressive, Efficient]
        .map(|algorithm| trial.clone().strangers(algorithm, Efficient).run());
    let mut trial = trial.strangers(Deadline, Efficient);
    let deadline = trial.run();
    assert_eq!(deadline.receiver.packets_requested_again, 0, "it knows nothing of it");
    assert!(deadline.unrecovered * 2.0 < efficient.unrecovered, "{deadline:?} {efficient:?}");
    assert!(deadline.overhead < aggressive.overhead, "{deadline:?} {aggressive:?}");
    trial.sender = trial.sender.with_retransmit_ceiling(0.08).expect("a share");
    let spending = trial.run();
    assert!(spending.unrecovered * 1.5 < efficient.unrecovered, "{spending:?} {efficient:?}");
    assert!(spending.overhead < 0.081, "{spending:?}");
}

/// By default strangers see nothing of it: neither does the sender send copies, nor does the
/// receiver ask in another way.
#[test]
fn by_default_only_peers_that_know_it_are_sent_to_by_deadline() {
    let trial = Trial::new(50, lossy(0.05));
    let auto = RetransmitAlgorithm::Auto;
    let known = trial.clone().both(auto.clone()).run();
    assert!(known.sender.packets_copied > 0 && known.receiver.packets_requested_again > 0);
    let strangers = trial.clone().strangers(auto.clone(), auto).run();
    let efficient = trial.strangers(Efficient, Efficient).run();
    assert_eq!(strangers.sender, efficient.sender);
    assert_eq!(strangers.receiver, efficient.receiver);
}

/// Toward a sender that answers every report, each packet is asked for once a round, and once.
#[test]
fn a_receiver_alone_keeps_either_sender_from_answering_old_news() {
    let trial = Trial::new(50, lossy(0.05));
    for sender in [Aggressive, Efficient] {
        let plain = trial.clone().strangers(sender.clone(), Efficient).run();
        let timed = trial.clone().strangers(sender.clone(), Deadline).run();
        assert!(timed.receiver.packets_requested_again > 0);
        assert!(timed.overhead < 0.055, "{sender:?}: {timed:?}");
        assert!(timed.overhead <= plain.overhead, "{sender:?}: {timed:?} {plain:?}");
    }
}

#[test]
fn a_ceiling_lets_copies_be_sent_until_it_is_reached() {
    let trial = Trial::new(30, lossy(0.05)).both(Deadline);
    let with = |target: f64, ceiling: f64| {
        let mut trial = trial.clone();
        trial.sender = trial.sender.with_loss_target(target).expect("a share");
        trial.sender = trial.sender.with_retransmit_ceiling(ceiling).expect("a share");
        trial.run()
    };
    let saving = with(0.0, 0.06);
    assert!((0.055..0.0605).contains(&saving.overhead), "{saving:?}");
    let spending = with(0.0, 0.08);
    assert!((0.075..0.0805).contains(&spending.overhead), "{spending:?}");
    assert!(spending.unrecovered * 1.5 < saving.unrecovered, "{spending:?} {saving:?}");
    let aiming = with(1e-3, 0.5);
    assert!((2e-5..1e-3).contains(&aiming.unrecovered), "{aiming:?}");
    assert!((0.08..0.12).contains(&aiming.overhead), "no more than the target needs: {aiming:?}");
}

#[test]
fn the_sender_decides_how_the_receiver_asks() {
    let trial = Trial::new(50, lossy(0.05)).both(Efficient);
    assert_eq!(trial.run().receiver.packets_requested_again, 0);
    for algorithm in [Deadline, RetransmitAlgorithm::Auto] {
        let mut asked = trial.clone();
        asked.sender = asked.sender.with_retransmit_algorithm(algorithm);
        assert!(asked.run().receiver.packets_requested_again > 0);
    }
}

#[test]
fn nobody_is_told_of_timed_requests_who_does_not_know_them() {
    let own = HsFlags::TIMED_REQUESTS | HsFlags::DEADLINE;
    for knows in [true, false] {
        let mut pair = Pair::symmetric(1, lossy(0.0));
        let answers = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&answers);
        pair.tap(move |_, from, datagram| {
            if from == Side::Caller && !knows {
                return vec![without(own, datagram)];
            }
            let extensions = handshake(&datagram).map_or(Vec::new(), |said| said.extensions);
            seen.borrow_mut().extend(extensions.into_iter().filter_map(|said| match said {
                Extension::HsRsp(hs) => Some(hs.flags),
                _ => None,
            }));
            vec![datagram]
        });
        let config = latency(120).with_retransmit_algorithm(Deadline);
        pair.connect(config.clone(), config);
        let answers = answers.take();
        assert!(!answers.is_empty());
        for flags in answers {
            assert_eq!(flags.contains(HsFlags::TIMED_REQUESTS), knows);
            assert_eq!(flags.contains(HsFlags::DEADLINE), knows);
        }
    }
}

/// The stream pauses after each few packets: nothing behind the last tells that it is missing.
#[test]
fn the_last_packets_before_a_pause_come_in_time() {
    for seed in 0..5 {
        let mut pair = Pair::symmetric(seed, lossy(0.2).with_delay(MS(10)));
        let config = latency(400).with_retransmit_algorithm(Deadline);
        pair.connect(config.clone(), config);
        for _ in 0..60 {
            pair.stream(Side::Caller, 3, MS(1));
            pair.run_for(MS(700));
        }
        let missing = pair.statistics(Side::Listener).packets_receive_dropped;
        let delivered = pair.delivered(Side::Caller).len();
        assert!(delivered >= 178, "seed {seed}: {delivered} of 180, {missing} given up");
    }
}
