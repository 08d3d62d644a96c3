//! How exactly the emulator keeps the times of its links, at 20,000 packets a second: what it says
//! itself, of a relay and of two sides.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use punctual_emulator::{DirectionReport, Emulator, EmulatorConfig, Side, TunConfig, TunEmulator};
use punctual_netem::{LinkConfig, Loss};

use super::Bench;
use crate::Result;
use crate::report::{Row, Sample, Target};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let time = Duration::from_secs_f64(bench.effort.steady);
    let (mut relay, mut sides) = (Vec::new(), Vec::new());
    for repeat in 1..=bench.effort.repeats {
        eprint!("p99 of the emulator's lateness, {repeat} of {}, µs: ", bench.effort.repeats);
        relay.push(Sample::punctual(figure("UDP relay", relay_lateness(time).await)));
        sides.push(Sample::punctual(figure("IP", sides_lateness(time))));
        eprintln!();
    }
    let row = |what, samples| Row { what, unit: "µs", target: Target::AtMost(300.0), samples };
    vec![
        row("emulator, UDP relay, 20,000 packets a second, p99 of lateness", relay),
        row("emulator, IP between two sides, 20,000 packets a second, p99 of lateness", sides),
    ]
}

fn figure(what: &str, measured: Result<f64>) -> Option<f64> {
    match measured {
        Ok(figure) => {
            eprint!("{what} {figure:.1} ");
            Some(figure)
        }
        Err(failure) => {
            eprint!("{what} failed: {failure} ");
            None
        }
    }
}

async fn relay_lateness(time: Duration) -> Result<f64> {
    let receiver = UdpSocket::bind("127.0.0.1:0")?;
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    let mut config = EmulatorConfig::new("127.0.0.1:0".parse()?, receiver.local_addr()?);
    config.up = link()?.into();
    let emulator = Emulator::start(config).await?;
    let to = emulator.local_addr();
    load(time, || Ok(sender), || Ok(receiver), to)?;
    p99(&emulator.stop().await.up)
}

fn sides_lateness(time: Duration) -> Result<f64> {
    let config = TunConfig { up: link()?.into(), ..TunConfig::default() };
    let emulator = TunEmulator::start(config)?;
    let socket = |side: Side, port| {
        emulator.enter(side)?;
        Ok(UdpSocket::bind((side.ipv4(), port))?)
    };
    let to = (Side::Right.ipv4(), PORT).into();
    load(time, || socket(Side::Left, 0), || socket(Side::Right, PORT), to)?;
    p99(&emulator.stop().up)
}

fn link() -> Result<LinkConfig> {
    let link = LinkConfig::default().with_delay(Duration::from_millis(20));
    Ok(link.with_loss(Loss::Random(0.02))?)
}

/// The 99th percentile in microseconds, if the load has come through.
#[expect(clippy::cast_precision_loss, reason = "times of a run lie far below 2^53")]
fn p99(report: &DirectionReport) -> Result<f64> {
    let link = &report.link;
    eprint!("({} in, {} out) ", link.sent, link.delivered);
    Ok(report.lateness.p99().ok_or("nothing came through")? as f64 / 1e3)
}

/// Sends packets at a constant rate, each socket being made and used in a thread of its own.
fn load(
    time: Duration,
    sender: impl FnOnce() -> Result<UdpSocket> + Send,
    receiver: impl FnOnce() -> Result<UdpSocket> + Send,
    to: SocketAddr,
) -> Result<()> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let receiving = scope.spawn(|| {
            let socket = receiver()?;
            socket.set_read_timeout(Some(Duration::from_millis(100)))?;
            let mut buffer = [0; 2_000];
            while !ended.load(Ordering::Relaxed) {
                // A timeout is a chance to see that it has ended.
                let _ = socket.recv(&mut buffer);
            }
            Ok(())
        });
        let sending = scope.spawn(|| {
            let socket = sender()?;
            let start = Instant::now();
            let mut next = Duration::ZERO;
            while next < time {
                match next.checked_sub(start.elapsed()) {
                    Some(early) => thread::sleep(early),
                    None => {
                        socket.send_to(&[0; PAYLOAD], to)?;
                        next += PERIOD;
                    }
                }
            }
            // What is on its way arrives.
            thread::sleep(Duration::from_millis(100));
            Ok(())
        });
        let sent = sending.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended.store(true, Ordering::Relaxed);
        let received = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        sent.and(received)
    })
}

/// 20,000 packets a second.
const PERIOD: Duration = Duration::from_micros(50);
const PAYLOAD: usize = 200;
const PORT: u16 = 4_200;
