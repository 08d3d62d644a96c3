//! The handshake of version 5 between caller and listener (draft section 4.3.1): what each side
//! says, checks and concludes. Rendezvous and key material have their rooms here and do not live in
//! them yet.

pub(crate) mod caller;
pub(crate) mod cookie;
pub(crate) mod listener;

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{
    Extension, Handshake, HsExtension, HsFlags, RejectReason, SeqNo, SocketId, Timestamp,
};

use crate::config::{Config, SRT_HEADER, UDP_IPV4_OVERHEAD, UDP_IPV6_OVERHEAD};

/// The version that this implementation announces: 1.5.5, whose live mode it speaks.
pub(crate) const SRT_VERSION: u32 = 0x01_05_05;
/// The oldest version that speaks the handshake of version 5: 1.3.0.
const OLDEST_HSV5: u32 = 0x01_03_00;
/// The largest MSS that a peer may name.
const MAX_MSS: u32 = 1_500;
/// The only congestion control of live mode.
const LIVE: &str = "live";

/// What two ends agreed on.
#[derive(Clone, Debug)]
pub(crate) struct Negotiated {
    pub(crate) peer_socket_id: SocketId,
    pub(crate) peer_version: u32,
    pub(crate) stream_id: String,
    pub(crate) send_isn: SeqNo,
    pub(crate) receive_isn: SeqNo,
    pub(crate) mss: usize,
    pub(crate) peer_flow_window: u32,
    /// Delay that this end's receiver applies.
    pub(crate) receive_latency: Duration,
    /// Delay that the peer's receiver applies.
    pub(crate) peer_latency: Duration,
    /// Whether this end delivers by timestamps.
    pub(crate) tsbpd_receive: bool,
    /// Whether the peer skips what is late: it needs our timestamps for that.
    pub(crate) peer_too_late_drop: bool,
    pub(crate) peer_periodic_nak: bool,
    pub(crate) peer_retransmit_flag: bool,
    /// When the packet that fixes the time base came in, and what timestamp it carried.
    pub(crate) base_arrival: Instant,
    pub(crate) base_timestamp: Timestamp,
}

impl Negotiated {
    /// Largest payload of a message to `remote`.
    pub(crate) fn max_payload(&self, config: &Config, remote: SocketAddr) -> usize {
        config.payload_size().min(self.packet_room(remote))
    }

    /// Bytes behind the SRT header that fit a packet to `remote`.
    pub(crate) fn packet_room(&self, remote: SocketAddr) -> usize {
        let overhead = match remote.ip() {
            IpAddr::V4(_) => UDP_IPV4_OVERHEAD,
            IpAddr::V6(_) => UDP_IPV6_OVERHEAD,
        };
        self.mss.saturating_sub(overhead + SRT_HEADER)
    }
}

/// What this end announces of itself.
fn own_flags(config: &Config) -> HsFlags {
    let mut flags = HsFlags::CRYPT | HsFlags::RETRANSMIT_FLAG | HsFlags::PACKET_FILTER;
    if config.tsbpd() {
        flags = flags | HsFlags::TSBPD_SEND | HsFlags::TSBPD_RECEIVE;
        if config.too_late_drop() {
            flags = flags | HsFlags::TOO_LATE_DROP;
        }
    }
    if config.periodic_nak() {
        flags = flags | HsFlags::PERIODIC_NAK;
    }
    flags
}

/// What the peer said in its HSREQ or HSRSP, checked against our configuration.
fn check_peer(extension: &HsExtension, config: &Config) -> Result<(), RejectReason> {
    if extension.version < OLDEST_HSV5 {
        return Err(RejectReason::ROGUE);
    }
    if extension.version < config.min_version() {
        return Err(RejectReason::VERSION);
    }
    if extension.flags.contains(HsFlags::STREAM) {
        return Err(RejectReason::MESSAGE_API);
    }
    Ok(())
}

/// Both sides must use the same congestion control; none named is "live".
fn check_congestion(handshake: &Handshake) -> Result<(), RejectReason> {
    let other = handshake
        .extensions
        .iter()
        .any(|extension| matches!(extension, Extension::Congestion(name) if name != LIVE));
    if other { Err(RejectReason::CONGESTION) } else { Ok(()) }
}

fn millis(duration: Duration) -> u16 {
    u16::try_from(duration.as_millis()).unwrap_or(u16::MAX)
}

fn wire_mss(config: &Config) -> u32 {
    u32::try_from(config.mss()).unwrap_or(MAX_MSS)
}

fn wire_window(config: &Config) -> u32 {
    u32::try_from(config.receive_window()).unwrap_or(u32::MAX)
}
