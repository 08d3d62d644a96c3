//! The estimators of the round-trip time: what a receiver reports, and what a group makes of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Jitter, LinkConfig};
use punctual_proto::{
    ClassicRtt, Config, Factory, GroupKind, Rtt, RttAlgorithm, RttEstimator, RttSample,
};
use punctual_rtt::BuiltInRtt;
use punctual_wire::Control;

use crate::bond::TestBond;
use crate::datagram::{Kind, control, kind};
use crate::node::EPOCH;
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency};

const INTERVAL: Duration = Duration::from_millis(2);

fn with(estimator: BuiltInRtt, config: Config) -> Config {
    let make = move || estimator.build(None);
    config.with_rtt_algorithm(RttAlgorithm::Custom(Factory::new(make)))
}

/// A path of 200 ms, on which each packet is up to 15 ms early or late.
fn path() -> LinkConfig {
    LinkConfig::default().with_delay(MS(100)).with_jitter(Jitter::Uniform { spread: MS(15) })
}

/// The estimates that the receiver reports in 20 s, in the order of its ACKs, and the one that the
/// sender has at the end.
fn reports(estimator: BuiltInRtt) -> (Vec<Rtt>, Rtt) {
    let mut pair = Pair::symmetric(7, path());
    // The option is the receiver's alone.
    pair.connect(latency(600), with(estimator, latency(600)));
    let record = pair.record();
    pair.stream(Side::Caller, 10_000, INTERVAL);
    pair.run_for(SECS(1));
    let links = record.of_kind(Side::Listener, Kind::Ack).into_iter().filter_map(|(_, it)| {
        let Some(Control::Ack(ack)) = control(&it) else { return None };
        ack.link()
    });
    let micros = |us: u32| Duration::from_micros(u64::from(us));
    let reports =
        links.map(|it| Rtt { smoothed: micros(it.rtt_us), variance: micros(it.rtt_var_us) });
    let end = pair.statistics(Side::Caller);
    (reports.collect(), Rtt { smoothed: end.rtt, variance: end.rtt_variance })
}

fn changes(reports: &[Rtt]) -> usize {
    reports.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn the_option_selects_the_estimate_that_the_sender_gets() {
    let (draft, _) = reports(BuiltInRtt::Draft);
    for estimator in BuiltInRtt::ALL {
        let (told, had) = reports(estimator);
        assert_eq!(told.last(), Some(&had), "{estimator:?}: the sender uses the report");
        assert!(had.smoothed.abs_diff(MS(200)) < MS(25), "{estimator:?}: {had:?}");
        // With ACKs that come within a quarter of a round trip, the published code is the draft's.
        let same = matches!(
            estimator,
            BuiltInRtt::Draft | BuiltInRtt::Rfc9002 | BuiltInRtt::OncePublished
        );
        assert_eq!(told == draft, same, "{estimator:?}");
    }
}

/// An epoch of SRT is a round trip: it begins with the next ACK to be sent, and ends with the
/// ACKACK for it or for a later one.
#[test]
fn once_per_rtt_reports_a_new_estimate_once_in_a_round_trip() {
    let (often, _) = reports(BuiltInRtt::Draft);
    let (once, _) = reports(BuiltInRtt::OnceStrict);
    let (reports, news) = (often.len(), changes(&often));
    assert!(reports > 1_900 && news > 1_000, "{news} of {reports} are new");
    // 20 s are 100 round trips, each up to an ACK interval and the jitter longer.
    assert!((85..=100).contains(&changes(&once)), "{}", changes(&once));
}

/// A backup group over `main` and another path: its switches in 20 s, and then, when `main` is cut,
/// the time to the first packet over the other path, with the timeout that the estimate allows.
fn backup(estimator: BuiltInRtt, main: &LinkConfig, seed: u64) -> (u64, Duration, Duration) {
    let paths = [main.clone(), path()];
    let mut bond = TestBond::new(seed, GroupKind::Backup, &with(estimator, latency(2_000)), &paths);
    let links = bond.connect(&[10, 5]);
    bond.stream(Side::Caller, 10_000, INTERVAL);
    let switches = bond.caller.group().switches();
    let rtt = bond.link_statistics(links[0]);
    bond.cut(0);
    let cut = bond.now - EPOCH;
    bond.stream(Side::Caller, 1_000, INTERVAL);
    let sent = bond.records[1].of_kind(Side::Caller, Kind::Data);
    let over = sent.iter().map(|(at, _)| *at).find(|at| *at >= cut);
    let over = over.expect("the backup carries the stream") - cut;
    (switches, over, rtt.rtt * 2 + rtt.rtt_variance * 4)
}

#[test]
fn a_backup_takes_over_when_the_estimate_says_so() {
    let pareto = path().with_jitter(Jitter::Pareto { std_dev: MS(5) });
    let mut takeovers = Vec::new();
    for main in [path(), pareto] {
        for estimator in BuiltInRtt::ALL {
            let (switches, over, timeout) = backup(estimator, &main, 0);
            println!("{}: {over:?}, {timeout:?}", estimator.name());
            assert_eq!(switches, 0, "{estimator:?}: the path works");
            // ACKs that are on their way when the path is cut still answer.
            let range = timeout..timeout + MS(200);
            assert!(range.contains(&over), "{estimator:?}: {over:?} with {timeout:?}");
            takeovers.push(over);
        }
    }
    let [draft, _, once, ..] = takeovers.as_slice() else { panic!("an estimator each") };
    assert!(once > draft, "the greatest deviation of a flight: {once:?}, the mean: {draft:?}");
}

/// The draft's estimate; an acknowledgement is overdue after `wait`, whatever the estimate is.
#[derive(Debug)]
struct Waits {
    draft: ClassicRtt,
    wait: Duration,
}

impl RttEstimator for Waits {
    fn acknowledged(&mut self, sample: &RttSample) {
        self.draft.acknowledged(sample);
    }

    fn estimate(&self) -> Option<Rtt> {
        self.draft.estimate()
    }

    fn timeout(&self, _estimate: Rtt) -> Duration {
        self.wait
    }
}

#[test]
fn an_estimator_sets_the_wait_of_a_sender_for_an_acknowledgement() {
    for wait in [MS(100), MS(900)] {
        let waits = RttAlgorithm::custom(move || Waits { draft: ClassicRtt::default(), wait });
        let mut pair = Pair::symmetric(1, path());
        pair.connect(Config::file().with_rtt_algorithm(waits), Config::file());
        pair.run_for(SECS(1));
        let sent = Rc::new(RefCell::new(Vec::new()));
        let times = Rc::clone(&sent);
        pair.tap(move |at, side, datagram| {
            let is_data = matches!(kind(&datagram), Kind::Data | Kind::Retransmission);
            if side == Side::Caller && is_data {
                times.borrow_mut().push(at);
            }
            Vec::new()
        });
        pair.write(Side::Caller, &mut Bytes::from_static(b"lost")).expect("room");
        pair.run_for(SECS(2));
        let sent = sent.take();
        assert!(sent.len() > 1, "nothing is retransmitted after {wait:?}");
        // The sender adds 20 ms to each wait, and 10 ms to the first one.
        assert_eq!(sent[1] - sent[0], wait + MS(30));
    }
}
