//! Every key of a plan that describes runs: where it belongs, and what its bare numbers count.

use punctual::Config;
use punctual_uri::did_you_mean;

use crate::plan::value::Measure;
use crate::settings;

/// The tables whose keys are parameters of a run.
pub(crate) const SECTIONS: [&str; 8] =
    ["stream", "link", "hosts", "options", "traffic", "quic", "tcp", "blocks"];

pub(crate) const STREAM: &[&str] = &[
    "transport",
    "together",
    "quiccc",
    "bitrate",
    "ramp.by",
    "ramp.every",
    "payload",
    "duration",
    "streams",
];

/// Keys of links beside the keys of a link's text form.
const LINK: &[&str] = &["preset", "event", "stall", "outage", "rtt", "trace", "at"];

pub(crate) const HOSTS: &[&str] = &["lateness", "drift", "offset"];

pub(crate) const TRAFFIC: &[&str] =
    &["kind", "rate", "packet", "on", "off", "start", "duration", "way"];

/// Keys of a transfer over the model of QUIC.
pub(crate) const QUIC: &[&str] = &[
    "object",
    "control",
    "estimator",
    "timer",
    "detection",
    "acks",
    "ackdelay",
    "mtudrop",
    "mtuto",
    "mtureset",
    "probes",
    "losttail",
];

/// Keys of a live stream over TCP.
pub(crate) const TCP: &[&str] = &["control"];

/// Keys of the record of a stream's data packets.
pub(crate) const BLOCKS: &[&str] = &["readchunk", "after", "files"];

/// Keys whose values are names or special forms, never expressions.
const TEXTUAL: &[&str] = &[
    "transport",
    "together",
    "quiccc",
    "preset",
    "trace",
    "at",
    "streamid",
    "kind",
    "way",
    "burst-loss",
    "minversion",
    "control",
    "estimator",
    "rttestimator",
    "timer",
    "detection",
    "probes",
    "files",
];

/// Keys whose list is one value: each of its texts counts.
const COLLECTED: &[&str] = &["at", "together"];

/// Checks a parameter's full key, such as `link.up.loss`; the error is a message.
pub(crate) fn check(key: &str) -> Result<(), String> {
    let (section, rest) = key.split_once('.').unwrap_or((key, ""));
    let (half, name) = match (section, rest.split_once('.')) {
        ("link", Some((half @ ("up" | "down"), name))) => (Some(half), name),
        ("options" | "hosts", Some((half @ ("sender" | "receiver"), name))) => (Some(half), name),
        _ => (None, rest),
    };
    let known = match section {
        "stream" => STREAM.to_vec(),
        "link" => link(),
        "hosts" => HOSTS.to_vec(),
        "traffic" => TRAFFIC.to_vec(),
        "quic" => QUIC.to_vec(),
        "tcp" => TCP.to_vec(),
        "blocks" => BLOCKS.to_vec(),
        "options" => return check_option(name),
        _ => return Err(format!("unknown table `{section}`{}", did_you_mean(section, SECTIONS))),
    };
    if known.contains(&name) {
        return Ok(());
    }
    let table = half.map_or(section.to_owned(), |half| format!("{section}.{half}"));
    let suggestion = did_you_mean(name, known.iter().copied());
    let known = known.join(", ");
    Err(format!("unknown key `{name}` in [{table}]{suggestion} (known: {known})"))
}

/// Every key of a link.
fn link() -> Vec<&'static str> {
    LINK.iter().copied().chain(punctual_netem::KEYS.iter().map(|key| key.name)).collect()
}

/// Whether an option exists, whatever its values are.
fn check_option(name: &str) -> Result<(), String> {
    if matches!(name, "mode" | "adapter" | "localaddress" | "port" | "localport" | "bind") {
        return Err(format!("`{name}` is decided by the lab"));
    }
    match settings::set(Config::default(), name, "1") {
        Err(error) if error.starts_with("unknown key") => Err(error),
        // The key exists, even if `1` is no value of it.
        _ => Ok(()),
    }
}

/// The quantity of a parameter's bare numbers; `None` if they are just numbers.
pub(crate) fn measure(key: &str) -> Option<Measure> {
    let (section, _) = key.split_once('.')?;
    let name = name(key);
    match (section, name) {
        ("stream" | "traffic", "duration" | "every" | "on" | "off" | "start")
        | ("link", "event")
        | ("quic", "mtudrop")
        | ("blocks", "readchunk" | "after") => Some(Measure::SECONDS),
        ("stream" | "traffic" | "link", "bitrate" | "by" | "rate") => {
            Some(Measure::BITS_PER_SECOND)
        }
        ("link", "rtt" | "delay" | "stall" | "outage")
        | ("hosts", "lateness" | "offset")
        | ("quic", "ackdelay") => Some(Measure::MILLISECONDS),
        ("link", "loss" | "duplicate" | "corrupt") => Some(Measure::SHARE),
        ("options", _) => option_measure(name),
        _ => None,
    }
}

fn option_measure(name: &str) -> Option<Measure> {
    match name {
        "latency" | "rcvlatency" | "peerlatency" | "conntimeo" | "peeridletimeo"
        | "snddropdelay" => Some(Measure::MILLISECONDS),
        "linger" => Some(Measure::SECONDS),
        "maxbw" | "inputbw" | "mininputbw" | "maxrexmitbw" => Some(Measure::BYTES_PER_SECOND),
        "sndbuf" | "rcvbuf" | "udp_sndbuf" | "udp_rcvbuf" => Some(Measure::BYTES),
        _ => None,
    }
}

/// Whether a parameter's values are never expressions.
pub(crate) fn is_textual(key: &str) -> bool {
    TEXTUAL.contains(&name(key))
}

/// Whether a parameter's values are shown nowhere.
pub(crate) fn is_secret(key: &str) -> bool {
    name(key).eq_ignore_ascii_case("passphrase")
}

/// Whether a list is one value of a parameter, not several.
pub(crate) fn is_collected(key: &str) -> bool {
    COLLECTED.contains(&name(key))
}

/// The last part of a key.
pub(crate) fn name(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

/// The full key that a short name means where no plan says so: `loss` is `link.loss`.
pub(crate) fn full(name: &str) -> Result<String, String> {
    let (first, _) = name.split_once('.').unwrap_or((name, ""));
    if SECTIONS.contains(&first) {
        return check(name).map(|()| name.to_owned());
    }
    for section in SECTIONS {
        let key = format!("{section}.{name}");
        if section != "traffic" && check(&key).is_ok() {
            return Ok(key);
        }
    }
    let all = [STREAM, &link(), HOSTS, QUIC, TCP, BLOCKS].concat();
    let suggestion = did_you_mean(name, all.iter().copied().chain(OPTIONS.iter().copied()));
    Err(format!("unknown parameter `{name}`{suggestion}"))
}

/// Options that are often varied, for suggestions.
const OPTIONS: &[&str] = &["latency", "maxbw", "retransmitalgo", "sndbuf", "rcvbuf", "nakreport"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_refused_with_a_suggestion() {
        for right in ["link.up.loss", "options.latency", "options.sender.maxbw", "stream.ramp.by"] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
        for (wrong, expected) in [
            ("link.los", "unknown key `los` in [link]; did you mean `loss`? (known: preset,"),
            ("link.up.raet", "unknown key `raet` in [link.up]; did you mean `rate`?"),
            ("stream.bitrat", "did you mean `bitrate`?"),
            ("options.latncy", "did you mean `latency`?"),
            ("options.mode", "`mode` is decided by the lab"),
            ("host.drift", "unknown table `host`; did you mean `hosts`?"),
        ] {
            let error = check(wrong).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn short_names_find_their_table() {
        assert_eq!(full("loss").as_deref(), Ok("link.loss"));
        assert_eq!(full("latency").as_deref(), Ok("options.latency"));
        assert_eq!(full("duration").as_deref(), Ok("stream.duration"));
        assert_eq!(full("link.down.rate").as_deref(), Ok("link.down.rate"));
        assert!(full("bitrat").unwrap_err().contains("did you mean `bitrate`?"));
    }
}
