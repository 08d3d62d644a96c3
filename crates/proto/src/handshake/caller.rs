use std::net::SocketAddr;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{
    Extension, HS_EXT_CONFIG, HS_EXT_HSREQ, HS_MAGIC, Handshake, HandshakeRequest, HsExtension,
    HsFlags, PeerIp, RejectReason, SeqNo, SocketId, Timestamp,
};

use super::{
    MAX_MSS, Negotiated, SRT_VERSION, check_congestion, check_peer, millis, own_flags, wire_mss,
    wire_window,
};
use crate::config::Config;
use crate::error::CloseReason;

/// A request is repeated after so long without an answer.
pub(crate) const REPEAT: Duration = Duration::from_millis(250);
/// In an induction request's extension field: a datagram socket, as in UDT.
const UDT_DATAGRAM: u16 = 2;

/// The caller's side of the handshake, until the connection stands.
#[derive(Debug)]
pub(crate) struct Caller {
    socket_id: SocketId,
    isn: SeqNo,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Induction,
    Conclusion { cookie: u32 },
}

/// What an answer of the listener means.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing: it is no answer to what was asked.
    Ignore,
    /// The next request is to be sent now.
    Request,
    Connected(Box<Negotiated>),
    /// The attempt is over. The peer, if it has a socket already, is to be told so.
    Failed(CloseReason, Option<SocketId>),
}

impl Caller {
    pub(crate) const fn new(socket_id: SocketId, isn: SeqNo) -> Self {
        Self { socket_id, isn, phase: Phase::Induction }
    }

    /// The request that is to be sent, and repeated, in this phase.
    pub(crate) fn request(&self, config: &Config, remote: SocketAddr) -> Handshake {
        match self.phase {
            Phase::Induction => self.induction(config, remote),
            Phase::Conclusion { cookie } => self.conclusion(cookie, config, remote),
        }
    }

    /// Takes in the listener's answer.
    pub(crate) fn handle(
        &mut self,
        now: Instant,
        timestamp: Timestamp,
        answer: &Handshake,
        config: &Config,
    ) -> Step {
        match (self.phase, answer.request) {
            (_, HandshakeRequest::Rejection(reason)) => {
                Step::Failed(CloseReason::Rejected(reason), None)
            }
            (Phase::Induction, HandshakeRequest::Induction) => self.induced(answer),
            // The answer to a repeated induction: its cookie is as good as the first.
            (Phase::Conclusion { .. }, HandshakeRequest::Induction) => Step::Ignore,
            (Phase::Conclusion { .. }, HandshakeRequest::Conclusion) => {
                match self.conclude(now, timestamp, answer, config) {
                    Ok(negotiated) => Step::Connected(Box::new(negotiated)),
                    Err(reason) => {
                        Step::Failed(CloseReason::Incompatible(reason), Some(answer.socket_id))
                    }
                }
            }
            _ => Step::Ignore,
        }
    }

    fn induced(&mut self, answer: &Handshake) -> Step {
        let incompatible = |reason| Step::Failed(CloseReason::Incompatible(reason), None);
        if answer.version < 5 {
            // A listener before SRT 1.3.0, or UDT.
            return incompatible(RejectReason::VERSION);
        }
        if answer.extension_field != HS_MAGIC || answer.mss > MAX_MSS {
            return incompatible(RejectReason::ROGUE);
        }
        self.phase = Phase::Conclusion { cookie: answer.cookie };
        Step::Request
    }

    fn induction(&self, config: &Config, remote: SocketAddr) -> Handshake {
        Handshake {
            version: 4,
            encryption: 0,
            extension_field: UDT_DATAGRAM,
            isn: self.isn,
            mss: wire_mss(config),
            flow_window: wire_window(config),
            request: HandshakeRequest::Induction,
            socket_id: self.socket_id,
            cookie: 0,
            peer_ip: PeerIp::from(remote.ip()),
            extensions: Vec::new(),
        }
    }

    fn conclusion(&self, cookie: u32, config: &Config, remote: SocketAddr) -> Handshake {
        let mut extensions = vec![Extension::HsReq(HsExtension {
            version: SRT_VERSION,
            flags: own_flags(config),
            receive_latency_ms: millis(config.receive_latency()),
            send_latency_ms: millis(config.peer_latency()),
        })];
        let mut extension_field = HS_EXT_HSREQ;
        if !config.stream_id().is_empty() {
            extensions.push(Extension::StreamId(config.stream_id().to_owned()));
            extension_field |= HS_EXT_CONFIG;
        }
        Handshake {
            version: 5,
            extension_field,
            request: HandshakeRequest::Conclusion,
            cookie,
            extensions,
            ..self.induction(config, remote)
        }
    }

    fn conclude(
        &self,
        now: Instant,
        timestamp: Timestamp,
        answer: &Handshake,
        config: &Config,
    ) -> Result<Negotiated, RejectReason> {
        if answer.version != 5 || answer.mss > MAX_MSS {
            return Err(RejectReason::ROGUE);
        }
        let response = answer
            .extensions
            .iter()
            .find_map(|extension| match extension {
                Extension::HsRsp(response) => Some(response),
                _ => None,
            })
            .ok_or(RejectReason::ROGUE)?;
        check_peer(response, config)?;
        check_congestion(answer)?;
        let flags = response.flags;
        Ok(Negotiated {
            peer_socket_id: answer.socket_id,
            peer_version: response.version,
            stream_id: config.stream_id().to_owned(),
            send_isn: self.isn,
            receive_isn: answer.isn,
            mss: config.mss().min(answer.mss as usize),
            peer_flow_window: answer.flow_window,
            receive_latency: Duration::from_millis(response.send_latency_ms.into())
                .max(config.receive_latency()),
            peer_latency: Duration::from_millis(response.receive_latency_ms.into()),
            tsbpd_receive: config.tsbpd() && flags.contains(HsFlags::TSBPD_SEND),
            peer_too_late_drop: config.tsbpd() && flags.contains(HsFlags::TOO_LATE_DROP),
            peer_periodic_nak: flags.contains(HsFlags::PERIODIC_NAK),
            peer_retransmit_flag: flags.contains(HsFlags::RETRANSMIT_FLAG),
            base_arrival: now,
            base_timestamp: timestamp,
        })
    }
}
