//! Our sending process: callers on one UDP port that send paced messages in turn.

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use punctual::quic::{ClientTls, Identity, QuicConfig, SRT_PROTOCOLS, ServerTls, Trust};
use punctual::{
    Bitrate, Carriage, Config, CryptoMode, KeyLength, MaxBandwidth, Port, PortConfig, Socket,
    Timer, now,
};
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet, yield_now};
use tokio::time::{sleep, timeout};

use crate::Result;
use crate::traffic::{SendReport, Stamp, Traffic};

/// Connects, prints `started`, sends, waits until all is delivered, prints the report.
pub(crate) fn run(traffic: &Traffic) -> Result<()> {
    crate::runtime()?.block_on(async {
        let sockets = connect_all(traffic).await?;
        println!("started");
        let start = now();
        let rtt = RttSamples::start(sockets[0].clone());
        let mut sender = Sender { traffic, sockets, sent: 0, batch: VecDeque::new() };
        match traffic.interval_ns() {
            Some(interval_ns) => sender.send_paced(interval_ns).await?,
            None => sleep(traffic.duration()).await,
        }
        let seconds = (now() - start).as_secs_f64();
        sender.drain().await;
        let report = SendReport { rtt_us: rtt.median_us().await, ..sender.report(seconds) };
        println!("{}", serde_json::to_string(&report)?);
        for socket in &sender.sockets {
            socket.close().await;
        }
        Ok(())
    })
}

/// The connection's options that the traffic asks for; all else is default.
pub(crate) fn config(traffic: &Traffic) -> Result<Config> {
    let config = Config::default()
        .with_payload_size(traffic.payload)?
        .with_latency(Duration::from_millis(traffic.latency_ms))?
        .with_crypto_mode(if traffic.gcm { CryptoMode::Gcm } else { CryptoMode::Ctr });
    let config = match KeyLength::from_bytes(traffic.key_length) {
        Some(length) => config.with_passphrase(PASSPHRASE)?.with_key_length(Some(length)),
        None => config,
    };
    Ok(match u64::try_from(traffic.max_bandwidth) {
        Ok(limit) => {
            config.with_max_bandwidth(MaxBandwidth::Absolute(Bitrate::from_bytes_per_sec(limit)))
        }
        Err(_) => config,
    })
}

/// The UDP port's options that the traffic asks for.
pub(crate) fn port_config(traffic: &Traffic, port: u16) -> Result<PortConfig> {
    let buffer = (traffic.udp_buffer > 0).then_some(traffic.udp_buffer);
    Ok(PortConfig {
        local: Some(loopback(port)),
        send_buffer: buffer,
        receive_buffer: buffer,
        carriage: if traffic.quic { over_quic()? } else { Carriage::Udp },
        ..PortConfig::default()
    })
}

/// QUIC with a self-signed certificate, for a port that may call and listen.
fn over_quic() -> Result<Carriage> {
    let identity = Identity::self_signed(&["localhost"])?;
    let server = Some(ServerTls::new(identity, SRT_PROTOCOLS));
    let client = Some(ClientTls::new(Trust::Insecure, SRT_PROTOCOLS));
    Ok(Carriage::Quic(Arc::new(QuicConfig { server, client, ..QuicConfig::default() })))
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

async fn connect_all(traffic: &Traffic) -> Result<Vec<Socket>> {
    let port = Port::bind(port_config(traffic, 0)?).await?;
    let remote = loopback(traffic.port);
    let mut sockets = Vec::new();
    let mut calls = JoinSet::new();
    for _ in 0..traffic.streams {
        if calls.len() == CALLS_AT_ONCE {
            sockets.extend(calls.join_next().await.transpose()?.transpose()?);
        }
        let (port, config) = (port.clone(), config(traffic)?);
        calls.spawn(async move { port.connect(remote, config).await });
    }
    while let Some(socket) = calls.join_next().await {
        sockets.push(socket??);
    }
    Ok(sockets)
}

/// Samples of a connection's smoothed round-trip time, taken by a task until it is stopped.
struct RttSamples {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Vec<u64>>,
}

impl RttSamples {
    fn start(socket: Socket) -> Self {
        let (stop, mut stopped) = oneshot::channel();
        let task = tokio::spawn(async move {
            let mut samples = Vec::new();
            while timeout(RTT_PERIOD, &mut stopped).await.is_err() {
                let rtt = socket.statistics().rtt.as_micros();
                samples.push(u64::try_from(rtt).unwrap_or(u64::MAX));
            }
            samples
        });
        Self { stop, task }
    }

    /// The median of the second half of the samples, when the estimate has settled; 0 without any.
    async fn median_us(self) -> u64 {
        // A task that has ended needs no signal.
        let _ = self.stop.send(());
        let mut samples = self.task.await.unwrap_or_default();
        let mut settled = samples.split_off(samples.len() / 2);
        settled.sort_unstable();
        settled.get(settled.len() / 2).copied().unwrap_or_default()
    }
}

/// The time between two samples of the round-trip time.
const RTT_PERIOD: Duration = Duration::from_millis(50);

struct Sender<'a> {
    traffic: &'a Traffic,
    sockets: Vec<Socket>,
    /// Messages of all streams so far.
    sent: u64,
    /// Messages of the only stream that are to be sent now.
    batch: VecDeque<Bytes>,
}

impl Sender<'_> {
    /// Message k of all goes to stream k mod N at its time, or with the batch that follows.
    async fn send_paced(&mut self, interval_ns: f64) -> Result<()> {
        let total = self.traffic.messages();
        let batch = Duration::from_micros(self.traffic.batch_us);
        let mut timer = Timer::new()?;
        let start = now();
        let end = start + self.traffic.duration();
        let mut wake = start;
        while self.sent < total && now() < end {
            let due = total.min(messages_until(now() - start, interval_ns) + 1);
            let due = due.min(self.sent + MESSAGES_AT_ONCE);
            self.send_until(due).await?;
            let next = start + time_of(self.sent, interval_ns);
            if next <= now() {
                yield_now().await;
                continue;
            }
            wake = next.max(wake + batch);
            timer.sleep_until(wake).await;
        }
        Ok(())
    }

    async fn send_until(&mut self, due: u64) -> Result<()> {
        let size = self.traffic.payload;
        let messages = usize::try_from(due.saturating_sub(self.sent))?;
        let mut memory = BytesMut::with_capacity(messages * size);
        for _ in 0..messages {
            let streams = self.sockets.len() as u64;
            let stream = usize::try_from(self.sent % streams)?;
            let number = u32::try_from(self.sent / streams)?;
            let stamp = Stamp { sent_ns: now().as_nanos(), stream: u32::try_from(stream)?, number };
            memory.put_slice(&stamp.to_bytes());
            memory.put_bytes(FILLING, size - Stamp::SIZE);
            let payload = memory.split().freeze();
            if streams == 1 {
                self.batch.push_back(payload);
            } else {
                self.sockets[stream].send(payload).await?;
            }
            self.sent += 1;
        }
        while !self.batch.is_empty() {
            self.sockets[0].send_many(&mut self.batch).await?;
        }
        Ok(())
    }

    /// Until all is acknowledged, for 2 s at most, and then until it is delivered.
    async fn drain(&self) {
        let deadline = now() + Duration::from_secs(2);
        for socket in &self.sockets {
            while socket.statistics().send_buffer_packets > 0 && now() < deadline {
                sleep(Duration::from_millis(10)).await;
            }
        }
        sleep(Duration::from_millis(3 * self.traffic.latency_ms)).await;
    }

    fn report(&self, seconds: f64) -> SendReport {
        let mut report = SendReport { sent: self.sent, seconds, ..SendReport::default() };
        for socket in &self.sockets {
            let statistics = socket.statistics();
            report.dropped += statistics.packets_send_dropped;
            report.retransmitted += statistics.packets_retransmitted;
        }
        report
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "times of a run lie far below 2^53 ns"
)]
fn messages_until(elapsed: Duration, interval_ns: f64) -> u64 {
    (elapsed.as_nanos() as f64 / interval_ns) as u64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "times of a run lie far below 2^53 ns"
)]
fn time_of(message: u64, interval_ns: f64) -> Duration {
    Duration::from_nanos((message as f64 * interval_ns) as u64)
}

/// Messages after which the socket's driver, which runs on the same thread, gets its turn.
const MESSAGES_AT_ONCE: u64 = 256;
const CALLS_AT_ONCE: usize = 64;
/// The same in libsrt-bench.
const PASSPHRASE: &str = "a passphrase for measuring";
/// Of the payload, after the stamp.
const FILLING: u8 = 0x47;
