//! The extensions of conclusions: the offer, the answer, and the terms that follow from both, for
//! caller, listener and rendezvous alike. One end makes an [`Offer`], the other checks it as a
//! [`Request`] and answers it, and both compute the same [`Negotiated`].

use std::time::Duration;

use punctual_crypto::{KeyLength, KeyMessage};
use punctual_units::Instant;
use punctual_wire::{
    Extension, GroupExtension, HS_EXT_CONFIG, HS_EXT_HSREQ, HS_EXT_KMREQ, Handshake, HsExtension,
    HsFlags, RejectReason, SeqNo, SocketId, Timestamp,
};

use super::keys::{self, KeyAnswer, KeyOffer, KeyTools, Peer};
use super::{Latency, MAX_MSS, NakStyle, Negotiated, PeerFeatures};
use crate::agreed_time::AgreedTime;
use crate::chance::Chance;
use crate::config::{Config, NakAlgorithm, RetransmitAlgorithm};
use crate::crypt::Crypt;
use crate::filter::{Fec, FilterConfig};
use crate::group_offer::GroupOffer;
use crate::handshake::derivation::KeyDerivation;
use crate::ids::IncomingId;
use crate::path::Path;
use crate::stream_id::RawStreamId;
use crate::transmission::Transmission;

/// The version that this implementation announces: 1.5.5, whose live mode it implements.
pub(crate) const SRT_VERSION: u32 = 0x01_05_05;
/// The oldest version with the handshake of version 5: 1.3.0.
const OLDEST_HSV5: u32 = 0x01_03_00;
/// The congestion control of live mode, and the default in a handshake.
const LIVE: &str = "live";
/// The congestion control of files and streams.
const FILE: &str = "file";

/// The extensions of a conclusion, one field for each kind of block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) hs_req: Option<HsExtension>,
    pub(crate) hs_rsp: Option<HsExtension>,
    pub(crate) stream_id: Option<RawStreamId>,
    pub(crate) congestion: Option<String>,
    pub(crate) filter: Option<String>,
    pub(crate) group: Option<GroupExtension>,
    pub(crate) km_req: Option<Vec<u8>>,
    pub(crate) km_rsp: Option<Vec<u8>>,
}

impl Blocks {
    /// The blocks of `handshake`. Unknown kinds are ignored; if a kind occurs twice, the last block
    /// counts.
    pub(crate) fn read(handshake: &Handshake) -> Self {
        let mut blocks = Self::default();
        for extension in handshake.extensions.iter().cloned() {
            match extension {
                Extension::HsReq(hs) => blocks.hs_req = Some(hs),
                Extension::HsRsp(hs) => blocks.hs_rsp = Some(hs),
                Extension::StreamId(id) => blocks.stream_id = Some(id.into()),
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

    /// Adds the blocks to `handshake` in libsrt's order, and sets their flags in the extension
    /// field.
    pub(crate) fn write(&self, handshake: &mut Handshake) {
        let hs = [self.hs_req.map(Extension::HsReq), self.hs_rsp.map(Extension::HsRsp)];
        let config = [
            self.stream_id.as_ref().map(|id| Extension::StreamId(id.bytes().to_vec())),
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

/// The arrival time and the timestamp of the packet from which the receiver's time base is
/// computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeBase {
    pub(crate) arrival: Instant,
    pub(crate) timestamp: Timestamp,
}

impl TimeBase {
    /// A repetition arrived at `now`. The packet with the least delay determines the time base.
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
    /// A cookie that both ends know.
    pub(crate) cookie: u32,
    pub(crate) base: TimeBase,
}

impl FixedPart {
    /// The terms by the peer's handshake, with `send_isn` as this end's first sequence number and
    /// `mss` as the MSS that this end offers.
    pub(crate) fn new(peer: &Handshake, send_isn: SeqNo, base: TimeBase, mss: usize) -> Self {
        Self {
            peer_socket_id: peer.socket_id,
            send_isn,
            receive_isn: peer.isn,
            mss: mss.min(peer.mss as usize),
            peer_flow_window: peer.flow_window,
            cookie: peer.cookie,
            base,
        }
    }
}

/// The offer of the initiator, which is the caller, or the end with the winning cookie of a
/// rendezvous. It is made once for a connection, and repeated unchanged until it is answered.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) blocks: Blocks,
    keys: Option<KeyOffer>,
}

impl Offer {
    /// Makes the offer. `preferred` is the key length that the peer prefers.
    pub(crate) fn new(config: &Config, preferred: Option<KeyLength>, chance: &mut Chance) -> Self {
        let keys = KeyOffer::make(config, preferred, chance);
        let stream_id = Some(config.raw_stream_id()).filter(|id| !id.is_empty());
        Self {
            blocks: Blocks {
                hs_req: Some(HsExtension {
                    version: SRT_VERSION,
                    flags: own_flags(config),
                    receive_latency_ms: millis(config.announced_receive_latency()),
                    send_latency_ms: millis(config.announced_peer_latency()),
                }),
                stream_id: stream_id.cloned(),
                congestion: own_congestion(config),
                km_req: keys.as_ref().map(|keys| keys.message().to_vec()),
                filter: config.filter().map(|filter| filter.text().to_owned()),
                ..Blocks::default()
            },
            keys,
        }
    }

    /// Makes the connection a link of a group. Packets that one link gives up may arrive over
    /// another one, so that the links do not report them.
    pub(crate) fn join(&mut self, group: GroupExtension) {
        self.blocks.group = Some(group);
        if let Some(hs) = &mut self.blocks.hs_req {
            hs.flags = hs.flags.without(HsFlags::COUNTED_ARRIVALS);
        }
    }

    /// The encryption field of the handshake: some peers require that it agrees with the key
    /// message.
    pub(crate) fn encryption(&self) -> u16 {
        self.keys.as_ref().map_or(0, |keys| keys.length().field())
    }

    /// Checks the responder's answer, and returns the terms.
    pub(crate) fn conclude(
        &mut self,
        answer: &Blocks,
        fixed: FixedPart,
        config: &Config,
    ) -> Result<Negotiated, RejectReason> {
        let response = answer.hs_rsp.ok_or(RejectReason::ROGUE)?;
        check_hs(&response, config)?;
        // libsrt omits the stream flag in its answers. If it is set, it must match ours.
        if response.flags.contains(HsFlags::STREAM) {
            check_kind(&response, config)?;
        }
        check_congestion(answer.congestion.as_deref(), config)?;
        let latency = Latency {
            receive: AgreedTime::new(
                requested_latency(response.send_latency_ms).max(config.announced_receive_latency()),
            ),
            peer: AgreedTime::new(requested_latency(response.receive_latency_ms)),
            caller: None,
        };
        let filter = match answer.filter.as_deref() {
            Some(answer) => Some(FilterConfig::adopt(config.filter(), answer)?),
            None if config.filter().is_some() => return Err(RejectReason::FILTER),
            None => None,
        };
        let key_answer = KeyAnswer { km_rsp: answer.km_rsp.clone(), km_req: answer.km_req.clone() };
        let offer = self.keys.take();
        let crypt = keys::conclude(offer, &key_answer, peer(&response), fixed.send_isn, config)?;
        let stream_id = config.raw_stream_id().clone();
        // Of a link less than of other connections.
        let own = self.blocks.hs_req.map_or_else(|| own_flags(config), |offer| offer.flags);
        let agreed = negotiated(fixed, own, &response, stream_id, latency, crypt, config);
        Ok(Negotiated { filter, ..agreed })
    }
}

/// The initiator's offer at the responder, after the checks.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    hs: HsExtension,
    stream_id: RawStreamId,
    congestion: Option<String>,
    group: Option<GroupOffer>,
    km_req: Option<Vec<u8>>,
    filter: Option<String>,
}

impl Request {
    /// Checks an offer against the configuration.
    pub(crate) fn check(offer: Blocks, config: &Config) -> Result<Self, RejectReason> {
        let group = offer.group.as_ref().map(GroupOffer::check).transpose()?;
        // A link that joins late skips sequence numbers, but the matrix of a filter counts all of
        // them.
        if group.is_some() && offer.filter.is_some() {
            return Err(RejectReason::FILTER);
        }
        // The links of a group merge their stream by timestamps.
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
    pub(crate) const fn stream_id(&self) -> &RawStreamId {
        &self.stream_id
    }

    /// The group of which the connection becomes a link, if any.
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

    /// The key derivation that accepting this offer under `config` needs; `None` if it needs none.
    pub(crate) fn key_derivation(&self, id: IncomingId, config: &Config) -> Option<KeyDerivation> {
        let passphrase = config.passphrase()?;
        let message = KeyMessage::parse(self.km_req.as_deref()?).ok()?;
        let allowed = config.crypto_mode().allows(message.mode());
        let job = || KeyDerivation::new(id, passphrase.clone(), *message.salt(), message.length());
        allowed.then(job)
    }

    /// The answer about the filter, and the agreed filter. Without a filter in the offer, an
    /// initiator that knows filters gets the one of this end, as from libsrt.
    fn agree_on_filter(
        &self,
        config: &Config,
    ) -> Result<(Option<String>, Option<Fec>), RejectReason> {
        let Some(requested) = &self.filter else { return Ok(self.own_filter(config)) };
        if config.joins_messages() {
            return Err(RejectReason::FILTER);
        }
        let (answer, fec) = FilterConfig::merge(config.filter(), requested)?;
        Ok((Some(answer), Some(fec)))
    }

    /// The filter that this end brings to an initiator without one: the answer and the filter. A
    /// link of a group has none, and neither has an end whose configuration is incomplete.
    fn own_filter(&self, config: &Config) -> (Option<String>, Option<Fec>) {
        let is_known = self.hs.flags.contains(HsFlags::PACKET_FILTER) && self.group.is_none();
        let own = config.filter().filter(|_| is_known);
        match own.and_then(|own| Some((own.text(), own.complete()?))) {
            Some((text, fec)) => (Some(text.to_owned()), Some(fec)),
            None => (None, None),
        }
    }

    /// The configuration of a connection with this initiator: a listener that accepts both kinds of
    /// file transmission uses that of the initiator.
    pub(crate) fn suit(&self, config: Config) -> Config {
        if !follows_caller(&config) {
            return config;
        }
        let stream = self.hs.flags.contains(HsFlags::STREAM);
        config.with_transmission(if stream { Transmission::Stream } else { Transmission::Messages })
    }

    /// The answer that accepts the offer, and the terms. `config` may differ from the one that the
    /// offer was checked against.
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
        let (key_answer, crypt) =
            keys::answer(request, peer(&self.hs), fixed.send_isn, config, tools)?;
        let requested = requested_latency(self.hs.send_latency_ms)
            .max(requested_latency(self.hs.receive_latency_ms));
        let timed = self.hs.flags.contains(HsFlags::TSBPD_SEND)
            || self.hs.flags.contains(HsFlags::TSBPD_RECEIVE);
        let latency = Latency {
            receive: AgreedTime::new(
                config.announced_receive_latency().max(requested_latency(self.hs.send_latency_ms)),
            ),
            peer: AgreedTime::new(
                config.announced_peer_latency().max(requested_latency(self.hs.receive_latency_ms)),
            ),
            caller: (config.is_timed() && timed).then_some(requested),
        };
        let (answer, filter) = self.agree_on_filter(config)?;
        let mut flags = own_flags(config);
        if !self.hs.flags.contains(HsFlags::PATH_UPDATE) {
            // The flags that only this implementation knows are answered only to an initiator that
            // set them.
            flags = flags.without(HsFlags::PATH_UPDATE);
        }
        if !self.hs.flags.contains(HsFlags::TIMED_REQUESTS) {
            flags = flags.without(HsFlags::TIMED_REQUESTS | HsFlags::DEADLINE);
        }
        if !self.hs.flags.contains(HsFlags::FRAMES) {
            flags = flags.without(HsFlags::FRAMES | HsFlags::RESUME);
        }
        if !self.hs.flags.contains(HsFlags::RESUME) {
            flags = flags.without(HsFlags::RESUME);
        }
        if !self.hs.flags.contains(HsFlags::COUNTED_ARRIVALS) {
            flags = flags.without(HsFlags::COUNTED_ARRIVALS);
        }
        let blocks = Blocks {
            filter: answer,
            hs_rsp: Some(HsExtension {
                version: SRT_VERSION,
                flags,
                receive_latency_ms: millis(latency.receive.get()),
                send_latency_ms: millis(latency.peer.get()),
            }),
            congestion: own_congestion(config),
            km_req: key_answer.km_req,
            km_rsp: key_answer.km_rsp,
            ..Blocks::default()
        };
        let stream_id = self.stream_id.clone();
        let agreed = negotiated(fixed, flags, &self.hs, stream_id, latency, crypt, config);
        Ok((blocks, Negotiated { filter, ..agreed }))
    }
}

/// The terms, of which this end has announced the flags `own`.
fn negotiated(
    fixed: FixedPart,
    own: HsFlags,
    peer: &HsExtension,
    stream_id: RawStreamId,
    latency: Latency,
    crypt: Option<Box<Crypt>>,
    config: &Config,
) -> Negotiated {
    let cipher = crypt.as_ref().and_then(|crypt| crypt.cipher());
    let is_file = config.transmission() != Transmission::Live;
    let knows_deadline = is_file || offers_deadline(config) && can_time_naks(config);
    let both_set = |flags| own.contains(flags) && peer.flags.contains(flags);
    let counted_arrivals = both_set(HsFlags::COUNTED_ARRIVALS);
    Negotiated {
        playout: playout(config, &latency, counted_arrivals),
        latency,
        peer: PeerFeatures {
            version: peer.version,
            too_late_drop: config.is_timed() && peer.flags.contains(HsFlags::TOO_LATE_DROP),
            periodic_nak: peer.flags.contains(HsFlags::PERIODIC_NAK),
            retransmit_flag: peer.flags.contains(HsFlags::RETRANSMIT_FLAG),
            nak_timers: knows_deadline
                && config.timed_requests()
                && peer.flags.contains(HsFlags::TIMED_REQUESTS),
            counted_arrivals,
        },
        stream_id,
        tsbpd_receive: config.is_timed() && peer.flags.contains(HsFlags::TSBPD_SEND),
        nak_style: nak_style(peer.flags, config),
        filter: None,
        framing: both_set(HsFlags::FRAMES),
        resumable: both_set(HsFlags::FRAMES | HsFlags::RESUME),
        path_update: config.path_update() && peer.flags.contains(HsFlags::PATH_UPDATE),
        handshake_isns: [fixed.send_isn, fixed.receive_isn],
        peer_group: None,
        payload_overhead: cipher.map_or(0, |(mode, _)| mode.overhead()),
        crypt,
        fixed,
    }
}

/// The playout point of a stream of bytes: the later one of both ends, if the peer knows it.
fn playout(config: &Config, latency: &Latency, peer_knows: bool) -> Option<AgreedTime> {
    if config.transmission() != Transmission::Stream {
        return None;
    }
    let agreed =
        if peer_knows { latency.receive.get().max(latency.peer.get()) } else { config.playout() };
    (!agreed.is_zero()).then(|| AgreedTime::new(agreed))
}

/// How this end repeats its NAKs: by a timer for each packet if either end wants it, with copies if
/// the peer counts them as one NAK. A receiver of files always keeps a timer for each packet: if
/// NAKs are not repeated, as in libsrt's file mode, each lost retransmission makes the sender wait
/// for its retransmission timeout, and then retransmit everything in flight.
fn nak_style(peer: HsFlags, config: &Config) -> NakStyle {
    let knows = config.timed_requests() && peer.contains(HsFlags::TIMED_REQUESTS);
    // Without the flag, a retransmission looks like a reordered packet.
    let marks = peer.contains(HsFlags::RETRANSMIT_FLAG);
    if config.transmission() != Transmission::Live && config.timed_requests() && marks {
        return if knows { NakStyle::PerPacketCopied } else { NakStyle::PerPacket };
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

/// Whether this end's sender uses the deadline policy with a peer that has NAK timers.
fn offers_deadline(config: &Config) -> bool {
    let auto = config.is_timed() && *config.retransmit_algorithm() == RetransmitAlgorithm::Auto;
    config.timed_requests() && (auto || sends_by_deadline(config))
}

/// Whether this end's sender uses the deadline policy with every peer.
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
        if config.framing() {
            flags = flags | HsFlags::FRAMES;
            if config.resume() {
                flags = flags | HsFlags::RESUME;
            }
        }
    }
    if config.path_update() {
        flags = flags | HsFlags::PATH_UPDATE;
    }
    if config.transmission() != Transmission::Live {
        flags = flags | HsFlags::COUNTED_ARRIVALS;
        if config.timed_requests() {
            flags = flags | HsFlags::TIMED_REQUESTS;
        }
    } else if config.timed_requests() {
        flags = flags | HsFlags::COUNTED_ARRIVALS;
        if can_time_naks(config) {
            flags = flags | HsFlags::TIMED_REQUESTS;
        }
        if offers_deadline(config) && can_time_naks(config) {
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

/// Whether a listener with this configuration uses the caller's kind of file transmission.
fn follows_caller(config: &Config) -> bool {
    config.either_file_mode() && config.transmission() != Transmission::Live
}

/// Checks that both ends send messages, or both send a stream of bytes.
fn check_kind(peer: &HsExtension, config: &Config) -> Result<(), RejectReason> {
    let stream = config.transmission() == Transmission::Stream;
    if peer.flags.contains(HsFlags::STREAM) == stream || follows_caller(config) {
        Ok(())
    } else {
        Err(RejectReason::MESSAGE_API)
    }
}

/// The congestion control that this end announces; `None` in live mode, where it is the default.
fn own_congestion(config: &Config) -> Option<String> {
    (config.transmission() != Transmission::Live).then(|| FILE.to_owned())
}

/// Checks that both ends use the same congestion control; an end that announces none uses "live".
fn check_congestion(peer: Option<&str>, config: &Config) -> Result<(), RejectReason> {
    let own = if config.transmission() == Transmission::Live { LIVE } else { FILE };
    if peer.unwrap_or(LIVE) == own { Ok(()) } else { Err(RejectReason::CONGESTION) }
}

fn requested_latency(ms: u16) -> Duration {
    Duration::from_millis(ms.into())
}

fn millis(duration: Duration) -> u16 {
    u16::try_from(duration.as_millis()).unwrap_or(u16::MAX)
}

/// The MSS that this end offers for `path`.
pub(crate) fn wire_mss(config: &Config, path: &Path) -> u32 {
    u32::try_from(path.mss(config.mss(), config.payload_size())).unwrap_or(MAX_MSS)
}

pub(crate) fn wire_window(config: &Config) -> u32 {
    u32::try_from(config.receive_window()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_a_group_believes_no_flag_that_it_did_not_offer() {
        let config = Config::default();
        let offer = || Offer::new(&config, None, &mut Chance::new([7; 32]));
        let announced = offer().blocks.hs_req.expect("it is an offer");
        let counted = |mut offer: Offer| {
            let answer = Blocks { hs_rsp: Some(announced), ..Blocks::default() };
            let fixed = FixedPart {
                peer_socket_id: SocketId::new(2),
                send_isn: SeqNo::new(1),
                receive_isn: SeqNo::new(1),
                mss: 1_500,
                peer_flow_window: 8_192,
                cookie: 0,
                base: TimeBase { arrival: Instant::ORIGIN, timestamp: Timestamp::default() },
            };
            offer.conclude(&answer, fixed, &config).expect("it agrees").peer.counted_arrivals
        };
        assert!(counted(offer()));
        let mut link = offer();
        link.join(GroupExtension { group_id: 0x4000_0001, kind: 2, flags: 0, weight: 0 });
        assert!(!counted(link));
    }
}
