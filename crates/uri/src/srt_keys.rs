//! Every key of an `srt://` URI: libsrt's options, and further keys of srt-live-transmit,
//! srt-xtransmit and FFmpeg.

use std::sync::LazyLock;
use std::time::Duration;

use punctual::{
    AppliesTo, Bitrate, CDefault, CONNECTION_OPTIONS, Config, ConfigError, GroupKind, OptionInfo,
    OptionKind, OptionValue, PORT_OPTIONS, PortConfig, Transmission, TypedOption,
};
use punctual_units::{
    DisplayDuration, parse_bitrate_in, parse_bytes_in, parse_count, parse_duration_in, parse_share,
};
use zeroize::Zeroizing;

use crate::error::ValueError;
use crate::key::{KeyEffect, UriKey, number, switch};
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
        UriKey {
            unit: key!(@unit $($unit)?),
            applies_to: key!(@whom $($whom)?),
            ..UriKey::new($name, &[$($alias),*], $value, $about, $effect)
        }
    };
    (@unit $unit:literal) => { $unit };
    (@unit) => { "" };
    (@whom $whom:ident) => { Some(AppliesTo::$whom) };
    (@whom) => { None };
}

/// The keys of an `srt://` URI: the options of the library's tables, each with the keys that exist
/// only in URIs and belong to it, and keys without an effect.
pub(crate) static SRT_KEYS: LazyLock<Vec<UriKey<SrtKeys>>> = LazyLock::new(|| {
    let of_connection = CONNECTION_OPTIONS.iter().map(|option| &option.info);
    let of_port = PORT_OPTIONS.iter().map(|option| &option.info);
    let own = |name| OWN_KEYS.into_iter().filter_map(move |(of, key)| (of == name).then_some(key));
    let options = of_connection.chain(of_port);
    let with_own = options.flat_map(|info| std::iter::once(key_of(info)).chain(own(info.name)));
    own(ADDRESS).chain(with_own).chain(IGNORED).collect()
});

/// The key of an option. Defaults of URIs that differ from the library's stand here.
fn key_of(info: &OptionInfo) -> UriKey<SrtKeys> {
    let key = UriKey::described(info, set_by_name);
    match info.name {
        "linger" => UriKey { default: Some("3"), ..key },
        "payloadsize" => UriKey { default: Some("1316, or --msgsize"), ..key },
        _ => key,
    }
}

/// Sets an option. Some values of URIs have warnings and hints of their own.
fn set_by_name(keys: &mut SrtKeys, name: &'static str, value: &str) -> Done {
    if let Some(option) = TypedOption::find(PORT_OPTIONS, name) {
        let port_config = std::mem::take(&mut keys.port_config);
        keys.port_config = option.set(port_config, &read(&option.info, value)?)?;
        return Ok(());
    }
    let Some(option) = TypedOption::find(CONNECTION_OPTIONS, name) else { return Ok(()) };
    let value = match name {
        "latency" | "rcvlatency" | "peerlatency" => latency(keys, name, value)?.into(),
        "messageapi" => return message_api(keys, value),
        "passphrase" => {
            warn_of_processes(keys, value);
            return passphrase(keys, value.as_bytes());
        }
        _ => read(&option.info, value).inspect(|read| warn_of_units(keys, name, value, read))?,
    };
    keys.payload_size_given |= name == "payloadsize";
    set(keys, |config| option.set(config, &value))
}

/// Reads the value of an option, by its type and unit.
fn read(info: &OptionInfo, value: &str) -> Read {
    let unset = info.c.default.is_some_and(CDefault::is_minus_one);
    match (info.kind, value) {
        (OptionKind::Number | OptionKind::Rate, "auto") if info.default == "auto" => {
            Ok(value.into())
        }
        (OptionKind::Rate, "unlimited") if unset => Ok(OptionValue::Number(-1)),
        (OptionKind::Rate | OptionKind::Switch, "-1") if unset => Ok(OptionValue::Number(-1)),
        (OptionKind::Number, "-1") if info.default == "auto" => Ok(OptionValue::Number(-1)),
        (OptionKind::Milliseconds, "-1") if info.name == "snddropdelay" => {
            Ok(OptionValue::Number(-1))
        }
        (OptionKind::Switch, _) => Ok(switch(value)?.into()),
        (OptionKind::Milliseconds, _) => Ok(milliseconds(value)?.into()),
        (OptionKind::Seconds, _) => Ok(parse_duration_in(value, Duration::from_secs(1))?.into()),
        (OptionKind::Share, _) => Ok(parse_share(value)?.into()),
        // As in libsrt, bare numbers are bytes per second.
        (OptionKind::Rate, _) => {
            Ok(parse_bitrate_in(value, Bitrate::from_bytes_per_sec(1))?.into())
        }
        (OptionKind::Number, _) => whole_number(info, value),
        (OptionKind::Text, _) if info.unit.is_empty() => Ok(value.to_lowercase().as_str().into()),
        (OptionKind::Text, _) => Ok(value.into()),
    }
}

fn whole_number(info: &OptionInfo, value: &str) -> Read {
    match info.unit {
        _ if info.name == "pbkeylen" => key_length(value),
        "bytes" => whole(parse_bytes_in(value, 1)?),
        "version" => version(value),
        "percent" => whole(number(value.trim_end_matches('%'), 0, u32::MAX)?),
        "packets" if info.name == "fc" => whole(parse_count(value)?),
        _ => whole(number(value, 0, u32::MAX)?),
    }
}

/// The place of keys that belong to the address of this end.
const ADDRESS: &str = "";

/// The keys that exist only in URIs, each with the option that it follows in lists.
const OWN_KEYS: [(&str, UriKey<SrtKeys>); 13] = [
    (
        ADDRESS,
        key!("mode": "caller, listener or rendezvous; default: listener without a host, else caller",
        "role of this end; in a rendezvous both ends call (also: client, server)"
        ["text", Local] => KeyEffect::Set(mode)),
    ),
    (
        ADDRESS,
        key!("rendezvous": "switch; default off", "the same as mode=rendezvous" ["switch", Local]
        => KeyEffect::Set(rendezvous)),
    ),
    (
        ADDRESS,
        key!("adapter" | "localaddress": "address; default: the system's choice", "the local address"
        ["text", Local] => KeyEffect::Set(adapter)),
    ),
    (
        ADDRESS,
        key!("port" | "localport": "1 to 65535; default: the system's choice",
        "the local port of a caller; default in a rendezvous: the other end's" ["", Caller]
        => KeyEffect::Set(local_port)),
    ),
    (
        ADDRESS,
        key!("bind": "ADDRESS[:PORT]; default: the system's choice", "the local address and port"
        ["text", Local] => KeyEffect::Set(bind)),
    ),
    (
        "latency",
        key!("tsbpddelay": "0 to 65535000 us; default 120000us",
        "FFmpeg's name for latency, in microseconds" ["us", Both]
        => KeyEffect::Set(ffmpeg_latency)),
    ),
    (
        "messageapi",
        key!("framing": "switch; default on",
        "for transtype=stream toward Punctual: keep the boundaries of messages, such as datagrams"
        ["switch", Both] => KeyEffect::Set(framing)),
    ),
    (
        "peeridletimeo",
        key!("timeout": "1000 and up, or -1: no limit; default -1",
        "FFmpeg's limit of any wait: sets conntimeo and peeridletimeo" ["us", Both]
        => KeyEffect::Set(ffmpeg_timeout)),
    ),
    (
        "peeridletimeo",
        key!("listen_timeout": "1000 and up, or -1: no limit; default -1",
        "FFmpeg's limit of the wait for a caller" ["us", Listener] => KeyEffect::Set(listen_timeout)),
    ),
    (
        "passphrase",
        key!("passphrase-file" | "passphrase_file": "path; default none",
        "a file that holds the passphrase" ["text", Both] => KeyEffect::Set(passphrase_file)),
    ),
    (
        "passphrase",
        key!("passphrase-env" | "passphrase_env": "name; default none",
        "an environment variable that holds the passphrase" ["text", Both]
        => KeyEffect::Set(passphrase_env)),
    ),
    (
        "minversion",
        key!("grouptype": "broadcast, backup or balance; default none",
        "with several caller URIs: one stream over all links; each message goes over all, over the best one, or over one in turn"
        ["text", Caller]
        => KeyEffect::Set(group_kind)),
    ),
    (
        "minversion",
        key!("weight": "0 to 65535; default 0", "the best link of a backup group has the highest weight"
        ["", Caller]
        => KeyEffect::Set(|keys, value| {
            let weight = number(value, 0, u16::MAX.into())?;
            keep(&mut keys.weight, Ok(u16::try_from(weight).unwrap_or(u16::MAX))) })),
    ),
];

const IGNORED: [UriKey<SrtKeys>; 12] = [
    key!("blocking": "", NON_BLOCKING => KeyEffect::Ignored),
    key!("sndsyn": "", NON_BLOCKING => KeyEffect::Ignored),
    key!("rcvsyn": "", NON_BLOCKING => KeyEffect::Ignored),
    key!("sndtimeo": "", NON_BLOCKING => KeyEffect::Ignored),
    key!("rcvtimeo": "", NON_BLOCKING => KeyEffect::Ignored),
    key!("reuseaddr": "", "connections share a UDP port if possible" => KeyEffect::Ignored),
    key!("sender": "", "both directions are open" => KeyEffect::Ignored),
    key!("poll-timeout": "", GSTREAMER => KeyEffect::Ignored),
    key!("wait-for-connection": "", GSTREAMER => KeyEffect::Ignored),
    key!("auto-reconnect": "", GSTREAMER => KeyEffect::Ignored),
    key!("keep-listening": "", GSTREAMER => KeyEffect::Ignored),
    key!("authentication": "", GSTREAMER => KeyEffect::Ignored),
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

/// Warns of a bare number of bytes per second that is less than any stream has, and of a delay that
/// more likely means microseconds.
fn warn_of_units(keys: &mut SrtKeys, key: &str, value: &str, read: &OptionValue) {
    if let ("snddropdelay", OptionValue::Time(delay)) = (key, read) {
        return warn_of_micros(keys, key, value, *delay);
    }
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

type Read = Result<OptionValue, ValueError>;

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
