//! Simulated worlds, each in a process of its own: what they cost.

use std::fs;
use std::time::Duration;

use clap::Args;
use nix::time::ClockId;
use punctual_proto::{Config, RetransmitAlgorithm};
use punctual_sim::{End, HostConfig, RateSchedule, StreamConfig, Transport, World};
use punctual_units::Bitrate;
use serde::{Deserialize, Serialize};

use crate::Result;

/// A world of streams that share a link each way.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Scene {
    /// Streams from one host to another.
    #[arg(long, default_value_t = 1)]
    pub(crate) streams: u64,
    /// Payload of each, bits a second.
    #[arg(long, default_value_t = 10_000_000)]
    pub(crate) rate: u64,
    /// Virtual seconds.
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u64,
    /// Packets lost of a thousand, both ways.
    #[arg(long, default_value_t = 0)]
    pub(crate) loss: u32,
}

/// The cost of a world, or of several.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct Cost {
    /// Messages sent.
    pub(crate) messages: u64,
    /// CPU time of the whole process, seconds.
    pub(crate) cpu: f64,
    /// The most memory that it had, bytes.
    pub(crate) memory: u64,
}

/// Runs one world and prints what it cost.
pub(crate) fn run(scene: Scene) -> Result<()> {
    let latency = Config::default().with_latency(Duration::from_millis(120))?;
    let messages = simulate(scene, &latency, Duration::from_millis(10))?;
    print(messages)
}

/// Runs every second cell of the grid of `srt-retransmission`, from cell `first` on: two
/// algorithms, two losses, two rates and nine latencies, 120 s each.
pub(crate) fn grid(first: usize) -> Result<()> {
    let mut cells = Vec::new();
    for algorithm in [RetransmitAlgorithm::Aggressive, RetransmitAlgorithm::Efficient] {
        for loss in [50, 100] {
            for rate in [5_000_000, 10_000_000] {
                for latency in (1..=9).map(|n| 20 * n + 20) {
                    let latency = Duration::from_millis(latency);
                    let config = Config::default().with_latency(latency)?;
                    let scene = Scene { streams: 1, rate, seconds: 120, loss };
                    cells.push((scene, config.with_retransmit_algorithm(algorithm.clone())));
                }
            }
        }
    }
    let mut messages = 0;
    for (scene, config) in cells.iter().skip(first).step_by(2) {
        messages += simulate(*scene, config, Duration::from_millis(10))?;
    }
    print(messages)
}

fn simulate(scene: Scene, config: &Config, delay: Duration) -> Result<u64> {
    let mut world = World::new(1);
    let (from, to) = (world.add_host(HostConfig::default()), world.add_host(HostConfig::default()));
    let loss = punctual_netem::Loss::Random(f64::from(scene.loss) / 1_000.0);
    let link = punctual_netem::LinkConfig::default().with_delay(delay).with_loss(loss)?;
    let link = link.with_rate(Some(Bitrate::from_bits_per_sec(scene.streams * scene.rate * 4)));
    let (there, back) = (world.add_link(link.clone()), world.add_link(link));
    world.set_route(from, to, &[there])?;
    world.set_route(to, from, &[back])?;
    let mut streams = Vec::new();
    for number in 0..scene.streams {
        streams.push(world.add_stream(StreamConfig {
            transport: Transport::Srt {
                sender: config.clone(),
                receiver: config.clone(),
                caller: End::Sender,
            },
            rate: RateSchedule::constant(Bitrate::from_bits_per_sec(scene.rate)),
            payload: 1_316,
            start: Duration::from_micros(17 * number),
            duration: Duration::from_secs(scene.seconds),
            from,
            to,
            series: None,
        })?);
    }
    world.run_for(Duration::from_secs(scene.seconds + 1));
    let outcomes = streams.into_iter().map(|stream| world.outcome(stream));
    let mut messages = 0;
    for outcome in outcomes {
        messages += outcome.messages_sent;
        let missing = outcome.messages_sent - outcome.messages_received;
        if scene.loss == 0 && missing > 0 {
            return Err(format!("{missing} messages are missing on links without loss").into());
        }
    }
    Ok(messages)
}

fn print(messages: u64) -> Result<()> {
    let cpu = Duration::from(ClockId::CLOCK_PROCESS_CPUTIME_ID.now()?).as_secs_f64();
    let cost = Cost { messages, cpu, memory: most_memory()? };
    println!("{}", serde_json::to_string(&cost)?);
    Ok(())
}

fn most_memory() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kibibytes = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|value| value.trim().strip_suffix(" kB"))
        .ok_or("the system does not tell how much memory there was")?;
    Ok(kibibytes.parse::<u64>()? * 1_024)
}
