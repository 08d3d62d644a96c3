//! A live stream over a simulated TCP connection in virtual time, and its common part with a stream
//! over the kernel's TCP.

use std::time::Duration;

use punctual_netem::Loss;
use punctual_probe::model::tcp::TcpPath;
use punctual_sim::{TcpConfig, TcpControl, TcpSource, Traffic, TrafficConfig, World, WorldError};

use crate::outcome::Outcome;
use crate::results::columns::link;
use crate::results::tcp::{TcpCounts, TcpFound, tcp};
use crate::run::{RunSpec, Setup};

/// Runs the stream for its duration, and on until its first readchunk is there.
pub(super) fn run(setup: &Setup, control: TcpControl) -> Result<Outcome, WorldError> {
    let mut world = World::new(setup.seed);
    let up = world.add_link(setup.path.up.clone());
    let down = world.add_link(setup.path.down.clone());
    let config = TcpConfig::new(control).with_source(TcpSource::Rate(setup.bitrate));
    let flow = world.add_traffic(TrafficConfig {
        traffic: Traffic::Tcp(config),
        packet: PACKET,
        links: vec![up],
        back: vec![down],
        start: Duration::ZERO,
        duration: LIMIT,
    })?;
    let wanted = first_readchunk(setup);
    world.run_for(setup.duration);
    let there = |world: &World| world.traffic_progress(flow)?.time_of(wanted);
    let mut time = setup.duration;
    while there(&world).is_none() && time < LIMIT {
        world.run_for(STEP);
        time += STEP;
    }
    let start_up = there(&world);
    let mut outcome = outcome(start_up);
    let progress = world.traffic_progress(flow);
    outcome.extend(tcp(Some(&TcpFound {
        counts: TcpCounts::of(&world.traffic_statistics(flow)),
        goodput: progress.map(|it| it.rate(Duration::ZERO, setup.duration)).unwrap_or_default(),
        // The formulas are for controls that take a loss for congestion.
        path: path(setup).filter(|_| !matches!(control, TcpControl::Bbr | TcpControl::Bbr3)),
        stream: setup.bitrate.as_mbps() * 1e6,
        readchunk: setup.blocks.unwrap_or_default().readchunk,
    })));
    outcome.extend(link("up", world.link_statistics(up)));
    outcome.extend(link("down", world.link_statistics(down)));
    Ok(outcome)
}

/// The error of a backend that is to run `[tcp]` or `[blocks]` and has neither.
pub(super) fn refuse(spec: &RunSpec) -> Result<(), String> {
    let table = match (spec.setup.tcp, spec.setup.blocks) {
        (None, None) => return Ok(()),
        (Some(_), _) => "tcp",
        _ => "blocks",
    };
    Err(format!("a plan with [{table}] is run by the backends `sim` and `net`"))
}

/// The outcome of a stream whose first readchunk was there at this time after its first byte.
pub(super) fn outcome(start_up: Option<Duration>) -> Outcome {
    let status = if start_up.is_some() { Outcome::OK } else { "no first readchunk in 10 minutes" };
    let mut outcome = Outcome { status: status.to_owned(), ..Outcome::default() };
    outcome.set("sStartUp", start_up.map_or(f64::NAN, |time| time.as_secs_f64()));
    outcome
}

/// The bytes of the first readchunk of the stream.
pub(super) fn first_readchunk(setup: &Setup) -> u64 {
    let time = setup.blocks.unwrap_or_default().readchunk;
    let bits = u128::from(setup.bitrate.as_bits_per_sec()) * time.as_nanos() / 1_000_000_000;
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// The path for the formulas of TCP's rate: they know the losses of packets, not of ACKs.
fn path(setup: &Setup) -> Option<TcpPath> {
    let Loss::Random(loss) = setup.path.up.config.loss else { return None };
    let rtt = setup.path.up.config.delay + setup.path.down.config.delay;
    Some(TcpPath::new(rtt, loss).ok()?.with_segment((PACKET - HEADERS).into()))
}

/// Bytes of a packet, and of its headers: IP, and TCP with timestamps.
const PACKET: u16 = 1_500;
const HEADERS: u16 = 52;
const STEP: Duration = Duration::from_secs(1);
/// The time after which nobody waits for the first readchunk any longer.
pub(super) const LIMIT: Duration = Duration::from_secs(600);
