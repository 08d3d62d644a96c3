use std::net::SocketAddr;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{
    Extension, HS_EXT_HSREQ, HS_MAGIC, Handshake, HandshakeRequest, HsExtension, HsFlags, PeerIp,
    RejectReason, SocketId, Timestamp,
};

use super::{
    MAX_MSS, Negotiated, SRT_VERSION, check_congestion, check_peer, millis, own_flags, wire_mss,
    wire_window,
};
use crate::config::Config;

/// A caller's conclusion that passed the checks and waits for the application's answer.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub(crate) conclusion: Handshake,
    pub(crate) extension: HsExtension,
    pub(crate) stream_id: String,
    pub(crate) base_arrival: Instant,
    pub(crate) base_timestamp: Timestamp,
}

/// The stateless answer to an induction request: the request itself with version, magic, cookie and
/// the caller's address. It is no longer than the request, so a listener amplifies nothing.
pub(crate) fn induction_response(
    request: &Handshake,
    cookie: u32,
    remote: SocketAddr,
) -> Handshake {
    Handshake {
        version: 5,
        encryption: 0,
        extension_field: HS_MAGIC,
        request: HandshakeRequest::Induction,
        cookie,
        peer_ip: PeerIp::from(remote.ip()),
        extensions: Vec::new(),
        ..request.clone()
    }
}

/// A refusal of `handshake`: its fixed part with the reason.
pub(crate) fn rejection(handshake: &Handshake, reason: RejectReason) -> Handshake {
    Handshake {
        version: 5,
        request: HandshakeRequest::Rejection(reason),
        extensions: Vec::new(),
        ..handshake.clone()
    }
}

impl Proposal {
    /// Checks a conclusion as far as the listener's configuration can tell.
    pub(crate) fn check(
        now: Instant,
        timestamp: Timestamp,
        conclusion: Handshake,
        config: &Config,
    ) -> Result<Self, (Handshake, RejectReason)> {
        match examine(&conclusion, config) {
            Ok((extension, stream_id)) => Ok(Self {
                conclusion,
                extension,
                stream_id,
                base_arrival: now,
                base_timestamp: timestamp,
            }),
            Err(reason) => Err((conclusion, reason)),
        }
    }

    /// A repetition came in at `now`: the time base is what the least delayed one says.
    pub(crate) fn refine_base(&mut self, now: Instant, timestamp: Timestamp) {
        let since_first = timestamp.as_micros().wrapping_sub(self.base_timestamp.as_micros());
        if self.base_arrival + Duration::from_micros(since_first.into()) > now {
            self.base_arrival = now;
            self.base_timestamp = timestamp;
        }
    }

    /// Whether `other` is the same caller's conclusion once more.
    pub(crate) fn is_repeated_by(&self, other: &Handshake) -> bool {
        self.conclusion.socket_id == other.socket_id && self.conclusion.isn == other.isn
    }

    /// The response that accepts the caller as `socket_id`, and what both ends agree on by it.
    pub(crate) fn accept(
        &self,
        config: &Config,
        socket_id: SocketId,
        remote: SocketAddr,
    ) -> Result<(Handshake, Negotiated), RejectReason> {
        check_peer(&self.extension, config)?;
        let flags = self.extension.flags;
        let wish = |ms: u16| Duration::from_millis(ms.into());
        let receive_latency = config.receive_latency().max(wish(self.extension.send_latency_ms));
        let peer_latency = config.peer_latency().max(wish(self.extension.receive_latency_ms));
        let mss = wire_mss(config).min(self.conclusion.mss);
        let response = Handshake {
            version: 5,
            encryption: 0,
            extension_field: HS_EXT_HSREQ,
            // Both directions start at the caller's number: a libsrt caller insists on it.
            isn: self.conclusion.isn,
            mss,
            flow_window: wire_window(config),
            request: HandshakeRequest::Conclusion,
            socket_id,
            cookie: self.conclusion.cookie,
            peer_ip: PeerIp::from(remote.ip()),
            extensions: vec![Extension::HsRsp(HsExtension {
                version: SRT_VERSION,
                flags: own_flags(config),
                receive_latency_ms: millis(receive_latency),
                send_latency_ms: millis(peer_latency),
            })],
        };
        let negotiated = Negotiated {
            peer_socket_id: self.conclusion.socket_id,
            peer_version: self.extension.version,
            stream_id: self.stream_id.clone(),
            send_isn: self.conclusion.isn,
            receive_isn: self.conclusion.isn,
            mss: mss as usize,
            peer_flow_window: self.conclusion.flow_window,
            receive_latency,
            peer_latency,
            tsbpd_receive: config.tsbpd() && flags.contains(HsFlags::TSBPD_SEND),
            peer_too_late_drop: config.tsbpd() && flags.contains(HsFlags::TOO_LATE_DROP),
            peer_periodic_nak: flags.contains(HsFlags::PERIODIC_NAK),
            peer_retransmit_flag: flags.contains(HsFlags::RETRANSMIT_FLAG),
            base_arrival: self.base_arrival,
            base_timestamp: self.base_timestamp,
        };
        Ok((response, negotiated))
    }
}

fn examine(conclusion: &Handshake, config: &Config) -> Result<(HsExtension, String), RejectReason> {
    if conclusion.version != 5 {
        return Err(RejectReason::VERSION);
    }
    if conclusion.extension_field == 0 || conclusion.mss > MAX_MSS {
        return Err(RejectReason::ROGUE);
    }
    let mut request = None;
    let mut stream_id = String::new();
    for extension in &conclusion.extensions {
        match extension {
            Extension::HsReq(extension) => request = Some(*extension),
            Extension::StreamId(id) => stream_id.clone_from(id),
            // Without these features a caller that insists on them cannot be served.
            Extension::KmReq(_) => return Err(RejectReason::UNSECURE),
            Extension::Filter(_) => return Err(RejectReason::FILTER),
            Extension::Group(_) => return Err(RejectReason::GROUP),
            Extension::HsRsp(_)
            | Extension::KmRsp(_)
            | Extension::Congestion(_)
            | Extension::Unknown { .. } => {}
        }
    }
    let request = request.ok_or(RejectReason::ROGUE)?;
    check_peer(&request, config)?;
    check_congestion(conclusion)?;
    Ok((request, stream_id))
}
