//! The help topic on URIs, generated from the tables that parse them.

use std::fmt::Write;

use crate::file::FILE_KEYS;
use crate::key::{KeyEffect, UriKey};
use crate::srt_keys::SRT_KEYS;
use crate::tcp::TCP_KEYS;
use crate::udp::UDP_KEYS;

/// The help text: every form of URI, and every key with unit, range and default.
pub fn topic() -> String {
    let mut text = INTRODUCTION.to_owned();
    section(&mut text, "Keys of srt:// URIs", &SRT_KEYS);
    #[cfg(feature = "quic")]
    section(&mut text, "Further keys of srt+quic:// URIs", crate::quic::QUIC_KEYS);
    section(&mut text, "Keys of udp:// and rtp:// URIs", UDP_KEYS);
    section(&mut text, "Keys of tcp:// URIs", TCP_KEYS);
    section(&mut text, "Keys of file:// URIs", FILE_KEYS);
    text
}

fn section<T>(text: &mut String, title: &str, keys: &[UriKey<T>]) {
    let _ = write!(text, "\n\n{title}:\n");
    for key in keys.iter().filter(|key| key.works()) {
        let _ = write!(text, "\n  {:<14} {}\n      {}", key.name, value(key), key.about);
        if !key.aliases.is_empty() {
            let _ = write!(text, " (also called {})", key.aliases.join(", "));
        }
    }
    let names = |wanted: fn(&KeyEffect<T>) -> bool| {
        let named = keys.iter().filter(|key| wanted(&key.effect)).map(|key| key.name);
        named.collect::<Vec<_>>().join(", ")
    };
    let refused = names(|effect| matches!(effect, KeyEffect::Refused { .. }));
    let ignored = names(|effect| matches!(effect, KeyEffect::Ignored));
    if !refused.is_empty() {
        let title = "For features that this version does not have; an error names the feature";
        let _ = write!(text, "\n\n  {title}:{}", folded(&refused));
    }
    if !ignored.is_empty() {
        let _ = write!(text, "\n\n  Allowed and without effect:{}", folded(&ignored));
    }
}

/// The form of a key's value, with the unit of bare numbers unless the form shows it.
fn value<T>(key: &UriKey<T>) -> String {
    let form = key.form();
    match key.unit {
        unit if matches!(unit, "" | "text" | "switch" | "version") || form.contains(unit) => {
            form.into_owned()
        }
        unit => format!("{form}; in {unit}"),
    }
}

/// Names folded into lines of at most 80 characters.
fn folded(names: &str) -> String {
    let mut text = String::new();
    let mut room = 0;
    for name in names.split_inclusive(", ") {
        if name.len() > room {
            text.truncate(text.trim_end().len());
            text += "\n      ";
            room = 80;
        }
        text += name;
        room -= name.len();
    }
    text
}

const INTRODUCTION: &str = "\
A stream comes from one place and goes to another. Both are written as URIs:

  srt://host:4200              call an SRT listener
  srt://:4200                  listen for SRT callers, on every IPv4 address
  srt://[::]:4200?mode=listener
                               the same, IPv6 and IPv4
  srt://host:4200?mode=rendezvous
                               both ends call each other, each from its port 4200
  srt+quic://host:443?certhash=…
                               the same over QUIC; without cert and key a listener makes a
                               certificate and logs its hash
  udp://10.0.0.7:1234          UDP: send there; as a source, receive at this local address
  udp://:1234 or udp://@:1234  UDP: receive at that port
  udp://@239.1.1.1:1234        UDP multicast: send to the group, or join it
  rtp://host:1234              MPEG-TS as RTP over UDP, in the same forms
  tcp://host:5000              TCP: connect;  tcp://:5000 listens
  file:///media/clip.ts        a file; a bare path such as ./clip.ts is a file, too
  file:///rec/a.ts?grow=wait&maxidle=5s
                               a file that another program still writes
  -                            standard input or output (also file://con)

Keys follow after `?`, separated by `&`: srt://host:4200?latency=200ms&streamid=live/one
(put the URI in quotes: shells treat `&` and `?` specially). Reserved characters in values are
written %XX: %26 for `&`, %25 for `%`. A bare number has the unit of the SRT tools:
milliseconds for times, bytes for sizes, bytes per second for rates. Better write units: 120ms,
2s, 5Mbps, 64KiB, 25%. FFmpeg's latency is in microseconds; write 120ms instead of 120000.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_named_where_numbers_have_one() {
        let topic = topic();
        assert!(topic.contains("listen_timeout 1000 and up, or -1: no limit; default -1; in us\n"));
        assert!(topic.contains("latency        0 to 65535 ms; default 120ms\n"));
        assert!(topic.contains("tlpktdrop      switch; default on\n"));
    }

    #[test]
    fn the_topic_lists_every_key() {
        let topic = topic();
        for name in SRT_KEYS.iter().map(|key| key.name).chain(UDP_KEYS.iter().map(|key| key.name)) {
            assert!(topic.contains(name), "{name} is missing");
        }
        for key in SRT_KEYS.iter().filter(|key| key.works()) {
            assert!(!key.value.is_empty() && !key.about.is_empty(), "{}", key.name);
        }
    }
}
