//! Viewers behind links that carry less than the stream, by the protocol that ships.

use std::time::Duration;

use punctual_netem::{Jitter, LinkConfig, Loss, QueueLimit};
use punctual_proto::{Config, SendOptions};
use punctual_relay::{StreamRules, Viewer, ViewerId, ViewerLink, ViewerState};
use punctual_testbed::{Pair, Side};
use punctual_units::Bitrate;

use crate::receiver::Receiver;
use crate::world::World;

const VIEWER: u64 = 7;

/// A viewer of the stream, and its link.
struct LinkedViewer {
    world: World,
    pair: Pair,
    receiver: Receiver,
    /// Messages of the pair that the receiver has seen.
    seen: usize,
}

impl LinkedViewer {
    /// A viewer with 120 ms of latency and a round trip of 20 ms.
    fn new(seed: u64) -> Self {
        println!("seed {seed}");
        let way = LinkConfig::default().with_delay(Duration::from_millis(10));
        let mut pair = Pair::symmetric(seed, way);
        pair.connect(Config::default().with_send_drop_delay(None), Config::default());
        let mut world = World::new(StreamRules::default());
        // The stream and the connection have one clock.
        world.now = pair.now;
        world.stream.view(ViewerId(VIEWER), Viewer::default()).expect("there is room");
        Self { world, pair, receiver: Receiver::default(), seen: 0 }
    }

    /// Changes the link to the viewer.
    fn link(&mut self, change: impl FnOnce(LinkConfig) -> LinkConfig) {
        let link = self.pair.caller.outgoing.config().clone();
        self.pair.set_link(Side::Caller, change(link));
    }

    fn run(&mut self, time: Duration) {
        let end = self.world.now + time;
        while self.world.now < end {
            self.world.step();
            let now = self.world.now;
            self.pair.run_for(now.saturating_since(self.pair.now));
            let statistics = self.pair.statistics(Side::Caller);
            let link = ViewerLink {
                unacknowledged: statistics.send_buffer_bytes,
                dropped: statistics.bytes_send_dropped,
                oldest: statistics.send_buffer_span,
                round_trip: statistics.rtt,
                latency: statistics.peer_latency,
                missed: statistics.reports_too_late + statistics.packets_peer_dropped,
            };
            self.world.stream.observe(now, ViewerId(VIEWER), link);
            let pair = &mut self.pair;
            self.world.stream.feed(now, ViewerId(VIEWER), |message| {
                let origin = Some(message.origin);
                let options = SendOptions { origin, ..SendOptions::default() };
                pair.send(Side::Caller, message.payload.clone(), options).is_ok()
            });
            self.receive();
        }
    }

    fn receive(&mut self) {
        let received = &self.pair.listener.received;
        for delivery in &received[self.seen..] {
            self.receiver.push_payload(&delivery.message.payload);
        }
        self.seen = received.len();
    }

    fn state(&self) -> ViewerState {
        self.world.stream.viewer(self.world.now, ViewerId(VIEWER)).expect("it views")
    }

    /// The rate of what the viewer gets in this time, as a share of `rate`.
    fn share_of(&mut self, rate: Bitrate, time: Duration) -> f64 {
        let before = self.pair.listener.received.len();
        self.run(time);
        let got = &self.pair.listener.received[before..];
        let bytes: usize = got.iter().map(|delivery| delivery.message.payload.len()).sum();
        let bits = Bitrate::of(bytes as u64, time).as_bits_per_sec();
        bits as f64 / rate.as_bits_per_sec() as f64
    }
}

const SECOND: Duration = Duration::from_secs(1);

/// A stream of 2 Mb/s to a link of this rate.
const RATES: [u64; 4] = [200_000, 600_000, 1_200_000, 1_850_000];

#[test]
fn a_viewer_on_a_link_below_the_stream_sees_whole_pictures_only() {
    for rate in RATES.map(Bitrate::from_bits_per_sec) {
        let mut viewer = LinkedViewer::new(1);
        viewer.run(6 * SECOND);
        viewer.link(|link| link.with_rate(Some(rate)).with_queue(QueueLimit::Unlimited));
        viewer.run(10 * SECOND);
        let share = viewer.share_of(rate, 20 * SECOND);
        let state = viewer.state();
        assert!(state.is_limited && state.skips >= 2, "{rate}: {state:?}");
        // Headers of SRT, UDP and IP take a thirtieth.
        assert!(share > 0.85, "{rate}: a share of {share}");
        viewer.receiver.assert_clean(0);
        viewer.link(|link| link.with_rate(None));
        viewer.run(2 * SECOND);
        let skips = viewer.state().skips;
        viewer.run(4 * SECOND);
        let state = viewer.state();
        assert!(!state.is_limited && state.skips == skips, "{rate}: {state:?}");
        viewer.receiver.assert_clean(0);
    }
}

#[test]
fn a_link_that_drops_packets_damages_pictures_at_the_beginning_only() {
    for (rate, queue) in [(200_000, 200), (600_000, 100), (1_200_000, 100)] {
        let mut viewer = LinkedViewer::new(1);
        viewer.run(6 * SECOND);
        let queue = QueueLimit::Time(Duration::from_millis(queue));
        let rate = Bitrate::from_bits_per_sec(rate);
        viewer.link(|link| link.with_rate(Some(rate)).with_queue(queue));
        viewer.run(3 * SECOND);
        let damaged = viewer.receiver.damaged_units;
        assert!(damaged > 0, "{rate}: the link drops packets");
        viewer.run(30 * SECOND);
        println!("{rate}: {damaged} damaged units at the beginning");
        assert_eq!(viewer.receiver.damaged_units, damaged, "{rate}");
        assert_eq!(viewer.receiver.cut_units, 0, "{rate}");
        assert!(viewer.state().skips > 10, "{rate}");
    }
}

#[test]
fn a_packet_that_a_limited_viewer_lost_is_sent_again_in_time() {
    for (seed, rate) in [(1, 600_000), (2, 600_000), (1, 1_200_000), (2, 1_200_000)] {
        let mut viewer = LinkedViewer::new(seed);
        viewer.link(|link| link.with_loss(Loss::Random(0.02)).expect("a share"));
        viewer.run(6 * SECOND);
        viewer.receiver.assert_clean(0);
        let rate = Bitrate::from_bits_per_sec(rate);
        viewer.link(|link| link.with_rate(Some(rate)).with_queue(QueueLimit::Unlimited));
        viewer.run(3 * SECOND);
        let first = viewer.receiver.damaged_units;
        let lost = viewer.pair.statistics(Side::Caller).packets_send_lost;
        viewer.run(30 * SECOND);
        let damaged = viewer.receiver.damaged_units - first;
        let lost = viewer.pair.statistics(Side::Caller).packets_send_lost - lost;
        println!("{rate}: {lost} reports of a lost packet, {first} and {damaged} damaged units");
        assert!(lost > 20 && damaged <= lost / 10, "{rate}: {damaged} of {lost}");
        assert_eq!(viewer.receiver.cut_units, 0, "{rate}");
    }
}

#[test]
fn a_link_that_carries_the_stream_with_losses_has_no_limit() {
    let mut viewer = LinkedViewer::new(3);
    viewer.link(|link| link.with_loss(Loss::Random(0.1)).expect("a share"));
    viewer.run(30 * SECOND);
    let state = viewer.state();
    assert!(!state.is_limited && state.skips == 0, "{state:?}");
    viewer.receiver.assert_clean(0);
}

#[test]
fn a_link_on_which_lost_packets_cannot_be_sent_again_in_time_has_no_limit() {
    let mut viewer = LinkedViewer::new(6);
    let long = |link: LinkConfig| link.with_delay(Duration::from_millis(60));
    viewer.link(|link| long(link).with_loss(Loss::Random(0.02)).expect("a share"));
    let back = viewer.pair.listener.outgoing.config().clone();
    viewer.pair.set_link(Side::Listener, long(back));
    viewer.run(30 * SECOND);
    assert!(viewer.receiver.damaged_units > 20, "packets come too late");
    let state = viewer.state();
    assert!(!state.is_limited && state.skips == 0, "{state:?}");
}

#[test]
fn round_trips_that_vary_starve_no_viewer_after_its_link_was_slow() {
    let mut viewer = LinkedViewer::new(4);
    let spread = Duration::from_millis(40);
    let vary = |link: LinkConfig| {
        link.with_delay(spread).with_jitter(Jitter::Pareto { std_dev: spread / 2 })
    };
    viewer.link(vary);
    let back = viewer.pair.listener.outgoing.config().clone();
    viewer.pair.set_link(Side::Listener, vary(back));
    viewer.run(3 * SECOND);
    let slow = Some(Bitrate::from_bits_per_sec(600_000));
    viewer.link(|link| link.with_rate(slow).with_queue(QueueLimit::Unlimited));
    viewer.run(10 * SECOND);
    assert!(viewer.state().skips > 3);
    viewer.link(|link| link.with_rate(None));
    viewer.run(5 * SECOND);
    let skips = viewer.state().skips;
    let share = viewer.share_of(Bitrate::from_mbps(2), 20 * SECOND);
    assert!(viewer.state().skips == skips && share > 0.95, "a share of {share}");
    viewer.receiver.assert_clean(0);
}

#[test]
fn a_pause_of_the_link_limits_a_viewer_for_seconds_only() {
    let mut viewer = LinkedViewer::new(5);
    viewer.run(6 * SECOND);
    let pause = Some(Bitrate::from_bits_per_sec(10_000));
    viewer.link(|link| link.with_rate(pause));
    viewer.run(Duration::from_millis(400));
    viewer.link(|link| link.with_rate(None));
    viewer.run(Duration::from_millis(100));
    assert!(viewer.state().is_limited);
    viewer.run(4 * SECOND);
    let state = viewer.state();
    assert!(!state.is_limited && state.skips == 0, "{state:?}");
    viewer.receiver.assert_clean(0);
}
