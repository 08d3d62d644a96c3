//! The scenarios: what is run, and which figures come out.

mod cpu;
mod crowd;
#[cfg(target_os = "linux")]
mod emulator;
mod encryption;
mod event_set;
mod files;
mod flood;
#[cfg(target_os = "linux")]
mod gateway;
mod idle;
mod instructions;
#[cfg(target_os = "linux")]
mod kernel_tcp;
mod memory;
mod messages;
mod program;
mod quic;
mod quic_calls;
mod rate;
mod relay;
mod simulation;
mod streams;
mod timing;

use clap::ValueEnum;

use crate::Result;
use crate::libsrt::Tuning;
use crate::pair::{Implementation, Outcome, Pairs};
use crate::report::{LIBSRT, Row, Sample};
use crate::search::Search;
use crate::traffic::Traffic;

/// A measurement that can be asked for by its name.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Scenario {
    /// The highest rate of one live connection.
    Rate,
    /// CPU time a gigabit.
    Cpu,
    /// The share of the throughput that is left with encryption.
    Encryption,
    /// The most streams that one port receives.
    Streams,
    /// The difference between a message's delivery and its time.
    Timing,
    /// Resident memory a connection.
    Memory,
    /// CPU time of a connected pair that sends nothing.
    Idle,
    /// CPU time of a thousand idle connections in one event set.
    EventSet,
    /// The cost of the calls that send and receive a message.
    Messages,
    /// Memory of ten thousand idle connections on one listener.
    Crowd,
    /// The loss of a stream while its listener is flooded with handshakes.
    Flood,
    /// SRT over QUIC beside SRT over UDP.
    Quic,
    /// `punctual generate` and `receive` as a user runs them.
    Program,
    /// `punctual file`: a large file by delay, beside the same by losses, and many small ones.
    Files,
    /// `punctual route` as a gateway, beside srt-live-transmit.
    #[cfg(target_os = "linux")]
    Gateway,
    /// `punctual relay` with many viewers, beside srtrelay and MediaMTX.
    Relay,
    /// Instructions of the protocol machine a packet.
    Instructions,
    /// The cost of simulated worlds.
    Simulation,
    /// The exactness of the times of `punctual emulate`.
    #[cfg(target_os = "linux")]
    Emulator,
    /// A live stream over 200 ms and 2 % of loss, beside the same over the kernel's TCP.
    #[cfg(target_os = "linux")]
    KernelTcp,
}

impl Scenario {
    /// All, in the order of the tables.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Rate,
        Self::Cpu,
        Self::Encryption,
        Self::Streams,
        Self::Timing,
        Self::Memory,
        Self::Idle,
        Self::EventSet,
        Self::Messages,
        Self::Crowd,
        Self::Flood,
        Self::Quic,
        Self::Program,
        Self::Files,
        #[cfg(target_os = "linux")]
        Self::Gateway,
        Self::Relay,
        Self::Instructions,
        Self::Simulation,
        #[cfg(target_os = "linux")]
        Self::Emulator,
        #[cfg(target_os = "linux")]
        Self::KernelTcp,
    ];

    /// The heading of the table that has the rows.
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Rate
            | Self::Cpu
            | Self::Streams
            | Self::Timing
            | Self::Memory
            | Self::Idle
            | Self::EventSet
            | Self::Messages => "The library beside libsrt",
            Self::Encryption => "Encryption",
            Self::Crowd | Self::Flood => "Many callers",
            Self::Quic => "SRT over QUIC",
            Self::Program | Self::Files => "Programs",
            Self::Relay => "The relay",
            Self::Instructions | Self::Simulation => "The protocol machine and simulated worlds",
            #[cfg(target_os = "linux")]
            Self::Gateway => "Programs",
            #[cfg(target_os = "linux")]
            Self::Emulator => "The emulator",
            #[cfg(target_os = "linux")]
            Self::KernelTcp => "Beside the kernel's TCP",
        }
    }

    /// The implementation that Punctual is compared with.
    pub(crate) const fn reference(self) -> &'static str {
        match self {
            Self::Relay => "peer",
            _ => LIBSRT,
        }
    }

    /// Measures; one row for each figure.
    pub(crate) async fn run(self, bench: &mut Bench) -> Vec<Row> {
        match self {
            Self::Rate => rate::run(bench).await,
            Self::Cpu => cpu::run(bench).await,
            Self::Encryption => encryption::run(bench).await,
            Self::Streams => streams::run(bench).await,
            Self::Timing => timing::run(bench).await,
            Self::Memory => memory::run(bench).await,
            Self::Idle => idle::run(bench).await,
            Self::EventSet => event_set::run(bench).await,
            Self::Messages => messages::run(bench).await,
            Self::Crowd => crowd::run(bench).await,
            Self::Flood => flood::run(bench).await,
            Self::Quic => quic::run(bench).await,
            Self::Program => program::run(bench).await,
            Self::Files => files::run(bench).await,
            #[cfg(target_os = "linux")]
            Self::Gateway => gateway::run(bench).await,
            Self::Relay => relay::run(bench).await,
            Self::Instructions => instructions::run(),
            Self::Simulation => simulation::run(bench),
            #[cfg(target_os = "linux")]
            Self::Emulator => emulator::run(bench).await,
            #[cfg(target_os = "linux")]
            Self::KernelTcp => kernel_tcp::run(bench),
        }
    }
}

/// The means of the scenarios.
#[derive(Clone, Debug)]
pub(crate) struct Bench {
    /// Runs pairs.
    pub(crate) pairs: Pairs,
    /// The length and the number of runs.
    pub(crate) effort: Effort,
}

/// The length of runs, in seconds, and the number of times that each figure is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Figures of a search: each takes many runs.
    pub(crate) searches: usize,
    /// Figures of a single run.
    pub(crate) repeats: usize,
    /// The precision of a search: 0.04 for 4 %.
    pub(crate) precision: f64,
    /// A step of a search.
    pub(crate) probe: f64,
    /// The run that confirms what a search has found.
    pub(crate) confirm: f64,
    /// A run at a constant load.
    pub(crate) steady: f64,
    /// A run that only fills the buffers.
    pub(crate) fill: f64,
    /// A run without messages.
    pub(crate) idle: f64,
}

impl Effort {
    /// A search that begins with the load that the last one `found`, or else with `guess`.
    fn search(self, found: Option<f64>, guess: f64) -> Search {
        let (start, growth) = found.map_or((guess, 1.3), |found| (found, 1.12));
        let Self { precision, probe, confirm, .. } = self;
        Search { start, growth, precision, probe, confirm }
    }

    /// Up to a quarter of an hour.
    pub(crate) const FULL: Self = Self {
        searches: 3,
        repeats: 5,
        precision: 0.04,
        probe: 3.0,
        confirm: 10.0,
        steady: 6.0,
        fill: 2.5,
        idle: 20.0,
    };
    /// Up to two minutes.
    pub(crate) const QUICK: Self = Self {
        searches: 1,
        repeats: 1,
        precision: 0.1,
        probe: 0.8,
        confirm: 2.5,
        steady: 3.0,
        fill: 1.5,
        idle: 5.0,
    };
}

impl Bench {
    /// Takes `N` figures `times` times of each of these implementations in turn. A measurement that
    /// fails is tried once more; then it leaves a gap. A line says why.
    async fn alternate<const N: usize>(
        &mut self,
        what: &str,
        implementations: &[Implementation],
        times: usize,
        mut measure: impl AsyncFnMut(&mut Self, Implementation) -> Result<[f64; N]>,
    ) -> [Vec<Sample>; N] {
        let mut samples = [const { Vec::new() }; N];
        for time in 1..=times {
            let mut pair = [Sample::default(); N];
            for &implementation in implementations {
                if !self.pairs.has(implementation) {
                    continue;
                }
                eprint!("{what}, {time} of {times}, {implementation}: ");
                let mut figures = measure(self, implementation).await;
                if let Err(failure) = &figures {
                    eprint!("({failure}) ");
                    figures = measure(self, implementation).await;
                }
                match figures {
                    Ok(figures) => {
                        eprintln!("{figures:.3?}");
                        for (sample, figure) in pair.iter_mut().zip(figures) {
                            *sample.of(implementation) = Some(figure);
                        }
                    }
                    Err(failure) => eprintln!("failed: {failure}"),
                }
            }
            for (samples, sample) in samples.iter_mut().zip(pair) {
                samples.push(sample);
            }
        }
        samples
    }

    /// Whether both ends hold this load; a line on the terminal if they failed altogether. The
    /// second attempt of libsrt's program has other settings, so that the better ones count.
    async fn holds(
        &self,
        implementation: Implementation,
        traffic: &Traffic,
        libsrt: [Tuning; 2],
        attempt: usize,
    ) -> bool {
        match self.pairs.run(implementation, traffic, libsrt[attempt]).await {
            Ok(outcome) => outcome.held().is_ok(),
            Err(failure) => {
                eprint!("({failure}) ");
                false
            }
        }
    }
}

/// The outcome of a run at a load that both implementations should hold with ease.
fn demand_held(outcome: Outcome) -> Result<Outcome> {
    outcome.held().map_err(|reason| format!("the load did not hold: {reason}"))?;
    Ok(outcome)
}

/// Payload rate of a stream where there are many, bits per second.
const STREAM_RATE: u64 = 5_000_000;
/// UDP buffers for heavy loads, bytes; the system may allow less.
const LARGE_UDP_BUFFER: usize = 8 << 20;
/// A MAXBW that no run reaches, bytes per second: 160 Gb/s. At libsrt's default of 1 Gb/s its
/// pacing costs more CPU time and limits the rate.
const NO_PACING: i64 = 20_000_000_000;
