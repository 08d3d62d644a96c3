//! `pathDefaults` and `paths` of `mediamtx.yml`.

use punctual_relay_access::StreamPattern;
use serde_json::{Map, Value as Json};

use super::document::{Document, Table, is_nothing, switch, text, time};
use crate::hooks::HOOK;
use crate::streams::STREAM;
use crate::toml_text::quoted;

/// Translates the defaults and all paths, then the commands of all events.
pub(super) fn translate(settings: &Map<String, Json>, document: &mut Document) {
    let mut hooks = Vec::new();
    let empty = Map::new();
    for (event, key) in [("connect", "runOnConnect"), ("disconnect", "runOnDisconnect")] {
        hooks.extend(hook(settings, (event, key), "*", "", document));
    }
    if let Some(Json::Object(defaults)) = settings.get("pathDefaults") {
        path(defaults, "pathDefaults", "[defaults]", document);
        hooks.extend(commands(defaults, "*", "pathDefaults.", document));
    }
    let paths = match settings.get("paths") {
        Some(Json::Object(paths)) => paths,
        _ => &empty,
    };
    for (name, keys) in paths {
        let from = format!("paths.{name}");
        // Older files have `all`; `~^.*$` means the same.
        let pattern = match name.as_str() {
            "all" | "~^.*$" => "all_others",
            name => name,
        };
        if let Err(error) = pattern.parse::<StreamPattern>() {
            document.leave(from, error.to_string(), "write the section by hand");
            continue;
        }
        let Json::Object(keys) = keys else { continue };
        path(keys, &from, &format!("[stream.{}]", quoted(pattern)), document);
        hooks.extend(commands(keys, pattern, &format!("{from}."), document));
    }
    hooks.into_iter().for_each(|hook| document.add(hook));
}

/// Translates the keys of one path.
fn path(keys: &Map<String, Json>, from: &str, head: &str, document: &mut Document) {
    let mut table = Table::new(head);
    for (key, value) in keys.iter().filter(|(_, value)| !is_nothing(value)) {
        let from = format!("{from}.{key}");
        let mut set = |key, value| document.set(&mut table, STREAM, (key, value), &from);
        match (key.as_str(), SAME.iter().find(|(name, ..)| name == key)) {
            (_, Some((_, own, form))) => match form(value) {
                Some(value) => set(own, value),
                None => document.leave(from, "its value is not of this kind", ""),
            },
            ("source", _) => match source(value) {
                Ok(None) => {}
                Ok(Some(uri)) => set("source", quoted(&uri)),
                Err((reason, advice)) => document.leave(from, reason, advice),
            },
            ("forward", _) => match forward(value) {
                Some(forward) => set("forward", forward),
                None => document.leave(from, "its destinations have no `dest`", ""),
            },
            ("overridePublisher", _) => {
                let word = if switch(value) == Some(false) { "refuse" } else { "replace" };
                set("on-second-publisher", quoted(word));
            }
            ("recordFormat", _) if text(value).as_deref() == Some("mpegts") => {}
            ("recordFormat", _) => {
                let reason = "recordings are transport streams, as they are received";
                document.leave(
                    from,
                    reason,
                    "FFmpeg makes MP4 of one: ffmpeg -i A.ts -c copy A.mp4",
                );
            }
            (name, _) if name.starts_with("runOn") => {}
            (name, _) => left(name, value, from, document),
        }
    }
    document.add(table);
}

/// Tells a key that is left, unless its value changes nothing.
fn left(name: &str, value: &Json, from: String, document: &mut Document) {
    let is_off = switch(value) == Some(false);
    match LEFT.iter().find(|(prefix, ..)| name.starts_with(prefix)) {
        Some(_) if is_off => {}
        Some((_, "", _)) => {}
        Some((_, reason, advice)) => document.leave(from, *reason, *advice),
        None => document.leave(from, "this key is not known", ""),
    }
}

/// The source, if it is not a publisher.
fn source(value: &Json) -> Result<Option<String>, (&'static str, &'static str)> {
    let source = text(value).unwrap_or_default();
    let scheme = source.split_once(':').map_or(source.as_str(), |(scheme, _)| scheme);
    if source.contains("$MTX_QUERY") {
        return Err(("the query of a viewer is not part of a source", ""));
    }
    let rest = source.split_once("://").map_or("", |(_, rest)| rest);
    let uri = match scheme {
        "publisher" => return Ok(None),
        "srt" => source.clone(),
        "udp" | "udp+mpegts" => format!("udp://{rest}"),
        "udp+rtp" => format!("rtp://{rest}"),
        "redirect" => return Err(("SRT cannot redirect a caller", "pull the other stream")),
        _ => {
            return Err((
                "this relay pulls srt, srt+quic, udp, rtp, tcp and files",
                "let FFmpeg bring it in: ffmpeg -i SOURCE -c copy -f mpegts \
                 'srt://HOST:8890?streamid=publish:NAME'",
            ));
        }
    };
    Ok(Some(own_variables(&uri)))
}

/// Groups and the name of a path in our form.
fn own_variables(text: &str) -> String {
    text.replace("$MTX_PATH", "$0").replace("$G", "$")
}

/// The destinations as a list of TOML.
fn forward(value: &Json) -> Option<String> {
    let Json::Array(parts) = value else { return None };
    let to = |part: &Json| {
        let to = part.get("dest").and_then(text)?;
        Some(format!("{{ to = {} }}", quoted(&own_variables(&to))))
    };
    let parts: Vec<String> = parts.iter().map(to).collect::<Option<_>>()?;
    Some(format!("[{}]", parts.join(", ")))
}

/// The commands of a path.
fn commands(
    keys: &Map<String, Json>,
    pattern: &str,
    from: &str,
    document: &mut Document,
) -> Vec<Table> {
    for (key, reason, advice) in NO_EVENT {
        if keys.get(*key).and_then(text).is_some() {
            document.leave(format!("{from}{key}"), *reason, *advice);
        }
    }
    let hooks = EVENTS.iter().filter_map(|names| hook(keys, *names, pattern, from, document));
    hooks.collect()
}

/// The hook of one command.
fn hook(
    keys: &Map<String, Json>,
    (event, key): (&str, &str),
    pattern: &str,
    from: &str,
    document: &mut Document,
) -> Option<Table> {
    let command = keys.get(key).and_then(text)?;
    let from = format!("{from}{key}");
    let mut table = Table::new("[[hook]]");
    document.set(&mut table, HOOK, ("on", format!("[{}]", quoted(event))), &from);
    if pattern != "*" {
        document.set(&mut table, HOOK, ("stream", quoted(pattern)), &from);
    }
    if !document.takes(&mut table, HOOK, ("run", quoted(&command)), &from) {
        return None;
    }
    if keys.get(&format!("{key}Restart")).and_then(switch) == Some(true) {
        document.set(&mut table, HOOK, ("restart", "true".to_owned()), &from);
    }
    Some(table)
}

/// A switch in TOML.
fn toml_switch(value: &Json) -> Option<String> {
    switch(value).map(|switch| switch.to_string())
}

/// A text in TOML.
fn toml_text(value: &Json) -> Option<String> {
    text(value).map(|text| quoted(&text))
}

/// A number in TOML.
fn toml_number(value: &Json) -> Option<String> {
    value.as_u64().map(|number| number.to_string())
}

/// A way to write a value of YAML in TOML.
type Form = fn(&Json) -> Option<String>;

/// Keys with the same meaning here.
const SAME: &[(&str, &str, Form)] = &[
    ("maxReaders", "max-viewers", toml_number),
    ("record", "record", toml_switch),
    ("recordDeleteAfter", "record-delete-after", time),
    ("recordPath", "record-path", toml_text),
    ("recordSegmentDuration", "record-segment", time),
    ("sourceOnDemand", "source-on-demand", toml_switch),
    ("sourceOnDemandCloseAfter", "source-on-demand-close-after", time),
    ("sourceOnDemandStartTimeout", "source-on-demand-start-timeout", time),
    ("srtPublishPassphrase", "publish-passphrase", toml_text),
    ("srtReadPassphrase", "read-passphrase", toml_text),
];

/// Commands with an event here. Older files have `Ready` for `Available`.
const EVENTS: &[(&str, &str)] = &[
    ("available", "runOnAvailable"),
    ("available", "runOnReady"),
    ("unavailable", "runOnUnavailable"),
    ("unavailable", "runOnNotReady"),
    ("online", "runOnOnline"),
    ("offline", "runOnOffline"),
    ("read", "runOnRead"),
    ("unread", "runOnUnread"),
    ("record-segment-create", "runOnRecordSegmentCreate"),
    ("record-segment-complete", "runOnRecordSegmentComplete"),
];

const ON_DEMAND: &str = "pull the stream by `source` with `source-on-demand = true`; `absent = \"hold\"` lets viewers wait";

/// Commands without an event here.
const NO_EVENT: &[(&str, &str, &str)] = &[
    ("runOnInit", "no command starts with the relay", "start it by a unit of systemd"),
    ("runOnDemand", "no command starts for an absent stream", ON_DEMAND),
    ("runOnUnDemand", "no command starts for an absent stream", ON_DEMAND),
];

/// The beginnings of keys without a counterpart. Without a reason the key is not told, because it
/// belongs to another one that is.
const LEFT: &[(&str, &str, &str)] = &[
    (
        "alwaysAvailable",
        "there is no slate while the source is gone",
        "`keep-viewers` lets viewers outlive their publisher",
    ),
    ("fallback", "there is no redirection to another stream", ""),
    ("recordMaxPartSize", "", ""),
    ("recordPartDuration", "", ""),
    ("rpiCamera", "", ""),
    ("rtp", "", ""),
    ("rtsp", "", ""),
    ("sourceFingerprint", "", ""),
    ("sourceRedirect", "", ""),
    ("useAbsoluteTimestamp", "the times of a stream are not touched", ""),
    ("whep", "", ""),
];
