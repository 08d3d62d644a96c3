//! Options as Punctual's own configuration takes them.

use std::net::SocketAddr;
use std::time::Duration;

use punctual::{
    BufferSize, Config, ConfigError, CryptoMode, KeyLength, MaxBandwidth, OptionKind, OptionValue,
    PORT_OPTIONS, PortConfig, RetransmitAlgorithm, RetransmitBandwidth, Transmission,
};

use super::{OptionNumber, Options, Value};

/// The largest payload of a packet, bytes.
const LARGEST_PAYLOAD: usize = 1_456;
/// libsrt sets neither end of these ranges; longer times are cut.
const LONGEST_LATENCY: i32 = 65_535;
/// The largest buffer of a UDP socket, bytes: systems give less than libsrt's programs may ask for.
const LARGEST_BUFFER: i64 = 1 << 30;

/// The configuration of a connection with these options.
///
/// Errors: options that contradict each other, or texts that cannot be read.
pub(super) fn config(options: &Options) -> Result<Config, ConfigError> {
    let transmission = match (options.is_live(), options.is_message_mode()) {
        (true, _) => Transmission::Live,
        (false, true) => Transmission::Messages,
        (false, false) => Transmission::Stream,
    };
    let mut config = match transmission {
        Transmission::Live => options.defaults.config().clone(),
        _ => Config::file(),
    };
    config = config.with_transmission(transmission);
    for (&number, value) in &options.set {
        config = apply(config, number, value)?;
    }
    for (name, value) in &options.own {
        let text = value.to_text();
        config = punctual_uri::set_option(config, name, &text).map_err(|_| ConfigError {
            option: name,
            value: text,
            expected: "valid",
        })?;
    }
    config.check()?;
    Ok(config)
}

/// The configuration of a UDP port with these options, bound to `local`.
pub(super) fn port_config(options: &Options, local: SocketAddr) -> PortConfig {
    let mut config = PortConfig { local: Some(local), ..options.defaults.port().clone() };
    for option in PORT_OPTIONS {
        let number = option.info.libsrt.map(|number| OptionNumber(number.into()));
        if let Some(value) = number.and_then(|number| options.set.get(&number)) {
            // libsrt also takes values without an effect, which leave the default.
            config =
                option.set(config.clone(), &port_value(value, option.info.kind)).unwrap_or(config);
        }
    }
    config
}

/// The value of an option of a UDP port.
fn port_value(value: &Value, kind: OptionKind) -> OptionValue {
    match (kind, value.number()) {
        (OptionKind::Text, _) => String::from_utf8_lossy(value.bytes()).as_ref().into(),
        // libsrt takes any number: -1 is the default, and all others but 0 are on.
        (OptionKind::Switch, on) if on != -1 => OptionValue::Switch(on != 0),
        (_, number) => OptionValue::Number(number.min(LARGEST_BUFFER)),
    }
}

/// Sets one option that both libraries have.
fn apply(config: Config, number: OptionNumber, value: &Value) -> Result<Config, ConfigError> {
    let int = value.number();
    let millis = u64::try_from(int).unwrap_or(0);
    let latency = Duration::from_millis(millis.min(LONGEST_LATENCY.unsigned_abs().into()));
    let on = int != 0;
    let packets = usize::try_from(int).unwrap_or(0);
    let text = || String::from_utf8_lossy(value.bytes()).into_owned();
    Ok(match number {
        OptionNumber::MSS => config.with_mss(packets.clamp(76, 1_500))?,
        OptionNumber::FC => config.with_flow_window(packets.clamp(32, 1 << 20))?,
        OptionNumber::SNDBUF => config.with_send_buffer(BufferSize::Packets(packets.max(32))),
        OptionNumber::RCVBUF => config.with_receive_buffer(BufferSize::Packets(packets.max(32))),
        OptionNumber::LINGER => config.with_linger(linger(value)),
        OptionNumber::MAXBW => config.with_max_bandwidth(max_bandwidth(int)),
        OptionNumber::MAXREXMITBW => config.with_max_retransmit_bandwidth(match rate(int) {
            None => RetransmitBandwidth::Unlimited,
            Some(rate) => RetransmitBandwidth::Absolute(rate),
        }),
        OptionNumber::INPUTBW => config.with_input_bandwidth(rate(int).unwrap_or_default()),
        OptionNumber::MININPUTBW => config.with_min_input_bandwidth(rate(int).unwrap_or_default()),
        OptionNumber::TSBPDMODE => config.with_tsbpd(on),
        OptionNumber::RCVLATENCY => config.with_receive_latency(latency)?,
        OptionNumber::PEERLATENCY => config.with_peer_latency(latency)?,
        OptionNumber::PASSPHRASE => config.with_passphrase(value.bytes())?,
        OptionNumber::PBKEYLEN => config.with_key_length(KeyLength::from_bytes(packets)),
        OptionNumber::TLPKTDROP => config.with_too_late_drop(on),
        OptionNumber::SNDDROPDELAY => {
            config.with_send_drop_delay(u64::try_from(int).ok().map(Duration::from_millis))
        }
        OptionNumber::NAKREPORT => config.with_periodic_nak(on),
        OptionNumber::CONNTIMEO => {
            config.with_connect_timeout(Duration::from_millis(millis.clamp(1, 3_600_000)))?
        }
        OptionNumber::PEERIDLETIMEO => {
            config.with_peer_idle_timeout(Duration::from_millis(millis.clamp(1, 86_400_000)))?
        }
        OptionNumber::DRIFTTRACER => config.with_drift_tracer(on),
        OptionNumber::LOSSMAXTTL => {
            config.with_reorder_tolerance(u32::try_from(int).unwrap_or(0).min(1_000_000))?
        }
        OptionNumber::MINVERSION => config.with_min_version(u32::try_from(int).unwrap_or(0)),
        OptionNumber::STREAMID => config.with_stream_id(value.bytes().to_vec())?,
        OptionNumber::PAYLOADSIZE => match packets.min(LARGEST_PAYLOAD) {
            0 => config.with_payload_size(LARGEST_PAYLOAD)?,
            size => config.with_payload_size(size)?,
        },
        OptionNumber::KMREFRESHRATE if on => {
            config.with_key_refresh_rate(u32::try_from(int).unwrap_or(0).clamp(3, 1 << 30))?
        }
        OptionNumber::KMPREANNOUNCE if on => {
            config.with_key_pre_announce(u32::try_from(int).unwrap_or(0).clamp(1, 1 << 29))?
        }
        OptionNumber::ENFORCEDENCRYPTION => config.with_enforced_encryption(on),
        OptionNumber::GROUPCONNECT => config.with_group_connect(on),
        OptionNumber::GROUPMINSTABLETIMEO => {
            config.with_group_min_stability(Duration::from_millis(millis.clamp(60, 65_535)))?
        }
        OptionNumber::PACKETFILTER => config.with_packet_filter(&text())?,
        OptionNumber::RETRANSMITALGO => config.with_retransmit_algorithm(match int {
            0 => RetransmitAlgorithm::Aggressive,
            2 => RetransmitAlgorithm::Deadline,
            _ => RetransmitAlgorithm::Auto,
        }),
        OptionNumber::CRYPTOMODE => config.with_crypto_mode(match int {
            1 => CryptoMode::Ctr,
            2 => CryptoMode::Gcm,
            _ => CryptoMode::Auto,
        }),
        OptionNumber::OHEADBW => {
            config.with_overhead_bandwidth(u32::try_from(int).unwrap_or(25))?
        }
        // The others are options of the UDP port, or of the calls of this library.
        _ => config,
    })
}

fn linger(value: &Value) -> Duration {
    match value {
        Value::Linger { on, seconds } if *on != 0 => {
            Duration::from_secs(u64::try_from(*seconds).unwrap_or(0))
        }
        _ => Duration::ZERO,
    }
}

fn max_bandwidth(bytes: i64) -> MaxBandwidth {
    match rate(bytes) {
        None => MaxBandwidth::Unlimited,
        Some(rate) if rate == punctual::Bitrate::ZERO => MaxBandwidth::Relative,
        Some(rate) => MaxBandwidth::Absolute(rate),
    }
}

/// A rate of bytes per second; `None` for a negative number, which stands for no limit.
fn rate(bytes: i64) -> Option<punctual::Bitrate> {
    u64::try_from(bytes).ok().map(punctual::Bitrate::from_bytes_per_sec)
}
