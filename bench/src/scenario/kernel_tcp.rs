//! A live stream over a path that loses packets: what arrives of it in a minute, and what arrives
//! over the kernel's TCP.

use std::thread;
use std::time::Duration;

use punctual::{Bitrate, Config};
use punctual_emulator::{TunConfig, TunEmulator};
use punctual_lab::two_sides::{LiveProtocol, LiveStream, check_tcp};
use punctual_netem::PathProfile;

use super::Bench;
use crate::Result;
use crate::report::{Row, Sample, Target};

pub(super) fn run(bench: &Bench) -> Vec<Row> {
    if let Err(reason) = check_tcp(CUBIC) {
        eprintln!("beside the kernel's TCP: skipped: {reason}");
        return Vec::new();
    }
    let time = Duration::from_secs_f64(10.0 * bench.effort.steady);
    let mut samples = [const { Vec::new() }; 3];
    for repeat in 1..=bench.effort.repeats {
        let of = bench.effort.repeats;
        eprint!("beside the kernel's TCP, {repeat} of {of}, Mb/s, ours, {CUBIC}, {BBR}: ");
        let [ours, cubic, bbr] = of_all(time).map(told);
        eprintln!();
        let times = |rival: Option<f64>| Some(ours? / rival?);
        for (samples, figure) in samples.iter_mut().zip([ours, times(cubic), times(bbr)]) {
            samples.push(Sample::punctual(figure));
        }
    }
    let rows = NAMES.into_iter().zip(["Mb/s", "×", "×"]).zip(samples);
    rows.map(|((what, unit), samples)| Row { what, unit, target: Target::None, samples }).collect()
}

fn told(rate: Result<f64>) -> Option<f64> {
    match rate {
        Ok(rate) => eprint!("{rate:.3} "),
        Err(ref failure) => eprint!("({failure}) "),
    }
    rate.ok()
}

/// The rates of our stream and of those over TCP, all at the same time, each over its own path.
fn of_all(time: Duration) -> [Result<f64>; 3] {
    let tcp = |control: &str| LiveProtocol::KernelTcp(control.to_owned());
    // With the options of `transtype=stream` alone: it finds the rate of the link by itself.
    let protocols = [LiveProtocol::Punctual(Box::new(Config::file())), tcp(CUBIC), tcp(BBR)];
    thread::scope(|scope| {
        let started = protocols.map(|protocol| scope.spawn(move || arriving(protocol, time)));
        started.map(|it| it.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// The rate of what arrives in this time, Mb/s.
fn arriving(protocol: LiveProtocol, time: Duration) -> Result<f64> {
    let mut path = PathProfile::default();
    for (key, value) in PATH {
        path.set(key, value)?;
    }
    let PathProfile { up, down } = path;
    let emulator = TunEmulator::start(TunConfig { up, down, ..TunConfig::default() })?;
    let rate = Bitrate::from_mbps(40);
    let stream = LiveStream { protocol, rate, chunk: 1_316, least: time, wanted: 0, most: time };
    Ok(stream.carry(&emulator)?.arrivals.rate(time).as_mbps())
}

const NAMES: [&str; 3] = [
    "live stream of 40 Mb/s, 200 ms, 2 % of loss each way: what arrives",
    "live stream of 40 Mb/s, 200 ms, 2 % of loss each way: of what CUBIC brings",
    "live stream of 40 Mb/s, 200 ms, 2 % of loss each way: of what BBR brings",
];
const CUBIC: &str = "cubic";
const BBR: &str = "bbr";
const PATH: [(&str, &str); 4] =
    [("rtt", "200ms"), ("loss", "2%"), ("rate", "50Mbps"), ("queue", "200ms")];
