//! The SRT protocol machine, without sockets, clocks or threads.
#![forbid(unsafe_code)]

mod config;
mod connection;
mod endpoint;
mod error;
mod event;
mod handshake;
mod seq_ring;
mod seq_set;
mod statistics;

pub use config::{BufferSize, Config, EndpointConfig, MaxBandwidth, RetransmitAlgorithm};
pub use connection::rtt::{ClassicRtt, Rtt, RttAlgorithm, RttEstimator};
pub use connection::send::retransmit::{Aggressive, Efficient, ReportedPacket, RetransmitPolicy};
pub use endpoint::{ConnectionId, Endpoint, Transmit};
pub use error::{AcceptError, CloseReason, ConfigError, ConnectError, RecvError, SendError};
pub use event::{ConnectionInfo, Event, Incoming, IncomingId, Message, SendOptions};
pub use punctual_wire::{MsgNo, RejectReason, SeqNo, SocketId};
pub use statistics::Statistics;
