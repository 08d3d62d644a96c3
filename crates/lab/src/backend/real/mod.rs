//! The common part of the backends in real time: they send streams at their times, and measure them
//! on arrival.

mod meter;
mod pace;
mod send;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use punctual::{Instant, now};
use punctual_emulator::{
    DirectionReport, Emulator, EmulatorConfig, EmulatorReport, PassedDatagram,
};
use tokio::sync::mpsc::UnboundedSender;

use crate::outcome::Outcome;
use crate::results::columns::{lateness, link};
use crate::run::Setup;

pub(crate) use meter::SharedArrivals;
pub(crate) use pace::StreamTimes;
pub(crate) use send::send;

/// Any port of this machine.
pub(crate) const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Microseconds on this machine's clock, for stamps.
pub(crate) fn micros(at: Instant) -> i64 {
    i64::try_from((at - Instant::ORIGIN).as_micros()).unwrap_or(i64::MAX)
}

/// The links of a run, in real time, before `target`.
pub(crate) async fn emulator(setup: &Setup, target: SocketAddr) -> Result<Emulator, String> {
    watched_emulator(setup, target, None).await
}

/// The links of a run, in real time, before `target`; a watcher gets a note of each datagram.
pub(crate) async fn watched_emulator(
    setup: &Setup,
    target: SocketAddr,
    watch: Option<UnboundedSender<PassedDatagram>>,
) -> Result<Emulator, String> {
    let mut config = EmulatorConfig::new(LOOPBACK, target);
    config.watch = watch;
    config.up = setup.path.up.clone();
    config.down = setup.path.down.clone();
    config.seed = setup.seed;
    Emulator::start(config).await.map_err(|error| format!("the emulator: {error}"))
}

/// The counts of the links, and the emulator's exactness in time.
pub(crate) fn of_the_links(outcome: &mut Outcome, report: &EmulatorReport) {
    of_both_ways(outcome, [&report.up, &report.down]);
}

/// The counts of the links up and down, and the emulator's exactness in time.
pub(crate) fn of_both_ways(outcome: &mut Outcome, [up, down]: [&DirectionReport; 2]) {
    outcome.set("attempts", 1.0);
    for (way, direction) in [("up", up), ("down", down)] {
        outcome.extend(link(way, &direction.link));
        outcome.extend(lateness(way, &direction.lateness));
    }
}

/// A runtime for one run.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, String> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).enable_all().build();
    runtime.map_err(|error| format!("a runtime: {error}"))
}

/// The time from `start` to now.
pub(crate) fn since(start: Instant) -> std::time::Duration {
    now().saturating_since(start)
}
