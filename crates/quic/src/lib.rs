//! QUIC as a carriage, without sockets and without a clock: datagrams, messages on streams, and SRT
//! packets in datagrams (draft-sharabayko-srt-over-quic-00), over [quinn-proto](quinn_proto).
//!
//! A [`QuicEndpoint`] is one UDP port's worth of QUIC: UDP datagrams and the time in, UDP
//! datagrams, events and the time of the next wake-up out. [`SrtEndpoint`] joins it with the SRT
//! machine of `punctual-proto`: one SRT packet travels in one DATAGRAM frame, and several SRT
//! connections may share a QUIC connection. SRT's own retransmission and timing work as over UDP.
//!
//! A certificate is verified unless the application says otherwise ([`Trust`]). 0-RTT is off: an
//! attacker could replay the first packets of a call.

#![forbid(unsafe_code)]

mod chance;
mod clock;
mod config;
mod congestion;
mod connection;
mod datagrams;
mod endpoint;
mod handshakes;
mod inbox;
mod initials;
mod messages;
mod path_probe;
mod srt;
pub mod tls;

pub use quinn_proto::EcnCodepoint;
pub use rustls::pki_types;

pub use self::config::{QuicEndpointConfig, TransportConfig};
pub use self::congestion::CongestionControl;
pub use self::connection::{QuicCloseReason, QuicInfo};
pub use self::endpoint::{
    ConnectionId, Event, QuicConnectError, QuicEndpoint, QuicSendError, QuicTransmit,
};
pub use self::srt::{SrtEndpoint, SrtEvent};
pub use self::tls::{CertificateHash, ClientTls, Identity, Protocol, Renewal, ServerTls, Trust};
