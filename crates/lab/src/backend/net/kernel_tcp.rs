//! A live stream over the kernel's TCP, between the emulator's two sides, in real time.

use punctual_emulator::{TunConfig, TunEmulator};
use punctual_sim::TcpControl;

use crate::backend::real::of_both_ways;
use crate::backend::tcp::{LIMIT, first_readchunk, outcome};
use crate::outcome::Outcome;
use crate::results::tcp::{TcpCounts, TcpFound, tcp};
use crate::run::Setup;
use crate::two_sides::{LiveProtocol, LiveStream, StreamResult, check_tcp};

/// Why this machine cannot run a stream with this congestion control.
pub(super) fn lacks(control: TcpControl) -> Option<String> {
    check_tcp(name(control)).err()
}

/// Runs the stream for its duration, and on until its first readchunk is there.
pub(super) fn run(setup: &Setup, control: TcpControl) -> Result<Outcome, String> {
    let config = TunConfig {
        up: setup.path.up.clone(),
        down: setup.path.down.clone(),
        seed: setup.seed,
        ..TunConfig::default()
    };
    let emulator = TunEmulator::start(config).map_err(|error| format!("the emulator: {error}"))?;
    let wanted = first_readchunk(setup);
    let stream = LiveStream {
        protocol: LiveProtocol::KernelTcp(name(control).to_owned()),
        rate: setup.bitrate,
        chunk: setup.payload,
        least: setup.duration,
        wanted,
        most: LIMIT,
    };
    let StreamResult { arrivals, counters } = stream.carry(&emulator)?;
    let report = emulator.stop();
    let mut outcome = outcome(arrivals.time_of(wanted));
    outcome.extend(tcp(Some(&TcpFound {
        counts: TcpCounts {
            sent: counters.sent,
            lost: None,
            retransmitted: counters.retransmitted,
            timeouts: counters.timeouts,
        },
        goodput: arrivals.rate(setup.duration),
        // The formulas are those of the same path in virtual time.
        path: None,
        stream: setup.bitrate.as_mbps() * 1e6,
        readchunk: setup.blocks.unwrap_or_default().readchunk,
    })));
    of_both_ways(&mut outcome, [&report.up, &report.down]);
    Ok(outcome)
}

/// The kernel's name of a congestion control.
fn name(control: TcpControl) -> &'static str {
    match control {
        TcpControl::NewReno => "reno",
        TcpControl::Cubic => "cubic",
        TcpControl::Bbr => "bbr",
        TcpControl::Bbr3 => "bbr3",
        // The kernel has none of this name, so that its runs are left out.
        _ => "unknown",
    }
}
