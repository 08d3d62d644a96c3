//! The exactness of the times of the emulator's links, at 20,000 packets a second through a
//! relay and between two sides: what it says itself, and what programs at both ends see.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the programs at both ends have sockets, threads and pauses"
)]

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use punctual::now;
use punctual_emulator::{DirectionReport, Emulator, EmulatorConfig, Side, TunConfig, TunEmulator};
use punctual_metrics::Quantiles;
use punctual_netem::{LinkConfig, Loss};
use thread_priority::{RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};

use super::Bench;
use crate::Result;
use crate::report::{Row, Sample, Target};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let time = Duration::from_secs_f64(bench.effort.steady);
    let mut samples = [const { Vec::new() }; 4];
    for repeat in 1..=bench.effort.repeats {
        let of = bench.effort.repeats;
        eprint!("p99 of lateness, the emulator's and its users', {repeat} of {of}, µs: relay ");
        let relay = told(relay(time).await);
        eprint!(", two sides ");
        let sides = told(two_sides(time));
        eprintln!();
        for (samples, figure) in samples.iter_mut().zip([relay, sides].concat()) {
            samples.push(Sample::punctual(figure));
        }
    }
    let targets = [Target::AtMost(300.0), Target::None, Target::AtMost(300.0), Target::None];
    let rows = NAMES.into_iter().zip(targets).zip(samples);
    rows.map(|((what, target), samples)| Row { what, unit: "µs", target, samples }).collect()
}

fn told(measured: Result<[f64; 2]>) -> [Option<f64>; 2] {
    match measured {
        Ok(figures) => {
            eprint!("{figures:.1?}");
            figures.map(Some)
        }
        Err(failure) => {
            eprint!("failed: {failure}");
            [None; 2]
        }
    }
}

async fn relay(time: Duration) -> Result<[f64; 2]> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    let mut config = EmulatorConfig::new("127.0.0.1:0".parse()?, receiver.local_addr()?);
    config.up = link()?.into();
    let emulator = Emulator::start(config).await?;
    let to = emulator.local_addr();
    let seen = load(time, || Ok(sender), || Ok(receiver), to)?;
    figures(&emulator.stop().await.up, &seen)
}

fn two_sides(time: Duration) -> Result<[f64; 2]> {
    let config = TunConfig { up: link()?.into(), ..TunConfig::default() };
    let emulator = TunEmulator::start(config)?;
    let socket = |side: Side, port| {
        emulator.enter(side)?;
        Ok(UdpSocket::bind((side.ipv4(), port))?)
    };
    let to = (Side::Right.ipv4(), PORT).into();
    let seen = load(time, || socket(Side::Left, 0), || socket(Side::Right, PORT), to)?;
    figures(&emulator.stop().up, &seen)
}

fn link() -> Result<LinkConfig> {
    Ok(LinkConfig::default().with_delay(DELAY).with_loss(Loss::Random(0.02))?)
}

/// The 99th percentiles in microseconds, if the load has come through.
#[expect(clippy::cast_precision_loss, reason = "times of a run lie far below 2^53")]
fn figures(report: &DirectionReport, seen: &Quantiles) -> Result<[f64; 2]> {
    let link = &report.link;
    if seen.count() < link.delivered - link.delivered / 1_000 {
        return Err(format!("only {} of {} came through", seen.count(), link.delivered).into());
    }
    let p99 = |times: &Quantiles| times.p99().map(|nanos| nanos as f64 / 1e3);
    let figures = p99(&report.lateness).zip(p99(seen)).ok_or("nothing came through")?;
    Ok(figures.into())
}

/// Sends packets at a constant rate, each socket being made and used in a thread of its own; gives
/// how much more than the link's delay they took, in nanoseconds.
fn load(
    time: Duration,
    sender: impl FnOnce() -> Result<UdpSocket> + Send,
    receiver: impl FnOnce() -> Result<UdpSocket> + Send,
    to: SocketAddr,
) -> Result<Quantiles> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| receive(&receiver()?, &ended));
        let sending = scope.spawn(|| send(&sender()?, time, to));
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // Packets on their way arrive.
        thread::sleep(5 * DELAY);
        ended.store(true, Ordering::Relaxed);
        let seen = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.and(seen)
    })
}

fn send(socket: &UdpSocket, time: Duration, to: SocketAddr) -> Result<()> {
    let start = now();
    let mut next = start;
    let mut payload = [0; PAYLOAD];
    while next < start + time {
        let time = now();
        if time < next {
            thread::sleep(next - time);
        } else {
            payload[..8].copy_from_slice(&time.as_nanos().to_be_bytes());
            socket.send_to(&payload, to)?;
            next += PERIOD;
        }
    }
    Ok(())
}

fn receive(socket: &UdpSocket, ended: &AtomicBool) -> Result<Quantiles> {
    // As far as it is let: the time that an ordinary thread waits for its turn is not asked for.
    let _ = thread_priority::set_thread_priority_and_policy(
        thread_priority::thread_native_id(),
        ThreadPriority::Min,
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    );
    socket.set_read_timeout(Some(DELAY))?;
    let mut seen = Quantiles::default();
    let mut payload = [0; PAYLOAD];
    while !ended.load(Ordering::Relaxed) {
        // A timeout is a chance to see that it has ended.
        if socket.recv(&mut payload).is_ok() {
            let sent = payload.first_chunk().copied().map_or(0, u64::from_be_bytes);
            let delay = u64::try_from(DELAY.as_nanos())?;
            seen.record(now().as_nanos().saturating_sub(sent + delay));
        }
    }
    Ok(seen)
}

const NAMES: [&str; 4] = [
    "emulator, relay, 20,000 packets/s: p99 of lateness",
    "emulator, relay, 20,000 packets/s: p99 of lateness, program to program",
    "emulator, two sides, 20,000 packets/s: p99 of lateness",
    "emulator, two sides, 20,000 packets/s: p99 of lateness, program to program",
];
const DELAY: Duration = Duration::from_millis(20);
/// 20,000 packets a second.
const PERIOD: Duration = Duration::from_micros(50);
const PAYLOAD: usize = 200;
const PORT: u16 = 4_200;
