//! Every key of an `srt://` URI: libsrt's options, and further keys of srt-live-transmit,
//! srt-xtransmit and FFmpeg.

use std::time::Duration;

use punctual::{
    AppliesTo, Bitrate, CONNECTION_OPTIONS, Config, ConfigError, GroupKind, OptionValue,
    PORT_OPTIONS, PortConfig, Transmission,
};
use punctual_units::{
    DisplayDuration, parse_bitrate_in, parse_bytes_in, parse_count, parse_duration_in, parse_share,
};
use zeroize::Zeroizing;

use crate::error::ValueError;
use crate::key::{Effect, Key, described, number, switch};
use crate::place::split_host_port;

/// The role of this end in the handshake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// This end calls.
    Caller,
    /// This end waits for calls.
    Listener,
    /// Both ends call each other.
    Rendezvous,
}

/// The values of the keys of an `srt://` URI, before the mode is known.
#[derive(Debug, Default)]
pub(crate) struct SrtKeys {
    pub mode: Option<Mode>,
    pub local_host: Option<String>,
    pub local_port: Option<u16>,
    pub group: Option<GroupKind>,
    pub weight: Option<u16>,
    pub config: Config,
    pub port_config: PortConfig,
    pub payload_size_given: bool,
    pub listen_timeout: Option<Duration>,
    pub framing: Option<bool>,
    pub warnings: Vec<String>,
}

type Done = Result<(), ValueError>;

/// A key that exists only in URIs.
macro_rules! key {
    ($name:literal $(| $alias:literal)* : $value:literal, $about:tt
        $([$unit:literal, $whom:ident])? => $effect:expr) => {
        Key {
            unit: key!(@unit $($unit)?),
            applies_to: key!(@whom $($whom)?),
            ..Key::new($name, &[$($alias),*], $value, $about, $effect)
        }
    };
    (@unit $unit:literal) => { $unit };
    (@unit) => { "" };
    (@whom $whom:ident) => { Some(AppliesTo::$whom) };
    (@whom) => { None };
}

/// An option of [`CONNECTION_OPTIONS`], whose value is read from text by a function, or that is set
/// by a custom function. The default of URIs may differ from the library's.
macro_rules! option {
    ($name:literal $(| $alias:literal)* $(default $default:literal)?, $read:ident) => {
        option!($name $(| $alias)* $(default $default)? => |keys, value| {
            let read = $read(value)?;
            warn_of_bytes(keys, $name, value, &read);
            set_option(keys, $name, read)
        })
    };
    ($name:literal $(| $alias:literal)* $(default $default:literal)? => $set:expr) => {
        {
            let key = Key::described(described(CONNECTION_OPTIONS, $name), &[$($alias),*], $set);
            Key { $(default: Some($default),)? ..key }
        }
    };
}

/// An option of [`PORT_OPTIONS`], whose value is read from text by a function.
macro_rules! port_option {
    ($name:literal $(| $alias:literal)*, $read:ident) => {
        Key::described(described(PORT_OPTIONS, $name), &[$($alias),*], |keys, value| {
            set_port_option(keys, $name, $read(value)?)
        })
    };
}

/// The keys of an `srt://` URI. The tables of options describe the keys of a connection and of a UDP
/// port; a key that they do not have is a compile error.
pub(crate) const SRT_KEYS: &[Key<SrtKeys>] = &[
    key!("mode": "caller, listener or rendezvous; default: listener without a host, else caller",
        "role of this end; in a rendezvous both ends call (also: client, server)"
        ["text", Local] => Effect::Set(mode)),
    key!("rendezvous": "switch; default off", "the same as mode=rendezvous" ["switch", Local]
        => Effect::Set(rendezvous)),
    key!("adapter" | "localaddress": "address; default: the system's choice", "the local address"
        ["text", Local] => Effect::Set(adapter)),
    key!("port" | "localport": "1 to 65535; default: the system's choice",
        "the local port of a caller; default in a rendezvous: the other end's" ["", Caller]
        => Effect::Set(local_port)),
    key!("bind": "ADDRESS[:PORT]; default: the system's choice", "the local address and port"
        ["text", Local] => Effect::Set(bind)),
    option!("latency" => |keys, value| { let latency = latency(keys, "latency", value)?;
            set(keys, |config| config.with_latency(latency)) }),
    key!("tsbpddelay": "0 to 65535000 us; default 120000us",
        "FFmpeg's name for latency, in microseconds" ["us", Both]
        => Effect::Set(ffmpeg_latency)),
    option!("rcvlatency" => |keys, value| { let latency = latency(keys, "rcvlatency", value)?;
            set(keys, |config| config.with_receive_latency(latency)) }),
    option!("peerlatency" => |keys, value| { let latency = latency(keys, "peerlatency", value)?;
            set(keys, |config| config.with_peer_latency(latency)) }),
    option!("streamid" | "srt_streamid", text),
    option!("transtype", word),
    option!("congestion" | "smoother", word),
    option!("messageapi" => message_api),
    key!("framing": "switch; default on",
        "for transtype=stream toward Punctual: keep the boundaries of messages, such as datagrams"
        ["switch", Both] => Effect::Set(framing)),
    option!("conntimeo" | "connect_timeout", time_in_ms),
    option!("peeridletimeo", time_in_ms),
    key!("timeout": "1000 and up, or -1: no limit; default -1",
        "FFmpeg's limit of any wait: sets conntimeo and peeridletimeo" ["us", Both]
        => Effect::Set(ffmpeg_timeout)),
    key!("listen_timeout": "1000 and up, or -1: no limit; default -1",
        "FFmpeg's limit of the wait for a caller" ["us", Listener] => Effect::Set(listen_timeout)),
    option!("linger" default "3", time_in_s),
    option!("maxbw", rate_or_unlimited),
    option!("inputbw", rate),
    option!("mininputbw", rate),
    option!("oheadbw" | "bandwidth-overhead-limit", percent),
    option!("maxrexmitbw", retransmit_rate),
    option!("payloadsize" | "payload_size" | "payload-size" | "pkt_size" default "1316, or --msgsize" => payload_size),
    option!("mss", bytes),
    option!("fc" | "ffs", packets),
    option!("sndbuf", bytes_or_auto),
    option!("rcvbuf", bytes_or_auto),
    option!("tsbpdmode" | "tsbpd", on_or_off),
    option!("tlpktdrop", on_or_off),
    option!("snddropdelay" => |keys, value| {
            let delay = if value == "-1" { None } else { Some(milliseconds(value)?) };
            warn_of_micros(keys, "snddropdelay", value, delay.unwrap_or_default());
            set(keys, |config| Ok(config.with_send_drop_delay(delay))) }),
    option!("nakreport", on_or_off),
    option!("lossmaxttl", whole_number),
    option!("retransmitalgo", text),
    option!("losstarget", share),
    option!("packetfilter", text),
    option!("ratecontrol", word),
    option!("targetrate", rate),
    option!("minrate", rate),
    option!("queuetarget", time_in_ms),
    option!("playout", time_in_ms),
    option!("drifttracer", on_or_off),
    option!("pathupdate", on_or_off),
    option!("passphrase" => |keys, value| { warn_of_processes(keys, value);
            passphrase(keys, value.as_bytes()) }),
    key!("passphrase-file" | "passphrase_file": "path; default none",
        "a file that holds the passphrase" ["text", Both] => Effect::Set(passphrase_file)),
    key!("passphrase-env" | "passphrase_env": "name; default none",
        "an environment variable that holds the passphrase" ["text", Both]
        => Effect::Set(passphrase_env)),
    option!("pbkeylen" | "key-length", key_length),
    option!("enforcedencryption" | "enforced_encryption", on_or_off),
    option!("cryptomode", word),
    option!("kmrefreshrate", whole_number),
    option!("kmpreannounce", whole_number),
    option!("minversion", version),
    key!("grouptype": "broadcast, backup or balance; default none",
        "with several caller URIs: one stream over all links; each message goes over all, over the best one, or over one in turn"
        ["text", Caller]
        => Effect::Set(group_kind)),
    key!("weight": "0 to 65535; default 0", "the best link of a backup group has the highest weight"
        ["", Caller]
        => Effect::Set(|keys, value| {
            let weight = number(value, 0, u16::MAX.into())?;
            keep(&mut keys.weight, Ok(u16::try_from(weight).unwrap_or(u16::MAX))) })),
    option!("groupconnect", on_or_off),
    option!("groupminstabletimeo" | "groupstabtimeo", time_in_ms),
    port_option!("udp_sndbuf" | "send_buffer_size", bytes),
    port_option!("udp_rcvbuf" | "recv_buffer_size", bytes),
    port_option!("ipttl" | "ttl", whole_number),
    port_option!("iptos" | "tos", whole_number),
    port_option!("ipv6only", on_or_off_or_unset),
    port_option!("bindtodevice", text),
    key!("blocking": "", NON_BLOCKING => Effect::Ignored),
    key!("sndsyn": "", NON_BLOCKING => Effect::Ignored),
    key!("rcvsyn": "", NON_BLOCKING => Effect::Ignored),
    key!("sndtimeo": "", NON_BLOCKING => Effect::Ignored),
    key!("rcvtimeo": "", NON_BLOCKING => Effect::Ignored),
    key!("reuseaddr": "", "connections share a UDP port if possible" => Effect::Ignored),
    key!("sender": "", "both directions are open" => Effect::Ignored),
    key!("poll-timeout": "", GSTREAMER => Effect::Ignored),
    key!("wait-for-connection": "", GSTREAMER => Effect::Ignored),
    key!("auto-reconnect": "", GSTREAMER => Effect::Ignored),
    key!("keep-listening": "", GSTREAMER => Effect::Ignored),
    key!("authentication": "", GSTREAMER => Effect::Ignored),
];

const NON_BLOCKING: &str = "no call blocks here";
const GSTREAMER: &str = "an option of GStreamer's elements, not of the connection";

/// The smallest bare latency that more likely means FFmpeg's microseconds than milliseconds.
const SUSPICIOUS_LATENCY_MS: u128 = 8_000;
const MAX_LATENCY_MS: u128 = 65_535;

fn set(keys: &mut SrtKeys, with: impl FnOnce(Config) -> Result<Config, ConfigError>) -> Done {
    keys.config = with(std::mem::take(&mut keys.config))?;
    Ok(())
}

fn keep<T>(place: &mut Option<T>, value: Result<T, ValueError>) -> Done {
    *place = Some(value?);
    Ok(())
}

fn mode(keys: &mut SrtKeys, value: &str) -> Done {
    let mode = match value.to_lowercase().as_str() {
        "caller" | "client" => Mode::Caller,
        "listener" | "server" => Mode::Listener,
        "rendezvous" => Mode::Rendezvous,
        "default" | "" => return Ok(()),
        _ => return Err(ValueError("it must be caller, listener or rendezvous".to_owned())),
    };
    set_mode(keys, mode)
}

fn rendezvous(keys: &mut SrtKeys, value: &str) -> Done {
    if switch(value)? { set_mode(keys, Mode::Rendezvous) } else { Ok(()) }
}

/// Sets the mode. `mode` and `rendezvous` must agree if both are present.
fn set_mode(keys: &mut SrtKeys, mode: Mode) -> Done {
    match keys.mode.replace(mode) {
        Some(before) if before != mode => {
            Err(ValueError("it contradicts an earlier `mode` or `rendezvous`".to_owned()))
        }
        _ => Ok(()),
    }
}

fn group_kind(keys: &mut SrtKeys, value: &str) -> Done {
    keys.group = Some(match value.to_lowercase().as_str() {
        "broadcast" => GroupKind::Broadcast,
        "backup" => GroupKind::Backup,
        "balance" => GroupKind::Balance,
        _ => return Err(ValueError("it must be broadcast, backup or balance".to_owned())),
    });
    Ok(())
}

fn adapter(keys: &mut SrtKeys, value: &str) -> Done {
    let host = value.trim_start_matches('[').trim_end_matches(']');
    if keys.local_host.is_some() {
        return Err(ValueError("`bind` already sets the local address".to_owned()));
    }
    keys.local_host = Some(host.to_owned()).filter(|host| !host.is_empty());
    Ok(())
}

fn local_port(keys: &mut SrtKeys, value: &str) -> Done {
    if keys.local_port.is_some() {
        return Err(ValueError("`bind` already sets the local port".to_owned()));
    }
    let port = number(value, 1, u16::MAX.into())?;
    keys.local_port = u16::try_from(port).ok();
    Ok(())
}

fn bind(keys: &mut SrtKeys, value: &str) -> Done {
    let (host, port) = split_host_port(value)?;
    if keys.local_host.is_some() || keys.local_port.is_some() {
        return Err(ValueError("`adapter` or `port` already sets the local address".to_owned()));
    }
    keys.local_host = Some(host.to_owned()).filter(|host| !host.is_empty());
    keys.local_port = port.filter(|port| *port != 0);
    Ok(())
}

fn message_api(keys: &mut SrtKeys, value: &str) -> Done {
    let transmission = match (switch(value)?, keys.config.transmission()) {
        (true, Transmission::Live) => Transmission::Live,
        (true, _) => Transmission::Messages,
        (false, Transmission::Live) => {
            let reason = "live streams are messages; a stream of bytes needs `transtype=file`";
            return Err(ValueError(reason.to_owned()));
        }
        (false, _) => Transmission::Stream,
    };
    set(keys, |config| Ok(config.with_transmission(transmission)))
}

fn framing(keys: &mut SrtKeys, value: &str) -> Done {
    keys.framing = Some(switch(value)?);
    Ok(())
}

fn latency(keys: &mut SrtKeys, key: &str, value: &str) -> Result<Duration, ValueError> {
    let latency = milliseconds(value)?;
    if is_bare(value) && latency.as_millis() > MAX_LATENCY_MS {
        let micros = latency.as_millis();
        return Err(ValueError(format!(
            "a bare number is milliseconds, at most {MAX_LATENCY_MS}; in FFmpeg it is \
             microseconds: did you mean `{key}={}`?",
            spell_micros(micros)
        )));
    }
    if latency.as_millis() > MAX_LATENCY_MS {
        let number: String = value.chars().take_while(char::is_ascii_digit).collect();
        let likely = number.parse().is_ok_and(|ms: u128| ms > 0 && ms <= MAX_LATENCY_MS);
        let hint =
            if likely { format!("; did you mean `{key}={number}ms`?") } else { String::new() };
        return Err(ValueError(format!(
            "{} is too long: it must be 0 to {MAX_LATENCY_MS} ms{hint}",
            DisplayDuration(latency)
        )));
    }
    warn_of_micros(keys, key, value, latency);
    Ok(latency)
}

/// Warns of a bare number of milliseconds that more likely means FFmpeg's microseconds.
fn warn_of_micros(keys: &mut SrtKeys, key: &str, value: &str, time: Duration) {
    if is_bare(value) && time.as_millis() >= SUSPICIOUS_LATENCY_MS {
        keys.warnings.push(format!(
            "{key}={value} is {} seconds, because a bare number is milliseconds; if you meant \
             FFmpeg's microseconds, write `{key}={}`",
            time.as_secs_f64(),
            spell_micros(time.as_millis())
        ));
    }
}

/// Warns of a bare number of bytes per second that is less than any stream has.
fn warn_of_bytes(keys: &mut SrtKeys, key: &str, value: &str, read: &OptionValue) {
    let OptionValue::Rate(rate) = read else { return };
    if is_bare(value) && (1..1_000).contains(&rate.as_bytes_per_sec()) {
        keys.warnings.push(format!(
            "{key}={value} is {rate:#}, because a bare number is bytes per second; if you meant \
             megabits, write `{key}={}Mbps`",
            value.trim()
        ));
    }
}

/// Reads the value of a key of FFmpeg, whose bare numbers are microseconds. Warns of a value that
/// is too short for its purpose: milliseconds may have been intended.
fn microseconds(
    keys: &mut SrtKeys,
    key: &str,
    value: &str,
    plausible: Duration,
) -> Result<Duration, ValueError> {
    let time = parse_duration_in(value, Duration::from_micros(1))?;
    if is_bare(value) && time < plausible && !time.is_zero() {
        keys.warnings.push(format!(
            "{key}={value} is {}, because a bare number of this FFmpeg key is microseconds; if you \
             meant milliseconds, write `{key}={}ms`",
            DisplayDuration(time),
            value.trim()
        ));
    }
    Ok(time)
}

fn is_bare(value: &str) -> bool {
    value.trim().bytes().all(|byte| byte.is_ascii_digit())
}

fn ffmpeg_latency(keys: &mut SrtKeys, value: &str) -> Done {
    let latency = microseconds(keys, "tsbpddelay", value, Duration::from_millis(8))?;
    set(keys, |config| config.with_latency(latency))
}

/// Sets FFmpeg's `timeout`, which limits every wait: for the answer to a call, and for packets of
/// the peer.
fn ffmpeg_timeout(keys: &mut SrtKeys, value: &str) -> Done {
    if value == "-1" {
        return Ok(());
    }
    let time = microseconds(keys, "timeout", value, Duration::from_millis(100))?;
    set(keys, |config| config.with_connect_timeout(time)?.with_peer_idle_timeout(time))
}

fn listen_timeout(keys: &mut SrtKeys, value: &str) -> Done {
    if value != "-1" {
        let time = microseconds(keys, "listen_timeout", value, Duration::from_millis(100))?;
        if time < Duration::from_millis(1) {
            return Err(ValueError("it must be at least 1 ms".to_owned()));
        }
        keys.listen_timeout = Some(time);
    }
    Ok(())
}

/// Formats a number of microseconds as a value with a unit.
fn spell_micros(micros: u128) -> String {
    if micros.is_multiple_of(1_000) {
        format!("{}ms", micros / 1_000)
    } else {
        format!("{micros}us")
    }
}

fn milliseconds(value: &str) -> Result<Duration, ValueError> {
    Ok(parse_duration_in(value, Duration::from_millis(1))?)
}

fn payload_size(keys: &mut SrtKeys, value: &str) -> Done {
    let size = size(value)?;
    keys.payload_size_given = true;
    set(keys, |config| config.with_payload_size(size))
}

fn set_option(keys: &mut SrtKeys, name: &str, value: OptionValue) -> Done {
    set(keys, |config| config.with_option(name, value))
}

fn set_port_option(keys: &mut SrtKeys, name: &str, value: OptionValue) -> Done {
    keys.port_config = std::mem::take(&mut keys.port_config).with_option(name, value)?;
    Ok(())
}

type Read = Result<OptionValue, ValueError>;

fn text(value: &str) -> Read {
    Ok(value.into())
}

fn word(value: &str) -> Read {
    Ok(value.to_lowercase().as_str().into())
}

fn on_or_off(value: &str) -> Read {
    Ok(switch(value)?.into())
}

fn on_or_off_or_unset(value: &str) -> Read {
    match value {
        "-1" => Ok(OptionValue::Number(-1)),
        value => on_or_off(value),
    }
}

fn time_in_ms(value: &str) -> Read {
    Ok(milliseconds(value)?.into())
}

fn time_in_s(value: &str) -> Read {
    Ok(parse_duration_in(value, Duration::from_secs(1))?.into())
}

fn share(value: &str) -> Read {
    Ok(parse_share(value)?.into())
}

/// Reads a rate, whose bare numbers are bytes per second as in libsrt.
fn rate(value: &str) -> Read {
    Ok(parse_bitrate_in(value, Bitrate::from_bytes_per_sec(1))?.into())
}

fn rate_or_unlimited(value: &str) -> Read {
    match value {
        "-1" | "unlimited" => Ok(OptionValue::Number(-1)),
        value => rate(value),
    }
}

fn retransmit_rate(value: &str) -> Read {
    match value {
        "auto" => Ok(value.into()),
        value => rate_or_unlimited(value),
    }
}

fn bytes(value: &str) -> Read {
    whole(parse_bytes_in(value, 1)?)
}

fn bytes_or_auto(value: &str) -> Read {
    match value {
        "auto" | "-1" => Ok("auto".into()),
        value => bytes(value),
    }
}

fn packets(value: &str) -> Read {
    whole(parse_count(value)?)
}

fn whole_number(value: &str) -> Read {
    whole(number(value, 0, u32::MAX)?)
}

fn percent(value: &str) -> Read {
    whole_number(value.trim_end_matches('%'))
}

fn whole(number: impl Into<u64>) -> Read {
    Ok(OptionValue::Number(i64::try_from(number.into()).unwrap_or(i64::MAX)))
}

fn key_length(value: &str) -> Read {
    match value {
        "" => Ok(OptionValue::Number(0)),
        // Any other text is not a length; the error of the option lists the valid ones.
        value => Ok(OptionValue::Number(value.parse().unwrap_or(-1))),
    }
}

fn version(value: &str) -> Read {
    let form = || ValueError("it must be like 1.3.0 or 0x010300".to_owned());
    let is_number = value.starts_with("0x") || value.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        return whole(number(value, 0, 0x00FF_FFFF)?);
    }
    let parts: Result<Vec<u8>, _> = value.split('.').map(str::parse).collect();
    match parts.as_deref() {
        Ok(&[major, minor, patch]) => whole(u32::from_be_bytes([0, major, minor, patch])),
        _ => Err(form()),
    }
}

fn size(value: &str) -> Result<usize, ValueError> {
    Ok(usize::try_from(parse_bytes_in(value, 1)?).unwrap_or(usize::MAX))
}

fn passphrase(keys: &mut SrtKeys, value: &[u8]) -> Done {
    if keys.config.passphrase().is_some() {
        return Err(ValueError("the passphrase is set already".to_owned()));
    }
    set(keys, |config| config.with_passphrase(value))
}

/// Warns that other users can read a passphrase in a URI, and names the safer keys.
fn warn_of_processes(keys: &mut SrtKeys, value: &str) {
    if !value.is_empty() {
        keys.warnings.push(
            "all users of this machine see the passphrase in the list of processes (`ps`); \
             `passphrase-file=PATH` or `passphrase-env=NAME` in its place keeps it out"
                .to_owned(),
        );
    }
}

/// Reads the passphrase from a file, without a byte order mark and a line end, which editors and
/// `echo` add.
fn passphrase_file(keys: &mut SrtKeys, path: &str) -> Done {
    let read = std::fs::read(path).map(Zeroizing::new);
    let text = read.map_err(|error| {
        let why = error.to_string();
        ValueError(format!("it cannot be read: {}", punctual_units::without_os_error(&why)))
    })?;
    let text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&text);
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    found(keys, line.strip_suffix(b"\r").unwrap_or(line))
}

fn passphrase_env(keys: &mut SrtKeys, name: &str) -> Done {
    let value = std::env::var_os(name).ok_or_else(|| ValueError("it is not set".to_owned()))?;
    let value = Zeroizing::new(value.into_encoded_bytes());
    found(keys, &value)
}

/// Sets a passphrase that was read from a file or a variable. It must not be empty.
fn found(keys: &mut SrtKeys, value: &[u8]) -> Done {
    passphrase(keys, value)?;
    match keys.config.passphrase() {
        Some(_) => Ok(()),
        None => Err(ValueError("it is empty".to_owned())),
    }
}

#[cfg(test)]
#[path = "srt_keys_tests.rs"]
mod tests;
