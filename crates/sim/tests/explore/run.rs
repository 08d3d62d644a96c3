//! Runs a plan: faults, healing, a while in which all must be well, and the end.

use std::fmt::Write as _;
use std::time::Duration;

use punctual_sim::{
    GroupLinkConfig, HostId, LinkId, RateSchedule, StreamConfig, StreamId, Traffic, TrafficConfig,
    Transport, World,
};
use punctual_testbed::ShownOnPanic;

use crate::cut;
use crate::judge::Judge;
use crate::plan::{Plan, Stream};

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

/// The period of the looks at the world.
const LOOK: Duration = Duration::from_millis(250);

/// A world made from a plan.
pub struct Explored {
    pub world: World,
    pub hosts: Vec<HostId>,
    pub links: Vec<LinkId>,
    pub streams: Vec<StreamId>,
}

/// Runs the world of a seed and judges it; everything that the streams have to say at the end.
#[track_caller]
pub fn explore(seed: u64) -> String {
    let plan = Plan::draw(seed);
    let shown = ShownOnPanic(format!(
        "{plan:?}\nseed {seed}; to run it again:\n  \
         EXPLORE_SEED={seed} cargo test -p punctual-sim --test explore"
    ));
    let mut explored = build(seed, &plan);
    let mut judge = Judge::new(&plan);
    let mut moves = plan.moves.at.iter().peekable();
    while explored.elapsed() < plan.heal_at {
        explored.world.run_for(LOOK);
        judge.look(&explored);
        // An unanswered call from another port would be another call.
        if let Some(&(_, port)) = moves.next_if(|(at, _)| *at <= explored.elapsed())
            && judge.have_connected(&explored)
        {
            explored.world.rebind(explored.hosts[plan.moves.host], port);
        }
    }
    if !settle(&mut explored, &plan, &mut judge) {
        drop(shown);
        return explored.text();
    }
    let well_from = explored.elapsed();
    let latency = judge.longest_latency(&explored);
    explored.world.run_for(WELL + latency);
    let groups = |it: &Stream| it.bonding.is_some();
    explored.stop(&plan, |it| !groups(it));
    let well_until = explored.elapsed();
    explored.world.run_for(SECS(4) + latency);
    if plan.streams.iter().any(groups) {
        cut::try_each(&mut explored, &plan, &mut judge);
        explored.stop(&plan, groups);
        explored.world.run_for(SECS(4) + latency);
    }
    judge.look(&explored);
    judge.conclude(&explored, well_from, well_until);
    drop(shown);
    explored.text()
}

/// Undelivered messages are recovered or given up: at once as a rule, but a narrow limit of the
/// bandwidth may take its time. Returns false if a call has failed over QUIC, which doubles the
/// time after which it repeats a packet of its handshake, so that faults outlast a call.
fn settle(explored: &mut Explored, plan: &Plan, judge: &mut Judge) -> bool {
    explored.world.run_for(SECS(3));
    judge.look(explored);
    for _ in 0..60 {
        if judge.lagging(explored).is_none() {
            return true;
        }
        if plan.is_over_quic && explored.has_failed_call() {
            return false;
        }
        explored.world.run_for(SECS(1));
        judge.look(explored);
    }
    let lagging = judge.lagging(explored).map(|outcome| (outcome.sender, outcome.receiver));
    assert!(lagging.is_none(), "after a minute of health a stream lags behind: {lagging:?}");
    true
}

impl Explored {
    /// Whether a stream has ended before it could send.
    fn has_failed_call(&self) -> bool {
        let mut outcomes = self.streams.iter().map(|&stream| self.world.outcome(stream));
        outcomes.any(|it| it.connected_at.is_none() && it.closed.is_some())
    }

    /// Everything that the streams have to say.
    fn text(&self) -> String {
        let mut text = String::new();
        for &stream in &self.streams {
            write!(text, "{:?}", self.world.outcome(stream)).expect("a string takes it");
        }
        text
    }
}

fn build(seed: u64, plan: &Plan) -> Explored {
    let mut world = World::new(seed);
    let hosts: Vec<_> = plan.hosts.iter().map(|host| world.add_host(host.config)).collect();
    let links: Vec<_> = plan.links.iter().map(|link| world.add_link(link.clone())).collect();
    let senders = plan.shape.senders();
    let mut joined: Vec<_> = (0..senders).map(|sender| (sender, senders, sender)).collect();
    if hosts.len() > senders + 1 {
        joined.push((senders + 1, senders + 2, 0));
    }
    for (host, other, like) in joined {
        let [there, back] = plan
            .shape
            .ways(like)
            .map(|way| way.iter().map(|&link| links[link]).collect::<Vec<_>>());
        world.set_route(hosts[host], hosts[other], &there).expect("a route");
        world.set_route(hosts[other], hosts[host], &back).expect("a route");
    }
    let streams = plan.streams.iter().map(|stream| {
        let [from, to] = ends(stream, &hosts, senders);
        let config = StreamConfig {
            transport: transport(stream, &hosts, senders),
            rate: RateSchedule::constant(stream.rate),
            payload: stream.payload,
            start: stream.start,
            // A file's source is bounded, so that all of it can arrive.
            duration: if stream.is_file() { plan.heal_at } else { SECS(1_000) },
            from,
            to,
            series: Some(LOOK),
        };
        world.add_stream(config).expect("a stream")
    });
    let streams = streams.collect();
    for &traffic in &plan.traffic {
        let back = matches!(traffic, Traffic::TcpLike { .. }).then_some(links[1]);
        let traffic = TrafficConfig {
            traffic,
            packet: 1_200,
            links: vec![links[0]],
            back: back.into_iter().collect(),
            start: MS(300),
            duration: plan.heal_at.saturating_sub(MS(300)),
        };
        world.add_traffic(traffic).expect("traffic");
    }
    Explored { world, hosts, links, streams }
}

/// The sender's and the receiver's host of a stream.
fn ends(stream: &Stream, hosts: &[HostId], senders: usize) -> [HostId; 2] {
    let mut ends = [hosts[stream.host], hosts[senders]];
    if stream.is_file() {
        ends = [hosts[senders + 1], hosts[senders + 2]];
    }
    if stream.reversed {
        ends.reverse();
    }
    ends
}

fn transport(stream: &Stream, hosts: &[HostId], senders: usize) -> Transport {
    let Some((sender, receiver, caller)) = stream.srt.clone() else { return Transport::Udp };
    let Some(bonding) = &stream.bonding else { return Transport::Srt { sender, receiver, caller } };
    let others = (1..senders).map(|port| {
        let [from, to] = ends(&Stream { host: port, ..stream.clone() }, hosts, senders);
        GroupLinkConfig { from, to, weight: bonding.weights[port] }
    });
    Transport::Group {
        kind: bonding.kind,
        sender,
        receiver,
        caller,
        weight: bonding.weights[0],
        others: others.collect(),
    }
}

impl Explored {
    /// The applications of these streams send no more.
    fn stop(&mut self, plan: &Plan, these: impl Fn(&Stream) -> bool) {
        for (&id, _) in self.streams.iter().zip(&plan.streams).filter(|(_, it)| these(it)) {
            self.world.stop(id);
        }
    }

    pub fn elapsed(&self) -> Duration {
        self.world.now() - punctual_units::Instant::ORIGIN
    }
}

/// How long every stream must be healthy.
const WELL: Duration = Duration::from_secs(3);
