//! The ends of a relay's streams, many in one process: publishers that send a file, viewers that
//! count what they get, and callers that ask for streams that are not there.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use punctual::{Config, Error, Message, Port, PortConfig, Socket, Timer, now};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Result;

/// Ends that call a relay on this machine.
#[derive(Args, Clone, Debug)]
pub(crate) struct RelayEnds {
    /// The relay's UDP port on 127.0.0.1.
    #[arg(long)]
    pub(crate) port: u16,
    /// The stream ID; `{}` stands for the number of the stream.
    #[arg(long)]
    pub(crate) stream_id: String,
    /// The number of streams; the ends are distributed over them.
    #[arg(long, default_value_t = 1)]
    pub(crate) streams: u32,
    /// The number of ends.
    #[arg(long, default_value_t = 1)]
    pub(crate) number: u32,
    /// The ends that share a UDP port.
    #[arg(long, default_value_t = 1)]
    pub(crate) each_port: u32,
    /// The latency, milliseconds.
    #[arg(long, default_value_t = LATENCY_MS)]
    pub(crate) latency_ms: u64,
    /// Publishers send this file once; without one they send null packets without end.
    #[arg(long)]
    pub(crate) file: Option<PathBuf>,
    /// The rate of each publisher, bits per second.
    #[arg(long, default_value_t = 0)]
    pub(crate) rate: u64,
    /// Viewers count after this time, seconds.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) settle: f64,
    /// Viewers count for this time, seconds.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) seconds: f64,
}

/// The figures of viewers, all together, in the time in which they count.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct ViewersReport {
    /// Bytes of the stream that came.
    pub(crate) bytes: u64,
    /// The fewest that one viewer got.
    pub(crate) least: u64,
    /// Packets that did not come in time.
    pub(crate) dropped: u64,
    /// Viewers that were still connected at the end.
    pub(crate) left: u32,
}

/// The figures of callers that ask for absent streams.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize)]
pub(crate) struct RefusedReport {
    /// Calls that the relay refused.
    pub(crate) refused: u64,
    /// Calls that ended otherwise.
    pub(crate) others: u64,
}

impl RelayEnds {
    /// One end with this stream ID.
    pub(crate) fn new(port: u16, stream_id: &str) -> Self {
        Self {
            port,
            stream_id: stream_id.to_owned(),
            streams: 1,
            number: 1,
            each_port: 1,
            latency_ms: LATENCY_MS,
            file: None,
            rate: 0,
            settle: 0.0,
            seconds: 0.0,
        }
    }

    /// The flags that say this.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = vec![
            format!("--port={}", self.port),
            format!("--stream-id={}", self.stream_id),
            format!("--streams={}", self.streams),
            format!("--number={}", self.number),
            format!("--each-port={}", self.each_port),
            format!("--latency-ms={}", self.latency_ms),
            format!("--rate={}", self.rate),
            format!("--settle={}", self.settle),
            format!("--seconds={}", self.seconds),
        ];
        flags.extend(self.file.as_ref().map(|file| format!("--file={}", file.display())));
        flags
    }

    fn config(&self, end: u32) -> Result<Config> {
        let stream_id = self.stream_id.replace("{}", &(end % self.streams).to_string());
        let latency = Duration::from_millis(self.latency_ms);
        Ok(Config::default().with_latency(latency)?.with_stream_id(stream_id)?)
    }

    const fn remote(&self) -> SocketAddr {
        SocketAddr::V4(std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, self.port))
    }

    /// Connects all ends, in order.
    async fn connect(&self) -> Result<Vec<Socket>> {
        let mut sockets = Vec::new();
        let mut calls = JoinSet::new();
        let mut port = Port::bind(local()).await?;
        for end in 0..self.number {
            if end > 0 && end % self.each_port == 0 {
                port = Port::bind(local()).await?;
            }
            if calls.len() == CALLS_AT_ONCE {
                sockets.extend(calls.join_next().await.transpose()?.transpose()?);
            }
            let (port, config, remote) = (port.clone(), self.config(end)?, self.remote());
            calls.spawn(async move {
                let socket = port.connect(remote, config).await?;
                Ok::<_, Error>((end, socket))
            });
        }
        while let Some(socket) = calls.join_next().await {
            sockets.push(socket??);
        }
        sockets.sort_by_key(|(end, _)| *end);
        Ok(sockets.into_iter().map(|(_, socket)| socket).collect())
    }
}

/// Connects publishers, prints `started`, and sends until the file ends or the process is ended.
pub(crate) fn publish(ends: &RelayEnds) -> Result<()> {
    crate::runtime()?.block_on(async {
        let messages = match &ends.file {
            Some(file) => Messages::of(std::fs::read(file)?.into()),
            None => Messages::null(),
        };
        let sockets = ends.connect().await?;
        println!("started");
        #[expect(clippy::cast_precision_loss, reason = "rates and sizes lie far below 2^53")]
        let interval = MESSAGE as f64 * 8.0 / (ends.rate as f64 * f64::from(ends.number));
        let mut timer = Timer::new()?;
        let start = now();
        for number in 0_u32.. {
            timer.sleep_until(start + Duration::from_secs_f64(interval * f64::from(number))).await;
            let Some(message) = messages.get(number / ends.number) else { break };
            let socket = &sockets[(number % ends.number) as usize];
            socket.send(message).await?;
        }
        Ok(())
    })
}

/// The messages of a stream.
struct Messages {
    bytes: Bytes,
    is_endless: bool,
}

impl Messages {
    const fn of(bytes: Bytes) -> Self {
        Self { bytes, is_endless: false }
    }

    /// One message of null packets, again and again.
    fn null() -> Self {
        let mut packet = [0xFF; MESSAGE / 7];
        packet[..4].copy_from_slice(&[0x47, 0x1F, 0xFF, 0x10]);
        Self { bytes: packet.repeat(7).into(), is_endless: true }
    }

    fn get(&self, number: u32) -> Option<Bytes> {
        let from = if self.is_endless { 0 } else { number as usize * MESSAGE };
        (from + MESSAGE <= self.bytes.len()).then(|| self.bytes.slice(from..from + MESSAGE))
    }
}

/// Connects viewers, prints `started`, counts, and prints the report.
pub(crate) fn view(ends: &RelayEnds) -> Result<()> {
    crate::runtime()?.block_on(async {
        let sockets = ends.connect().await?;
        println!("started");
        let mut readers = JoinSet::new();
        for socket in &sockets {
            readers.spawn(read(socket.clone()));
        }
        sleep(Duration::from_secs_f64(ends.settle)).await;
        let counts = |socket: &Socket| {
            let statistics = socket.statistics();
            (statistics.bytes_received_unique, statistics.packets_receive_dropped)
        };
        let before: Vec<_> = sockets.iter().map(counts).collect();
        sleep(Duration::from_secs_f64(ends.seconds)).await;
        let mut report = ViewersReport { least: u64::MAX, ..ViewersReport::default() };
        for (socket, before) in sockets.iter().zip(before) {
            let after = counts(socket);
            report.bytes += after.0 - before.0;
            report.least = report.least.min(after.0 - before.0);
            report.dropped += after.1 - before.1;
        }
        while readers.try_join_next().is_some() {}
        report.left = u32::try_from(readers.len())?;
        println!("{}", serde_json::to_string(&report)?);
        // The CPU time of this process is read after the same time.
        sleep(LINGER).await;
        Ok(())
    })
}

/// Reads a stream until its end.
async fn read(socket: Socket) {
    let mut messages: Vec<Message> = Vec::new();
    while socket.recv_many(&mut messages, MESSAGES_AT_ONCE).await.is_ok() {
        messages.clear();
    }
}

/// Calls streams that are not there, each with a name of its own, and prints the report.
pub(crate) fn call_absent(ends: &RelayEnds) -> Result<()> {
    crate::runtime()?.block_on(async {
        let mut ports = VecDeque::new();
        for _ in 0..CALLS_AT_ONCE {
            ports.push_back(Port::bind(local()).await?);
        }
        let mut report = RefusedReport::default();
        let mut calls = JoinSet::new();
        for end in 0..ends.number {
            if calls.len() == CALLS_AT_ONCE {
                report.note(calls.join_next().await.transpose()?.flatten().as_ref());
            }
            ports.rotate_left(1);
            let (port, config, remote) = (ports[0].clone(), ends.config(end)?, ends.remote());
            calls.spawn(async move { port.connect(remote, config).await.err() });
        }
        while let Some(outcome) = calls.join_next().await {
            report.note(outcome?.as_ref());
        }
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
    })
}

impl RefusedReport {
    fn note(&mut self, outcome: Option<&Error>) {
        match outcome.and_then(Error::reject_reason) {
            Some(_) => self.refused += 1,
            None => self.others += 1,
        }
    }
}

fn local() -> PortConfig {
    PortConfig { local: Some((Ipv4Addr::LOCALHOST, 0).into()), ..PortConfig::default() }
}

/// The latency of both ends.
const LATENCY_MS: u64 = 120;
/// Seven packets.
const MESSAGE: usize = 1_316;
/// Calls under way at the same time.
const CALLS_AT_ONCE: usize = 16;
const MESSAGES_AT_ONCE: usize = 256;
/// The time for which viewers stay after their report.
const LINGER: Duration = Duration::from_secs(1);
