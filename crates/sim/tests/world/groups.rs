//! Streams over several links.

use std::time::Duration;

use punctual_netem::LinkConfig;
use punctual_proto::{Config, GroupKind, LinkState};
use punctual_sim::{
    End, GroupLinkConfig, HostConfig, HostId, LinkId, RateSchedule, StreamConfig, StreamId,
    StreamOutcome, Transport, World, WorldError,
};
use punctual_units::Bitrate;

use crate::common::{MS, SECS, delay, latency, lossy};

/// A group from one machine with a port for each link to another one with one port.
struct Bonded {
    world: World,
    ports: Vec<HostId>,
    to: HostId,
    /// There and back.
    links: Vec<[LinkId; 2]>,
}

impl Bonded {
    fn new(seed: u64, links: &[LinkConfig]) -> Self {
        let mut world = World::new(seed);
        let to = world.add_host(HostConfig::default());
        let mut bonded = Self { world, ports: Vec::new(), to, links: Vec::new() };
        for link in links {
            bonded.add_link(link, HostConfig::default());
        }
        bonded
    }

    fn add_link(&mut self, link: &LinkConfig, host: HostConfig) {
        let port = self.world.add_host(host);
        let [there, back] = [0, 1].map(|_| self.world.add_link(link.clone()));
        self.world.set_route(port, self.to, &[there]).expect("a route");
        self.world.set_route(self.to, port, &[back]).expect("a route");
        self.ports.push(port);
        self.links.push([there, back]);
    }

    /// Weights fall from link to link.
    fn stream(&self, kind: GroupKind, config: &Config, mbps: u64, seconds: u64) -> StreamConfig {
        let others = self.ports[1..].iter().zip(1..);
        let others = others.map(|(&from, n)| GroupLinkConfig { from, to: self.to, weight: 9 - n });
        StreamConfig {
            transport: Transport::Group {
                kind,
                sender: config.clone(),
                receiver: config.clone(),
                caller: End::Sender,
                weight: 9,
                others: others.collect(),
            },
            rate: RateSchedule::constant(Bitrate::from_mbps(mbps)),
            payload: 1_250,
            start: Duration::ZERO,
            duration: SECS(seconds),
            from: self.ports[0],
            to: self.to,
            series: None,
        }
    }

    fn add(&mut self, kind: GroupKind, config: &Config, mbps: u64, seconds: u64) -> StreamId {
        self.world.add_stream(self.stream(kind, config, mbps, seconds)).expect("a stream")
    }

    fn set(&mut self, path: usize, link: &LinkConfig) {
        for way in self.links[path] {
            self.world.set_link(way, link.clone());
        }
    }
}

#[track_caller]
fn assert_whole(outcome: &StreamOutcome, messages: u64) {
    assert_eq!((outcome.messages_sent, outcome.messages_received), (messages, messages));
    assert_eq!((outcome.metrics.lost, outcome.messages_refused), (0, 0));
    assert_eq!(outcome.integrity, Default::default());
}

#[test]
fn broadcast_loses_nothing_while_one_link_lives() {
    let mut bonded = Bonded::new(1, &[delay(10), lossy(30, 0.3), delay(50)]);
    let stream = bonded.add(GroupKind::Broadcast, &latency(300), 4, 6);
    bonded.world.run_for(SECS(2));
    bonded.set(0, &lossy(10, 1.0));
    bonded.world.run_for(SECS(5));
    let outcome = bonded.world.outcome(stream);
    assert_whole(&outcome, 2_400);
    assert_eq!(outcome.links.len(), 3);
    assert!(outcome.links.iter().all(|link| link.sender.packets_sent_unique > 1_000));
    let latency = &outcome.latency_us;
    assert_eq!((latency.min(), latency.max()), (Some(310_000), Some(310_000)));
}

#[test]
fn a_backup_takes_over_in_time_and_the_better_link_takes_back() {
    let mut bonded = Bonded::new(1, &[delay(10), delay(20)]);
    let stream = bonded.add(GroupKind::Backup, &latency(300), 4, 10);
    bonded.world.run_for(SECS(2));
    let before = bonded.world.outcome(stream);
    assert_eq!(
        (before.links[0].state, before.links[1].state),
        (LinkState::Stable, LinkState::Idle)
    );
    bonded.set(0, &lossy(10, 1.0));
    bonded.world.run_for(MS(90));
    assert_eq!(bonded.world.outcome(stream).switches, 1);
    bonded.world.run_for(SECS(3));
    bonded.set(0, &delay(10));
    bonded.world.run_for(SECS(6));
    let outcome = bonded.world.outcome(stream);
    assert_whole(&outcome, 4_000);
    assert_eq!(outcome.links[1].state, LinkState::Idle);
}

#[test]
fn balance_carries_what_no_link_carries_alone() {
    let narrow = delay(20).with_rate(Some(Bitrate::from_mbps(6)));
    let mut bonded = Bonded::new(1, &[narrow.clone(), narrow]);
    let stream = bonded.add(GroupKind::Balance, &latency(500), 9, 10);
    bonded.world.run_for(SECS(12));
    let outcome = bonded.world.outcome(stream);
    assert_whole(&outcome, 9_000);
    for link in &outcome.links {
        assert!(link.sender.packets_sent_unique > 3_500, "{}", link.sender.packets_sent_unique);
    }
}

#[test]
fn an_ended_link_is_called_again_while_another_is_up() {
    let config = latency(300).with_peer_idle_timeout(SECS(2)).expect("in range");
    for kind in [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance] {
        let mut bonded = Bonded::new(1, &[delay(10), delay(20)]);
        let stream = bonded.add(kind, &config, 4, 13);
        bonded.world.run_for(SECS(2));
        bonded.set(0, &lossy(10, 1.0));
        bonded.world.run_for(SECS(5));
        assert!(!bonded.world.outcome(stream).links[0].state.is_up(), "{kind:?}");
        bonded.set(0, &delay(10));
        bonded.world.run_for(SECS(7));
        let outcome = bonded.world.outcome(stream);
        assert_whole(&outcome, 5_200);
        assert!(outcome.links[0].state.is_up() && outcome.links[0].calls > 1, "{kind:?}");
        assert!(outcome.links[0].sender.packets_sent > 500, "{kind:?} gives it a part again");
    }
}

#[test]
fn the_ports_of_an_end_have_one_clock() {
    let mut bonded = Bonded::new(1, &[delay(10)]);
    bonded.add_link(&delay(10), HostConfig::default().with_offset(MS(1)));
    let stream = bonded.stream(GroupKind::Broadcast, &latency(120), 1, 1);
    let refused = bonded.world.add_stream(stream);
    assert_eq!(refused, Err(WorldError::Clocks(bonded.ports[0], bonded.ports[1])));
}
