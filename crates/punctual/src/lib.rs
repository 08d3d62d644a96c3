//! Live streams that arrive on time: async SRT sockets and listeners on tokio.
#![expect(clippy::todo, unused_variables, missing_docs, clippy::pedantic, reason = "contract only")]

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
pub use punctual_proto::{
    BufferSize, CloseReason, Config, ConfigError, ConnectionInfo, MaxBandwidth, Message,
    RejectReason, RetransmitAlgorithm, SendOptions, Statistics,
};
pub use punctual_units::{Bitrate, Instant};

/// The process's monotonic clock as an [`Instant`]: what `Message::origin` and `due` refer to.
pub fn now() -> Instant {
    todo!()
}

/// Options of a UDP port (libsrt's: udp_sndbuf, udp_rcvbuf, ipttl, iptos, ipv6only, reuseaddr, bindtodevice).
#[derive(Clone, Debug, Default)]
pub struct PortConfig {
    pub local: Option<SocketAddr>,
    pub send_buffer: Option<usize>,
    pub receive_buffer: Option<usize>,
    pub ttl: Option<u32>,
    pub tos: Option<u32>,
    pub ipv6_only: Option<bool>,
    pub device: Option<String>,
}

/// What went wrong with a socket.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0}")]
    Closed(CloseReason),
    #[error("the message has {size} bytes; one live message holds 1 to {max}")]
    Size { size: usize, max: usize },
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// A UDP port and its driver: callers that share it share one 4-tuple to each peer.
#[derive(Clone, Debug)]
pub struct Port;
impl Port {
    pub async fn bind(config: PortConfig) -> Result<Self, Error> {
        todo!()
    }
    pub async fn connect(&self, remote: SocketAddr, config: Config) -> Result<Socket, Error> {
        todo!()
    }
    pub fn local_addr(&self) -> SocketAddr {
        todo!()
    }
}

/// One SRT connection. Clones share it; it closes when the last one is dropped.
#[derive(Clone, Debug)]
pub struct Socket;
impl Socket {
    /// Calls a listener from a UDP port of its own.
    pub async fn connect(remote: SocketAddr, config: Config) -> Result<Self, Error> {
        todo!()
    }
    pub async fn send(&self, payload: Bytes) -> Result<(), Error> {
        todo!()
    }
    pub async fn send_with(&self, payload: Bytes, options: SendOptions) -> Result<(), Error> {
        todo!()
    }
    /// Takes from the front of `payloads` as many as there is room for, at least one.
    pub async fn send_many(
        &self,
        payloads: &mut std::collections::VecDeque<Bytes>,
    ) -> Result<usize, Error> {
        todo!()
    }
    /// `Ok(true)` if taken, `Ok(false)` if the buffer is full.
    pub fn try_send(&self, payload: &Bytes) -> Result<bool, Error> {
        todo!()
    }
    /// The next message at its time.
    pub async fn recv(&self) -> Result<Message, Error> {
        todo!()
    }
    /// Waits for at least one message, then appends all that are due, up to `limit`.
    pub async fn recv_many(
        &self,
        messages: &mut Vec<Message>,
        limit: usize,
    ) -> Result<usize, Error> {
        todo!()
    }
    pub fn try_recv(&self) -> Result<Option<Message>, Error> {
        todo!()
    }
    /// Closes: sends what is buffered for up to `linger`, says SHUTDOWN, waits until it is out.
    pub async fn close(&self) {
        todo!()
    }
    /// Completes when the connection has ended.
    pub async fn closed(&self) -> CloseReason {
        todo!()
    }
    pub fn statistics(&self) -> Statistics {
        todo!()
    }
    pub fn info(&self) -> ConnectionInfo {
        todo!()
    }
    pub fn peer_addr(&self) -> SocketAddr {
        todo!()
    }
    pub fn local_addr(&self) -> SocketAddr {
        todo!()
    }
    pub fn stream_id(&self) -> String {
        todo!()
    }
}

/// Listens on one port; `shards` UDP sockets share it by SO_REUSEPORT, each with its own driver.
#[derive(Debug)]
pub struct Listener;
#[derive(Clone, Debug, Default)]
pub struct ListenerConfig {
    pub port: PortConfig,
    pub connection: Config,
    /// 0 for one a core. Default 1.
    pub shards: usize,
    pub backlog: Option<usize>,
}
impl Listener {
    pub async fn bind(local: SocketAddr, connection: Config) -> Result<Self, Error> {
        todo!()
    }
    pub async fn bind_with(config: ListenerConfig) -> Result<Self, Error> {
        todo!()
    }
    /// The next caller, waiting for an answer.
    pub async fn incoming(&self) -> Result<IncomingCall, Error> {
        todo!()
    }
    /// Accepts the next caller.
    pub async fn accept(&self) -> Result<Socket, Error> {
        todo!()
    }
    /// Accepts the next caller that `hook` accepts; the others are rejected with its reason.
    pub async fn accept_with(
        &self,
        hook: impl FnMut(&IncomingCall) -> Result<Config, RejectReason>,
    ) -> Result<Socket, Error> {
        todo!()
    }
    pub fn local_addr(&self) -> SocketAddr {
        todo!()
    }
}
/// A caller that waits for an answer; dropped without one, it is rejected.
#[derive(Debug)]
pub struct IncomingCall;
impl IncomingCall {
    pub fn remote(&self) -> SocketAddr {
        todo!()
    }
    pub fn stream_id(&self) -> &str {
        todo!()
    }
    pub fn peer_version(&self) -> u32 {
        todo!()
    }
    pub async fn accept(self) -> Result<Socket, Error> {
        todo!()
    }
    pub async fn accept_with(self, config: Config) -> Result<Socket, Error> {
        todo!()
    }
    pub fn reject(self, reason: RejectReason) {
        todo!()
    }
}

/// Calls again and again, pausing between attempts, until a call succeeds or `attempts` have failed.
#[derive(Clone, Debug)]
pub struct Reconnect {
    pub first_pause: Duration,
    pub longest_pause: Duration,
    pub attempts: Option<u32>,
}
impl Reconnect {
    pub async fn connect(&self, remote: SocketAddr, config: Config) -> Result<Socket, Error> {
        todo!()
    }
}
/// A timer of 200 µs precision on the same clock as [`now`]; tokio's has 1 ms.
pub struct Timer;
impl Timer {
    pub fn new() -> io::Result<Self> {
        todo!()
    }
    pub async fn sleep_until(&mut self, deadline: Instant) {
        todo!()
    }
}
