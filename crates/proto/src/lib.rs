//! The SRT protocol as a state machine, without sockets, clocks or threads.
//!
//! An [`Endpoint`] is a UDP port, or an end of another carriage, without its socket. Its *driver*
//! owns the socket and the clock: it passes in received datagrams and the time, and takes out the
//! datagrams to send, the events for the application, and the time of the next call. The same
//! machine runs on real sockets and in virtual time, and gives the same results for the same inputs
//! and seed.
//!
//! *Mutate, drain, sleep*: after any call that changes the endpoint, take all results of
//! [`poll_transmit`](Endpoint::poll_transmit) and [`poll_event`](Endpoint::poll_event), then sleep
//! until [`poll_timeout`](Endpoint::poll_timeout) or the next input.
//!
//! ```
//! use std::net::SocketAddr;
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use punctual_proto::{Config, Endpoint, EndpointConfig, Event, SendOptions};
//! use punctual_units::Instant;
//!
//! let mut now = Instant::from_millis(1_000);
//! let [here, there] = [[192, 0, 2, 1], [192, 0, 2, 2]].map(|ip| SocketAddr::from((ip, 5000)));
//! let mut caller = Endpoint::new(EndpointConfig::new([1; 32]), now);
//! let mut listener = Endpoint::new(EndpointConfig::new([2; 32]), now);
//! listener.listen(Some(Config::default()));
//! let call = caller.connect(now, there, Config::default())?;
//! let mut accepted = None;
//!
//! let message = 'run: loop {
//!     let mut buffer = Vec::new();
//!     let mut quiet = true;
//!     for turn in [here, there] {
//!         let (from, to) =
//!             if turn == here { (&mut caller, &mut listener) } else { (&mut listener, &mut caller) };
//!         from.handle_timeout(now);
//!         while let Some(transmit) = from.poll_transmit(now, 1, &mut buffer) {
//!             // A real driver sends the bytes to `transmit.path`.
//!             to.handle_datagram(now, turn, Bytes::copy_from_slice(&buffer));
//!             buffer.clear();
//!             quiet = false;
//!         }
//!         while let Some(event) = from.poll_event() {
//!             quiet = false;
//!             match event {
//!                 Event::Incoming(incoming) => accepted = Some(from.accept(now, incoming.id, None)?),
//!                 Event::Connected(id) => {
//!                     let mut connection = from.connection(now, id).expect("it is not released");
//!                     connection.send(Bytes::from("on time"), SendOptions::default())?;
//!                 }
//!                 Event::Readable(id) => {
//!                     let mut connection = from.connection(now, id).expect("it is not released");
//!                     if let Some(message) = connection.recv()? {
//!                         break 'run message;
//!                     }
//!                 }
//!                 _ => {}
//!             }
//!         }
//!     }
//!     if quiet {
//!         // A real driver sleeps; virtual time jumps.
//!         let wake = caller.poll_timeout().min(listener.poll_timeout()).instant(now);
//!         now = now.max(wake.expect("a connection always has a timer"));
//!     }
//! };
//! assert_eq!(message.payload, "on time");
//! assert_eq!(message.due - message.origin, Duration::from_millis(120));
//! # assert!(accepted.is_some() && caller.connections().get(call).unwrap().info().connected);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A map of the crate: [`Config`] holds every option; `handshake/` establishes a connection;
//! `connection/send/` and `connection/recv/` are its two halves; `connection/lifetime.rs` ends it.
//! Decisions are pluggable: [`RetransmitPolicy`], [`NakPolicy`], [`RttEstimator`] and
//! [`CongestionControl`]. The built-in implementations use the same traits as those of a user.
//!
//! Network input never causes a panic, allocation without bound, or the end of a connection because
//! of one invalid packet, which is counted and ignored.
//!
//! References: draft-sharabayko-srt ("draft section …"); libsrt where it differs or goes beyond the
//! draft.

#![forbid(unsafe_code)]

mod agreed_time;
mod chance;
mod config;
mod congestion;
mod connection;
mod crypt;
mod encryption;
mod endpoint;
mod error;
mod event;
mod factory;
mod filter;
mod framing;
mod group;
mod group_driver;
mod group_offer;
mod handshake;
mod ids;
mod measured_path;
mod pace;
mod path;
mod policy;
mod probe_pairs;
mod report_times;
mod seq_ring;
mod seq_run;
mod seq_set;
mod statistics;
mod stream_id;
mod transmission;
mod wake_up;
mod windowed_ratio;

pub use config::option::{
    AppliesTo, CDefault, CONNECTION_OPTIONS, COption, OptionInfo, OptionKind, OptionPhase,
    OptionRange, OptionValue, Takes, TypedOption,
};
pub use config::{
    BufferSize, Config, CongestionAlgorithm, MaxBandwidth, NakAlgorithm, NakTimer, RatePolicy,
    RetransmitAlgorithm, RetransmitBandwidth, RttAlgorithm,
};
pub use connection::Connection;
pub use connection::recv::nak_policy::PerPacketNakTimers;
pub use connection::send::deadline::Deadline;
pub use connection::send::playout::GLITCH_TARGET;
pub use connection::send::retransmit::{Aggressive, Efficient};
pub use encryption::{CryptoMode, KeyState};
pub use endpoint::{
    Acceptance, Attempt, ConnectionGuard, Connections, Endpoint, EndpointConfig, Shard, Transmit,
};
pub use error::{
    AcceptError, CloseReason, ConfigError, ConnectError, PeerError, RecvError, SendError,
};
pub use event::{ConnectionInfo, Event, Incoming, Message, Readiness, SendOptions};
pub use factory::Factory;
pub use framing::{Frame, FrameError, FrameReader, write_control_frame, write_frame};
pub use group::{Group, GroupMessage, LinkAction, LinkId, LinkState, LinkStatus, LinkTerms};
pub use group_driver::{
    DrainedLink, GroupDriver, LinkAccess, LinkConnections, LinkUpError, LocalEndpoints,
};
pub use group_offer::{GroupKind, GroupOffer};
pub use handshake::derivation::{DerivedKey, KeyDerivation};
pub use handshake::membership::Membership;
pub use ids::{ConnectionId, IncomingId};
pub use path::{PathId, PathProperties};
pub use policy::congestion::{CongestionControl, PathState};
pub use policy::nak::{MissingPackets, NakPolicy, ReceiverView, SentNak};
pub use policy::retransmit::{Decision, ReportedPacket, RetransmitPolicy, SenderView};
pub use punctual_crypto::{CipherMode, KeyLength, Passphrase};
pub use punctual_rtt::{ClassicRtt, PacketNumber, Rtt, RttEstimator, RttSample};
pub use punctual_wire::{MsgNo, RejectReason, SeqNo, SocketId};
pub use statistics::{StatisticValue, Statistics};
pub use stream_id::{AccessMode, ContentType, RawStreamId, StreamId, StreamIdError};
pub use transmission::Transmission;
pub use wake_up::WakeUp;
