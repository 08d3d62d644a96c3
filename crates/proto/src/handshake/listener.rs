use punctual_crypto::KeyLength;
use punctual_units::Instant;
use punctual_wire::{HS_MAGIC, Handshake, HandshakeRequest, RejectReason, SocketId, Timestamp};

use super::keys::KeyTools;
use super::terms::{Blocks, FixedPart, Request, TimeBase, wire_mss, wire_window};
use super::{MAX_MSS, Negotiated};
use crate::config::Config;
use crate::handshake::derivation::KeyDerivation;
use crate::handshake::membership::Membership;
use crate::ids::IncomingId;
use crate::path::{Path, PathId};

/// A caller's conclusion that passed the checks and waits for the application's answer.
#[derive(Clone, Debug)]
pub(crate) struct Proposal {
    pub(crate) conclusion: Handshake,
    pub(crate) request: Request,
    pub(crate) base: TimeBase,
}

/// The stateless answer to an induction request: the request itself with the version, the magic
/// number, the cookie and the caller's address. It is no longer than the request, so that a
/// listener does not amplify traffic.
pub(crate) fn induction_response(
    request: &Handshake,
    cookie: u32,
    path: PathId,
    config: &Config,
) -> Handshake {
    Handshake {
        version: 5,
        encryption: config.key_length().map_or(0, KeyLength::field),
        extension_field: HS_MAGIC,
        request: HandshakeRequest::Induction,
        cookie,
        peer_ip: path.peer_ip(),
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
    /// Checks a conclusion against the listener's configuration.
    pub(crate) fn check(
        now: Instant,
        timestamp: Timestamp,
        conclusion: Handshake,
        config: &Config,
    ) -> Result<Self, (Handshake, RejectReason)> {
        match examine(&conclusion, config) {
            Ok(request) => {
                Ok(Self { conclusion, request, base: TimeBase { arrival: now, timestamp } })
            }
            Err(reason) => Err((conclusion, reason)),
        }
    }

    /// The key derivation that accepting this caller under `config` needs; `None` if it needs none.
    pub(crate) fn key_derivation(&self, id: IncomingId, config: &Config) -> Option<KeyDerivation> {
        self.request.key_derivation(id, config)
    }

    /// Whether `other` is a repetition of this conclusion.
    pub(crate) fn is_repeated_by(&self, other: &Handshake) -> bool {
        self.conclusion.socket_id == other.socket_id && self.conclusion.isn == other.isn
    }

    /// The response that accepts the caller, and the agreed terms. `socket_id` is this end's, and
    /// `membership` is given if the connection becomes a link of a group.
    pub(crate) fn accept(
        &self,
        config: &Config,
        socket_id: SocketId,
        path: &Path,
        membership: Option<&Membership>,
        tools: &mut KeyTools<'_>,
    ) -> Result<(Handshake, Negotiated), RejectReason> {
        // Both directions begin with the caller's number: a libsrt caller requires it.
        let isn = self.conclusion.isn;
        let fixed = FixedPart::new(
            &self.conclusion,
            isn,
            self.base,
            path.mss(config.mss(), config.payload_size()),
        );
        let (mut answer, mut negotiated) = self.request.accept(fixed, config, tools)?;
        match (self.request.group(), membership) {
            (None, None) => {}
            (Some(offer), Some(membership)) => {
                membership.respond(&offer, &mut answer, &mut negotiated)?;
            }
            // A link cannot become a single connection, nor the other way round.
            _ => return Err(RejectReason::GROUP),
        }
        let mut response = Handshake {
            version: 5,
            encryption: negotiated.cipher().map_or(0, |(_, length)| length.field()),
            extension_field: 0,
            isn,
            mss: wire_mss(config, path).min(self.conclusion.mss),
            flow_window: wire_window(config),
            request: HandshakeRequest::Conclusion,
            socket_id,
            cookie: self.conclusion.cookie,
            peer_ip: path.id.peer_ip(),
            extensions: Vec::new(),
        };
        answer.write(&mut response);
        Ok((response, negotiated))
    }
}

fn examine(conclusion: &Handshake, config: &Config) -> Result<Request, RejectReason> {
    if conclusion.version != 5 {
        return Err(RejectReason::VERSION);
    }
    if conclusion.extension_field == 0 || conclusion.mss > MAX_MSS {
        return Err(RejectReason::ROGUE);
    }
    Request::check(Blocks::read(conclusion), config)
}
