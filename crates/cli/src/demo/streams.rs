//! The two streams: sent together, each through its own emulated link with the same seed.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use punctual::{Config, Instant, Listener, Socket, Statistics, Timer, now};
use punctual_emulator::{Emulator, EmulatorConfig};
use punctual_netem::presets;
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::demo::LATENCY;
use crate::demo::clip::Clip;
use crate::exit::Failure;
use crate::line::{self, LineText};

/// A message that arrived.
pub(super) struct Received {
    pub(super) payload: Bytes,
    pub(super) at: Instant,
}

/// The messages that both receivers got.
pub(super) struct ReceivedStreams {
    /// The time at which each message was sent to both.
    pub(super) sent: Vec<Instant>,
    pub(super) udp: Vec<Received>,
    pub(super) srt: Vec<Received>,
    /// The statistics of the SRT sender.
    pub(super) statistics: Statistics,
}

/// Sends the clip over both, and waits until both receivers are done.
pub(super) async fn run(clip: &Clip, seed: u64, quiet: bool) -> Result<ReceivedStreams, Failure> {
    let udp_receiver = UdpSocket::bind(LOOPBACK).await?;
    let config = Config::default().with_latency(LATENCY).map_err(punctual::Error::from)?;
    let listener = Listener::bind(LOOPBACK, config.clone()).await?;
    let udp_link = mobile_link(udp_receiver.local_addr()?, seed).await?;
    let srt_link = mobile_link(listener.local_addr(), seed).await?;

    let counts = Arc::new(MessageCounts::default());
    let udp_receiver = receive_udp(udp_receiver, Arc::clone(&counts));
    let srt_receiver = tokio::spawn(receive_srt(listener, Arc::clone(&counts)));
    let udp_sender = UdpSocket::bind(LOOPBACK).await?;
    udp_sender.connect(udp_link.local_addr()).await?;
    let config = config.with_linger(Duration::from_secs(3));
    let srt_sender = Socket::connect(srt_link.local_addr(), config).await?;

    let sent = send(clip, &udp_sender, &srt_sender, &counts, quiet).await?;
    srt_sender.close().await;
    let statistics = srt_sender.statistics();
    let srt = srt_receiver.await.map_err(|error| Failure::runtime(error.to_string()))??;
    let udp = udp_receiver.await.map_err(|error| Failure::runtime(error.to_string()))?;
    Ok(ReceivedStreams { sent, udp, srt, statistics })
}

/// Messages that were sent and that arrived so far, for the live line.
#[derive(Default)]
struct MessageCounts {
    sent: AtomicUsize,
    udp: AtomicUsize,
    srt: AtomicUsize,
}

async fn mobile_link(target: SocketAddr, seed: u64) -> Result<Emulator, Failure> {
    let mut config = EmulatorConfig::new(LOOPBACK, target);
    (config.up, config.down) = (presets::mobile().into(), presets::mobile().into());
    config.seed = seed;
    Ok(Emulator::start(config).await?)
}

/// Sends each message at its time over both, and returns the times.
async fn send(
    clip: &Clip,
    udp: &UdpSocket,
    srt: &Socket,
    counts: &Arc<MessageCounts>,
    quiet: bool,
) -> Result<Vec<Instant>, Failure> {
    let shown = (!quiet).then(|| tokio::spawn(show(Arc::clone(counts), clip.messages.len())));
    let mut timer = Timer::new()?;
    let start = now() + Duration::from_millis(50);
    let mut sent = Vec::with_capacity(clip.messages.len());
    for (at, message) in &clip.messages {
        timer.sleep_until(start + *at).await;
        sent.push(now());
        udp.send(message).await?;
        srt.send(message.clone()).await?;
        counts.sent.store(sent.len(), Ordering::Relaxed);
    }
    if let Some(shown) = shown {
        shown.abort();
        line::finish();
    }
    Ok(sent)
}

/// Shows the progress in the live line, for ever.
async fn show(counts: Arc<MessageCounts>, messages: usize) {
    line::show_on_terminal(|_| {
        let [sent, udp, srt] =
            [&counts.sent, &counts.udp, &counts.srt].map(|count| count.load(Ordering::Relaxed));
        let mut line = LineText::default();
        line.push(90, format!("{sent} of {messages} sent"));
        line.push(100, format!("received: {udp} bare, {srt} SRT"));
        Some(line)
    })
    .await;
}

/// Receives until nothing has come for [`SILENCE`].
fn receive_udp(socket: UdpSocket, counts: Arc<MessageCounts>) -> JoinHandle<Vec<Received>> {
    tokio::spawn(async move {
        let mut received = Vec::new();
        loop {
            let mut buffer = BytesMut::with_capacity(2_048);
            match timeout(SILENCE, socket.recv_buf(&mut buffer)).await {
                Ok(Ok(_)) => received.push(Received { payload: buffer.freeze(), at: now() }),
                Ok(Err(_)) => {}
                Err(_) => return received,
            }
            counts.udp.store(received.len(), Ordering::Relaxed);
        }
    })
}

/// Receives until the sender ends the connection.
async fn receive_srt(
    listener: Listener,
    counts: Arc<MessageCounts>,
) -> Result<Vec<Received>, Failure> {
    let socket = listener.accept().await?;
    let mut received = Vec::new();
    while let Ok(message) = socket.recv().await {
        received.push(Received { payload: message.payload, at: now() });
        counts.srt.store(received.len(), Ordering::Relaxed);
    }
    Ok(received)
}

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The silence that ends the UDP stream: longer than the handshake of the other stream and than the
/// link's queue.
const SILENCE: Duration = Duration::from_secs(2);
