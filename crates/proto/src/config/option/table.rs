use super::c_form::{CDefault, COption, Takes};
use super::range::{OptionRange, numbers};
use super::{AppliesTo, OptionInfo, OptionKind, OptionPhase, OptionValue, TypedOption};
use crate::config::{
    BufferSize, Config, CongestionAlgorithm, MaxBandwidth, RetransmitAlgorithm, RetransmitBandwidth,
};
use crate::encryption::CryptoMode;
use crate::error::ConfigError;
use crate::transmission::Transmission;
use punctual_crypto::KeyLength;
use punctual_units::Bitrate;

const fn libsrt(number: i32, default: CDefault, takes: Takes) -> COption {
    COption::of_libsrt(number, default, takes)
}

type Set = Option<Result<Config, ConfigError>>;

/// Rows of the table: name, form in C, other names in URIs, type, unit, range, default, the end at
/// which it has an effect, the phase until which it can be set, its effect, and the functions that
/// read and set it.
macro_rules! options {
    ($(
        $name:literal $c:expr, $([$($alias:literal),*])? $kind:ident [$unit:literal] $range:expr, $default:literal,
        $applies_to:ident, $phase:ident: $effect:literal
        => $get:expr, $set:expr;
    )*) => {
        &[$( TypedOption::new(
            OptionInfo {
                name: $name,
                aliases: &[$($($alias),*)?],
                c: $c,
                kind: OptionKind::$kind,
                unit: $unit,
                range: $range,
                default: $default,
                applies_to: AppliesTo::$applies_to,
                phase: OptionPhase::$phase,
                effect: $effect,
            },
            $get,
            $set,
        ) ),*]
    };
}

/// The options of a connection. [`Config`] refuses values outside these ranges; a test compares its
/// defaults with these texts.
pub const CONNECTION_OPTIONS: &[TypedOption<Config>] = options! {
    "latency" libsrt(23, CDefault::Int(120), Takes::From(0)),
        Milliseconds ["ms"] numbers!(0, 65_535, "ms"), "120ms", Both, BeforeConnecting:
        "latency of the receivers, here and at the peer; the larger value of both ends applies"
        => |config| Some(config.receive_latency().into()), latency;
    "rcvlatency" libsrt(43, CDefault::Int(120), Takes::From(0)),
        Milliseconds ["ms"] numbers!(0, 65_535, "ms"), "120ms", Both, BeforeConnecting:
        "latency of this end's receiver"
        => |config| Some(config.receive_latency().into()),
        |config, value| value.milliseconds().map(|time| config.with_receive_latency(time));
    "peerlatency" libsrt(44, CDefault::Int(0), Takes::From(0)),
        Milliseconds ["ms"] numbers!(0, 65_535, "ms"), "0ms", Both, BeforeConnecting:
        "lower bound of the latency of the peer's receiver"
        => |config| Some(config.peer_latency().into()),
        |config, value| value.milliseconds().map(|time| config.with_peer_latency(time));
    "streamid" libsrt(46, CDefault::Text(""), Takes::Range),
        ["srt_streamid"] Text ["text"] OptionRange::Form("at most 512 bytes"), "none", Caller, BeforeConnecting:
        "text by which a caller names the stream to the listener"
        => |config| Some(config.stream_id().into()),
        |config, value| value.bytes().map(|id| config.with_stream_id(id.to_vec()));
    "transtype" libsrt(50, CDefault::Word(&["live", "file"], 0), Takes::Range),
        Text [""] OptionRange::Form("live, file or stream"), "live", Both, BeforeBinding:
        "sets all options for live messages, for files, or for a reliable stream of bytes, before all other keys"
        => |config| Some(word(config.transmission() == Transmission::Live, "live", "file")),
        transmission_type;
    "congestion" libsrt(47, CDefault::Text("live"), Takes::Range),
        ["smoother"] Text [""] OptionRange::Form("live or file"), "live", Both, BeforeConnecting:
        "congestion control"
        => |config| Some(word(config.transmission() == Transmission::Live, "live", "file")),
        congestion;
    "messageapi" libsrt(48, CDefault::Bool(true), Takes::All),
        Switch ["switch"] OptionRange::Form("switch"), "on", Both, BeforeConnecting:
        "messages, or a stream of bytes"
        => |config| Some((config.transmission() != Transmission::Stream).into()), message_api;
    "conntimeo" libsrt(36, CDefault::Int(3_000), Takes::From(0)),
        ["connect_timeout"] Milliseconds ["ms"] numbers!(1, 3_600_000, "ms"), "3000ms", Caller, BeforeConnecting:
        "connect timeout"
        => |config| Some(config.connect_timeout().into()),
        |config, value| value.milliseconds().map(|time| config.with_connect_timeout(time));
    "peeridletimeo" libsrt(55, CDefault::Int(5_000), Takes::From(0)),
        Milliseconds ["ms"] numbers!(1, 86_400_000, "ms"), "5000ms", Both,
        BeforeConnecting: "idle timeout: time without a packet from the peer that ends the connection"
        => |config| Some(config.peer_idle_timeout().into()),
        |config, value| value.milliseconds().map(|time| config.with_peer_idle_timeout(time));
    "linger" libsrt(7, CDefault::NoLinger, Takes::All),
        Seconds ["s"] OptionRange::Form("0 and up"), "0", Sender, AnyTime:
        "time for which a close continues to send buffered data"
        => |config| Some(config.linger().into()),
        |config, value| value.seconds().map(|time| Ok(config.with_linger(time)));
    "maxbw" libsrt(16, CDefault::Long(-1), Takes::From(-1)),
        Rate ["bytes/s"] OptionRange::Form("rates like 10Mbps, 0: relative to the input, -1: unlimited"), "-1", Sender, AnyTime:
        "limit of the sending rate; 0: from inputbw and oheadbw"
        => max_bandwidth, with_max_bandwidth;
    "inputbw" libsrt(24, CDefault::Long(0), Takes::From(0)),
        Rate ["bytes/s"] OptionRange::Form("rates like 5Mbps, 0: measured"), "0", Sender, AnyTime:
        "the input's rate, for maxbw=0"
        => |config| Some(config.input_bandwidth().into()),
        |config, value| value.rate().map(|rate| Ok(config.with_input_bandwidth(rate)));
    "mininputbw" libsrt(38, CDefault::Long(0), Takes::From(0)),
        Rate ["bytes/s"] OptionRange::Form("rates like 1Mbps"), "0", Sender, AnyTime:
        "lower bound of a measured input rate"
        => |config| Some(config.min_input_bandwidth().into()),
        |config, value| value.rate().map(|rate| Ok(config.with_min_input_bandwidth(rate)));
    "oheadbw" libsrt(25, CDefault::Int(25), Takes::Range),
        ["bandwidth-overhead-limit"] Number ["percent"] numbers!(5, 100, "percent"), "25", Sender, AnyTime:
        "room for retransmissions above the input rate"
        => |config| Some(i64::from(config.overhead_bandwidth()).into()),
        |config, value| value.number().map(|percent| config.with_overhead_bandwidth(percent));
    "maxrexmitbw" libsrt(63, CDefault::Long(-1), Takes::From(-1)),
        Rate ["bytes/s"] OptionRange::Form("rates, auto, or -1: unlimited"), "auto", Sender,
        AnyTime: "limit of retransmissions alone; auto: from the input rate if maxbw is set"
        => max_retransmit_bandwidth, with_max_retransmit_bandwidth;
    "payloadsize" libsrt(49, CDefault::Int(1_316), Takes::Positive { zero: 1_456 }),
        ["payload_size", "payload-size", "pkt_size"] Number ["bytes"] numbers!(1, 1_456, "bytes"), "1316", Sender, BeforeConnecting:
        "largest payload of a message"
        => |config| Some(count(config.payload_size())),
        |config, value| value.number().map(|size| config.with_payload_size(size));
    "mss" libsrt(0, CDefault::Int(1_500), Takes::Larger),
        Number ["bytes"] numbers!(76, 1_500, "bytes"), "1500", Both, BeforeBinding:
        "largest UDP datagram with IP and UDP headers"
        => |config| Some(count(config.mss())),
        |config, value| value.number().map(|size| config.with_mss(size));
    "fc" libsrt(4, CDefault::Int(25_600), Takes::Larger),
        ["ffs"] Number ["packets"] numbers!(32, 1_048_576, "packets"), "131072", Receiver, BeforeConnecting:
        "most packets in flight to the receiver"
        => |config| Some(count(config.flow_window())),
        |config, value| value.number().map(|packets| config.with_flow_window(packets));
    "sndbuf" libsrt(5, CDefault::Int(8_192), Takes::From(1)),
        Number ["bytes"] OptionRange::Form("bytes or auto"), "auto", Sender, BeforeBinding:
        "send buffer"
        => |config| Some(buffer(config.send_buffer())),
        |config, value| buffer_size(value).map(|size| Ok(config.with_send_buffer(size)));
    "rcvbuf" libsrt(6, CDefault::Int(8_192), Takes::From(1)),
        Number ["bytes"] OptionRange::Form("bytes or auto"), "auto", Receiver, BeforeBinding:
        "receive buffer"
        => |config| Some(buffer(config.receive_buffer())),
        |config, value| buffer_size(value).map(|size| Ok(config.with_receive_buffer(size)));
    "tsbpdmode" libsrt(22, CDefault::Bool(true), Takes::Range),
        ["tsbpd"] Switch ["switch"] OptionRange::Form("switch"), "on", Both, BeforeConnecting:
        "deliver at origin time + latency; otherwise on arrival"
        => |config| Some(config.tsbpd().into()),
        |config, value| value.switch().map(|on| Ok(config.with_tsbpd(on)));
    "tlpktdrop" libsrt(31, CDefault::Bool(true), Takes::Range),
        Switch ["switch"] OptionRange::Form("switch"), "on", Both, BeforeConnecting:
        "drop packets that can no longer be delivered in time"
        => |config| Some(config.too_late_drop().into()),
        |config, value| value.switch().map(|on| Ok(config.with_too_late_drop(on)));
    "snddropdelay" libsrt(32, CDefault::Int(0), Takes::From(-1)),
        Milliseconds ["ms"] OptionRange::Form("0 and up, or -1: never"), "0", Sender, AnyTime:
        "extra time before the sender drops a late packet"
        => |config| Some(config.send_drop_delay().map_or(OptionValue::Number(-1), Into::into)),
        send_drop_delay;
    "nakreport" libsrt(33, CDefault::Bool(true), Takes::Range),
        Switch ["switch"] OptionRange::Form("switch"), "on", Receiver, BeforeConnecting:
        "repeat NAKs until the lost packets arrive or are given up"
        => |config| Some(config.periodic_nak().into()),
        |config, value| value.switch().map(|on| Ok(config.with_periodic_nak(on)));
    "lossmaxttl" libsrt(42, CDefault::Int(0), Takes::All),
        Number ["packets"] numbers!(0, 1_000_000, "packets"), "0", Receiver, AnyTime:
        "most packets that may arrive after a missing one before its loss is reported"
        => |config| Some(i64::from(config.reorder_tolerance()).into()),
        |config, value| value.number().map(|packets| config.with_reorder_tolerance(packets));
    "retransmitalgo" libsrt(61, CDefault::Word(&["aggressive", "auto", "deadline"], 1), Takes::Range),
        Text [""] OptionRange::Form("0 or aggressive, 1 or efficient, deadline, or auto"), "auto", Both, BeforeConnecting:
        "0: retransmit on every NAK; 1: not before the last retransmission can have arrived; deadline: once per NAK, with copies if no later retransmission can be in time; auto: deadline toward Punctual, otherwise 1"
        => retransmit_algorithm, with_retransmit_algorithm;
    "losstarget" COption::own(1_003),
        Share ["share"] OptionRange::Shares { most: 0.1, text: "a share up to 10%, like 0.0001%" }, "0.001%", Sender,
        BeforeConnecting:
        "for retransmitalgo=deadline or auto: packets that may stay unrecovered; 0: as few as the limits of copies permit"
        => |config| Some(config.loss_target().into()),
        |config, value| value.share().map(|share| config.with_loss_target(share));
    "packetfilter" libsrt(60, CDefault::Text(""), Takes::Range),
        Text ["text"] OptionRange::Form("fec,cols:N[,rows:M][,layout:L][,arq:A]"), "none", Both,
        BeforeConnecting:
        "forward error correction; L: staircase, even; A: onreq, always, never"
        => |config| Some(config.packet_filter().into()),
        |config, value| value.text().map(|text| config.with_packet_filter(text));
    "ratecontrol" COption::own(1_005),
        Text [""] OptionRange::Form("auto, delay or file"), "auto", Sender, BeforeConnecting:
        "congestion control of files and streams: by delay; libsrt's for files; auto: by delay"
        => congestion_algorithm, with_congestion_algorithm;
    "targetrate" COption::own(1_007),
        Rate ["bytes/s"] OptionRange::Form("rates like 20Mbps, 0: the link's"), "0", Sender, AnyTime:
        "for ratecontrol=delay: highest sending rate"
        => |config| Some(config.target_rate().into()),
        |config, value| value.rate().map(|rate| Ok(config.with_target_rate(rate)));
    "minrate" COption::own(1_008),
        Rate ["bytes/s"] OptionRange::Form("rates like 5Mbps, up to targetrate"), "0", Sender, AnyTime:
        "for ratecontrol=delay: least sending rate, whatever others need"
        => |config| Some(config.min_rate().into()),
        |config, value| value.rate().map(|rate| Ok(config.with_min_rate(rate)));
    "queuetarget" COption::own(1_009),
        Milliseconds ["ms"] numbers!(0, 1_000, "ms"), "0ms", Sender, AnyTime:
        "for ratecontrol=delay: longest queueing delay that this end causes alone; 0: an eighth of the round trip, 5 to 25 ms"
        => |config| Some(config.queue_target().into()),
        |config, value| value.milliseconds().map(|time| config.with_queue_target(time));
    "playout" COption::own(1_010),
        Milliseconds ["ms"] numbers!(0, 65_535, "ms"), "0ms", Both, BeforeConnecting:
        "time from when a byte of a stream should arrive to its use; nothing is dropped for it; the larger value of both ends applies; 0: none"
        => |config| Some(config.playout().into()),
        |config, value| value.milliseconds().map(|time| config.with_playout(time));
    "drifttracer" libsrt(37, CDefault::Bool(true), Takes::Range),
        Switch ["switch"] OptionRange::Form("switch"), "on", Receiver, AnyTime:
        "follow the drift of the peer's clock"
        => |config| Some(config.drift_tracer().into()),
        |config, value| value.switch().map(|on| Ok(config.with_drift_tracer(on)));
    "pathupdate" COption::own(1_013),
        Switch ["switch"] OptionRange::Form("switch"), "on", Both, BeforeConnecting:
        "follow a Punctual peer whose address changes"
        => |config| Some(config.path_update().into()),
        |config, value| value.switch().map(|on| Ok(config.with_path_update(on)));
    "passphrase" libsrt(26, CDefault::Text(""), Takes::Range),
        Text ["bytes"] OptionRange::Form("10 to 80 bytes"), "none", Both, BeforeConnecting:
        "shared secret of both ends; without it, no encryption. Visible in the list of processes: better use passphrase-file or passphrase-env"
        => |_| None, |config, value| value.bytes().map(|text| config.with_passphrase(text));
    "pbkeylen" libsrt(27, CDefault::Int(0), Takes::Range),
        ["key-length"] Number ["bytes"] OptionRange::Form("0, 16, 24 or 32 bytes"), "0", Both, BeforeConnecting:
        "length of the key; 0: as the peer requires, or 16"
        => |config| Some(count(config.key_length().map_or(0, KeyLength::bytes))), key_length;
    "enforcedencryption" libsrt(53, CDefault::Bool(true), Takes::Range),
        ["enforced_encryption"] Switch ["switch"] OptionRange::Form("switch"), "on", Both, BeforeConnecting:
        "refuse a peer without the same passphrase; otherwise drop packets that cannot be decrypted"
        => |config| Some(config.enforced_encryption().into()),
        |config, value| value.switch().map(|on| Ok(config.with_enforced_encryption(on)));
    "cryptomode" libsrt(62, CDefault::Int(0), Takes::Range),
        Text [""] OptionRange::Form("0 or auto, 1 or ctr, 2 or gcm"), "0", Both, BeforeConnecting:
        "the cipher: AES-CTR; or AES-GCM, which detects changed packets and which few peers support"
        => |config| Some(config.crypto_mode().into()), crypto_mode;
    "kmrefreshrate" libsrt(51, CDefault::Int(0), Takes::Positive { zero: 0 }),
        Number ["packets"] numbers!(3, 1_073_741_824, "packets"), "16777216", Sender,
        BeforeConnecting: "packets after which the sender uses a new key; 0 is the default"
        => |config| Some(i64::from(config.key_refresh_rate()).into()), key_refresh_rate;
    "kmpreannounce" libsrt(52, CDefault::Int(0), Takes::Positive { zero: 0 }),
        Number ["packets"] numbers!(1, 536_870_912, "packets"), "65536", Sender,
        BeforeConnecting:
        "packets before a refresh at which the new key is announced; at most half of kmrefreshrate"
        => |config| Some(i64::from(config.key_pre_announce()).into()), key_pre_announce;
    "minversion" libsrt(45, CDefault::Int(0x01_00_00), Takes::All),
        Number ["version"] OptionRange::Numbers { least: 0, most: 0xFFFF_FFFF, text: "MAJOR.MINOR.PATCH, or 0xMMmmpp" }, "1.0.0", Both,
        BeforeConnecting: "oldest SRT version accepted at the peer"
        => |config| Some(i64::from(config.min_version()).into()),
        |config, value| value.number().map(|version| Ok(config.with_min_version(version)));
    "groupconnect" libsrt(57, CDefault::Int(0), Takes::Range),
        Switch ["switch"] OptionRange::Form("switch"), "off", Listener, BeforeConnecting:
        "accept links of groups, at all ports of the listener"
        => |config| Some(config.group_connect().into()),
        |config, value| value.switch().map(|on| Ok(config.with_group_connect(on)));
    "groupminstabletimeo" libsrt(58, CDefault::Int(60), Takes::Larger),
        ["groupstabtimeo"] Milliseconds ["ms"] numbers!(60, 65_535, "ms"), "60ms", Sender,
        BeforeConnecting:
        "lower bound of the time without an answer after which a backup group uses another link"
        => |config| Some(config.group_min_stability().into()),
        |config, value| value.milliseconds().map(|time| config.with_group_min_stability(time));
};

fn latency(config: Config, value: &OptionValue) -> Set {
    value.milliseconds().map(|time| config.with_latency(time))
}

fn transmission_type(config: Config, value: &OptionValue) -> Set {
    let preset = match (value.word()?.as_str(), config.transmission()) {
        ("file" | "stream", _) => Config::file(),
        ("live", Transmission::Live) => return Some(Ok(config)),
        ("live", _) => Config::default(),
        _ => return wrong("transtype", value, "live, file or stream"),
    };
    Some(preset.with_stream_id(config.raw_stream_id().clone()))
}

fn congestion(config: Config, value: &OptionValue) -> Set {
    let transmission = match (value.word()?.as_str(), config.transmission()) {
        ("live", _) => Transmission::Live,
        ("file", Transmission::Live | Transmission::Messages) => Transmission::Messages,
        ("file", Transmission::Stream) => Transmission::Stream,
        _ => return wrong("congestion", value, "live or file"),
    };
    Some(Ok(config.with_transmission(transmission)))
}

fn message_api(config: Config, value: &OptionValue) -> Set {
    let transmission = match (value.switch()?, config.transmission()) {
        (true, Transmission::Live) => Transmission::Live,
        (true, _) => Transmission::Messages,
        (false, Transmission::Live) => {
            return wrong(
                "messageapi",
                value,
                "on in live mode: a stream of bytes needs file mode",
            );
        }
        (false, _) => Transmission::Stream,
    };
    Some(Ok(config.with_transmission(transmission)))
}

fn max_bandwidth(config: &Config) -> Option<OptionValue> {
    Some(match config.max_bandwidth() {
        MaxBandwidth::Unlimited => OptionValue::Number(-1),
        MaxBandwidth::Relative => OptionValue::Rate(Bitrate::ZERO),
        MaxBandwidth::Absolute(rate) => OptionValue::Rate(rate),
    })
}

fn with_max_bandwidth(config: Config, value: &OptionValue) -> Set {
    let limit = match value {
        OptionValue::Number(-1) => MaxBandwidth::Unlimited,
        value => match value.rate()? {
            Bitrate::ZERO => MaxBandwidth::Relative,
            rate => MaxBandwidth::Absolute(rate),
        },
    };
    Some(Ok(config.with_max_bandwidth(limit)))
}

fn max_retransmit_bandwidth(config: &Config) -> Option<OptionValue> {
    Some(match config.max_retransmit_bandwidth() {
        RetransmitBandwidth::Auto => "auto".into(),
        RetransmitBandwidth::Unlimited => OptionValue::Number(-1),
        RetransmitBandwidth::Absolute(rate) => OptionValue::Rate(rate),
    })
}

fn with_max_retransmit_bandwidth(config: Config, value: &OptionValue) -> Set {
    let limit = match value {
        OptionValue::Number(-1) => RetransmitBandwidth::Unlimited,
        OptionValue::Text(text) if text == "auto" => RetransmitBandwidth::Auto,
        value => RetransmitBandwidth::Absolute(value.rate()?),
    };
    Some(Ok(config.with_max_retransmit_bandwidth(limit)))
}

/// The value of a buffer size: bytes by libsrt's rule, or `auto`.
fn buffer(size: BufferSize) -> OptionValue {
    size.bytes().map_or_else(|| "auto".into(), count)
}

fn buffer_size(value: &OptionValue) -> Option<BufferSize> {
    match value {
        OptionValue::Number(-1) => Some(BufferSize::Auto),
        OptionValue::Text(text) if text == "auto" => Some(BufferSize::Auto),
        value => value.number().map(BufferSize::from_bytes),
    }
}

fn send_drop_delay(config: Config, value: &OptionValue) -> Set {
    let delay = match value {
        OptionValue::Number(-1) => None,
        value => Some(value.milliseconds()?),
    };
    Some(Ok(config.with_send_drop_delay(delay)))
}

fn retransmit_algorithm(config: &Config) -> Option<OptionValue> {
    Some(match config.retransmit_algorithm() {
        RetransmitAlgorithm::Aggressive => OptionValue::Number(0),
        RetransmitAlgorithm::Efficient => OptionValue::Number(1),
        RetransmitAlgorithm::Deadline => "deadline".into(),
        RetransmitAlgorithm::Auto => "auto".into(),
        RetransmitAlgorithm::Custom(_) => "custom".into(),
    })
}

fn with_retransmit_algorithm(config: Config, value: &OptionValue) -> Set {
    let algorithm = match value.word()?.as_str() {
        "0" | "aggressive" => RetransmitAlgorithm::Aggressive,
        "1" | "efficient" => RetransmitAlgorithm::Efficient,
        "deadline" => RetransmitAlgorithm::Deadline,
        "auto" => RetransmitAlgorithm::Auto,
        _ => {
            let expected = "0 (aggressive), 1 (efficient), deadline, or auto";
            return wrong("retransmitalgo", value, expected);
        }
    };
    Some(Ok(config.with_retransmit_algorithm(algorithm)))
}

fn congestion_algorithm(config: &Config) -> Option<OptionValue> {
    Some(match config.congestion_algorithm() {
        CongestionAlgorithm::Auto => "auto".into(),
        CongestionAlgorithm::Delay => "delay".into(),
        CongestionAlgorithm::File => "file".into(),
        CongestionAlgorithm::Custom(_) => "custom".into(),
    })
}

fn with_congestion_algorithm(config: Config, value: &OptionValue) -> Set {
    let algorithm = match value.word()?.as_str() {
        "auto" => CongestionAlgorithm::Auto,
        "delay" => CongestionAlgorithm::Delay,
        "file" => CongestionAlgorithm::File,
        _ => return wrong("ratecontrol", value, "auto, delay or file"),
    };
    Some(Ok(config.with_congestion_algorithm(algorithm)))
}

fn key_length(config: Config, value: &OptionValue) -> Set {
    let OptionValue::Number(bytes) = value else { return None };
    let length = match *bytes {
        0 => None,
        bytes => match usize::try_from(bytes).ok().and_then(KeyLength::from_bytes) {
            Some(length) => Some(length),
            None => return wrong("pbkeylen", value, "0, 16, 24 or 32 bytes"),
        },
    };
    Some(Ok(config.with_key_length(length)))
}

impl From<CryptoMode> for OptionValue {
    fn from(mode: CryptoMode) -> Self {
        Self::Number(match mode {
            CryptoMode::Auto => 0,
            CryptoMode::Ctr => 1,
            CryptoMode::Gcm => 2,
        })
    }
}

fn crypto_mode(config: Config, value: &OptionValue) -> Set {
    let mode = match value.word()?.as_str() {
        "0" | "auto" => CryptoMode::Auto,
        "1" | "ctr" | "aes-ctr" => CryptoMode::Ctr,
        "2" | "gcm" | "aes-gcm" => CryptoMode::Gcm,
        _ => return wrong("cryptomode", value, "0 (auto), 1 (ctr) or 2 (gcm)"),
    };
    Some(Ok(config.with_crypto_mode(mode)))
}

fn key_refresh_rate(config: Config, value: &OptionValue) -> Set {
    Some(config.with_key_refresh_rate(match value.number()? {
        0 => Config::default().key_refresh_rate(),
        packets => packets,
    }))
}

fn key_pre_announce(config: Config, value: &OptionValue) -> Set {
    Some(config.with_key_pre_announce(match value.number()? {
        0 => Config::default().key_pre_announce(),
        packets => packets,
    }))
}

fn wrong(option: &'static str, value: &OptionValue, expected: &'static str) -> Set {
    Some(Err(ConfigError { option, value: value.to_string(), expected }))
}

fn word(is_first: bool, first: &str, second: &str) -> OptionValue {
    if is_first { first.into() } else { second.into() }
}

fn count(number: usize) -> OptionValue {
    OptionValue::Number(i64::try_from(number).unwrap_or(i64::MAX))
}
