//! Redaction of URIs for messages and logs: no passphrase is shown, even under a misspelt key.

use crate::file::FILE_KEYS;
use crate::key::UriKey;
use crate::secrets::{
    is_stream_id, mentions_passphrase, redacted_place, redacted_stream_id, shown_key,
};
use crate::srt_keys::SRT_KEYS;
use crate::tcp::TCP_KEYS;
use crate::udp::UDP_KEYS;

/// A URI, or a query, without possible secrets: the passphrase, the value of an unknown key (it may
/// be a misspelt passphrase), and a password before the host. Control characters are escaped.
pub fn redacted(text: &str) -> String {
    let shown = match text.split_once('?') {
        // Without a `?`, the whole text is a query, or no URI.
        None => redacted_place(text),
        Some((place, query)) => {
            let pairs: Vec<String> = query.split('&').map(redact_pair).collect();
            format!("{}?{}", redacted_place(place), pairs.join("&"))
        }
    };
    punctual_units::one_line(&shown).into_owned()
}

/// A command line whose words may be URIs, without possible secrets.
pub fn redacted_words(text: &str) -> String {
    if !mentions_passphrase(text) {
        return punctual_units::one_line(text).into_owned();
    }
    text.split(' ').map(redacted).collect::<Vec<_>>().join(" ")
}

/// A line of a file, without its value if it mentions a passphrase.
pub fn redacted_line(text: &str) -> String {
    if mentions_passphrase(text) { redacted(text) } else { text.to_owned() }
}

/// Whether the value of this key, as written, must not be shown: that of the passphrase, that of
/// any unknown key, and that of `key`, which is a file of QUIC, but may be taken for the
/// passphrase.
pub(crate) fn is_secret(key: &str) -> bool {
    let lower = key.to_lowercase();
    matches!(lower.as_str(), "passphrase" | "key") || !is_known(&lower)
}

fn redact_pair(pair: &str) -> String {
    match pair.split_once('=') {
        Some((key, "")) => format!("{}=", shown_key(key)),
        Some((key, value)) if is_secret(key) || mentions_passphrase(value) => {
            format!("{}=…", shown_key(key))
        }
        Some((key, value)) if is_stream_id(key) => {
            let text = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
            match redacted_stream_id(&text) {
                shown if shown == text => pair.to_owned(),
                shown => format!("{key}={shown}"),
            }
        }
        Some(_) => pair.to_owned(),
        None => shown_key(pair),
    }
}

/// Whether any form of URI has this key.
pub(crate) fn is_known(key: &str) -> bool {
    fn has<T>(table: &[UriKey<T>], name: &str) -> bool {
        table.iter().any(|key| key.name == name || key.aliases.contains(&name))
    }
    #[cfg(feature = "quic")]
    if has(crate::quic::QUIC_KEYS, key) {
        return true;
    }
    has(&SRT_KEYS, key) || has(UDP_KEYS, key) || has(TCP_KEYS, key) || has(FILE_KEYS, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_passphrase_is_redacted_at_any_position() {
        for (written, shown) in [
            ("srt://h:1?passphrase=hush, hush", "srt://h:1?passphrase=…"),
            (
                "srt://h:1?pbkeylen=16&passphrase=x=y?z&tlpktdrop=1",
                "srt://h:1?pbkeylen=16&passphrase=…&tlpktdrop=1",
            ),
            ("srt://h:1?PassPhrase=x&fc=2", "srt://h:1?PassPhrase=…&fc=2"),
            ("passphrase=x", "passphrase=…"),
            ("srt://h:1?passphrase=&fc=2", "srt://h:1?passphrase=&fc=2"),
            ("srt://h:1?passphrase-file=/run/x", "srt://h:1?passphrase-file=/run/x"),
            ("srt://u:hush@h:1?fc=2", "srt://…@h:1?fc=2"),
            ("udp://@239.1.1.1:5000?ttl=3", "udp://@239.1.1.1:5000?ttl=3"),
            ("-", "-"),
            ("", ""),
        ] {
            assert_eq!(redacted(written), shown);
        }
    }

    #[test]
    fn possible_secrets_under_other_names_are_redacted() {
        for written in [
            "srt://h:1?pasphrase=hush",
            "srt://h:1?pass=hush",
            "srt://h:1?key=hush",
            "srt://h:1?%70assphrase=hush",
            "srt://h:1?latency=1;passphrase=hush",
            "srt://h:1?passphrase:hush",
            "srt://h:1?passphrase%3Dhush",
            "srt://h:1&passphrase=hush",
            "srt://h:1/passphrase=hush",
            "srt:h:1?pasphrase=hush",
            "h:1?pw=hush",
            "pasphrase=hush",
            "--pasphrase=hush",
        ] {
            assert!(!redacted(written).contains("hush"), "{}", redacted(written));
        }
        let words = "ffmpeg -i in.ts -f mpegts srt://h:1?passphrase=hush&fc=9 -y out.ts";
        let shown = "ffmpeg -i in.ts -f mpegts srt://h:1?passphrase=…&fc=9 -y out.ts";
        assert_eq!(redacted_words(words), shown);
        assert_eq!(redacted_line("passphrase = \"hush\""), "passphrase =…");
        assert_eq!(redacted_line("title = \"Why? Why not?\""), "title = \"Why? Why not?\"");
    }

    #[test]
    fn secrets_in_stream_ids_are_redacted_and_the_rest_is_shown() {
        for (written, shown) in [
            ("#!::r=live/a,u=ann,s=hush,m=publish", "#!::r=live/a,u=ann,s=…,m=publish"),
            ("#!::s=hush", "#!::s=…"),
            ("#!:{r=a,s=hush}", "#!:{r=a,s=…}"),
            ("#!::r=live/a?token=hush,m=request", "#!::r=live/a?token=…,m=request"),
            ("publish:live/a:ann:hush", "publish:live/a:ann:…"),
            ("read:live/a:ann:hu:sh?x=1", "read:live/a:ann:…"),
            ("publish:live/a", "publish:live/a"),
            ("live/a?user=ann&pass=hush&x=1", "live/a?user=ann&pass=…&x=1"),
            ("live/a?stream_key=hush", "live/a?stream_key=…"),
            ("s=take/1", "s=take/1"),
            ("publish/cam/hush/x", "publish/cam/…"),
            ("play/cam", "play/cam"),
            ("cam,mode:publish,token:hush", "cam,mode:publish,token:…"),
            ("publish:live/a:token=hush", "publish:live/a:token=…"),
            ("srt://ann:hush@h/live/a?token=hush", "srt://…@h/live/a?token=…"),
            ("read:live/a:eyJhbGci.hush.x", "read:live/a:…"),
            ("#!::r=a,x_y=eyJhbGci.hush.x,m=request", "#!::r=a,x_y=…,m=request"),
            ("live/one", "live/one"),
        ] {
            assert_eq!(redacted_stream_id(written), shown);
        }
        for uri in [
            "srt://h:1?streamid=#!::r=a,s=hush&latency=1ms",
            "srt://h:1?streamid=%23!::r%3Da%2Cs%3Dhush",
            "srt://h:1?srt_streamid=publish:a:ann:hush",
            "srt+quic://h:1?StreamID=a?token=hush",
        ] {
            assert!(!redacted(uri).contains("hush"), "{}", redacted(uri));
        }
        let error = "srt://h:1?latency=x&streamid=#!::s=hush".parse::<crate::Uri>().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hush"));
    }

    #[test]
    fn files_and_known_keys_are_not_changed() {
        for text in ["take=2.ts", "a&b=c.ts", "./clip?.ts", "srt://h:1?latency=1ms&streamid=a"] {
            assert_eq!(redacted(text), text);
        }
        assert_eq!(redacted("a\nb\u{1b}[2J.ts"), "a\\nb\\u{1b}[2J.ts");
    }
}
