//! Live streams that arrive on time: async SRT sockets and listeners on tokio.
//!
//! SRT carries live media over networks that lose, delay and reorder packets. What is lost is sent
//! again, and each message is delivered at a fixed time after it was sent, the *latency*: the
//! receiver sees the stream as it left, a little later. Every encoder, player and cloud that speaks
//! SRT is a peer.
//!
//! - A [`Listener`] waits for callers and decides on them by their stream ID and address.
//! - [`Socket::connect`] calls a listener. A [`Socket`] sends and receives messages, one packet
//!   each, both ways. It counts and measures: [`Socket::statistics`].
//! - A [`Group`] is one stream over several links, for the time when one fails.
//! - [`Socket::rendezvous`] meets an end that calls at the same time, where neither can listen.
//! - A [`Port`] is a UDP port with options from which many calls may be made; [`Reconnect`] calls
//!   until somebody answers.
//! - [`StreamId`] reads the forms of stream IDs that are in use. [`Listener::gate`] lets a hook
//!   decide on callers that may wait for an answer itself, from a database or a server.
//! - [`Config`] has the options of a connection. The defaults are those of libsrt's live mode.
//! - One stream for many viewers, of whom a slow one holds nobody up, is the example `fan_out`.
//! - With [`Config::file`] a connection carries a stream of bytes ([`ByteStream`]) or messages of
//!   any size, and nothing is left out.
//!
//! ```
//! use std::time::Duration;
//!
//! use punctual::{Config, Listener, Socket};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), punctual::Error> {
//! let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), Config::default()).await?;
//! let address = listener.local_addr();
//!
//! let receiver = tokio::spawn(async move {
//!     let socket = listener.accept().await?;
//!     assert_eq!(socket.stream_id(), "camera 1");
//!     let mut bytes = 0;
//!     while let Ok(message) = socket.recv().await {
//!         bytes += message.payload.len();
//!     }
//!     Ok::<_, punctual::Error>(bytes)
//! });
//!
//! let config = Config::default()
//!     .with_latency(Duration::from_millis(80))?
//!     .with_linger(Duration::from_secs(1))
//!     .with_stream_id("camera 1")?;
//! let socket = Socket::connect(address, config).await?;
//! for number in 0..10 {
//!     socket.send(vec![number; 1_316].into()).await?;
//! }
//! socket.close().await;
//! assert_eq!(receiver.await.unwrap()?, 13_160);
//! # Ok(())
//! # }
//! ```
//!
//! # How it runs
//!
//! Each UDP socket has one task, its driver; a connection has none. The protocol itself is in
//! `punctual-proto`, which knows no sockets and no clock. The driver and the application's calls
//! share it under a lock that is held for short stretches only.
//!
//! Datagrams are sent and received many at a time, where the system can (GSO and GRO on Linux).
//! When a driver is late, what is due goes out in one batch, so load makes batches larger and the
//! cost of a packet smaller. [`Socket::send_many`] and [`Socket::recv_many`] do the same for the
//! application.
//!
//! On Linux a message is handed over within 200 µs of its time on a machine that is not overloaded,
//! and within half a millisecond where more than 2,500 messages a second come to a port; elsewhere
//! tokio's timer limits this to 1 ms or what the system's timer gives.
//!
//! All futures are cancel safe. A runtime of either flavour serves; a [`Listener`] may be sharded
//! over several UDP sockets, and so over cores.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "this crate owns the locks and the sockets")]

mod accept;
mod byte_stream;
mod caller_log;
mod config;
mod crowd;
mod decisions;
mod deliveries;
mod driver;
mod error;
mod gate;
mod gathered;
mod group;
mod key_task;
mod listener;
mod outbox;
mod outgoing;
mod port;
mod reconnect;
mod schedule;
mod shared;
mod shares;
mod socket;
mod sources;
mod statistics;
mod stream;
mod udp;
mod unconnected;

pub use byte_stream::ByteStream;
pub use config::{ListenerConfig, PortConfig};
pub use error::Error;
pub use gate::{Gate, ValueGate};
pub use gathered::Gathered;
pub use group::{Group, GroupLink, GroupReport, LinkReport};
pub use listener::{Accepted, CallerInfo, IncomingCall, Listener};
pub use outgoing::Outgoing;
pub use port::Port;
pub use punctual_io::{Timer, now};
pub use punctual_proto::{
    AcceptError, AccessMode, Aggressive, AppliesTo, BufferSize, CONNECTION_OPTIONS, CipherMode,
    ClassicRtt, CloseReason, Config, ConfigError, CongestionAlgorithm, CongestionControl,
    ConnectError, ConnectionInfo, ContentType, CryptoMode, Deadline, Decision, Efficient, Factory,
    GroupKind, GroupOffer, KeyLength, KeyState, LinkId, LinkState, MaxBandwidth, Message,
    MissingPackets, MsgNo, NakAlgorithm, NakPolicy, NakTimer, OptionInfo, OptionKind, OptionPhase,
    OptionValue, PacketNumber, Passphrase, PathState, PeerError, PerPacketNakTimers, Readiness,
    ReceiverView, RejectReason, ReportedPacket, RetransmitAlgorithm, RetransmitBandwidth,
    RetransmitPolicy, Rtt, RttAlgorithm, RttEstimator, RttSample, SendOptions, SenderView, SentNak,
    SeqNo, SocketId, StatisticValue, Statistics, StreamId, StreamIdError, Transmission,
    TypedOption,
};
pub use punctual_units::{Bitrate, Instant};
pub use reconnect::Reconnect;
pub use socket::Socket;
pub use statistics::PortStatistics;
pub use stream::{MessageSink, MessageStream};
pub use unconnected::UnconnectedSocket;
