//! Two gateways, UDP to SRT and SRT to UDP, as broadcasters use them: `punctual route` beside
//! srt-live-transmit. CPU time of each end, and the delay from UDP to UDP.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the programs at both ends have sockets, threads and pauses"
)]

use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use punctual::now;
use punctual_metrics::Quantiles;
use punctual_units::Bitrate;
use thread_priority::{RealtimeThreadSchedulePolicy, ThreadPriority, ThreadSchedulePolicy};
use tokio::time::{Instant, sleep};

use super::Bench;
use crate::Result;
use crate::pair::Implementation;
use crate::program::{self, Running};
use crate::report::{Row, Sample, Target};

pub(super) async fn run(bench: &mut Bench) -> Vec<Row> {
    let (Ok(punctual), reference) = (program::build(), program::srt_live_transmit()) else {
        eprintln!("gateways: the program punctual was not built");
        return Vec::new();
    };
    if let Err(missing) = &reference {
        eprintln!("gateways: {missing}; only Punctual is measured");
    }
    let gateways = Gateways { punctual, reference: reference.ok() };
    let mut rows = Vec::new();
    for case in &CASES {
        rows.extend(case.rows(bench, &gateways).await);
    }
    rows.push(idle(bench, &gateways).await);
    rows
}

/// The programs that are gateways.
struct Gateways {
    punctual: PathBuf,
    reference: Option<PathBuf>,
}

impl Gateways {
    /// The program and arguments that carry a stream from one URI to another; `None` where the
    /// program is missing.
    fn route(
        &self,
        implementation: Implementation,
        from: String,
        to: String,
        coalesce: Option<&str>,
    ) -> Option<(&PathBuf, Vec<String>)> {
        match implementation {
            Implementation::Libsrt => {
                self.reference.as_ref().map(|program| (program, vec![from, to]))
            }
            Implementation::Punctual | Implementation::CLibrary => {
                let mut arguments = vec!["--quiet".to_owned(), "route".to_owned(), from, to];
                if let Some(time) = coalesce {
                    arguments.extend(["--coalesce".to_owned(), time.to_owned()]);
                }
                Some((&self.punctual, arguments))
            }
        }
    }

    /// Starts both gateways of this implementation: from UDP port `ports[0]` over SRT to UDP port
    /// `ports[2]`.
    fn start(
        &self,
        implementation: Implementation,
        ports: [u16; 3],
        coalesce: Option<&str>,
    ) -> Result<[Running; 2]> {
        let [input, srt, output] = ports;
        let listen = format!("srt://127.0.0.1:{srt}?mode=listener&latency={LATENCY_MS}");
        let call = format!("srt://127.0.0.1:{srt}?latency={LATENCY_MS}");
        let ends = [
            (format!("udp://127.0.0.1:{input}"), call),
            (listen, format!("udp://127.0.0.1:{output}")),
        ];
        let [sender, receiver] = ends.map(|(from, to)| {
            let route = self.route(implementation, from, to, coalesce);
            let (program, arguments) = route.ok_or("the program is missing")?;
            Running::start(program, &arguments)
        });
        Ok([sender?, receiver?])
    }
}

/// One load and the rows that it gives.
struct Case {
    rate: Bitrate,
    coalesce: Option<&'static str>,
    names: [&'static str; 3],
    cpu: Target,
    delay: Target,
}

impl Case {
    async fn rows(&self, bench: &mut Bench, gateways: &Gateways) -> Vec<Row> {
        let mut samples = [const { Vec::new() }; 3];
        for _ in 0..bench.effort.repeats {
            let mut turn = [Sample::default(); 3];
            for &implementation in Implementation::TWO {
                if implementation == Implementation::Libsrt && gateways.reference.is_none() {
                    continue;
                }
                match self.measure(bench, gateways, implementation).await {
                    Ok(figures) => {
                        eprintln!("{}, {implementation}: {figures:.3?}", self.names[0]);
                        for (sample, figure) in turn.iter_mut().zip(figures) {
                            *sample.of(implementation) = Some(figure);
                        }
                    }
                    Err(failure) => eprintln!("{}, {implementation}: {failure}", self.names[0]),
                }
            }
            for (samples, sample) in samples.iter_mut().zip(turn) {
                samples.push(sample);
            }
        }
        let targets = [self.cpu, self.cpu, self.delay];
        let units = ["s", "s", "ms"];
        (self.names.into_iter().zip(units).zip(targets).zip(samples))
            .map(|(((what, unit), target), samples)| Row { what, unit, target, samples })
            .collect()
    }

    /// CPU seconds a gigabit of the sending and of the receiving gateway, and by how many
    /// milliseconds the 99th percentile of the delay exceeds the latency.
    async fn measure(
        &self,
        bench: &mut Bench,
        gateways: &Gateways,
        implementation: Implementation,
    ) -> Result<[f64; 3]> {
        let port = bench.pairs.port();
        let ports = [port, port + 1, port + 2];
        let sink = UdpSocket::bind(("127.0.0.1", ports[2]))?;
        let programs = gateways.start(implementation, ports, self.coalesce)?;
        let load = Load::start(self.rate, ports[0], sink)?;
        load.arrives().await?;
        sleep(SETTLE).await;

        load.delays.take();
        let start = Instant::now();
        let before = usage(&programs)?;
        sleep(Duration::from_secs_f64(bench.effort.steady)).await;
        let after = usage(&programs)?;
        let seconds = start.elapsed().as_secs_f64();
        let delays = load.delays.take();
        load.stop()?;

        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let gigabits = self.rate.as_bits_per_sec() as f64 * seconds / 1e9;
        let cpu = |end: usize| (after[end] - before[end]).as_secs_f64() / gigabits;
        let p99 = delays.p99().ok_or("nothing came through")?;
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let p99 = p99 as f64 / 1e6 - LATENCY_MS as f64;
        Ok([cpu(0), cpu(1), p99])
    }
}

/// The share of a core that a gateway takes while nothing is sent: the mean of both ends.
async fn idle(bench: &mut Bench, gateways: &Gateways) -> Row {
    let what = "gateways: an idle route, share of a core";
    let mut samples = Vec::new();
    for _ in 0..bench.effort.repeats.min(2) {
        let mut turn = Sample::default();
        for &implementation in Implementation::TWO {
            match idle_share(bench, gateways, implementation).await {
                Ok(share) => {
                    eprintln!("{what}, {implementation}: {share:.3} %");
                    *turn.of(implementation) = Some(share);
                }
                Err(failure) => eprintln!("{what}, {implementation}: {failure}"),
            }
        }
        samples.push(turn);
    }
    Row { what, unit: "%", target: Target::AtMost(0.1), samples }
}

async fn idle_share(
    bench: &mut Bench,
    gateways: &Gateways,
    implementation: Implementation,
) -> Result<f64> {
    let port = bench.pairs.port();
    let programs = gateways.start(implementation, [port, port + 1, port + 2], None)?;
    sleep(2 * SETTLE).await;
    let before = usage(&programs)?;
    sleep(Duration::from_secs_f64(bench.effort.idle)).await;
    let after = usage(&programs)?;
    let busy = (after[0] - before[0] + after[1] - before[1]).as_secs_f64() / 2.0;
    Ok(busy / bench.effort.idle * 100.0)
}

fn usage(programs: &[Running; 2]) -> Result<[Duration; 2]> {
    Ok([programs[0].usage()?.cpu, programs[1].usage()?.cpu])
}

/// A stream of UDP from this process to itself by way of the gateways.
struct Load {
    delays: Arc<Delays>,
    running: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<std::io::Result<()>>>,
}

/// Delays of the datagrams that came through, nanoseconds.
#[derive(Debug, Default)]
struct Delays(Mutex<Quantiles>);

impl Delays {
    fn record(&self, nanos: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).record(nanos);
    }

    fn take(&self) -> Quantiles {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count()
    }
}

impl Load {
    fn start(rate: Bitrate, input: u16, sink: UdpSocket) -> Result<Self> {
        let source = UdpSocket::bind("127.0.0.1:0")?;
        source.connect(("127.0.0.1", input))?;
        sink.set_read_timeout(Some(Duration::from_millis(100)))?;
        let delays = Arc::<Delays>::default();
        let running = Arc::new(AtomicBool::new(true));
        let send = {
            let running = Arc::clone(&running);
            thread::spawn(move || send(&source, rate, &running))
        };
        let receive = {
            let (running, delays) = (Arc::clone(&running), Arc::clone(&delays));
            thread::spawn(move || receive(&sink, &delays, &running))
        };
        Ok(Self { delays, running, threads: vec![send, receive] })
    }

    /// Waits until the stream comes through.
    async fn arrives(&self) -> Result<()> {
        let deadline = Instant::now() + ARRIVE;
        while self.delays.count() == 0 {
            if Instant::now() > deadline {
                return Err(format!("nothing came through within {ARRIVE:?}").into());
            }
            sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    fn stop(mut self) -> Result<()> {
        self.running.store(false, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().map_err(|_| "a thread of the load panicked")??;
        }
        Ok(())
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.running.store(false, Ordering::Relaxed);
    }
}

fn send(source: &UdpSocket, rate: Bitrate, running: &AtomicBool) -> std::io::Result<()> {
    let start = now();
    let mut payload = [0x47; PAYLOAD];
    for number in 0_u64.. {
        let due = start + rate.time_for(number * PAYLOAD as u64);
        while now() < due {
            thread::sleep(due - now());
        }
        if !running.load(Ordering::Relaxed) {
            break;
        }
        payload[..8].copy_from_slice(&now().as_nanos().to_be_bytes());
        // Before the gateway listens, the system says that nobody does.
        let _ = source.send(&payload);
    }
    Ok(())
}

fn receive(sink: &UdpSocket, delays: &Delays, running: &AtomicBool) -> std::io::Result<()> {
    // As far as it is let: the time that an ordinary thread waits for its turn is not asked for.
    let _ = thread_priority::set_thread_priority_and_policy(
        thread_priority::thread_native_id(),
        ThreadPriority::Min,
        ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo),
    );
    let mut payload = [0; PAYLOAD];
    while running.load(Ordering::Relaxed) {
        // A timeout is a chance to see that it has ended.
        if sink.recv(&mut payload).is_ok() {
            let sent = payload.first_chunk().copied().map_or(0, u64::from_be_bytes);
            delays.record(now().as_nanos().saturating_sub(sent));
        }
    }
    Ok(())
}

const CASES: [Case; 4] = [
    Case {
        rate: Bitrate::from_mbps(8),
        coalesce: None,
        names: [
            "gateways, 8 Mb/s: CPU time a gigabit, UDP to SRT",
            "gateways, 8 Mb/s: CPU time a gigabit, SRT to UDP",
            "gateways, 8 Mb/s: p99 of the delay beyond the latency",
        ],
        cpu: Target::AtMostTimes(1.0),
        delay: Target::AtMost(0.5),
    },
    Case {
        rate: Bitrate::from_mbps(50),
        coalesce: None,
        names: [
            "gateways, 50 Mb/s: CPU time a gigabit, UDP to SRT",
            "gateways, 50 Mb/s: CPU time a gigabit, SRT to UDP",
            "gateways, 50 Mb/s: p99 of the delay beyond the latency",
        ],
        cpu: Target::AtMostTimes(1.0),
        delay: Target::AtMost(0.5),
    },
    Case {
        rate: Bitrate::from_mbps(8),
        coalesce: Some("5ms"),
        names: [
            "gateways, 8 Mb/s, --coalesce 5ms: CPU time a gigabit, UDP to SRT",
            "gateways, 8 Mb/s, --coalesce 5ms: CPU time a gigabit, SRT to UDP",
            "gateways, 8 Mb/s, --coalesce 5ms: p99 of the delay beyond the latency",
        ],
        cpu: Target::AtMostTimes(0.4),
        delay: Target::None,
    },
    Case {
        rate: Bitrate::from_mbps(50),
        coalesce: Some("5ms"),
        names: [
            "gateways, 50 Mb/s, --coalesce 5ms: CPU time a gigabit, UDP to SRT",
            "gateways, 50 Mb/s, --coalesce 5ms: CPU time a gigabit, SRT to UDP",
            "gateways, 50 Mb/s, --coalesce 5ms: p99 of the delay beyond the latency",
        ],
        cpu: Target::AtMostTimes(0.4),
        delay: Target::None,
    },
];
const LATENCY_MS: u32 = 120;
/// Time for a connection to find its pace.
const SETTLE: Duration = Duration::from_secs(1);
/// Time for both gateways to start and connect.
const ARRIVE: Duration = Duration::from_secs(10);
const PAYLOAD: usize = 1_316;
