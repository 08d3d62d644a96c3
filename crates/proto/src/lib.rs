//! The SRT protocol machine.

#![forbid(unsafe_code)]

mod config;
mod endpoint;
mod error;
mod event;
mod statistics;

pub use config::{BufferSize, Config, EndpointConfig, MaxBandwidth, RetransmitAlgorithm};
pub use endpoint::{ConnectionId, Endpoint, Transmit};
pub use error::{AcceptError, CloseReason, ConfigError, ConnectError, RecvError, SendError};
pub use event::{ConnectionInfo, Event, Incoming, IncomingId, Message, SendOptions};
pub use punctual_wire::{MsgNo, RejectReason, SeqNo, SocketId};
pub use statistics::Statistics;
