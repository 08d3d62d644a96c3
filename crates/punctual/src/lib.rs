//! Live streams that arrive on time: async SRT sockets and listeners on tokio.
//!
//! SRT carries live media over networks that lose, delay and reorder packets. Lost packets are
//! retransmitted, and each message is delivered at a fixed time after it was sent, the *latency*:
//! the receiver gets the stream with the timing of the sender, a little later. Any encoder, player
//! or cloud service that speaks SRT can be the peer.
//!
//! - A [`Listener`] waits for callers and decides on them by their stream ID and address.
//! - [`Socket::connect`] calls a listener. A [`Socket`] sends and receives messages, one packet
//!   each, both ways. [`Socket::statistics`] has its counts and measurements.
//! - A [`Group`] carries one stream over several links, so that it survives the failure of a link.
//! - [`Socket::rendezvous`] connects two ends that call each other at the same time, where neither
//!   can listen.
//! - A [`Port`] is a UDP port with options, from which any number of calls may be made;
//!   [`Reconnect`] repeats a call until the listener answers.
//! - [`StreamId`] parses the common forms of stream IDs. [`Listener::gate`] decides on callers by
//!   an asynchronous hook, which may query a database or a server.
//! - [`Config`] has the options of a connection. The defaults are those of libsrt's live mode.
//! - The example `fan_out` sends one stream to many viewers; a slow viewer delays no other.
//! - With [`Config::file`] a connection carries a stream of bytes ([`ByteStream`]) or messages of
//!   any size, and every byte is delivered.
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
//! `punctual-proto`, which has no sockets and no clock. The driver and the application's calls
//! share it under a lock that is held only briefly.
//!
//! Datagrams are sent and received many at a time, where the system can (GSO and GRO on Linux).
//! When a driver is late, all due packets are sent in one batch, so load makes batches larger and
//! the cost of a packet smaller. [`Socket::send_many`] and [`Socket::recv_many`] do the same for
//! the application.
//!
//! On Linux a message is delivered within 200 µs of its time on a machine that is not overloaded,
//! and within half a millisecond if a port receives more than 2,500 messages a second. On other
//! systems tokio's timer limits the precision to 1 ms or to that of the system's timer.
//!
//! All futures are cancel safe, except [`Socket::write_all`]. Both flavours of tokio's runtime
//! work; a [`Listener`] may be sharded over several UDP sockets, and so over several cores.
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "this crate owns the locks and the sockets")]

mod accept;
mod bursts;
mod caller_log;
mod calls;
mod config;
mod deliveries;
mod driver;
mod error;
mod gathered;
mod group;
mod handshakes;
mod incoming_call;
mod key_task;
mod listener;
mod machine;
mod memory;
mod notice;
mod outbox;
mod outgoing;
mod port;
#[cfg(feature = "quic")]
pub mod quic;
mod reconnect;
mod repeated;
mod reserved_port;
pub mod resume;
mod schedule;
mod seed;
mod shared;
mod shares;
mod signals;
mod socket;
mod sources;
mod spread;
#[cfg(feature = "quic")]
mod srt_over_quic;
mod state;
mod statistics;
mod transmitter;
mod turn_size;
mod udp;
mod unconnected;
mod waiting_caller;
mod wakes;

pub use accept::AcceptedGroups;
pub use caller_log::RefusedCaller;
pub use config::port_options::PORT_OPTIONS;
pub use config::{Carriage, ListenerConfig, PortConfig};
pub use error::Error;
pub use gathered::Gathered;
pub use group::{AcceptedLink, CallId, Group, GroupLink, GroupReport, LinkConnection, LinkReport};
pub use incoming_call::{Accepted, CallerInfo, IncomingCall};
pub use listener::Listener;
pub use listener::gate::{Gate, ValueGate};
pub use outgoing::Outgoing;
pub use port::Port;
pub use punctual_io::{Timer, now};
pub use punctual_proto::{
    AcceptError, AccessMode, Aggressive, AppliesTo, BufferSize, CDefault, CONNECTION_OPTIONS,
    COption, CipherMode, ClassicRtt, CloseReason, Config, ConfigError, CongestionAlgorithm,
    CongestionControl, ConnectError, ConnectionInfo, ContentType, CryptoMode, Deadline, Decision,
    Efficient, Factory, FrameError, FrameReader, GLITCH_TARGET, GroupKind, GroupOffer, KeyLength,
    KeyState, LinkId, LinkState, MaxBandwidth, Message, MissingPackets, MsgNo, NakAlgorithm,
    NakPolicy, NakTimer, OptionInfo, OptionKind, OptionPhase, OptionRange, OptionValue,
    PacketNumber, Passphrase, PathState, PeerError, PerPacketNakTimers, RatePolicy, RawStreamId,
    Readiness, ReceiverView, RejectReason, ReportedPacket, RetransmitAlgorithm,
    RetransmitBandwidth, RetransmitPolicy, Rtt, RttAlgorithm, RttEstimator, RttSample, SendOptions,
    SenderView, SentNak, SeqNo, SocketId, StatisticValue, Statistics, StreamId, StreamIdError,
    Takes, Transmission, TypedOption, write_frame,
};
pub use punctual_units::{Bitrate, Instant};
pub use reconnect::Reconnect;
pub use repeated::Repeated;
pub use reserved_port::ReservedPort;
pub use signals::Watcher;
pub use socket::byte_stream::ByteStream;
pub use socket::stream::{MessageSink, MessageStream};
pub use socket::{Socket, Submitted};
pub use state::Phase;
pub use statistics::PortStatistics;
pub use unconnected::UnconnectedSocket;
pub use wakes::Wakes;
