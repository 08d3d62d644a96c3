//! The cost of the calls that send and receive one message, as libsrt-bench's `messages` measures
//! it: both ends in one process, whose driver has threads of its own.

use std::net::Ipv4Addr;
use std::time::Duration;

use bytes::Bytes;
use nix::time::ClockId;
use punctual::{Listener, ListenerConfig, Port, Socket};
use serde::{Deserialize, Serialize};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use crate::Result;
use crate::send::{config, port_config};
use crate::traffic::Traffic;

/// The medians of all rounds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct MessageCost {
    /// Nanoseconds of the calling thread to send a message.
    pub(crate) send_ns: f64,
    /// Nanoseconds of the calling thread to receive one.
    pub(crate) receive_ns: f64,
}

/// Runs as many rounds as the traffic has streams, and prints the cost. Each round sends some
/// messages, waits until all of them are due, and receives them.
pub(crate) fn run(traffic: &Traffic) -> Result<()> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let (caller, accepted) = runtime.block_on(connect_pair(traffic))?;
    let payload = vec![0x47; traffic.payload];
    let (mut sending, mut receiving) = (Vec::new(), Vec::new());
    for _ in 0..traffic.streams {
        sending.push(send_round(&caller, &payload)?);
        runtime.block_on(async { sleep(Duration::from_millis(2 * traffic.latency_ms)).await });
        receiving.push(receive_round(&runtime, &accepted)?);
    }
    let cost = MessageCost { send_ns: median(sending), receive_ns: median(receiving) };
    println!("{}", serde_json::to_string(&cost)?);
    Ok(())
}

async fn connect_pair(traffic: &Traffic) -> Result<(Socket, Socket)> {
    let listener = Listener::bind_with(ListenerConfig {
        port: port_config(traffic, traffic.port)?,
        connection: config(traffic)?,
        shards: 1,
        ..ListenerConfig::default()
    });
    let listener = listener.await?;
    let port = Port::bind(port_config(traffic, 0)?).await?;
    let remote = (Ipv4Addr::LOCALHOST, traffic.port).into();
    let config = config(traffic)?;
    let call = tokio::spawn(async move { port.connect(remote, config).await });
    let accepted = listener.accept().await?;
    Ok((call.await??, accepted))
}

/// Nanoseconds a message. Each has a buffer of its own, as in a program that makes its payloads.
fn send_round(caller: &Socket, payload: &[u8]) -> Result<f64> {
    let start = thread_time()?;
    for _ in 0..MESSAGES {
        if !caller.try_send(&Bytes::copy_from_slice(payload))? {
            return Err("the send buffer is full".into());
        }
    }
    Ok((thread_time()? - start).as_secs_f64() * 1e9 / MESSAGES as f64)
}

/// Nanoseconds a message. One call takes all that are due: nearly always all messages.
fn receive_round(runtime: &Runtime, accepted: &Socket) -> Result<f64> {
    let mut received = 0;
    let mut messages = Vec::new();
    let start = thread_time()?;
    while received < MESSAGES {
        accepted.try_recv_many(&mut messages, MESSAGES)?;
        if messages.is_empty() {
            runtime.block_on(async { sleep(Duration::from_millis(1)).await });
        }
        received += messages.len();
        messages.clear();
    }
    Ok((thread_time()? - start).as_secs_f64() * 1e9 / MESSAGES as f64)
}

/// The time of this thread alone: the driver and other programs do not count.
fn thread_time() -> Result<Duration> {
    Ok(ClockId::CLOCK_THREAD_CPUTIME_ID.now()?.into())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

const MESSAGES: usize = 64;
