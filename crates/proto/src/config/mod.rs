//! The options of a connection: unit, default, range and effect of each.
//!
//! A [`Config`] is always valid: setters with a range return an error for a value outside it. Names
//! in brackets are libsrt's (`SRTO_…`, lower case).

pub(crate) mod option;

use std::time::Duration;

use punctual_crypto::{KeyLength, Passphrase};
use punctual_rtt::{ClassicRtt, RttEstimator};
use punctual_units::Bitrate;

use self::option::{CONNECTION_OPTIONS, OptionValue, TypedOption, check_change, check_range};
use crate::encryption::CryptoMode;
use crate::error::ConfigError;
use crate::factory::Factory;
use crate::filter::FilterConfig;
use crate::policy::congestion::CongestionControl;
use crate::policy::nak::NakPolicy;
use crate::policy::retransmit::RetransmitPolicy;
use crate::stream_id::{self, RawStreamId};
use crate::transmission::Transmission;

/// The most packets in a buffer of automatic size: enough for 10 Gb/s at a latency of 120 ms.
const AUTO_BUFFER_PACKETS: usize = 131_072;
/// The largest payload of a packet: an Ethernet frame less the headers of IPv4, UDP and SRT.
const MAX_PAYLOAD: usize = 1_456;
/// The default share of packets that may stay unrecovered: at 10 Mb/s, one packet in 105 seconds.
pub(crate) const LOSS_TARGET: f64 = 1e-5;
/// The most packets in the buffers of a file's connection.
const FILE_BUFFER_PACKETS: usize = 25_600;
/// The default linger time of a file's connection.
const FILE_LINGER: Duration = Duration::from_secs(180);
/// The payload of one of libsrt's buffer units, bytes: the MTU less IP and UDP headers.
const BUFFER_UNIT: usize = 1_472;

/// The policy that decides on retransmissions \[retransmitalgo\].
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RetransmitAlgorithm {
    /// [`Deadline`](Self::Deadline) if the peer announces per-packet NAK timers, which only this
    /// implementation does; otherwise [`Efficient`](Self::Efficient).
    #[default]
    Auto,
    /// Retransmits immediately on every NAK (libsrt's algorithm 0).
    Aggressive,
    /// Retransmits on a NAK, unless the last retransmission of the packet is less than RTT - 4
    /// RTTVar ago (libsrt's algorithm 1). Takes effect only if the peer sends periodic NAKs.
    Efficient,
    /// The receiver sends NAKs by a timer for each packet, and the sender answers each NAK once,
    /// with several copies if no later retransmission can be in time
    /// ([`Deadline`](crate::Deadline)).
    Deadline,
    /// A custom policy, which the factory creates for each connection.
    Custom(Factory<dyn RetransmitPolicy>),
}

impl RetransmitAlgorithm {
    /// A custom policy, which `make` creates for each connection; the closure holds its parameters.
    pub fn custom<P: RetransmitPolicy + 'static>(
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        Self::Custom(Factory::<dyn RetransmitPolicy>::new(move || Box::new(make())))
    }
}

/// The policy that decides when a receiver sends NAKs for missing packets; not in libsrt.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum NakAlgorithm {
    /// The policy of the sender's [`RetransmitAlgorithm`]: periodic NAKs, or
    /// [`PerPacketNakTimers`](crate::PerPacketNakTimers) if either end is deadline-aware.
    #[default]
    Standard,
    /// A custom policy for per-packet NAK timers, which the factory creates for each connection.
    Custom(Factory<dyn NakPolicy>),
}

impl NakAlgorithm {
    /// A custom policy, which `make` creates for each connection; the closure holds its parameters.
    pub fn custom<P: NakPolicy + 'static>(make: impl Fn() -> P + Send + Sync + 'static) -> Self {
        Self::Custom(Factory::<dyn NakPolicy>::new(move || Box::new(make())))
    }
}

/// The congestion control of files and byte streams; live mode has its own \[ratecontrol\].
#[derive(Clone, Debug, Default, PartialEq)]
pub enum CongestionAlgorithm {
    /// By delay.
    #[default]
    Auto,
    /// By delay: losses do not lower the rate.
    Delay,
    /// libsrt's congestion control (FileCC).
    File,
    /// A custom congestion control, which the factory creates for each connection.
    Custom(Factory<dyn CongestionControl>),
}

impl CongestionAlgorithm {
    /// A custom congestion control, which `make` creates for each connection; the closure holds its
    /// parameters.
    pub fn custom<P: CongestionControl + 'static>(
        make: impl Fn() -> P + Send + Sync + 'static,
    ) -> Self {
        Self::Custom(Factory::<dyn CongestionControl>::new(move || Box::new(make())))
    }
}

/// The estimator of the round-trip time that a connection uses; not in libsrt.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum RttAlgorithm {
    /// The draft's (draft section 4.10).
    #[default]
    Draft,
    /// An estimator that the factory makes for each connection.
    Custom(Factory<dyn RttEstimator>),
}

impl RttAlgorithm {
    /// The estimator that `make` returns for each connection; the closure holds its parameters.
    pub fn custom<E: RttEstimator + 'static>(make: impl Fn() -> E + Send + Sync + 'static) -> Self {
        Self::Custom(Factory::<dyn RttEstimator>::new(move || Box::new(make())))
    }

    pub(crate) fn build(&self) -> Box<dyn RttEstimator> {
        match self {
            Self::Draft => Box::new(ClassicRtt::default()),
            Self::Custom(factory) => factory.make(),
        }
    }
}

/// The share of a link that a stream of bytes or a file takes beside others; not in libsrt.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RatePolicy {
    /// Always the target rate, whatever others need.
    Fixed,
    /// About two shares.
    High,
    /// One share.
    #[default]
    Fair,
    /// Only capacity that nobody else uses; beside others, the least rate.
    Low,
}

/// The moment at which the receiver sends a periodic NAK that is due; not in libsrt.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NakTimer {
    /// At the time at which it is due.
    #[default]
    Exact,
    /// When a packet arrives after that time, and 10 ms after it at the latest, as in libsrt. If
    /// the retransmission for the first NAK arrives in this interval, fewer packets are
    /// retransmitted twice; more packets whose first retransmission was lost stay unrecovered.
    WithPackets,
}

/// The limit of the sending rate, originals and retransmissions together \[maxbw\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MaxBandwidth {
    /// No limit except pacing at 1 Gb/s, or at the input rate plus the overhead if that is more.
    #[default]
    Unlimited,
    /// A limit at this rate.
    Absolute(Bitrate),
    /// The input rate, given or measured, plus the overhead percentage.
    Relative,
}

/// The limit of retransmissions alone \[maxrexmitbw\].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum RetransmitBandwidth {
    /// If the peer drops late packets, packets that are retransmitted more than once keep to the
    /// input's rate, or to that of the packets that arrive if the peer reports it, and so do all
    /// others while some of these wait. If [`MaxBandwidth`] is a limit, all retransmissions keep to
    /// the rate that it leaves above the input, at most half and at least a twentieth of the input
    /// rate, with bursts of one latency's worth of input.
    #[default]
    Auto,
    /// No limit except that of the sending rate.
    Unlimited,
    /// A limit at this rate; zero allows no retransmissions.
    Absolute(Bitrate),
}

/// The capacity of a buffer, in packets.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum BufferSize {
    /// Grows as bit rate, latency and RTT require, up to 131,072 packets.
    #[default]
    Auto,
    /// Grows up to this many packets.
    Packets(usize),
}

impl BufferSize {
    /// The largest number of packets in the buffer.
    pub const fn packets(self) -> usize {
        match self {
            Self::Auto => AUTO_BUFFER_PACKETS,
            Self::Packets(packets) => packets,
        }
    }

    /// The size in bytes by libsrt's rule, 1472 bytes per packet; `None` for the automatic size.
    pub const fn bytes(self) -> Option<usize> {
        match self {
            Self::Auto => None,
            Self::Packets(packets) => Some(packets.saturating_mul(BUFFER_UNIT)),
        }
    }

    /// The size of this many bytes by libsrt's rule, 1472 bytes per packet; at least 32 packets.
    pub const fn from_bytes(bytes: usize) -> Self {
        let packets = bytes / BUFFER_UNIT;
        Self::Packets(if packets < 32 { 32 } else { packets })
    }
}

macro_rules! options {
    (plain { $( $(#[$doc:meta])* $field:ident / $with:ident : $type:ty = $default:expr
        $(, in $name:literal)? ; )* }
    algorithms { $( $(#[$adoc:meta])* $algorithm:ident / $awith:ident : $atype:ty ; )* }) => {
        /// The options of one connection. The default is libsrt's live profile.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Config {
            $( $field: $type, )*
            $( $algorithm: $atype, )*
            stream_id: RawStreamId,
            passphrase: Option<Passphrase>,
            packet_filter: Option<FilterConfig>,
        }

        impl Default for Config {
            fn default() -> Self {
                Self {
                    $( $field: $default, )*
                    $( $algorithm: <$atype>::default(), )*
                    stream_id: RawStreamId::default(),
                    passphrase: None,
                    packet_filter: None,
                }
            }
        }

        impl Config {
            $(
                $(#[$doc])*
                pub const fn $field(&self) -> $type { self.$field }

                options!(@setter $(#[$doc])* $field, $with, $type $(, $name)?);
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
    (@setter $(#[$doc:meta])* $field:ident, $with:ident, $type:ty, $name:literal) => {
        $(#[$doc])*
        pub fn $with(mut self, value: $type) -> Result<Self, ConfigError> {
            check_range($name, value)?;
            self.$field = value;
            Ok(self)
        }
    };
}

const MS: fn(u64) -> Duration = Duration::from_millis;

options! { plain {
    /// The kind of data; both ends must agree \[congestion\]. Default: live messages.
    /// [`Config::file`] sets this and the other options for files.
    transmission / with_transmission: Transmission = Transmission::Live;
    /// Whether a listener accepts files in both forms, messages and streams of bytes: if its
    /// [transmission](Self::transmission) is one of them, the caller's is used. Default false: a
    /// caller with the other form is rejected.
    either_file_mode / with_either_file_mode: bool = false;
    /// Whether this end's application keeps the boundaries of messages in a stream of bytes by
    /// [frames](crate::FrameReader); not in libsrt. If both ends do,
    /// [`ConnectionInfo::framing`](crate::ConnectionInfo::framing) is set, and each has to frame
    /// all that it writes. Default false.
    framing / with_framing: bool = false;
    /// Whether this end's application resumes a stream of bytes after its connection was lost, by
    /// the records that `punctual-resume` defines; not in libsrt. It needs
    /// [`framing`](Self::framing). If both ends do,
    /// [`ConnectionInfo::resumable`](crate::ConnectionInfo::resumable) is set, and both have to
    /// follow that protocol. Default false.
    resume / with_resume: bool = false;
    /// Whether a complete message of several packets is delivered before older incomplete ones if
    /// its sender does not require order (in libsrt, an argument of `srt_sendmsg2`; the default is
    /// no order). Default true, as in libsrt; otherwise messages are delivered in the order of
    /// sending.
    overtaking / with_overtaking: bool = true;
    /// The largest UDP datagram with IP and UDP headers, bytes \[mss\]. 76 to 1500, default 1500;
    /// the smaller value of both ends applies.
    mss / with_mss: usize = 1500, in "mss";
    /// The largest payload of a packet, and so of a live message, bytes \[payloadsize\]. 1 to 1456,
    /// default 1316: seven MPEG-TS packets.
    payload_size / with_payload_size: usize = 1316, in "payloadsize";
    /// The most packets in flight that the receiver allows \[fc\]. At least 32, default 131,072.
    flow_window / with_flow_window: usize = AUTO_BUFFER_PACKETS, in "fc";
    /// The size of the send buffer \[sndbuf\].
    send_buffer / with_send_buffer: BufferSize = BufferSize::Auto;
    /// The size of the receive buffer \[rcvbuf\]; the flow window bounds it as well.
    receive_buffer / with_receive_buffer: BufferSize = BufferSize::Auto;
    /// The time for which `close` continues to send buffered packets \[linger\]. Default 0 in live
    /// mode.
    linger / with_linger: Duration = Duration::ZERO;
    /// The limit of the sending rate, originals and retransmissions together \[maxbw\]. Default: no
    /// limit.
    max_bandwidth / with_max_bandwidth: MaxBandwidth = MaxBandwidth::Unlimited;
    /// The input's rate for [`MaxBandwidth::Relative`]; zero (default) to measure it \[inputbw\].
    input_bandwidth / with_input_bandwidth: Bitrate = Bitrate::ZERO;
    /// The lower bound of a measured input rate \[mininputbw\]. Default zero.
    min_input_bandwidth / with_min_input_bandwidth: Bitrate = Bitrate::ZERO;
    /// The room for retransmissions above the input rate, for [`MaxBandwidth::Relative`], percent
    /// \[oheadbw\]. 5 to 100, default 25.
    overhead_bandwidth / with_overhead_bandwidth: u32 = 25, in "oheadbw";
    /// The limit of retransmissions alone \[maxrexmitbw\]. Default automatic.
    max_retransmit_bandwidth / with_max_retransmit_bandwidth: RetransmitBandwidth = RetransmitBandwidth::Auto;
    /// Whether each message is delivered at origin time + latency \[tsbpdmode\]. Default true;
    /// otherwise messages are delivered on arrival, in order. A stream of bytes has no origin
    /// times.
    tsbpd / with_tsbpd: bool = true;
    /// The lower bound of this receiver's latency \[rcvlatency\]. Up to 65,535 ms, default 120 ms;
    /// the larger of this and the peer's `peerlatency` applies.
    receive_latency / with_receive_latency: Duration = MS(120), in "rcvlatency";
    /// The lower bound of the peer's receiver latency \[peerlatency\]. Up to 65,535 ms, default 0.
    peer_latency / with_peer_latency: Duration = Duration::ZERO, in "peerlatency";
    /// Whether packets that can no longer be delivered in time are dropped \[tlpktdrop\]. Default
    /// true.
    too_late_drop / with_too_late_drop: bool = true;
    /// The extra time before the sender drops a late packet; with `None` the sender never does
    /// \[snddropdelay\]. Default 0.
    send_drop_delay / with_send_drop_delay: Option<Duration> = Some(Duration::ZERO);
    /// Whether the receiver repeats NAKs until the lost packets arrive or are given up
    /// \[nakreport\]. Default true.
    periodic_nak / with_periodic_nak: bool = true;
    /// The moment at which a periodic NAK is sent; not in libsrt. Default exact.
    nak_timer / with_nak_timer: NakTimer = NakTimer::Exact;
    /// The reordering tolerance: the most packets that may arrive after a missing one before its
    /// loss is reported \[lossmaxttl\]. Default 0: report at once.
    reorder_tolerance / with_reorder_tolerance: u32 = 0, in "lossmaxttl";
    /// Whether this end announces per-packet NAK timers to the peer; not in libsrt. If both ends
    /// announce them and the sender is deadline-aware, the receiver uses these timers. A receiver
    /// of files uses them toward every peer that marks its retransmissions. Default true.
    timed_requests / with_timed_requests: bool = true;
    /// Whether the receiver of a live stream tells its newest packet in ACKs, and each 10 ms while
    /// a packet is missing, to a peer of this implementation; not in libsrt. By that the peer
    /// measures the queueing delay. Default true.
    live_reports / with_live_reports: bool = true;
    /// The share of packets that may stay unrecovered; not in libsrt \[losstarget\]. The
    /// deadline-aware algorithm sends as many copies as this requires and its limits permit. 0 to
    /// 0.1, default 0.00001; 0 for as few unrecovered packets as the limits permit.
    loss_target / with_loss_target: f64 = LOSS_TARGET, in "losstarget";
    /// The most packets that the deadline-aware algorithm retransmits per original, copies
    /// included; not in libsrt. Beyond that it leaves losses unrecovered, and in
    /// a stream of bytes, which gives nothing up, sends no copies. 0 to 1. The default 0 means a
    /// limit that follows the share p of lost packets: p / (1 - p) + p / 10 if two rounds of NAK
    /// and retransmission fit into the latency, and the number that the aggressive algorithm would
    /// retransmit if one round fits.
    retransmit_ceiling / with_retransmit_ceiling: f64 = 0.0, in "ceiling";
    /// The highest sending rate of a file or a stream of bytes by the delay-based congestion
    /// control, headers and retransmissions included; not in libsrt \[targetrate\]. Default zero:
    /// the rate of the link.
    target_rate / with_target_rate: Bitrate = Bitrate::ZERO;
    /// The least sending rate by the delay-based congestion control, which nothing lowers; not in
    /// libsrt \[minrate\]. Default zero.
    min_rate / with_min_rate: Bitrate = Bitrate::ZERO;
    /// The share of a link that the delay-based congestion control takes beside others; not in
    /// libsrt. Default fair: one share.
    rate_policy / with_rate_policy: RatePolicy = RatePolicy::Fair;
    /// The longest queueing delay that the delay-based congestion control causes alone; not in
    /// libsrt \[queuetarget\]. Up to 1 s; the default zero means an eighth of the round trip, 5 ms
    /// at least and 25 ms at most.
    queue_target / with_queue_target: Duration = Duration::ZERO, in "queuetarget";
    /// The playout point of a stream of bytes: the time from when a byte should arrive to its use
    /// at the receiver, by its timestamp, as the latency of live messages; not in libsrt
    /// \[playout\]. Nothing is dropped for it, but the last retransmission that can arrive in time
    /// is sent more than once. The larger value of both ends applies. Up to 65,535 ms; the default
    /// zero means none.
    playout / with_playout: Duration = Duration::ZERO, in "playout";
    /// Whether the receiver follows the drift of the peer's clock \[drifttracer\]. Default true.
    drift_tracer / with_drift_tracer: bool = true;
    /// The connect timeout of a caller \[conntimeo\]. 1 ms to 1 h, default 3 s.
    connect_timeout / with_connect_timeout: Duration = MS(3_000), in "conntimeo";
    /// The idle timeout: the time without any packet from the peer after which the connection ends
    /// \[peeridletimeo\]. 1 ms to 24 h, default 5 s.
    peer_idle_timeout / with_peer_idle_timeout: Duration = MS(5_000), in "peeridletimeo";
    /// Whether the connection follows a peer of this implementation to a new address; not in libsrt
    /// \[pathupdate\]. Default true; both ends must allow it.
    path_update / with_path_update: bool = true;
    /// The oldest SRT version that the peer may have, 0x00MMmmpp \[minversion\]. Default 1.0.0.
    min_version / with_min_version: u32 = 0x01_00_00;
    /// Whether a listener accepts links of groups \[groupconnect\]. Default false: they are
    /// rejected.
    group_connect / with_group_connect: bool = false;
    /// The lower bound of the time without an answer after which a backup group considers a link
    /// unstable \[groupminstabletimeo\]. 60 to 65,535 ms, default 60 ms.
    group_min_stability / with_group_min_stability: Duration = MS(60), in "groupminstabletimeo";
    /// The length of the key that a caller generates \[pbkeylen\]. A listener announces its value
    /// to callers, which overrides theirs. Default `None`: the length that the peer requires, or 16
    /// bytes.
    key_length / with_key_length: Option<KeyLength> = None;
    /// Whether a peer without the same passphrase is refused \[enforcedencryption\]. Default true;
    /// otherwise the connection is established, and packets that cannot be decrypted are dropped.
    enforced_encryption / with_enforced_encryption: bool = true;
    /// The cipher mode \[cryptomode\]. Default automatic: a caller uses counter mode, a listener
    /// the caller's mode.
    crypto_mode / with_crypto_mode: CryptoMode = CryptoMode::Auto;
    /// The number of packets after which the sender uses a new key \[kmrefreshrate\]. 3 to 2^30,
    /// default 2^24.
    key_refresh_rate / with_key_refresh_rate: u32 = 1 << 24, in "kmrefreshrate";
    /// The number of packets before a refresh at which the sender announces the new key to the peer
    /// \[kmpreannounce\]. 1 to 2^29, default 65,536; at most half of the refresh rate takes effect.
    key_pre_announce / with_key_pre_announce: u32 = 1 << 16, in "kmpreannounce";
} algorithms {
    /// The congestion control of files and byte streams; not in libsrt \[ratecontrol\]. Default
    /// automatic: by delay.
    congestion_algorithm / with_congestion_algorithm: CongestionAlgorithm;
    /// The policy that decides on retransmissions \[retransmitalgo\]. Default automatic.
    retransmit_algorithm / with_retransmit_algorithm: RetransmitAlgorithm;
    /// The policy that decides when the receiver sends NAKs; not in libsrt. Default: that of the
    /// sender's retransmission algorithm.
    nak_algorithm / with_nak_algorithm: NakAlgorithm;
    /// The estimator of the round-trip time, which the receiver measures and reports to the sender;
    /// not in libsrt. Default: the draft's.
    rtt_algorithm / with_rtt_algorithm: RttAlgorithm;
} }

impl Config {
    /// The length of the longest stream ID, bytes.
    pub const MAX_STREAM_ID: usize = stream_id::MAX_LEN;

    /// The options of libsrt's file profile: a stream of bytes, without drops and without latency
    /// \[transtype\]. For messages of any size, add
    /// [`with_transmission`](Self::with_transmission)([`Transmission::Messages`]).
    ///
    /// The buffers hold 25,600 packets, libsrt's flow window: a program reads a file faster than
    /// the link carries it, and would fill a buffer of any size.
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

    /// Whether messages have a due time, at which they are delivered and after which they are
    /// dropped.
    pub(crate) const fn is_timed(&self) -> bool {
        self.tsbpd && !matches!(self.transmission, Transmission::Stream)
    }

    /// Checks options whose ranges depend on each other.
    ///
    /// # Errors
    ///
    /// A least rate that exceeds the target rate.
    pub fn check(&self) -> Result<(), ConfigError> {
        if self.target_rate != Bitrate::ZERO && self.min_rate > self.target_rate {
            return Err(ConfigError {
                option: "minrate",
                value: self.min_rate.to_string(),
                expected: "at most the target rate, targetrate",
            });
        }
        Ok(())
    }

    /// The value of the option with this name in [`CONNECTION_OPTIONS`]; `None` for an unknown
    /// name, and for the passphrase, which is write-only.
    pub fn option(&self, name: &str) -> Option<OptionValue> {
        TypedOption::find(CONNECTION_OPTIONS, name)?.get(self)
    }

    /// Returns these options with this value of the option with this name in
    /// [`CONNECTION_OPTIONS`].
    ///
    /// # Errors
    ///
    /// The name is unknown, or the value has the wrong type or lies outside the range.
    pub fn with_option(
        self,
        name: &str,
        value: impl Into<OptionValue>,
    ) -> Result<Self, ConfigError> {
        match TypedOption::find(CONNECTION_OPTIONS, name) {
            Some(option) => option.set(self, &value.into()),
            None => Err(ConfigError {
                option: "option",
                value: name.to_owned(),
                expected: "the name of an option of a connection",
            }),
        }
    }

    /// Checks that `new` differs from these options of an established connection only in options
    /// that can be changed at [any time](crate::OptionPhase::AnyTime).
    ///
    /// # Errors
    ///
    /// The first option that differs and cannot be changed; options that contradict each other
    /// ([`check`](Self::check)).
    pub fn check_change(&self, new: &Self) -> Result<(), ConfigError> {
        new.check()?;
        check_change(self, new)
    }

    /// The latency that this end's receiver announces, or the playout point of a stream of bytes.
    pub(crate) const fn announced_receive_latency(&self) -> Duration {
        match self.transmission {
            Transmission::Live | Transmission::Messages => self.receive_latency,
            Transmission::Stream => self.playout,
        }
    }

    /// The same for the peer's receiver.
    pub(crate) const fn announced_peer_latency(&self) -> Duration {
        match self.transmission {
            Transmission::Live | Transmission::Messages => self.peer_latency,
            Transmission::Stream => self.playout,
        }
    }

    /// Whether a message may be split over several packets.
    pub(crate) const fn cuts_messages(&self) -> bool {
        !self.is_timed() && !matches!(self.transmission, Transmission::Live)
    }

    /// Whether the receiver reassembles messages from several packets.
    pub(crate) fn joins_messages(&self) -> bool {
        self.cuts_messages() && self.transmission == Transmission::Messages
    }

    /// Whether a connection without common keys is refused. A stream of bytes requires keys:
    /// packets that cannot be decrypted would stop it, since none may be left out.
    pub(crate) fn insists_on_keys(&self) -> bool {
        self.enforced_encryption || self.transmission == Transmission::Stream
    }

    /// Sets both latencies \[latency\]: that of this end's receiver, and the lower bound of the
    /// peer's. Up to 65,535 ms.
    pub fn with_latency(self, latency: Duration) -> Result<Self, ConfigError> {
        self.with_receive_latency(latency)?.with_peer_latency(latency)
    }

    /// The stream ID, which the caller sends to the listener \[streamid\]. Default empty.
    pub fn stream_id(&self) -> &str {
        self.stream_id.as_str()
    }

    /// The stream ID with its bytes, if these are not text.
    pub const fn raw_stream_id(&self) -> &RawStreamId {
        &self.stream_id
    }

    /// Sets the stream ID, which the caller sends to the listener, up to 512 bytes \[streamid\]:
    /// text, or other bytes. Zeros at its end do not reach the listener.
    pub fn with_stream_id(
        mut self,
        stream_id: impl Into<RawStreamId>,
    ) -> Result<Self, ConfigError> {
        let stream_id = stream_id.into();
        let len = stream_id.bytes().len();
        if len > Self::MAX_STREAM_ID {
            return Err(ConfigError {
                option: "streamid",
                value: format!("{len} bytes long"),
                expected: "at most 512 bytes",
            });
        }
        self.stream_id = stream_id;
        Ok(self)
    }

    /// The passphrase, from which both ends derive the key that wraps the stream's keys
    /// \[passphrase\]. Default none: nothing is encrypted.
    pub const fn passphrase(&self) -> Option<&Passphrase> {
        self.passphrase.as_ref()
    }

    /// Sets the passphrase, 10 to 80 bytes \[passphrase\]; empty for no encryption. An error names
    /// the length, not the text.
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

    /// The number of packets before a refresh at which the new key is announced: the
    /// pre-announcement, limited to half of the refresh rate as in libsrt.
    pub fn effective_key_pre_announce(&self) -> u32 {
        self.key_pre_announce.min((self.key_refresh_rate - 1) / 2)
    }

    /// The packet filter of this end \[packetfilter\]. Default empty: none.
    pub fn packet_filter(&self) -> &str {
        self.packet_filter.as_ref().map_or("", FilterConfig::text)
    }

    /// Sets the packet filter of this end: empty for none, or forward error correction as
    /// `fec,cols:N[,rows:M][,layout:staircase|even][,arq:always|onreq|never]` \[packetfilter\].
    ///
    /// A row has `cols` packets, at least 2; a column has one packet of each of `rows` rows.
    /// `rows:1` (default) protects only rows, a negative number only columns. A caller sends its
    /// text, and a listener adopts it, or completes values that either end left out. A listener
    /// rejects a caller whose text contradicts its own with
    /// [`RejectReason::FILTER`](punctual_wire::RejectReason::FILTER). A caller without a filter
    /// gets the listener's, except as a link of a group. A connection with messages of several
    /// packets gets none: a caller that requires a filter for these is rejected with the same code.
    pub fn with_packet_filter(mut self, filter: &str) -> Result<Self, ConfigError> {
        self.packet_filter =
            if filter.is_empty() { None } else { Some(FilterConfig::parse(filter)?) };
        Ok(self)
    }

    /// The filter that this end uses; `None` with messages of several packets, because a rebuilt
    /// packet does not show which part of a message it is.
    pub(crate) fn filter(&self) -> Option<&FilterConfig> {
        self.packet_filter.as_ref().filter(|_| !self.joins_messages())
    }

    /// The most packets that the receiver holds, which is the flow window that it announces.
    pub fn receive_window(&self) -> usize {
        self.receive_buffer.packets().min(self.flow_window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_value_out_of_range_names_option_value_and_range() {
        let error = Config::default().with_mss(1501).unwrap_err();
        assert_eq!(error.to_string(), "mss is 1501; it must be 76 to 1500 bytes");
        let error = Config::default().with_latency(Duration::from_secs(66)).unwrap_err();
        assert_eq!(error.to_string(), "rcvlatency is 66s; it must be 0 to 65535 ms");
        let error = Config::default().with_stream_id("x".repeat(513)).unwrap_err();
        assert_eq!(error.to_string(), "streamid is 513 bytes long; it must be at most 512 bytes");
    }

    #[test]
    fn a_passphrase_is_checked_and_never_shown() {
        let config = Config::default().with_passphrase("hush, hush").unwrap();
        assert!(config.passphrase().is_some());
        assert!(!format!("{config:?}").contains("hush"));
        assert_ne!(config, Config::default());
        assert_eq!(config.clone().with_passphrase("").unwrap(), Config::default());
        let error = config.with_passphrase("too short").unwrap_err();
        assert_eq!(error.to_string(), "passphrase is 9 bytes long; it must be 10 to 80 bytes");
    }

    #[test]
    fn a_key_is_announced_at_most_half_a_refresh_before_its_use() {
        let config = Config::default();
        assert_eq!(config.effective_key_pre_announce(), 65_536);
        assert_eq!(config.with_key_refresh_rate(100).unwrap().effective_key_pre_announce(), 49);
        assert!(Config::default().with_key_refresh_rate(2).is_err());
        assert!(Config::default().with_key_pre_announce(0).is_err());
    }

    #[test]
    fn the_receive_window_is_the_smaller_of_buffer_and_flow_window() {
        let config = Config::default().with_receive_buffer(BufferSize::Packets(100));
        assert_eq!(config.receive_window(), 100);
        assert_eq!(config.with_flow_window(64).unwrap().receive_window(), 64);
    }
}
