//! A group's promise, tried when all is well: one of its links is cut, and nothing is missed.

use std::time::Duration;

use punctual_netem::Loss;
use punctual_proto::{GroupKind, LinkState};
use punctual_sim::{LinkOutcome, StreamOutcome};

use crate::judge::Judge;
use crate::kinds::Bonding;
use crate::plan::{Plan, Stream};
use crate::run::Explored;

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

/// Cuts a link of each group for two seconds, and lets it come back.
#[track_caller]
pub fn try_each(explored: &mut Explored, plan: &Plan, judge: &mut Judge<'_>) {
    for (number, stream) in plan.streams.iter().enumerate() {
        if let Some(bonding) = &stream.bonding {
            try_one(explored, judge, number, stream, bonding);
        }
    }
}

#[track_caller]
fn try_one(
    explored: &mut Explored,
    judge: &mut Judge<'_>,
    number: usize,
    stream: &Stream,
    bonding: &Bonding,
) {
    let id = explored.streams[number];
    let before = explored.world.outcome(id);
    let carries = before.links.iter().position(|link| link.state == LinkState::Stable);
    let cut = match bonding.kind {
        GroupKind::Backup => carries.expect("a link that carries the stream"),
        _ => bonding.cut,
    };
    let latency = stream.srt.as_ref().expect("a group").0.peer_latency();
    let promise = Promise::of(bonding.kind, latency, cut, &before);
    if latency < promise.needs_latency {
        return;
    }
    let links = [2 * cut, 2 * cut + 1].map(|link| explored.links[link]);
    let well = links.map(|link| explored.world.link_config(link).clone());
    for (link, well) in links.into_iter().zip(&well) {
        let cut = well.clone().with_loss(Loss::All).expect("no share in it");
        explored.world.set_link(link, cut);
    }
    explored.world.run_for(promise.takes_over_in + judge.lateness());
    judge.look(explored);
    if bonding.kind == GroupKind::Backup {
        let after = explored.world.outcome(id);
        let others = after.links.iter().enumerate().filter(|(link, _)| *link != cut);
        let carried = others.map(|(_, link)| link.state).any(LinkState::is_active);
        assert!(carried, "nothing took over within {:?}", promise.takes_over_in);
    }
    explored.world.run_for(SECS(2));
    for (link, well) in links.into_iter().zip(well) {
        explored.world.set_link(link, well);
    }
    explored.world.run_for(SECS(3) + latency * 5);
    judge.look(explored);
    let after = explored.world.outcome(id);
    assert_eq!(
        (after.metrics.lost, after.messages_refused),
        (before.metrics.lost, before.messages_refused),
        "lost when link {cut} was cut, {promise:?}"
    );
}

/// The promises in the documentation of groups for a link that is cut.
#[derive(Debug)]
struct Promise {
    /// When another link carries a backup group.
    takes_over_in: Duration,
    /// With what latency nothing is lost.
    needs_latency: Duration,
}

impl Promise {
    fn of(kind: GroupKind, latency: Duration, cut: usize, before: &StreamOutcome) -> Self {
        let rtt = |link: &LinkOutcome| link.sender.rtt;
        let others = before.links.iter().enumerate().filter(|(link, _)| *link != cut);
        let others: Vec<Duration> = others.map(|(_, link)| rtt(link)).collect();
        let (least, most) = (others.iter().min(), others.iter().max());
        let (least, most) = least.copied().zip(most.copied()).expect("another link");
        let it = &before.links[cut].sender;
        // A link of a longer transit than that which set the time has that much less latency.
        let longer = most.max(it.rtt);
        let silent = (it.rtt * 2 + it.rtt_variance * 4)
            .min(latency.saturating_sub(it.rtt + MS(10)))
            .max(MS(60));
        let needs_latency = match kind {
            GroupKind::Broadcast => longer,
            GroupKind::Backup => silent + it.rtt + most + longer,
            GroupKind::Balance => MS(60) + least * 3 / 2 + MS(20) + longer,
        };
        // An answer may have been under way, and a message must be waiting for one.
        Self {
            takes_over_in: silent + it.rtt + MS(10) + MS(20),
            needs_latency: needs_latency + MS(50),
        }
    }
}
