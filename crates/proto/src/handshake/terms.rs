//! The extensions of conclusions: the offer, the answer, and the terms that follow from both. One
//! place for caller, listener and rendezvous: one end makes an [`Offer`], the other checks it as a
//! [`Request`] and answers, and both come to the same [`Negotiated`].

use std::time::Duration;

use punctual_crypto::{KeyLength, KeyMessage};
use punctual_units::Instant;
use punctual_wire::{
    Extension, GroupExtension, HS_EXT_CONFIG, HS_EXT_HSREQ, HS_EXT_KMREQ, Handshake, HsExtension,
    HsFlags, RejectReason, SeqNo, SocketId, Timestamp,
};

use super::keys::{self, KeyAnswer, KeyOffer, KeyTools, Peer};
use super::{Latency, MAX_MSS, NakStyle, Negotiated, PeerFeatures};
use crate::chance::Chance;
use crate::config::{Config, NakAlgorithm, RetransmitAlgorithm, Transmission};
use crate::connection::crypt::Crypt;
use crate::endpoint::KeyDerivation;
use crate::event::IncomingId;
use crate::filter::{Fec, FilterConfig};
use crate::group::GroupOffer;

/// The version that this implementation announces: 1.5.5, whose live mode it speaks.
pub(crate) const SRT_VERSION: u32 = 0x01_05_05;
/// The oldest version that speaks the handshake of version 5: 1.3.0.
const OLDEST_HSV5: u32 = 0x01_03_00;
/// The congestion control of live mode, and of a handshake that names none.
const LIVE: &str = "live";
/// The congestion control of files and streams.
const FILE: &str = "file";

/// The extensions of a conclusion, a field for each kind of block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) hs_req: Option<HsExtension>,
    pub(crate) hs_rsp: Option<HsExtension>,
    pub(crate) stream_id: Option<String>,
    pub(crate) congestion: Option<String>,
    pub(crate) filter: Option<String>,
    pub(crate) group: Option<GroupExtension>,
    pub(crate) km_req: Option<Vec<u8>>,
    pub(crate) km_rsp: Option<Vec<u8>>,
}

impl Blocks {
    /// The blocks of `handshake`. Unknown kinds are ignored; of a kind that occurs twice the last
    /// block counts.
    pub(crate) fn read(handshake: &Handshake) -> Self {
        let mut blocks = Self::default();
        for extension in handshake.extensions.iter().cloned() {
            match extension {
                Extension::HsReq(hs) => blocks.hs_req = Some(hs),
                Extension::HsRsp(hs) => blocks.hs_rsp = Some(hs),
                Extension::StreamId(id) => blocks.stream_id = Some(id),
                Extension::Congestion(name) => blocks.congestion = Some(name),
                Extension::Filter(config) => blocks.filter = Some(config),
                Extension::Group(group) => blocks.group = Some(group),
                Extension::KmReq(message) => blocks.km_req = Some(message),
                Extension::KmRsp(message) => blocks.km_rsp = Some(message),
                Extension::Unknown { .. } => {}
            }
        }
        blocks
    }

    /// Puts the blocks into `handshake`, in libsrt's order, and says in its extension field which
    /// kinds there are.
    pub(crate) fn write(&self, handshake: &mut Handshake) {
        let hs = [self.hs_req.map(Extension::HsReq), self.hs_rsp.map(Extension::HsRsp)];
        let config = [
            self.stream_id.clone().map(Extension::StreamId),
            self.congestion.clone().map(Extension::Congestion),
            self.filter.clone().map(Extension::Filter),
            self.group.map(Extension::Group),
        ];
        let km =
            [self.km_req.clone().map(Extension::KmReq), self.km_rsp.clone().map(Extension::KmRsp)];
        let mut add = |blocks: &mut dyn Iterator<Item = Extension>, flag: u16| {
            let before = handshake.extensions.len();
            handshake.extensions.extend(blocks);
            if handshake.extensions.len() > before {
                handshake.extension_field |= flag;
            }
        };
        add(&mut hs.into_iter().flatten(), HS_EXT_HSREQ);
        add(&mut config.into_iter().flatten(), HS_EXT_CONFIG);
        add(&mut km.into_iter().flatten(), HS_EXT_KMREQ);
    }
}

/// The arrival and the timestamp of the packet that the receiver's time base is computed from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeBase {
    pub(crate) arrival: Instant,
    pub(crate) timestamp: Timestamp,
}

impl TimeBase {
    /// A repetition came in at `now`: the least delayed one gives the time base.
    pub(crate) fn refine(&mut self, now: Instant, timestamp: Timestamp) {
        let since_first = timestamp.as_micros().wrapping_sub(self.timestamp.as_micros());
        if self.arrival + Duration::from_micros(since_first.into()) > now {
            *self = Self { arrival: now, timestamp };
        }
    }
}

/// The terms in the fixed parts of both ends' handshakes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FixedPart {
    pub(crate) peer_socket_id: SocketId,
    pub(crate) send_isn: SeqNo,
    pub(crate) receive_isn: SeqNo,
    pub(crate) mss: usize,
    pub(crate) peer_flow_window: u32,
    /// The cookie that both ends know.
    pub(crate) cookie: u32,
    pub(crate) base: TimeBase,
}

impl FixedPart {
    /// From the peer's handshake, with `send_isn` as our first sequence number.
    pub(crate) fn new(peer: &Handshake, send_isn: SeqNo, base: TimeBase, config: &Config) -> Self {
        Self {
            peer_socket_id: peer.socket_id,
            send_isn,
            receive_isn: peer.isn,
            mss: config.mss().min(peer.mss as usize),
            peer_flow_window: peer.flow_window,
            cookie: peer.cookie,
            base,
        }
    }
}

/// The initiator's offer: a caller's, or that of the end that won a rendezvous's contest. It is
/// made once for a connection, and repeated unchanged until it is answered.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) blocks: Blocks,
    keys: Option<KeyOffer>,
}

impl Offer {
    /// `wished` is the length of keys that the peer said it wants.
    pub(crate) fn new(config: &Config, wished: Option<KeyLength>, chance: &mut Chance) -> Self {
        let keys = KeyOffer::make(config, wished, chance);
        let stream_id = Some(config.stream_id()).filter(|id| !id.is_empty());
        Self {
            blocks: Blocks {
                hs_req: Some(HsExtension {
                    version: SRT_VERSION,
                    flags: own_flags(config),
                    receive_latency_ms: millis(config.receive_latency()),
                    send_latency_ms: millis(config.peer_latency()),
                }),
                stream_id: stream_id.map(str::to_owned),
                congestion: own_congestion(config),
                km_req: keys.as_ref().map(|keys| keys.message().to_vec()),
                filter: config.filter().map(|filter| filter.text().to_owned()),
                ..Blocks::default()
            },
            keys,
        }
    }

    /// The handshake's encryption field: some peers want it to agree with the key message.
    pub(crate) fn encryption(&self) -> u16 {
        self.keys.as_ref().map_or(0, |keys| keys.length().field())
    }

    /// Checks the responder's answer and gives the terms.
    pub(crate) fn conclude(
        &mut self,
        answer: &Blocks,
        fixed: FixedPart,
        config: &Config,
    ) -> Result<Negotiated, RejectReason> {
        let response = answer.hs_rsp.ok_or(RejectReason::ROGUE)?;
        check_hs(&response, config)?;
        // libsrt's answer leaves the stream flag out; an answer with the flag must match ours.
        if response.flags.contains(HsFlags::STREAM) {
            check_kind(&response, config)?;
        }
        check_congestion(answer.congestion.as_deref(), config)?;
        let latency = Latency {
            receive: wish(response.send_latency_ms).max(config.receive_latency()),
            peer: wish(response.receive_latency_ms),
            caller: None,
        };
        let filter = match answer.filter.as_deref() {
            Some(answer) => Some(FilterConfig::adopt(config.filter(), answer)?),
            None if config.filter().is_some() => return Err(RejectReason::FILTER),
            None => None,
        };
        let said = KeyAnswer { km_rsp: answer.km_rsp.clone(), km_req: answer.km_req.clone() };
        let offer = self.keys.take();
        let crypt = keys::conclude(offer, &said, peer(&response), fixed.send_isn, config)?;
        let stream_id = config.stream_id().to_owned();
        let agreed = negotiated(fixed, &response, stream_id, latency, crypt, config);
        Ok(Negotiated { filter, ..agreed })
    }
}

/// The responder's side: an offer that passed the checks.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    hs: HsExtension,
    stream_id: String,
    congestion: Option<String>,
    group: Option<GroupOffer>,
    km_req: Option<Vec<u8>>,
    filter: Option<String>,
}

impl Request {
    /// Checks an offer as far as the configuration can tell.
    pub(crate) fn check(offer: Blocks, config: &Config) -> Result<Self, RejectReason> {
        let group = offer.group.as_ref().map(GroupOffer::check).transpose()?;
        // A late link leaves numbers out, which the matrices of a filter do not.
        if group.is_some() && offer.filter.is_some() {
            return Err(RejectReason::FILTER);
        }
        // Links share one stream by its time stamps.
        if group.is_some() && !(config.group_connect() && config.tsbpd()) {
            return Err(RejectReason::GROUP);
        }
        let hs = offer.hs_req.ok_or(RejectReason::ROGUE)?;
        check_hs(&hs, config)?;
        check_kind(&hs, config)?;
        check_congestion(offer.congestion.as_deref(), config)?;
        let request = Self {
            hs,
            stream_id: offer.stream_id.unwrap_or_default(),
            congestion: offer.congestion,
            group,
            km_req: offer.km_req,
            filter: offer.filter,
        };
        request.agree_on_filter(config)?;
        Ok(request)
    }

    /// The stream ID that the initiator sent; empty if none.
    pub(crate) fn stream_id(&self) -> &str {
        &self.stream_id
    }

    /// The group that the connection is to be a link of, if it is.
    pub(crate) const fn group(&self) -> Option<GroupOffer> {
        self.group
    }

    /// The initiator's SRT version.
    pub(crate) const fn peer_version(&self) -> u32 {
        self.hs.version
    }

    /// Whether the initiator wants to encrypt.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.km_req.is_some()
    }

    /// The derivation of the key that accepting this under `config` takes, if it takes one.
    pub(crate) fn key_derivation(&self, id: IncomingId, config: &Config) -> Option<KeyDerivation> {
        let passphrase = config.passphrase()?;
        let message = KeyMessage::parse(self.km_req.as_deref()?).ok()?;
        let allowed = config.crypto_mode().allows(message.mode());
        let job = || KeyDerivation::new(id, passphrase.clone(), *message.salt(), message.length());
        allowed.then(job)
    }

    /// The filter that the initiator asked for, as this end completes it, and the answer that says
    /// so. Without such a request this end uses no filter, whatever its configuration says.
    fn agree_on_filter(
        &self,
        config: &Config,
    ) -> Result<(Option<String>, Option<Fec>), RejectReason> {
        let Some(wish) = &self.filter else { return Ok((None, None)) };
        if config.joins_messages() {
            return Err(RejectReason::FILTER);
        }
        let (answer, fec) = FilterConfig::merge(config.filter(), wish)?;
        Ok((Some(answer), Some(fec)))
    }

    /// The configuration of a connection with this initiator: a listener that takes both kinds of
    /// file transmission follows the initiator.
    pub(crate) fn suit(&self, config: Config) -> Config {
        if !follows_caller(&config) {
            return config;
        }
        let stream = self.hs.flags.contains(HsFlags::STREAM);
        config.with_transmission(if stream { Transmission::Stream } else { Transmission::Messages })
    }

    /// The answer that accepts the offer under `config`, which may be another one than the offer
    /// was checked with, and the terms that follow.
    pub(crate) fn accept(
        &self,
        fixed: FixedPart,
        config: &Config,
        tools: &mut KeyTools<'_>,
    ) -> Result<(Blocks, Negotiated), RejectReason> {
        check_hs(&self.hs, config)?;
        check_kind(&self.hs, config)?;
        check_congestion(self.congestion.as_deref(), config)?;
        let request = self.km_req.as_deref();
        let (said, crypt) = keys::answer(request, peer(&self.hs), fixed.send_isn, config, tools)?;
        let asked = wish(self.hs.send_latency_ms).max(wish(self.hs.receive_latency_ms));
        let timed = self.hs.flags.contains(HsFlags::TSBPD_SEND)
            || self.hs.flags.contains(HsFlags::TSBPD_RECEIVE);
        let latency = Latency {
            receive: config.receive_latency().max(wish(self.hs.send_latency_ms)),
            peer: config.peer_latency().max(wish(self.hs.receive_latency_ms)),
            caller: (config.is_timed() && timed).then_some(asked),
        };
        let (answer, filter) = self.agree_on_filter(config)?;
        let mut flags = own_flags(config);
        if !self.hs.flags.contains(HsFlags::PATH_UPDATE) {
            // Other implementations see only flags that they set themselves.
            flags = flags.without(HsFlags::PATH_UPDATE);
        }
        if !self.hs.flags.contains(HsFlags::TIMED_REQUESTS) {
            flags = flags.without(HsFlags::TIMED_REQUESTS | HsFlags::DEADLINE);
        }
        let blocks = Blocks {
            filter: answer,
            hs_rsp: Some(HsExtension {
                version: SRT_VERSION,
                flags,
                receive_latency_ms: millis(latency.receive),
                send_latency_ms: millis(latency.peer),
            }),
            congestion: own_congestion(config),
            km_req: said.km_req,
            km_rsp: said.km_rsp,
            ..Blocks::default()
        };
        let stream_id = self.stream_id.clone();
        let agreed = negotiated(fixed, &self.hs, stream_id, latency, crypt, config);
        Ok((blocks, Negotiated { filter, ..agreed }))
    }
}

fn negotiated(
    fixed: FixedPart,
    peer: &HsExtension,
    stream_id: String,
    latency: Latency,
    crypt: Option<Box<Crypt>>,
    config: &Config,
) -> Negotiated {
    let cipher = crypt.as_ref().and_then(|crypt| crypt.cipher());
    let knows_deadline = offers_deadline(config) && can_time_naks(config);
    Negotiated {
        latency,
        peer: PeerFeatures {
            version: peer.version,
            too_late_drop: config.is_timed() && peer.flags.contains(HsFlags::TOO_LATE_DROP),
            periodic_nak: peer.flags.contains(HsFlags::PERIODIC_NAK),
            retransmit_flag: peer.flags.contains(HsFlags::RETRANSMIT_FLAG),
            nak_timers: knows_deadline && peer.flags.contains(HsFlags::TIMED_REQUESTS),
        },
        stream_id,
        tsbpd_receive: config.is_timed() && peer.flags.contains(HsFlags::TSBPD_SEND),
        nak_style: nak_style(peer.flags, config),
        filter: None,
        path_update: config.path_update() && peer.flags.contains(HsFlags::PATH_UPDATE),
        handshake_isns: [fixed.send_isn, fixed.receive_isn],
        peer_group: None,
        payload_overhead: cipher.map_or(0, |(mode, _)| mode.overhead()),
        crypt,
        fixed,
    }
}

/// How this end repeats its NAKs: by a timer for each packet if either end wants it, with copies
/// where the peer takes them for one NAK. A file's receiver always keeps a timer for each packet:
/// where no NAK is repeated (libsrt's files), each lost retransmission costs its sender's timeout,
/// and the sender retransmits everything in flight.
fn nak_style(peer: HsFlags, config: &Config) -> NakStyle {
    let knows = config.timed_requests() && peer.contains(HsFlags::TIMED_REQUESTS);
    // Without the flag a retransmission looks like a packet that others overtook.
    let marks = peer.contains(HsFlags::RETRANSMIT_FLAG);
    if config.transmission() != Transmission::Live && config.timed_requests() && marks {
        return NakStyle::PerPacket;
    }
    let own = matches!(config.nak_algorithm(), NakAlgorithm::Custom(_));
    let wanted = own || sends_by_deadline(config) || knows && peer.contains(HsFlags::DEADLINE);
    match (can_time_naks(config) && marks && wanted, knows) {
        (false, _) => NakStyle::Periodic,
        (true, false) => NakStyle::PerPacket,
        (true, true) => NakStyle::PerPacketCopied,
    }
}

/// Whether this end can keep a NAK timer for each packet.
fn can_time_naks(config: &Config) -> bool {
    config.is_timed() && config.periodic_nak()
}

/// Whether this end's sender is deadline-aware toward a peer that knows timed requests.
fn offers_deadline(config: &Config) -> bool {
    let auto = config.is_timed() && *config.retransmit_algorithm() == RetransmitAlgorithm::Auto;
    config.timed_requests() && (auto || sends_by_deadline(config))
}

/// Whether this end's sender is deadline-aware toward every peer.
fn sends_by_deadline(config: &Config) -> bool {
    config.is_timed() && *config.retransmit_algorithm() == RetransmitAlgorithm::Deadline
}

fn peer(hs: &HsExtension) -> Peer {
    Peer { version: hs.version, own_keys: hs.flags.contains(HsFlags::OWN_KEYS) }
}

/// The flags that this end announces.
fn own_flags(config: &Config) -> HsFlags {
    let mut flags = HsFlags::CRYPT | HsFlags::RETRANSMIT_FLAG | HsFlags::PACKET_FILTER;
    if config.passphrase().is_some() {
        flags = flags | HsFlags::OWN_KEYS;
    }
    if config.is_timed() {
        flags = flags | HsFlags::TSBPD_SEND | HsFlags::TSBPD_RECEIVE;
        if config.too_late_drop() {
            flags = flags | HsFlags::TOO_LATE_DROP;
        }
    }
    if config.periodic_nak() {
        flags = flags | HsFlags::PERIODIC_NAK;
    }
    if config.transmission() == Transmission::Stream {
        flags = flags | HsFlags::STREAM;
    }
    if config.path_update() {
        flags = flags | HsFlags::PATH_UPDATE;
    }
    if can_time_naks(config) && config.timed_requests() {
        flags = flags | HsFlags::TIMED_REQUESTS;
        if offers_deadline(config) {
            flags = flags | HsFlags::DEADLINE;
        }
    }
    flags
}

/// Checks the peer's HSREQ or HSRSP against our configuration.
fn check_hs(extension: &HsExtension, config: &Config) -> Result<(), RejectReason> {
    if extension.version < OLDEST_HSV5 {
        return Err(RejectReason::ROGUE);
    }
    if extension.version < config.min_version() {
        return Err(RejectReason::VERSION);
    }
    Ok(())
}

/// Whether a listener with this configuration carries files as its caller does.
fn follows_caller(config: &Config) -> bool {
    config.either_file_mode() && config.transmission() != Transmission::Live
}

/// Checks that both ends send messages, or both a stream.
fn check_kind(peer: &HsExtension, config: &Config) -> Result<(), RejectReason> {
    let stream = config.transmission() == Transmission::Stream;
    if peer.flags.contains(HsFlags::STREAM) == stream || follows_caller(config) {
        Ok(())
    } else {
        Err(RejectReason::MESSAGE_API)
    }
}

/// The congestion control of this end, unless it is the one that needs no naming.
fn own_congestion(config: &Config) -> Option<String> {
    (config.transmission() != Transmission::Live).then(|| FILE.to_owned())
}

/// Checks that both ends use the same congestion control; an end that names none uses "live".
fn check_congestion(peer: Option<&str>, config: &Config) -> Result<(), RejectReason> {
    let own = if config.transmission() == Transmission::Live { LIVE } else { FILE };
    if peer.unwrap_or(LIVE) == own { Ok(()) } else { Err(RejectReason::CONGESTION) }
}

fn wish(ms: u16) -> Duration {
    Duration::from_millis(ms.into())
}

fn millis(duration: Duration) -> u16 {
    u16::try_from(duration.as_millis()).unwrap_or(u16::MAX)
}

pub(crate) fn wire_mss(config: &Config) -> u32 {
    u32::try_from(config.mss()).unwrap_or(MAX_MSS)
}

pub(crate) fn wire_window(config: &Config) -> u32 {
    u32::try_from(config.receive_window()).unwrap_or(u32::MAX)
}
