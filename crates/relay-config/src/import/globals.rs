//! The keys of `mediamtx.yml` that belong to the whole server.

use serde_json::{Map, Value as Json};

use super::document::{Document, Table, is_nothing, switch, text, texts, time};
use crate::http::HTTP;
use crate::listener::LISTEN;
use crate::toml_text::{list, quoted};

/// Translates listeners and HTTP, and tells the keys that are left.
pub(super) fn translate(settings: &Map<String, Json>, document: &mut Document) {
    listener(settings, document);
    http(settings, document);
    for (key, value) in settings {
        let mut groups =
            GROUPS.iter().filter(|group| group.prefixes.iter().any(|it| key.starts_with(it)));
        if KNOWN.contains(&key.as_str()) || groups.next().is_some() || is_nothing(value) {
            continue;
        }
        match LEFT.iter().find(|(name, ..)| name == key) {
            Some((_, standard, ..)) if is_standard(value, standard) => {}
            Some((_, _, reason, advice)) => document.leave(key, *reason, *advice),
            None => document.leave(key, "this key is not known", ""),
        }
    }
    for group in GROUPS {
        let mut keys =
            settings.keys().filter(|key| group.prefixes.iter().any(|it| key.starts_with(it)));
        let is_on = settings.get(group.switch).and_then(switch).unwrap_or(group.standard);
        if is_on && keys.next().is_some() {
            document.leave(format!("{}…", group.switch), group.reason, group.advice);
        }
    }
}

fn is_standard(value: &Json, standard: &str) -> bool {
    let standard: Json = serde_json::from_str(standard).unwrap_or_default();
    *value == standard || switch(value).map(Json::Bool) == Some(standard)
}

fn listener(settings: &Map<String, Json>, document: &mut Document) {
    if settings.get("srt").and_then(switch) == Some(false) {
        let advice = "the new file has one at port 8890, since a relay without it gets nothing";
        document.leave("srt", "the file has no SRT listener", advice);
    }
    let mut table = Table::new("[[listen]]");
    let address = settings.get("srtAddress").and_then(text).unwrap_or_else(|| ":8890".to_owned());
    document.set(&mut table, LISTEN, ("srt", quoted(&address)), "srtAddress");
    if let Some(timeout) = settings.get("readTimeout").and_then(time) {
        document.set(&mut table, LISTEN, ("peer-idle-timeout", timeout), "readTimeout");
    }
    document.add(table);
}

fn http(settings: &Map<String, Json>, document: &mut Document) {
    let is_on = |key: &str| settings.get(key).and_then(switch) == Some(true);
    let mut table = Table::new("[http]");
    let given = |key: &str| settings.get(key).and_then(text);
    if is_on("api") {
        let address = given("apiAddress").unwrap_or_else(|| ":9997".to_owned());
        document.set(&mut table, HTTP, ("listen", quoted(&address)), "apiAddress");
        if is_on("apiEncryption") {
            let file =
                |key, standard: &str| quoted(&given(key).unwrap_or_else(|| standard.to_owned()));
            let certificate = file("apiServerCert", "server.crt");
            document.set(&mut table, HTTP, ("tls-cert", certificate), "apiServerCert");
            let key = file("apiServerKey", "server.key");
            document.set(&mut table, HTTP, ("tls-key", key), "apiServerKey");
        }
        let origins = settings.get("apiAllowOrigins").or_else(|| settings.get("apiAllowOrigin"));
        let origins = origins.map(texts).unwrap_or_default();
        if origins.iter().any(|origin| origin == "*") {
            let reason = "MediaMTX lets every page in the user's browser call the API";
            document.leave("apiAllowOrigins", reason, "write `http.origins` if a page needs it");
        } else if !origins.is_empty() {
            document.set(&mut table, HTTP, ("origins", list(&origins)), "apiAllowOrigins");
        }
        let proxies = settings.get("apiTrustedProxies").map(texts).unwrap_or_default();
        if !proxies.is_empty() {
            document.set(
                &mut table,
                HTTP,
                ("trusted-proxies", list(&proxies)),
                "apiTrustedProxies",
            );
        }
    }
    if is_on("metrics") {
        let address = given("metricsAddress").unwrap_or_else(|| ":9998".to_owned());
        document.set(&mut table, HTTP, ("metrics", quoted(&address)), "metricsAddress");
        if is_on("metricsEncryption") {
            let advice = "`http.tls-cert` and `http.tls-key` count for both addresses";
            document.leave("metricsEncryption", "metrics have no certificate of their own", advice);
        }
    }
    document.add(table);
}

/// Keys of one protocol, or of one part of the server, that are told together.
struct Group {
    switch: &'static str,
    /// Whether it is on if the file does not say.
    standard: bool,
    prefixes: &'static [&'static str],
    reason: &'static str,
    advice: &'static str,
}

/// The way to bring other protocols in.
const BY_FFMPEG: &str = "let FFmpeg bring such a stream in: ffmpeg -i SOURCE -c copy -f mpegts \
     'srt://HOST:8890?streamid=publish:NAME'";

const GROUPS: &[Group] = &[
    Group {
        switch: "rtsp",
        standard: true,
        prefixes: &["rtsp", "rtp", "rtcp", "srtp", "srtcp", "multicast", "encryption", "protocols"],
        reason: "this relay does not speak RTSP",
        advice: BY_FFMPEG,
    },
    Group {
        switch: "rtmp",
        standard: true,
        prefixes: &["rtmp"],
        reason: "this relay does not speak RTMP",
        advice: BY_FFMPEG,
    },
    Group {
        switch: "hls",
        standard: true,
        prefixes: &["hls"],
        reason: "HLS has no port of its own here",
        advice: "players find it at the address of `http.listen`",
    },
    Group {
        switch: "webrtc",
        standard: true,
        prefixes: &["webrtc"],
        reason: "this relay does not speak WebRTC",
        advice: "the page plays streams over a WebSocket",
    },
    Group {
        switch: "moq",
        standard: false,
        prefixes: &["moq"],
        reason: "this relay does not speak Media over QUIC",
        advice: "",
    },
    Group {
        switch: "pprof",
        standard: false,
        prefixes: &["pprof"],
        reason: "this relay has no profiler of Go",
        advice: "",
    },
    Group {
        switch: "playback",
        standard: false,
        prefixes: &["playback"],
        reason: "recordings have no port of their own here",
        advice: "they are played over SRT and at the address of `http.listen`",
    },
];

/// Keys that are translated, here or in the other files.
const KNOWN: &[&str] = &[
    "api",
    "apiAddress",
    "apiAllowOrigin",
    "apiAllowOrigins",
    "apiEncryption",
    "apiServerCert",
    "apiServerKey",
    "apiTrustedProxies",
    "authHTTPAddress",
    "authInternalUsers",
    "authJWTAudience",
    "authJWTClaimKey",
    "authJWTIssuer",
    "authJWTJWKS",
    "authMethod",
    "metrics",
    "metricsAddress",
    "metricsEncryption",
    "pathDefaults",
    "paths",
    "readTimeout",
    "runOnConnect",
    "runOnConnectRestart",
    "runOnDisconnect",
    "srt",
    "srtAddress",
];

const LOG: &str = "the log is set by flags of the command line";

/// Keys without a counterpart: the default of MediaMTX in JSON, the reason and the advice.
const LEFT: &[(&str, &str, &str, &str)] = &[
    ("authHTTPExclude", STANDARD_EXCLUDE, "every caller is asked about", EXCLUDE),
    ("authHTTPFingerprint", "null", FINGERPRINT, TRUST),
    ("authJWTExclude", "[]", "every caller needs a right", EXCLUDE),
    ("authJWTInHTTPQuery", "true", "tickets take the place of JWT in URLs", ""),
    ("authJWTJWKSFingerprint", "null", FINGERPRINT, TRUST),
    ("externalAuthenticationURL", "null", "MediaMTX has replaced this key", "write `auth.http`"),
    ("logDestinations", "[\"stdout\"]", LOG, ""),
    ("logFile", "\"mediamtx.log\"", LOG, ""),
    ("logLevel", "\"info\"", LOG, ""),
    ("logStructured", "false", LOG, ""),
    ("metricsAllowOrigin", "\"*\"", "`http.origins` counts for all addresses", ""),
    ("metricsAllowOrigins", "[\"*\"]", "`http.origins` counts for all addresses", ""),
    ("metricsServerCert", "\"server.crt\"", "`http.tls-cert` counts for all addresses", ""),
    ("metricsServerKey", "\"server.key\"", "`http.tls-key` counts for all addresses", ""),
    ("metricsTrustedProxies", "[]", "`http.trusted-proxies` counts for all addresses", ""),
    ("sysLogPrefix", "\"mediamtx\"", LOG, ""),
    ("udpMaxPayloadSize", "1452", "SRT agrees on the size of packets by itself", ""),
    ("udpReadBufferSize", "0", "the relay sizes its buffers by itself", ""),
    ("writeQueueSize", "512", "viewers are judged by time", "see `viewer-buffer`"),
    ("writeTimeout", "\"10s\"", "viewers are judged by time", "see `viewer-buffer`"),
];

const STANDARD_EXCLUDE: &str =
    "[{\"action\":\"api\"},{\"action\":\"metrics\"},{\"action\":\"pprof\"}]";
const EXCLUDE: &str = "give the user `any` these permissions";
const FINGERPRINT: &str = "certificates are checked by the system's roots";
const TRUST: &str = "add the certificate to the system's roots";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_default_is_json() {
        for (key, standard, ..) in LEFT {
            assert!(serde_json::from_str::<Json>(standard).is_ok(), "{key}");
        }
        assert!(is_standard(&json!("no"), "false") && !is_standard(&json!("yes"), "false"));
    }
}
