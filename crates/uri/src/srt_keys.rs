//! Every key of an `srt://` URI: libsrt's options, and what srt-live-transmit, srt-xtransmit and
//! FFmpeg add to them.

use std::time::Duration;

use punctual::{
    Bitrate, BufferSize, Config, ConfigError, CryptoMode, GroupKind, KeyLength, MaxBandwidth,
    NakTimer, RetransmitAlgorithm, RetransmitBandwidth, Transmission,
};
use punctual_units::{
    DisplayDuration, parse_bitrate_in, parse_bytes_in, parse_count, parse_duration_in, parse_share,
};
use zeroize::Zeroizing;

use crate::error::ValueError;
use crate::key::{AppliesTo, Effect, Key, buffer_bytes, number, switch};
use crate::parts::split_host_port;
use crate::srt::{Mode, SrtKeys};

type Done = Result<(), ValueError>;

macro_rules! keys {
    ($(
        $name:literal $(| $alias:literal)* : $value:literal, $about:tt
        $([$unit:literal, $whom:ident])? => $effect:expr;
    )*) => {
        &[$( Key {
            unit: keys!(@unit $($unit)?),
            applies_to: keys!(@whom $($whom)?),
            ..Key::new($name, &[$($alias),*], $value, $about, $effect)
        } ),*]
    };
    (@unit $unit:literal) => { $unit };
    (@unit) => { "" };
    (@whom $whom:ident) => { Some(AppliesTo::$whom) };
    (@whom) => { None };
}

/// The keys of an `srt://` URI. Ranges that `Config` checks are written here for people; a test
/// holds both together.
pub(crate) const SRT_KEYS: &[Key<SrtKeys>] = keys! {
    "mode": "caller, listener or rendezvous; default: listener without a host, else caller",
        "who calls whom; in a rendezvous both call each other (client and server also do)"
        ["text", Local] => Effect::Set(mode);
    "rendezvous": "switch; default off", "the same as mode=rendezvous" ["switch", Local]
        => Effect::Set(rendezvous);
    "adapter" | "localaddress": "address; default: the system's choice", "own address"
        ["text", Local] => Effect::Set(adapter);
    "port" | "localport": "1 to 65535; default: the system's choice",
        "own port, where this end calls; in a rendezvous by default the other end's" ["", Caller]
        => Effect::Set(local_port);
    "bind": "ADDRESS[:PORT]; default: the system's choice", "own address and port at once"
        ["text", Local] => Effect::Set(bind);
    "latency": "0 to 65535 ms; default 120ms",
        "delay of the receiving buffer, here and at the peer; the larger of both ends counts"
        ["ms", Both]
        => Effect::Set(|keys, value| { let latency = latency(keys, "latency", value)?;
            set(keys, |config| config.with_latency(latency)) });
    "tsbpddelay": "0 to 65535000 us; default 120000us",
        "FFmpeg's name for latency, in microseconds" ["us", Both]
        => Effect::Set(ffmpeg_latency);
    "rcvlatency": "0 to 65535 ms; default 120ms", "delay of the receiving buffer here" ["ms", Both]
        => Effect::Set(|keys, value| { let latency = latency(keys, "rcvlatency", value)?;
            set(keys, |config| config.with_receive_latency(latency)) });
    "peerlatency": "0 to 65535 ms; default 0ms", "least delay of the peer's receiving buffer"
        ["ms", Both]
        => Effect::Set(|keys, value| { let latency = latency(keys, "peerlatency", value)?;
            set(keys, |config| config.with_peer_latency(latency)) });
    "streamid" | "srt_streamid": "at most 512 bytes; default none",
        "what a caller tells the listener about the stream" ["text", Caller]
        => Effect::Set(|keys, value| set(keys, |config| config.with_stream_id(value)));
    "transtype": "live or file; default live",
        "sets what belongs to live messages or to files, before all other keys" ["", Both]
        => Effect::Set(transmission_type);
    "congestion" | "smoother": "live or file; default live", "congestion control" ["", Both]
        => Effect::Set(congestion);
    "messageapi": "switch; default on", "messages, or a stream of bytes" ["switch", Both]
        => Effect::Set(message_api);
    "conntimeo" | "connect_timeout": "1 to 3600000 ms; default 3000ms", "how long a caller tries"
        ["ms", Caller]
        => Effect::Set(|keys, value| { let time = milliseconds(value)?;
            set(keys, |config| config.with_connect_timeout(time)) });
    "peeridletimeo": "1 to 86400000 ms; default 5000ms", "silence after which the peer counts as gone"
        ["ms", Both]
        => Effect::Set(|keys, value| { let time = milliseconds(value)?;
            set(keys, |config| config.with_peer_idle_timeout(time)) });
    "timeout": "1000 and up, or -1: no limit; default -1",
        "FFmpeg's limit of any wait: sets conntimeo and peeridletimeo" ["us", Both]
        => Effect::Set(ffmpeg_timeout);
    "listen_timeout": "1000 and up, or -1: no limit; default -1",
        "FFmpeg's limit of the wait for a caller" ["us", Listener] => Effect::Set(listen_timeout);
    "linger": "0 and up; default 3", "how long a close goes on sending what is buffered"
        ["s", Sender]
        => Effect::Set(|keys, value| {
            let time = parse_duration_in(value, Duration::from_secs(1))?;
            set(keys, |config| Ok(config.with_linger(time))) });
    "maxbw": "rates like 10Mbps, 0: relative to the input, -1: unlimited; default -1",
        "limit of the sending rate; 0 takes inputbw and oheadbw"
        ["bytes/s", Sender] => Effect::Set(max_bandwidth);
    "inputbw": "rates like 5Mbps, 0: measured; default 0", "the input's rate, for maxbw=0"
        ["bytes/s", Sender]
        => Effect::Set(|keys, value| { let rate = rate(value)?;
            set(keys, |config| Ok(config.with_input_bandwidth(rate))) });
    "mininputbw": "rates like 1Mbps; default 0", "least input rate that a measured one counts as"
        ["bytes/s", Sender]
        => Effect::Set(|keys, value| { let rate = rate(value)?;
            set(keys, |config| Ok(config.with_min_input_bandwidth(rate))) });
    "oheadbw" | "bandwidth-overhead-limit": "5 to 100 percent; default 25", "room for retransmissions above the input rate"
        ["percent", Sender]
        => Effect::Set(|keys, value| {
            let percent = number(value.trim_end_matches('%'), 0, u32::MAX)?;
            set(keys, |config| config.with_overhead_bandwidth(percent)) });
    "maxrexmitbw": "rates, auto, or -1: unlimited; default auto",
        "limit of retransmissions alone; auto: by the input where maxbw is known"
        ["bytes/s", Sender]
        => Effect::Set(|keys, value| {
            let limit = match value {
                "auto" => RetransmitBandwidth::Auto,
                "-1" | "unlimited" => RetransmitBandwidth::Unlimited,
                value => RetransmitBandwidth::Absolute(rate(value)?),
            };
            set(keys, |config| Ok(config.with_max_retransmit_bandwidth(limit))) });
    "payloadsize" | "payload_size" | "payload-size" | "pkt_size": "1 to 1456 bytes; default 1316, or --msgsize",
        "largest payload of a message" ["bytes", Sender] => Effect::Set(payload_size);
    "mss": "76 to 1500 bytes; default 1500", "largest UDP datagram with IP and UDP headers"
        ["bytes", Both]
        => Effect::Set(|keys, value| { let size = size(value)?;
            set(keys, |config| config.with_mss(size)) });
    "fc" | "ffs": "32 to 1048576 packets; default 131072", "most packets in flight to the receiver"
        ["packets", Receiver]
        => Effect::Set(|keys, value| { let packets = count(value)?;
            set(keys, |config| config.with_flow_window(packets)) });
    "sndbuf": "bytes or auto; default auto", "send buffer" ["bytes", Sender]
        => Effect::Set(|keys, value| { let size = buffer(value)?;
            set(keys, |config| Ok(config.with_send_buffer(size))) });
    "rcvbuf": "bytes or auto; default auto", "receive buffer" ["bytes", Receiver]
        => Effect::Set(|keys, value| { let size = buffer(value)?;
            set(keys, |config| Ok(config.with_receive_buffer(size))) });
    "tsbpdmode" | "tsbpd": "switch; default on", "deliver at origin time + latency, else at once"
        ["switch", Both]
        => Effect::Set(|keys, value| { let on = switch(value)?;
            set(keys, |config| Ok(config.with_tsbpd(on))) });
    "tlpktdrop": "switch; default on", "drop what can no longer be delivered in time"
        ["switch", Both]
        => Effect::Set(|keys, value| { let on = switch(value)?;
            set(keys, |config| Ok(config.with_too_late_drop(on))) });
    "snddropdelay": "0 and up, or -1: never; default 0", "extra time before the sender drops"
        ["ms", Sender]
        => Effect::Set(|keys, value| {
            let delay = if value == "-1" { None } else { Some(milliseconds(value)?) };
            warn_of_micros(keys, "snddropdelay", value, delay.unwrap_or_default());
            set(keys, |config| Ok(config.with_send_drop_delay(delay))) });
    "nakreport": "switch; default on", "report losses again until they are filled"
        ["switch", Receiver]
        => Effect::Set(|keys, value| { let on = switch(value)?;
            set(keys, |config| Ok(config.with_periodic_nak(on))) });
    "naktimer": "exact, or packets; default exact",
        "when a loss report is repeated: at its time, or with the next packet after it, as libsrt does"
        ["", Receiver]
        => Effect::Set(nak_timer);
    "lossmaxttl": "0 to 1000000 packets; default 0",
        "packets of reordering to wait for before a loss is reported, at most" ["packets", Receiver]
        => Effect::Set(|keys, value| { let packets = number(value, 0, u32::MAX)?;
            set(keys, |config| config.with_reorder_tolerance(packets)) });
    "retransmitalgo": "0 or aggressive, 1 or efficient, deadline, or auto; default auto",
        "0: every loss report is answered; 1: not again before the answer can have arrived; deadline: and more than once where it is the last that can be in time; auto: deadline toward Punctual, else 1"
        ["", Both]
        => Effect::Set(retransmit_algorithm);
    "timedrequests": "switch; default on",
        "tell a Punctual peer that requests by single clocks are known, and ask so if it wants"
        ["switch", Both]
        => Effect::Set(|keys, value| { let on = switch(value)?;
            set(keys, |config| Ok(config.with_timed_requests(on))) });
    "losstarget": "shares like 0.0001%, up to 10%; default 0.001%",
        "for retransmitalgo=deadline or auto: packets that may stay unrecovered; 0: as few as rexmitceiling lets"
        ["share", Sender]
        => Effect::Set(|keys, value| { let target = parse_share(value)?;
            set(keys, |config| config.with_loss_target(target)) });
    "rexmitceiling": "shares like 12%, up to 100%; default 0",
        "for retransmitalgo=deadline or auto: packets sent again for each original, at most; 0: p/(1-p) + p/10 of a loss p; where one round fits, as retransmitalgo=0"
        ["share", Sender]
        => Effect::Set(|keys, value| { let ceiling = parse_share(value)?;
            set(keys, |config| config.with_retransmit_ceiling(ceiling)) });
    "packetfilter": "fec,cols:N[,rows:M][,layout:L][,arq:A]; default none",
        "forward error correction; L: staircase, even; A: onreq, always, never" ["text", Both]
        => Effect::Set(|keys, value| set(keys, |config| config.with_packet_filter(value)));
    "drifttracer": "switch; default on", "follow the drift of the peer's clock" ["switch", Receiver]
        => Effect::Set(|keys, value| { let on = switch(value)?;
            set(keys, |config| Ok(config.with_drift_tracer(on))) });
    "pathupdate": "switch; default on", "follow a Punctual peer whose address changes"
        ["switch", Both]
        => Effect::Set(|keys, value| { let on = switch(value)?;
            set(keys, |config| Ok(config.with_path_update(on))) });
    "passphrase": "10 to 80 bytes; default none",
        "what both ends know, or no encryption; all see it in the list of processes: rather say where it is"
        ["bytes", Both] => Effect::Set(|keys, value| { warn_of_processes(keys, value);
            passphrase(keys, value.as_bytes()) });
    "passphrase-file" | "passphrase_file": "path; default none",
        "a file that holds the passphrase" ["text", Both] => Effect::Set(passphrase_file);
    "passphrase-env" | "passphrase_env": "name; default none",
        "an environment variable that holds the passphrase" ["text", Both]
        => Effect::Set(passphrase_env);
    "pbkeylen" | "key-length": "0, 16, 24 or 32 bytes; default 0",
        "length of the key; 0: what the peer wishes, or else 16" ["bytes", Both]
        => Effect::Set(key_length);
    "enforcedencryption" | "enforced_encryption": "switch; default on",
        "refuse a peer without the same passphrase; else what cannot be read is dropped"
        ["switch", Both] => Effect::Set(|keys, value| { let on = switch(value)?;
            set(keys, |config| Ok(config.with_enforced_encryption(on))) });
    "cryptomode": "0 or auto, 1 or ctr, 2 or gcm; default 0",
        "the cipher: AES-CTR, or AES-GCM, which notices changes and which few peers have"
        ["", Both] => Effect::Set(crypto_mode);
    "kmrefreshrate": "3 to 1073741824 packets; default 16777216",
        "packets after which the sender takes a new key; 0 is the default" ["packets", Sender]
        => Effect::Set(key_refresh_rate);
    "kmpreannounce": "1 to 536870912 packets; default 65536",
        "how many packets before that the peer is told; at most half of kmrefreshrate counts"
        ["packets", Sender] => Effect::Set(key_pre_announce);
    "minversion": "MAJOR.MINOR.PATCH, or 0xMMmmpp; default 1.0.0", "oldest SRT version accepted at the peer"
        ["version", Both]
        => Effect::Set(min_version);
    "grouptype": "broadcast, backup or balance; default none",
        "with several URIs of callers: one stream over all of them, each message over every one, over the best, or over one by turns"
        ["text", Caller]
        => Effect::Set(group_kind);
    "weight": "0 to 65535; default 0", "a link of the highest weight is the best of a backup group"
        ["", Caller]
        => Effect::Set(|keys, value| {
            let weight = number(value, 0, u16::MAX.into())?;
            keep(&mut keys.weight, Ok(u16::try_from(weight).unwrap_or(u16::MAX))) });
    "groupconnect": "switch; default off", "a listener lets groups in, at all its ports"
        ["switch", Listener]
        => Effect::Set(|keys, value| { let on = switch(value)?;
            set(keys, |config| Ok(config.with_group_connect(on))) });
    "groupminstabletimeo" | "groupstabtimeo": "60 to 65535 ms; default 60ms",
        "least time without an answer after which a backup group uses another link"
        ["ms", Sender]
        => Effect::Set(|keys, value| { let time = milliseconds(value)?;
            set(keys, |config| config.with_group_min_stability(time)) });
    "udp_sndbuf" | "send_buffer_size": "1 byte to 1 GiB; default 2MiB",
        "the UDP socket's send buffer" ["bytes", Port]
        => Effect::Set(|keys, value| keep(&mut keys.port_config.send_buffer, buffer_bytes(value)));
    "udp_rcvbuf" | "recv_buffer_size": "1 byte to 1 GiB; default 8MiB",
        "the UDP socket's receive buffer" ["bytes", Port]
        => Effect::Set(|keys, value| {
            keep(&mut keys.port_config.receive_buffer, buffer_bytes(value)) });
    "ipttl" | "ttl": "1 to 255; default: the system's", "time to live of the datagrams"
        ["hops", Port]
        => Effect::Set(|keys, value| keep(&mut keys.port_config.ttl, number(value, 1, 255)));
    "iptos" | "tos": "0 to 255, or 0xB8; default: the system's", "type of service of the datagrams"
        ["", Port]
        => Effect::Set(|keys, value| keep(&mut keys.port_config.tos, number(value, 0, 255)));
    "ipv6only": "0 or 1, or -1: the default; default 0", "whether [::] leaves IPv4 out"
        ["switch", Port]
        => Effect::Set(ipv6_only);
    "bindtodevice": "name of an interface; default none", "send and receive only there"
        ["text", Port]
        => Effect::Set(|keys, value| {
            keep(&mut keys.port_config.device, Ok(value.to_owned())) });

    "blocking": "", NON_BLOCKING => Effect::Ignored;
    "sndsyn": "", NON_BLOCKING => Effect::Ignored;
    "rcvsyn": "", NON_BLOCKING => Effect::Ignored;
    "sndtimeo": "", NON_BLOCKING => Effect::Ignored;
    "rcvtimeo": "", NON_BLOCKING => Effect::Ignored;
    "reuseaddr": "", "connections share a UDP port where they can" => Effect::Ignored;
    "sender": "", "both directions are open" => Effect::Ignored;
    "poll-timeout": "", GSTREAMER => Effect::Ignored;
    "wait-for-connection": "", GSTREAMER => Effect::Ignored;
    "auto-reconnect": "", GSTREAMER => Effect::Ignored;
    "keep-listening": "", GSTREAMER => Effect::Ignored;
    "authentication": "", GSTREAMER => Effect::Ignored;
};

const NON_BLOCKING: &str = "no call blocks here";
const GSTREAMER: &str = "of GStreamer's elements, not of the connection";

/// From here a bare latency is more likely FFmpeg's microseconds than milliseconds.
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

/// `mode` and `rendezvous` say the same if both are there.
fn set_mode(keys: &mut SrtKeys, mode: Mode) -> Done {
    match keys.mode.replace(mode) {
        Some(before) if before != mode => {
            Err(ValueError("it contradicts what `mode` or `rendezvous` said before".to_owned()))
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
        return Err(ValueError("`bind` gives the own address already".to_owned()));
    }
    keys.local_host = Some(host.to_owned()).filter(|host| !host.is_empty());
    Ok(())
}

fn local_port(keys: &mut SrtKeys, value: &str) -> Done {
    if keys.local_port.is_some() {
        return Err(ValueError("`bind` gives the own port already".to_owned()));
    }
    let port = number(value, 1, u16::MAX.into())?;
    keys.local_port = u16::try_from(port).ok();
    Ok(())
}

fn bind(keys: &mut SrtKeys, value: &str) -> Done {
    let (host, port) = split_host_port(value)?;
    if keys.local_host.is_some() || keys.local_port.is_some() {
        return Err(ValueError("`adapter` or `port` give the own address already".to_owned()));
    }
    keys.local_host = Some(host.to_owned()).filter(|host| !host.is_empty());
    keys.local_port = port.filter(|port| *port != 0);
    Ok(())
}

fn transmission_type(keys: &mut SrtKeys, value: &str) -> Done {
    let file = match value.to_lowercase().as_str() {
        "live" => false,
        "file" => true,
        _ => return Err(ValueError("it must be live or file".to_owned())),
    };
    set(keys, |config| {
        let preset = match (file, config.transmission()) {
            (true, _) => Config::file(),
            (false, Transmission::Live) => return Ok(config),
            (false, _) => Config::default(),
        };
        preset.with_stream_id(config.stream_id())
    })
}

fn congestion(keys: &mut SrtKeys, value: &str) -> Done {
    let transmission = match (value.to_lowercase().as_str(), keys.config.transmission()) {
        ("live", _) => Transmission::Live,
        ("file", Transmission::Live | Transmission::Messages) => Transmission::Messages,
        ("file", Transmission::Stream) => Transmission::Stream,
        _ => return Err(ValueError("it must be live or file".to_owned())),
    };
    set(keys, |config| Ok(config.with_transmission(transmission)))
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

fn latency(keys: &mut SrtKeys, key: &str, value: &str) -> Result<Duration, ValueError> {
    let latency = milliseconds(value)?;
    if is_bare(value) && latency.as_millis() > MAX_LATENCY_MS {
        let micros = latency.as_millis();
        return Err(ValueError(format!(
            "a bare number is milliseconds and at most {MAX_LATENCY_MS}; FFmpeg counts \
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

/// Points out a bare number of milliseconds that more likely counts FFmpeg's microseconds.
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

/// A time under a key of FFmpeg's own, whose bare numbers are microseconds. One that is too short
/// for its purpose is pointed out: it may have been meant as milliseconds.
fn microseconds(
    keys: &mut SrtKeys,
    key: &str,
    value: &str,
    plausible: Duration,
) -> Result<Duration, ValueError> {
    let time = parse_duration_in(value, Duration::from_micros(1))?;
    if is_bare(value) && time < plausible && !time.is_zero() {
        keys.warnings.push(format!(
            "{key}={value} is {}, because the key is FFmpeg's, which counts microseconds; if you \
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

/// FFmpeg gives up whatever it waits for after this time: the answer to a call, or the peer.
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
            return Err(ValueError("it must be 1 ms and up".to_owned()));
        }
        keys.listen_timeout = Some(time);
    }
    Ok(())
}

/// So many microseconds, as a value with a unit.
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

/// A rate whose bare numbers are bytes per second, as libsrt counts.
fn rate(value: &str) -> Result<Bitrate, ValueError> {
    Ok(parse_bitrate_in(value, Bitrate::from_bytes_per_sec(1))?)
}

fn max_bandwidth(keys: &mut SrtKeys, value: &str) -> Done {
    let limit = match value {
        "-1" | "unlimited" => MaxBandwidth::Unlimited,
        value => match rate(value)? {
            Bitrate::ZERO => MaxBandwidth::Relative,
            rate => MaxBandwidth::Absolute(rate),
        },
    };
    set(keys, |config| Ok(config.with_max_bandwidth(limit)))
}

fn payload_size(keys: &mut SrtKeys, value: &str) -> Done {
    let size = size(value)?;
    keys.payload_size_given = true;
    set(keys, |config| config.with_payload_size(size))
}

fn size(value: &str) -> Result<usize, ValueError> {
    Ok(usize::try_from(parse_bytes_in(value, 1)?).unwrap_or(usize::MAX))
}

fn count(value: &str) -> Result<usize, ValueError> {
    Ok(usize::try_from(parse_count(value)?).unwrap_or(usize::MAX))
}

fn buffer(value: &str) -> Result<BufferSize, ValueError> {
    match value {
        "auto" | "-1" => Ok(BufferSize::Auto),
        value => Ok(BufferSize::from_bytes(size(value)?)),
    }
}

fn retransmit_algorithm(keys: &mut SrtKeys, value: &str) -> Done {
    let algorithm = match value {
        "0" | "aggressive" => RetransmitAlgorithm::Aggressive,
        "1" | "efficient" => RetransmitAlgorithm::Efficient,
        "deadline" => RetransmitAlgorithm::Deadline,
        "auto" => RetransmitAlgorithm::Auto,
        _ => {
            let expected = "it must be 0 (aggressive), 1 (efficient), deadline, or auto";
            return Err(ValueError(expected.to_owned()));
        }
    };
    set(keys, |config| Ok(config.with_retransmit_algorithm(algorithm)))
}

fn nak_timer(keys: &mut SrtKeys, value: &str) -> Done {
    let timer = match value {
        "exact" => NakTimer::Exact,
        "packets" => NakTimer::WithPackets,
        _ => return Err(ValueError("it must be exact or packets".to_owned())),
    };
    set(keys, |config| Ok(config.with_nak_timer(timer)))
}

fn passphrase(keys: &mut SrtKeys, value: &[u8]) -> Done {
    if keys.config.passphrase().is_some() {
        return Err(ValueError("the passphrase is given already".to_owned()));
    }
    set(keys, |config| config.with_passphrase(value))
}

/// Says once where a passphrase that stands in a URI can be read, and how that is avoided.
fn warn_of_processes(keys: &mut SrtKeys, value: &str) {
    if !value.is_empty() {
        keys.warnings.push(
            "all users of this machine see the passphrase in the list of processes (`ps`); \
             `passphrase-file=PATH` or `passphrase-env=NAME` in its place keeps it out"
                .to_owned(),
        );
    }
}

/// A line end after the passphrase is not part of it: editors and `echo` leave one.
fn passphrase_file(keys: &mut SrtKeys, path: &str) -> Done {
    let read = std::fs::read(path).map(Zeroizing::new);
    let text = read.map_err(|error| {
        let why = error.to_string();
        ValueError(format!("it cannot be read: {}", punctual_units::without_os_error(&why)))
    })?;
    let line = text.strip_suffix(b"\n").unwrap_or(&text);
    found(keys, line.strip_suffix(b"\r").unwrap_or(line))
}

fn passphrase_env(keys: &mut SrtKeys, name: &str) -> Done {
    let value = std::env::var_os(name).ok_or_else(|| ValueError("it is not set".to_owned()))?;
    let value = Zeroizing::new(value.into_encoded_bytes());
    found(keys, &value)
}

/// A passphrase that stands elsewhere; nothing there is a mistake.
fn found(keys: &mut SrtKeys, value: &[u8]) -> Done {
    passphrase(keys, value)?;
    match keys.config.passphrase() {
        Some(_) => Ok(()),
        None => Err(ValueError("it is empty".to_owned())),
    }
}

fn key_length(keys: &mut SrtKeys, value: &str) -> Done {
    let bytes = match value.to_lowercase().as_str() {
        "0" | "" => None,
        bytes => Some(
            bytes
                .parse()
                .ok()
                .and_then(KeyLength::from_bytes)
                .ok_or_else(|| ValueError("it must be 0, 16, 24 or 32 bytes".to_owned()))?,
        ),
    };
    set(keys, |config| Ok(config.with_key_length(bytes)))
}

fn crypto_mode(keys: &mut SrtKeys, value: &str) -> Done {
    let mode = match value.to_lowercase().as_str() {
        "0" | "auto" => CryptoMode::Auto,
        "1" | "ctr" | "aes-ctr" => CryptoMode::Ctr,
        "2" | "gcm" | "aes-gcm" => CryptoMode::Gcm,
        _ => return Err(ValueError("it must be 0 (auto), 1 (ctr) or 2 (gcm)".to_owned())),
    };
    set(keys, |config| Ok(config.with_crypto_mode(mode)))
}

fn key_refresh_rate(keys: &mut SrtKeys, value: &str) -> Done {
    let packets = match number(value, 0, u32::MAX)? {
        0 => Config::default().key_refresh_rate(),
        packets => packets,
    };
    set(keys, |config| config.with_key_refresh_rate(packets))
}

fn key_pre_announce(keys: &mut SrtKeys, value: &str) -> Done {
    let packets = match number(value, 0, u32::MAX)? {
        0 => Config::default().key_pre_announce(),
        packets => packets,
    };
    set(keys, |config| config.with_key_pre_announce(packets))
}

fn min_version(keys: &mut SrtKeys, value: &str) -> Done {
    let form = || ValueError("it must be like 1.3.0 or 0x010300".to_owned());
    let is_number = value.starts_with("0x") || value.bytes().all(|byte| byte.is_ascii_digit());
    let version = if is_number {
        number(value, 0, 0x00FF_FFFF)?
    } else {
        let parts: Result<Vec<u8>, _> = value.split('.').map(str::parse).collect();
        match parts.as_deref() {
            Ok(&[major, minor, patch]) => u32::from_be_bytes([0, major, minor, patch]),
            _ => return Err(form()),
        }
    };
    set(keys, |config| Ok(config.with_min_version(version)))
}

fn ipv6_only(keys: &mut SrtKeys, value: &str) -> Done {
    keys.port_config.ipv6_only = match value {
        "-1" => None,
        value => Some(switch(value)?),
    };
    Ok(())
}

#[cfg(test)]
#[path = "srt_keys_tests.rs"]
mod tests;
