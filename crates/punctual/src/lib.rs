//! Live streams that arrive on time: async SRT sockets and listeners on tokio.
#![deny(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "this crate owns the locks and the sockets")]

mod accept;
mod alarm;
mod batch;
mod clock;
mod config;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod control;
mod driver;
mod error;
mod listener;
mod port;
mod reconnect;
mod schedule;
mod shared;
mod socket;
mod sources;
mod timer;
mod udp;

pub use batch::PortStatistics;
pub use clock::now;
pub use config::{ListenerConfig, PortConfig};
pub use error::Error;
pub use listener::{IncomingCall, Listener};
pub use port::Port;
pub use punctual_proto::{
    AcceptError, BufferSize, CloseReason, Config, ConfigError, ConnectError, ConnectionInfo,
    MaxBandwidth, Message, MsgNo, RejectReason, RetransmitAlgorithm, SendOptions, SeqNo, SocketId,
    Statistics,
};
pub use punctual_units::{Bitrate, Instant};
pub use reconnect::Reconnect;
pub use socket::Socket;
pub use timer::Timer;
