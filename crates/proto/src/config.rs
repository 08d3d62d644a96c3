//! The options of a connection and of an endpoint: unit, default, range and effect of each.
//!
//! A [`Config`] that exists is legal: setters with a range return an error instead of storing
//! nonsense. Names in brackets are libsrt's (`SRTO_…`, lower case).

use std::time::Duration;

use punctual_crypto::{KeyLength, Passphrase};
use punctual_units::Bitrate;
use punctual_wire::{MsgNo, SocketId, destination};

use crate::congestion::CongestionControl;
use crate::connection::recv::nak_policy::NakPolicy;
use crate::connection::rtt::RttAlgorithm;
use crate::connection::send::retransmit::RetransmitPolicy;
use crate::encryption::CryptoMode;
use crate::error::ConfigError;
use crate::factory::Factory;
use crate::filter::FilterConfig;

/// Packets in a buffer of automatic size at most: 10 Gb/s at a latency of 120 ms.
const AUTO_BUFFER_PACKETS: usize = 131_072;
/// The largest payload of a packet: an Ethernet frame less the headers of IPv4, UDP and SRT.
const MAX_PAYLOAD: usize = 1_456;
/// The share of packets that may stay unrecovered: at 10 Mb/s a packet in 105 seconds.
pub(crate) const LOSS_TARGET: f64 = 1e-5;
/// Packets in a file's buffers at most.
const FILE_BUFFER_PACKETS: usize = 25_600;
/// How long closing goes on sending a file, by default.
const FILE_LINGER: Duration = Duration::from_secs(180);
/// libsrt's payload of a buffer unit: MTU less IP and UDP headers.
const BUFFER_UNIT: usize = 1_472;

/// Which policy decides on retransmissions \[retransmitalgo\].
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RetransmitAlgorithm {
    /// [`Deadline`](Self::Deadline) toward a peer that knows timed requests, which is one of this
    /// implementation; [`Efficient`](Self::Efficient) toward others.
    #[default]
    Auto,
    /// Every loss report is answered at once (libsrt's algorithm 0).
    Aggressive,
    /// Not again within RTT - 4 RTTVar of the last retransmission (libsrt's algorithm 1). Takes
    /// effect only if the peer sends periodic loss reports.
    Efficient,
    /// Asks for each lost packet by a clock of its own, answers each request once, and more often
    /// where it is the last that can be in time ([`Deadline`](crate::Deadline)).
    Deadline,
    /// The policy that the factory makes for each connection.
    Custom(Factory<dyn RetransmitPolicy>),
}

impl RetransmitAlgorithm {
    /// The policy that `make` returns for each connection; the closure holds its parameters.
    pub fn custom<P: RetransmitPolicy + 'static>(
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        Self::Custom(Factory::<dyn RetransmitPolicy>::new(move || Box::new(make())))
    }
}

/// When a receiver sends NAKs for missing packets, our own.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum NakAlgorithm {
    /// As the sender's [`RetransmitAlgorithm`] wants it: periodic NAKs, or
    /// [`PerPacketNakTimers`](crate::PerPacketNakTimers) where either end is deadline-aware.
    #[default]
    Standard,
    /// By timers of single packets, with the policy that the factory makes for each connection.
    Custom(Factory<dyn NakPolicy>),
}

impl NakAlgorithm {
    /// The policy that `make` returns for each connection; the closure holds its parameters.
    pub fn custom<P: NakPolicy + 'static>(make: impl Fn() -> P + Send + Sync + 'static) -> Self {
        Self::Custom(Factory::<dyn NakPolicy>::new(move || Box::new(make())))
    }
}

/// How data travel: what both ends must agree on \[congestion\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Transmission {
    /// Live messages of one packet each, on time (congestion "live", messages).
    #[default]
    Live,
    /// Messages of any size, whole or not at all (congestion "file", messages).
    Messages,
    /// A stream of bytes (congestion "file", no messages).
    Stream,
}

/// The congestion control of files and byte streams; live has its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CongestionAlgorithm {
    /// libsrt's (FileCC).
    #[default]
    Standard,
    /// The one that the factory makes for each connection.
    Custom(Factory<dyn CongestionControl>),
}

impl CongestionAlgorithm {
    /// The policy that `make` returns for each connection; the closure holds its parameters.
    pub fn custom<P: CongestionControl + 'static>(
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        Self::Custom(Factory::<dyn CongestionControl>::new(move || Box::new(make())))
    }
}

/// When the receiver looks whether its periodic loss report is due, our own \[naktimer\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NakTimer {
    /// At the report's time.
    #[default]
    Exact,
    /// When a packet comes in after the report's time, and 10 ms after it at the latest, as
    /// libsrt does. Where the answer to the first report comes just then, fewer packets are sent
    /// twice, and more are lost whose first answer was lost.
    WithPackets,
}

/// Limit of the sending rate, originals and retransmissions together \[maxbw\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MaxBandwidth {
    /// No limit but smoothing: 1 Gb/s, or the input's rate and the overhead if that is more.
    #[default]
    Unlimited,
    /// This rate.
    Absolute(Bitrate),
    /// The input rate, given or measured, plus the overhead percentage.
    Relative,
}

/// Limit of retransmissions alone \[maxrexmitbw\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RetransmitBandwidth {
    /// Where [`MaxBandwidth`] is known: as much as that leaves above the input, but no more than
    /// half the input, and no less than a twentieth of it; a latency's worth of input may go out at
    /// once. Else no limit.
    #[default]
    Auto,
    /// No limit but that of the sending rate.
    Unlimited,
    /// This rate; zero allows none.
    Absolute(Bitrate),
}

/// How many packets a buffer may hold.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum BufferSize {
    /// Grows with what bit rate, latency and RTT need, up to 131,072 packets.
    #[default]
    Auto,
    /// Grows up to this many packets.
    Packets(usize),
}

impl BufferSize {
    /// The most packets that the buffer may hold.
    pub const fn packets(self) -> usize {
        match self {
            Self::Auto => AUTO_BUFFER_PACKETS,
            Self::Packets(packets) => packets,
        }
    }

    /// The size in bytes as libsrt's options count it; `None` for the automatic size.
    pub const fn bytes(self) -> Option<usize> {
        match self {
            Self::Auto => None,
            Self::Packets(packets) => Some(packets.saturating_mul(BUFFER_UNIT)),
        }
    }

    /// The size that libsrt's option in bytes means: 1472 bytes a packet.
    pub const fn from_bytes(bytes: usize) -> Self {
        let packets = bytes / BUFFER_UNIT;
        Self::Packets(if packets < 32 { 32 } else { packets })
    }
}

macro_rules! options {
    (plain { $( $(#[$doc:meta])* $field:ident / $with:ident : $type:ty = $default:expr
        $(, $name:literal in $range:expr, $expected:literal)? ; )* }
    algorithms { $( $(#[$adoc:meta])* $algorithm:ident / $awith:ident : $atype:ty ; )* }) => {
        /// The options of one connection. The default is libsrt's live profile.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $( $field: $type, )*
            $( $algorithm: $atype, )*
            stream_id: String,
            passphrase: Option<Passphrase>,
            packet_filter: Option<FilterConfig>,
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                    $( $algorithm: <$atype>::default(), )*
                    stream_id: String::new(),
                    passphrase: None,
                    packet_filter: None,
                }
            }
        }

        impl Config {
            $(
                $(#[$doc])*
                pub const fn $field(&self) -> $type { self.$field }

                options!(@setter $(#[$doc])* $field, $with, $type $(, $name, $range, $expected)?);
            )*
            $(
                $(#[$adoc])*
                pub const fn $algorithm(&self) -> &$atype { &self.$algorithm }

                $(#[$adoc])*
                #[must_use]
                pub fn $awith(mut self, algorithm: $atype) -> Self {
                    self.$algorithm = algorithm;
                    self
                }
            )*
        }
    };
    (@setter $(#[$doc:meta])* $field:ident, $with:ident, $type:ty) => {
        $(#[$doc])*
        #[must_use]
        pub const fn $with(mut self, value: $type) -> Self { self.$field = value; self }
    };
    (@setter $(#[$doc:meta])* $field:ident, $with:ident, $type:ty, $name:literal, $range:expr, $expected:literal) => {
        $(#[$doc])*
        pub fn $with(mut self, value: $type) -> Result<Self, ConfigError> {
            if !($range).contains(&value) {
                return Err(ConfigError { option: $name, value: format!("{value:?}"), expected: $expected });
            }
            self.$field = value;
            Ok(self)
        }
    };
}

const MS: fn(u64) -> Duration = Duration::from_millis;

options! { plain {
    /// How data travel; both ends must have the same \[congestion\]. Default live
    /// messages. [`Config::file`] sets what else belongs to files.
    transmission / with_transmission: Transmission = Transmission::Live;
    /// As the listener, carry files as the caller does, in messages or as a stream of bytes: if the
    /// [transmission](Self::transmission) is either of these, the caller's counts. Default false:
    /// who sends the other way is rejected.
    either_file_mode / with_either_file_mode: bool = false;
    /// Whether a message of several packets is read before older ones that miss a packet, where its
    /// sender does not ask for order (libsrt's `srt_sendmsg2` does so only if told). Default true,
    /// as in libsrt; else messages are read in the order in which they were sent.
    overtaking / with_overtaking: bool = true;
    /// Largest UDP datagram with IP and UDP headers, bytes \[mss\]. 76 to 1500, default 1500; the
    /// smaller of both ends counts.
    mss / with_mss: usize = 1500, "mss" in 76..=1500, "76 to 1500 bytes";
    /// Largest payload of a packet, and so of a live message, bytes \[payloadsize\]. 1 to 1456,
    /// default 1316: seven MPEG-TS packets.
    payload_size / with_payload_size: usize = 1316, "payloadsize" in 1..=1456, "1 to 1456 bytes";
    /// Most packets in flight that the receiver allows \[fc\]. At least 32, default 131,072.
    flow_window / with_flow_window: usize = AUTO_BUFFER_PACKETS, "fc" in 32..=1_048_576, "32 to 1048576 packets";
    /// The size of the send buffer \[sndbuf\].
    send_buffer / with_send_buffer: BufferSize = BufferSize::Auto;
    /// The size of the receive buffer \[rcvbuf\]; the flow window bounds it as well.
    receive_buffer / with_receive_buffer: BufferSize = BufferSize::Auto;
    /// How long `close` continues to send buffered packets \[linger\]. Default 0 in live mode.
    linger / with_linger: Duration = Duration::ZERO;
    /// Limit of the sending rate \[maxbw\].
    max_bandwidth / with_max_bandwidth: MaxBandwidth = MaxBandwidth::Unlimited;
    /// The input's rate for [`MaxBandwidth::Relative`]; zero (default) to measure it \[inputbw\].
    input_bandwidth / with_input_bandwidth: Bitrate = Bitrate::ZERO;
    /// Least input rate that a measured one counts as \[mininputbw\]. Default zero.
    min_input_bandwidth / with_min_input_bandwidth: Bitrate = Bitrate::ZERO;
    /// Room for retransmissions above the input rate, percent \[oheadbw\]. 5 to 100, default 25.
    overhead_bandwidth / with_overhead_bandwidth: u32 = 25, "oheadbw" in 5..=100, "5 to 100 percent";
    /// Limit of retransmissions alone \[maxrexmitbw\]. Default automatic.
    max_retransmit_bandwidth / with_max_retransmit_bandwidth: RetransmitBandwidth = RetransmitBandwidth::Auto;
    /// Deliver each message at origin time + latency \[tsbpdmode\]. Default true; else at once, in
    /// order. A stream of bytes has no such times.
    tsbpd / with_tsbpd: bool = true;
    /// Least delay of the receiving buffer here \[rcvlatency\]. Up to 65,535 ms, default 120 ms;
    /// the larger of this and the peer's wish counts.
    receive_latency / with_receive_latency: Duration = MS(120), "rcvlatency" in Duration::ZERO..=MS(65_535), "0 to 65535 ms";
    /// Least delay of the peer's receiving buffer \[peerlatency\]. Up to 65,535 ms, default 0.
    peer_latency / with_peer_latency: Duration = Duration::ZERO, "peerlatency" in Duration::ZERO..=MS(65_535), "0 to 65535 ms";
    /// Drop what can no longer be delivered in time \[tlpktdrop\]. Default true.
    too_late_drop / with_too_late_drop: bool = true;
    /// Extra time before the sender drops; `None` never drops there \[snddropdelay\]. Default 0.
    send_drop_delay / with_send_drop_delay: Option<Duration> = Some(Duration::ZERO);
    /// Report losses again and again until they are filled \[nakreport\]. Default true.
    periodic_nak / with_periodic_nak: bool = true;
    /// When the receiver looks whether its periodic loss report is due, our own \[naktimer\].
    /// Default exact.
    nak_timer / with_nak_timer: NakTimer = NakTimer::Exact;
    /// Packets of reordering to wait for before a loss is reported, at most \[lossmaxttl\]. Default
    /// 0: report at once.
    reorder_tolerance / with_reorder_tolerance: u32 = 0, "lossmaxttl" in 0..=1_000_000, "0 to 1000000 packets";
    /// Tell the peer that this end knows timed requests, and heed what it says of them, our own
    /// \[timedrequests\]: a receiver then asks as a deadline-aware sender wants it, and a file's
    /// receiver in any case. Default true.
    timed_requests / with_timed_requests: bool = true;
    /// Share of packets that may stay unrecovered: the deadline-aware algorithm sends as many
    /// copies as that needs, if its limits let it, our own \[losstarget\]. 0 to 0.1, default
    /// 0.00001; 0 for as few unrecovered packets as the limits let.
    loss_target / with_loss_target: f64 = LOSS_TARGET, "losstarget" in 0.0..=0.1, "a share up to 10%";
    /// Packets that the deadline-aware algorithm may retransmit for each original, our own
    /// \[rexmitceiling\]: it sends no copies beyond that. 0 to 1; 0, the default, for p / (1 - p)
    /// and a tenth of p where two rounds fit, where p is the share of packets that is lost, and for
    /// as many as the aggressive algorithm would retransmit where one round fits.
    retransmit_ceiling / with_retransmit_ceiling: f64 = 0.0, "rexmitceiling" in 0.0..=1.0, "a share up to 100%";
    /// Follow the drift of the peer's clock \[drifttracer\]. Default true.
    drift_tracer / with_drift_tracer: bool = true;
    /// How long a caller tries to connect \[conntimeo\]. Default 3 s.
    connect_timeout / with_connect_timeout: Duration = MS(3_000), "conntimeo" in MS(1)..=MS(3_600_000), "1 to 3600000 ms";
    /// Silence after which the peer counts as gone \[peeridletimeo\]. Default 5 s.
    peer_idle_timeout / with_peer_idle_timeout: Duration = MS(5_000), "peeridletimeo" in MS(1)..=MS(86_400_000), "1 to 86400000 ms";
    /// Follow a peer of this implementation whose address changes, our own \[pathupdate\]. Default
    /// true; both ends must allow it.
    path_update / with_path_update: bool = true;
    /// Oldest SRT version accepted at the peer, 0x00MMmmpp \[minversion\]. Default 1.0.0.
    min_version / with_min_version: u32 = 0x01_00_00;
    /// Let callers in that are links of a group \[groupconnect\]. Default false: they are rejected.
    group_connect / with_group_connect: bool = false;
    /// Least time without an answer after which a backup group holds a link for unstable
    /// \[groupminstabletimeo\]. 60 to 65,535 ms, default 60 ms.
    group_min_stability / with_group_min_stability: Duration = MS(60), "groupminstabletimeo" in MS(60)..=MS(65_535), "60 to 65535 ms";
    /// Length of the key that a caller makes \[pbkeylen\]; a listener tells callers its wish, which
    /// comes before theirs. Default `None`: what the peer wants, or else 16 bytes.
    key_length / with_key_length: Option<KeyLength> = None;
    /// Whether a peer without the same passphrase is refused \[enforcedencryption\]. Default true;
    /// else the connection stands, and what cannot be decrypted is dropped.
    enforced_encryption / with_enforced_encryption: bool = true;
    /// How packets are encrypted \[cryptomode\]. Default: counter mode, or what the caller takes.
    crypto_mode / with_crypto_mode: CryptoMode = CryptoMode::Auto;
    /// Packets after which the sender takes a new key \[kmrefreshrate\]. 3 to 2^30, default 2^24.
    key_refresh_rate / with_key_refresh_rate: u32 = 1 << 24, "kmrefreshrate" in 3..=1 << 30, "3 to 1073741824 packets";
    /// How many packets before that the peer is told the new key \[kmpreannounce\]. 1 to 2^29,
    /// default 65,536; no more than half the refresh rate counts.
    key_pre_announce / with_key_pre_announce: u32 = 1 << 16, "kmpreannounce" in 1..=1 << 29, "1 to 536870912 packets";
} algorithms {
    /// The congestion control of files and byte streams. Default: libsrt's FileCC.
    congestion_algorithm / with_congestion_algorithm: CongestionAlgorithm;
    /// Which packets are retransmitted on a loss report \[retransmitalgo\]. Default automatic.
    retransmit_algorithm / with_retransmit_algorithm: RetransmitAlgorithm;
    /// How the receiver asks for what it misses, our own. Default: as the sender's algorithm wants
    /// it.
    nak_algorithm / with_nak_algorithm: NakAlgorithm;
    /// How round-trip samples become an estimate. Default: the draft's estimator.
    rtt_algorithm / with_rtt_algorithm: RttAlgorithm;
} }

impl Config {
    /// Longest stream ID, bytes.
    pub const MAX_STREAM_ID: usize = 512;

    /// The options of libsrt's file profile: a stream of bytes, nothing dropped, nothing delayed
    /// \[transtype\]. For messages of any size, add
    /// [`with_transmission`](Self::with_transmission)([`Transmission::Messages`]).
    ///
    /// The buffers hold 25,600 packets, which is libsrt's flow window: who reads a file is always
    /// faster than the link, and would fill any buffer.
    pub fn file() -> Self {
        Self {
            transmission: Transmission::Stream,
            tsbpd: false,
            receive_latency: Duration::ZERO,
            peer_latency: Duration::ZERO,
            too_late_drop: false,
            send_drop_delay: None,
            periodic_nak: false,
            retransmit_algorithm: RetransmitAlgorithm::Aggressive,
            payload_size: MAX_PAYLOAD,
            linger: FILE_LINGER,
            flow_window: FILE_BUFFER_PACKETS,
            send_buffer: BufferSize::Packets(FILE_BUFFER_PACKETS),
            ..Self::default()
        }
    }

    /// Whether messages have their time, by which they are delivered or dropped.
    pub(crate) const fn is_timed(&self) -> bool {
        self.tsbpd && !matches!(self.transmission, Transmission::Stream)
    }

    /// Whether a message may need several packets.
    pub(crate) const fn cuts_messages(&self) -> bool {
        !self.is_timed() && !matches!(self.transmission, Transmission::Live)
    }

    /// Whether a message must be put together from several packets.
    pub(crate) fn joins_messages(&self) -> bool {
        self.cuts_messages() && self.transmission == Transmission::Messages
    }

    /// Whether a connection without common keys is none. Of a stream of bytes nothing may be left
    /// out, so what cannot be read would stop it for good.
    pub(crate) fn insists_on_keys(&self) -> bool {
        self.enforced_encryption || self.transmission == Transmission::Stream
    }

    /// Both latencies at once \[latency\]: this end's receiver and the least for the peer's. Up to
    /// 65,535 ms.
    pub fn with_latency(self, latency: Duration) -> Result<Self, ConfigError> {
        self.with_receive_latency(latency)?.with_peer_latency(latency)
    }

    /// The stream ID, which the caller sends to the listener \[streamid\]. Default empty.
    pub fn stream_id(&self) -> &str {
        &self.stream_id
    }

    /// The stream ID, which the caller sends to the listener, up to 512 bytes \[streamid\].
    pub fn with_stream_id(mut self, stream_id: impl Into<String>) -> Result<Self, ConfigError> {
        let stream_id = stream_id.into();
        if stream_id.len() > Self::MAX_STREAM_ID {
            return Err(ConfigError {
                option: "streamid",
                value: format!("{} bytes long", stream_id.len()),
                expected: "at most 512 bytes",
            });
        }
        self.stream_id = stream_id;
        Ok(self)
    }

    /// The secret of both ends, from which the keys of encryption follow \[passphrase\]. Default
    /// none: nothing is encrypted.
    pub const fn passphrase(&self) -> Option<&Passphrase> {
        self.passphrase.as_ref()
    }

    /// The secret of both ends, 10 to 80 bytes \[passphrase\]; empty for no encryption. An error
    /// tells its length and no part of its text.
    pub fn with_passphrase(mut self, passphrase: impl AsRef<[u8]>) -> Result<Self, ConfigError> {
        let passphrase = passphrase.as_ref();
        self.passphrase = match passphrase.len() {
            0 => None,
            len => Some(Passphrase::new(passphrase).map_err(|_| ConfigError {
                option: "passphrase",
                value: format!("{len} bytes long"),
                expected: "10 to 80 bytes",
            })?),
        };
        Ok(self)
    }

    /// How many packets before a refresh the peer is told the new key: the pre-announcement as far
    /// as the refresh rate leaves room for it, by libsrt's rule.
    pub fn effective_key_pre_announce(&self) -> u32 {
        self.key_pre_announce.min((self.key_refresh_rate - 1) / 2)
    }

    /// The packet filter that this end wants \[packetfilter\]. Default empty: none.
    pub fn packet_filter(&self) -> &str {
        self.packet_filter.as_ref().map_or("", FilterConfig::text)
    }

    /// The packet filter that this end wants: empty for none, or forward error correction as
    /// `fec,cols:N[,rows:M][,layout:staircase|even][,arq:always|onreq|never]` \[packetfilter\].
    ///
    /// A row is `cols` packets, 2 and more; a column one packet each of `rows` rows. `rows:1`
    /// (default) protects rows alone, a negative number columns alone. A caller sends its wish, and
    /// a listener adopts it, or fills in what either end left out. A listener with a wish that the
    /// caller contradicts rejects it with
    /// [`RejectReason::FILTER`](punctual_wire::RejectReason::FILTER); a caller without one gets no
    /// filter. Neither does a connection with messages of several packets: who asks for a filter
    /// there is rejected alike.
    pub fn with_packet_filter(mut self, filter: &str) -> Result<Self, ConfigError> {
        self.packet_filter =
            if filter.is_empty() { None } else { Some(FilterConfig::parse(filter)?) };
        Ok(self)
    }

    /// The filter that this end uses: none with messages of several packets, because a rebuilt
    /// packet does not say which part of a message it is.
    pub(crate) fn filter(&self) -> Option<&FilterConfig> {
        self.packet_filter.as_ref().filter(|_| !self.joins_messages())
    }

    /// The most packets that the receiver holds and so the flow window that it announces.
    pub fn receive_window(&self) -> usize {
        self.receive_buffer.packets().min(self.flow_window)
    }
}

/// The options of an endpoint, which is a UDP port or an end of another carriage.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Where all of the endpoint's chance comes from: socket IDs, first sequence numbers, the
    /// cookie's key, and the keys of encryption. Real use takes it from the system's randomness,
    /// once an endpoint, and keeps it to itself: who knows it knows every key. Tests fix it.
    pub seed: [u8; 32],
    /// Callers that may wait for the application's answer at once; more are rejected with
    /// [`RejectReason::BACKLOG`](punctual_wire::RejectReason::BACKLOG). Default 1024.
    pub backlog: usize,
    /// Most connections at once. Default 65,536.
    pub max_connections: usize,
    /// New callers that a listener takes in a second, a quarter of them at once; the requests of
    /// more are passed over, which callers repeat. Half of those at once are kept for addresses
    /// that few callers come from. Default 1000.
    pub callers_per_second: u32,
    /// Keys that are derived a second at most for callers of a listener with a passphrase, before
    /// anybody hears of them, by whoever drives the endpoint: see
    /// [`poll_key_derivation`](crate::Endpoint::poll_key_derivation). `None`, the default: a key is
    /// derived as its caller is accepted.
    pub key_derivations: Option<u32>,
    /// Callers that are taken at a time, waiting ones included, links of groups not; `None`
    /// (default) for any number. More are refused at once with
    /// [`RejectReason::BACKLOG`](punctual_wire::RejectReason::BACKLOG). But one of the same host
    /// and with the same stream ID as another takes the place of that one, if that is not heard any
    /// more (1.2 s) or waits for an answer itself: a program that was started anew need not wait
    /// until the peer's idle timeout is over. Which connection ends by it is told with
    /// [`CloseReason::Replaced`](crate::CloseReason::Replaced).
    pub max_callers: Option<usize>,
    /// Which of several endpoints that share a port this is; see [`Shard`].
    pub shard: Shard,
    /// The number of each connection's first message. Default 1, as libsrt has it; 0, which is no
    /// message's, counts as 1. Another one brings the wrap of the 26 bits near, which is 67 million
    /// messages away.
    pub first_message: MsgNo,
}

/// One of several endpoints that share a port. Each draws other socket IDs, so that it can be told
/// whose a datagram is although it came to another one: a peer's address may change.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Shard {
    index: u32,
    count: u32,
}

impl Default for Shard {
    /// The only one.
    fn default() -> Self {
        Self { index: 0, count: 1 }
    }
}

impl Shard {
    /// Most endpoints that may share a port.
    pub const MOST: u32 = 4_096;

    /// The endpoint `index` of `count`; `None` unless it is one of them, and they are no more than
    /// [`MOST`](Self::MOST).
    pub fn new(index: u32, count: u32) -> Option<Self> {
        (index < count && count <= Self::MOST).then_some(Self { index, count })
    }

    /// The index of the endpoint whose connection a datagram belongs to, if it is not this one's:
    /// `None` too for a datagram that belongs to no connection.
    pub fn other_owner(self, datagram: &[u8]) -> Option<u32> {
        let dest = destination(datagram).filter(|&dest| dest != SocketId::LISTENER)?;
        let owner = dest.value() % self.count;
        (owner != self.index).then_some(owner)
    }

    /// The socket ID of this endpoint's that is made of 30 random bits.
    pub(crate) fn own_id(self, random: u32) -> SocketId {
        let random = random & MAX_SOCKET_ID;
        let first = random - random % self.count;
        // The last, incomplete round of numbers has not one for each.
        let id = if first + self.index > MAX_SOCKET_ID { self.index } else { first + self.index };
        SocketId::new(id)
    }
}

/// The largest ID of a socket: bit 30 is a group's.
const MAX_SOCKET_ID: u32 = 0x3FFF_FFFF;

impl EndpointConfig {
    /// The default options with this seed.
    pub fn new(seed: [u8; 32]) -> Self {
        Self {
            seed,
            backlog: 1_024,
            max_connections: 65_536,
            callers_per_second: 1_000,
            key_derivations: None,
            max_callers: None,
            shard: Shard::default(),
            first_message: MsgNo::FIRST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_names_option_value_and_range() {
        let error = Config::default().with_mss(1501).unwrap_err();
        assert_eq!(error.to_string(), "mss is 1501; it must be 76 to 1500 bytes");
        let error = Config::default().with_latency(Duration::from_secs(66)).unwrap_err();
        assert_eq!(error.to_string(), "rcvlatency is 66s; it must be 0 to 65535 ms");
        let error = Config::default().with_stream_id("x".repeat(513)).unwrap_err();
        assert_eq!(error.to_string(), "streamid is 513 bytes long; it must be at most 512 bytes");
    }

    #[test]
    fn a_passphrase_is_taken_or_refused_and_never_shown() {
        let config = Config::default().with_passphrase("hush, hush").unwrap();
        assert!(config.passphrase().is_some());
        assert!(!format!("{config:?}").contains("hush"));
        assert_ne!(config, Config::default());
        assert_eq!(config.clone().with_passphrase("").unwrap(), Config::default());
        let error = config.with_passphrase("too short").unwrap_err();
        assert_eq!(error.to_string(), "passphrase is 9 bytes long; it must be 10 to 80 bytes");
    }

    #[test]
    fn a_key_is_announced_no_earlier_than_half_way() {
        let config = Config::default();
        assert_eq!(config.effective_key_pre_announce(), 65_536);
        assert_eq!(config.with_key_refresh_rate(100).unwrap().effective_key_pre_announce(), 49);
        assert!(Config::default().with_key_refresh_rate(2).is_err());
        assert!(Config::default().with_key_pre_announce(0).is_err());
    }

    #[test]
    fn shards_know_whose_a_datagram_is_by_its_socket_id() {
        assert_eq!(Shard::default().own_id(u32::MAX), SocketId::new(MAX_SOCKET_ID));
        for count in [1, 2, 3, 7, Shard::MOST] {
            let shards: Vec<Shard> = (0..count).filter_map(|i| Shard::new(i, count)).collect();
            for random in [0, 1, 12_345, MAX_SOCKET_ID - 1, u32::MAX] {
                for (i, shard) in (0..).zip(shards.iter().take(8)) {
                    let id = shard.own_id(random).value();
                    assert!(id <= MAX_SOCKET_ID && id % count == i);
                    let datagram = [&[0; 12][..], &id.to_be_bytes()].concat();
                    let is_listener = id == 0;
                    let owner = |other: &Shard| other.other_owner(&datagram);
                    let others = Some(i).filter(|_| !is_listener);
                    assert_eq!(shards.iter().find_map(owner), others.filter(|_| count > 1));
                    assert_eq!(owner(shard), None);
                }
            }
        }
        assert_eq!((Shard::new(2, 2), Shard::new(0, 0)), (None, None));
        assert_eq!(Shard::new(1, 2).and_then(|shard| shard.other_owner(&[0; 15])), None);
    }

    #[test]
    fn the_receive_window_is_the_smaller_of_buffer_and_flow_window() {
        let config = Config::default().with_receive_buffer(BufferSize::Packets(100));
        assert_eq!(config.receive_window(), 100);
        assert_eq!(config.with_flow_window(64).unwrap().receive_window(), 64);
    }
}
