//! The keys of `[defaults]` and `[stream."NAME"]`.

use std::time::Duration;

use super::record_path::RecordPath;
use super::settings::{
    AbsentStream, CipherChoice, ForwardSettings, RetryRange, SecondPublisher, SlowViewer,
    StreamSettings, ViewerStart,
};
use super::uri::StreamUri;
use crate::listener::{LATENCIES, word};
use crate::problem::Faults;
use crate::rows::{KeyFacts, KeyRow, ReloadEffect, Shown, store};
use crate::secret::SecretValue;
use crate::table;
use crate::toml_text;
use crate::toml_text::{quoted, shown_option, shown_plain, shown_text, shown_time};
use crate::users::{shown_secret, shown_secret_file};
use crate::value::{MOST_TEXT, Value};

fn source(value: &Value<'_>) -> Result<Option<StreamUri>, Faults> {
    match value.filled_text(MOST_TEXT)? {
        PUBLISHER => Ok(None),
        text => StreamUri::source(text, value.files()).map(Some),
    }
}

/// A passphrase; an empty text takes away that of `[defaults]`.
fn passphrase(value: &Value<'_>) -> Result<Option<SecretValue>, Faults> {
    match value.text(MOST_TEXT)? {
        "" => Ok(None),
        text => checked_passphrase(SecretValue::written(text)),
    }
}

fn checked_passphrase(value: SecretValue) -> Result<Option<SecretValue>, Faults> {
    match value.secret.expose().len() {
        10..=80 => Ok(Some(value)),
        bytes => Err(format!("the passphrase has {bytes} bytes").into()),
    }
}

fn key_length(value: &Value<'_>) -> Result<Option<u8>, Faults> {
    match value.count(0..=32)? {
        0 => Ok(None),
        16 => Ok(Some(16)),
        24 => Ok(Some(24)),
        32 => Ok(Some(32)),
        other => Err(format!("no key has {other} bytes").into()),
    }
}

fn forward(value: &Value<'_>) -> Result<Vec<ForwardSettings>, Faults> {
    let mut found: Vec<ForwardSettings> = value.list(MOST_FORWARDS, |part| {
        let forward: ForwardSettings = table::part(part, FORWARD)?;
        match forward.to {
            None => Err("it has no `to`".into()),
            Some(_) => Ok(forward),
        }
    })?;
    for index in 0..found.len() {
        if found[index].name.is_empty() {
            found[index].name = (index + 1).to_string();
        }
        let (before, rest) = found.split_at(index);
        let name = &rest[0].name;
        if before.iter().any(|other| other.name == *name) {
            return Err(format!("two destinations have the name `{name}`").into());
        }
    }
    Ok(found)
}

fn shown_forward(forward: &[ForwardSettings]) -> Shown<'_> {
    let uris: Vec<_> = forward.iter().filter_map(|it| Some((it, it.to.as_ref()?))).collect();
    let shown = uris
        .iter()
        .map(|(it, to)| format!("{{ name = {}, to = {} }}", quoted(&it.name), quoted(to.shown())));
    let shown = shown.collect::<Vec<_>>().join(", ");
    Shown::Hidden(uris.iter().map(|(_, to)| to.secret()).collect(), format!("[{shown}]"))
}

fn shown_source(uri: Option<&StreamUri>) -> Shown<'_> {
    match uri {
        None => shown_text(PUBLISHER),
        Some(uri) => Shown::Hidden(vec![uri.secret()], quoted(uri.shown())),
    }
}

const fn facts(
    name: &'static str,
    form: &'static str,
    reload: ReloadEffect,
    habit: &'static str,
    meaning: &'static str,
) -> KeyFacts {
    KeyFacts { section: "stream", name, form, meaning, habit, reload }
}

use ReloadEffect::{Live, NewConnections};

/// The keys of `[defaults]` and `[stream."NAME"]`.
pub(crate) const STREAM: &[KeyRow<StreamSettings>] = &[
    KeyRow {
        facts: facts(
            "source",
            "\"publisher\", or a URI of srt, srt+quic, udp, rtp, tcp or file",
            Live,
            "MediaMTX: source",
            "callers publish, or the relay pulls the URI; a file is sent in a loop. `$0` is the \
             stream's name, `$1` to `$9` are groups of a regular expression",
        ),
        set: |it, value| store(&mut it.source.uri, source(value)),
        show: |it| shown_source(it.source.uri.as_ref()),
    },
    KeyRow {
        facts: facts(
            "source-on-demand",
            "true or false",
            Live,
            "MediaMTX: sourceOnDemand",
            "pull the source only while somebody views",
        ),
        set: |it, value| store(&mut it.source.on_demand, value.switch()),
        show: |it| shown_plain(&it.source.on_demand),
    },
    KeyRow {
        facts: facts(
            "source-on-demand-start-timeout",
            "a time from \"100ms\" to \"1h\"",
            Live,
            "MediaMTX: sourceOnDemandStartTimeout",
            "the time that viewers wait for a source on demand",
        ),
        set: |it, value| store(&mut it.source.start_timeout, value.time(TENTH..=HOUR)),
        show: |it| shown_time(it.source.start_timeout),
    },
    KeyRow {
        facts: facts(
            "source-on-demand-close-after",
            "a time from \"0s\" to \"1d\"",
            Live,
            "MediaMTX: sourceOnDemandCloseAfter",
            "the time after the last viewer at which a source on demand is closed",
        ),
        set: |it, value| store(&mut it.source.close_after, value.time(Duration::ZERO..=DAY)),
        show: |it| shown_time(it.source.close_after),
    },
    KeyRow {
        facts: facts(
            "retry",
            "two times from \"100ms\" to \"1h\", like \"1s..30s\", or one",
            Live,
            "",
            "the first and the longest pause between attempts of sources and destinations; each is \
             twice the one before, with jitter, and 60 s of good media begin again",
        ),
        set: |it, value| {
            it.source.retry = RetryRange::parse(value.text(100)?)?;
            Ok(())
        },
        show: |it| shown_text(it.source.retry.text()),
    },
    KeyRow {
        facts: facts(
            "on-second-publisher",
            "\"replace\", \"refuse\" or \"standby\"",
            NewConnections,
            "MediaMTX: overridePublisher",
            "a second publisher replaces the first if it has the same user or token, is refused, \
             or waits until the first ends",
        ),
        set: |it, value| store(&mut it.publishers.on_second, value.choice(SECOND)),
        show: |it| shown_text(word(SECOND, it.publishers.on_second)),
    },
    KeyRow {
        facts: facts(
            "keep-viewers",
            "a time from \"0s\" to \"1d\"",
            Live,
            "",
            "the time for which viewers outlive their publisher",
        ),
        set: |it, value| store(&mut it.publishers.keep_viewers, value.time(Duration::ZERO..=DAY)),
        show: |it| shown_time(it.publishers.keep_viewers),
    },
    KeyRow {
        facts: facts(
            "start",
            "\"random-access\", \"gop\" or \"live\"",
            NewConnections,
            "srtrelay: syncClients",
            "a viewer begins at the next random access point, at the latest one with the media \
             since then, or at the next packet",
        ),
        set: |it, value| store(&mut it.viewers.start, value.choice(STARTS)),
        show: |it| shown_text(word(STARTS, it.viewers.start)),
    },
    KeyRow {
        facts: facts(
            "slow-viewer",
            "\"skip\" or \"disconnect\"",
            Live,
            "srtrelay: buffersize",
            "a viewer that is too slow goes on at a later random access point, or is disconnected",
        ),
        set: |it, value| store(&mut it.viewers.slow, value.choice(SLOW)),
        show: |it| shown_text(word(SLOW, it.viewers.slow)),
    },
    KeyRow {
        facts: facts(
            "viewer-buffer",
            "a time from \"100ms\" to \"1min\"",
            NewConnections,
            "srtrelay: buffersize",
            "the media that wait for a viewer before it is too slow",
        ),
        set: |it, value| store(&mut it.viewers.buffer, value.time(TENTH..=MINUTE)),
        show: |it| shown_time(it.viewers.buffer),
    },
    KeyRow {
        facts: facts(
            "absent",
            "\"refuse\", \"hold\", which is \"hold 10s\", or a time from 100ms to 1h like \"hold 1min\"",
            NewConnections,
            "",
            "a viewer of a stream that is absent is refused, or waits for it",
        ),
        set: |it, value| {
            it.viewers.absent = AbsentStream::parse(value.text(100)?)?;
            Ok(())
        },
        show: |it| shown_text(it.viewers.absent.text()),
    },
    KeyRow {
        facts: facts(
            "max-viewers",
            "a number from 0 to 1,000,000; 0: no limit",
            NewConnections,
            "MediaMTX: maxReaders",
            "the most viewers",
        ),
        set: |it, value| store(&mut it.viewers.most, value.small_count(0..=1_000_000)),
        show: |it| shown_plain(&it.viewers.most),
    },
    KeyRow {
        facts: facts(
            "max-viewers-per-user",
            "a number from 0 to 1,000,000; 0: no limit",
            NewConnections,
            "",
            "the most viewers of one user or token",
        ),
        set: |it, value| store(&mut it.viewers.most_per_user, value.small_count(0..=1_000_000)),
        show: |it| shown_plain(&it.viewers.most_per_user),
    },
    KeyRow {
        facts: facts(
            "publish-passphrase",
            "10 to 80 bytes, or \"\" for none",
            NewConnections,
            "MediaMTX: srtPublishPassphrase",
            "the passphrase of publishers; better use a file",
        ),
        set: |it, value| store(&mut it.encryption.publish, passphrase(value)),
        show: |it| shown_secret(it.encryption.publish.as_ref()),
    },
    KeyRow {
        facts: facts(
            "publish-passphrase-file",
            "the path of a file with 10 to 80 bytes",
            NewConnections,
            "",
            "a file with the passphrase of publishers",
        ),
        set: |it, value| {
            store(&mut it.encryption.publish, value.secret_file().and_then(checked_passphrase))
        },
        show: |it| shown_secret_file(it.encryption.publish.as_ref()),
    },
    KeyRow {
        facts: facts(
            "read-passphrase",
            "10 to 80 bytes, or \"\" for none",
            NewConnections,
            "MediaMTX: srtReadPassphrase",
            "the passphrase of viewers; better use a file",
        ),
        set: |it, value| store(&mut it.encryption.read, passphrase(value)),
        show: |it| shown_secret(it.encryption.read.as_ref()),
    },
    KeyRow {
        facts: facts(
            "read-passphrase-file",
            "the path of a file with 10 to 80 bytes",
            NewConnections,
            "",
            "a file with the passphrase of viewers",
        ),
        set: |it, value| {
            store(&mut it.encryption.read, value.secret_file().and_then(checked_passphrase))
        },
        show: |it| shown_secret_file(it.encryption.read.as_ref()),
    },
    KeyRow {
        facts: facts(
            "key-length",
            "16, 24 or 32 bytes; 0: the caller's choice",
            NewConnections,
            "SRT: pbkeylen",
            "the length of the keys of encryption",
        ),
        set: |it, value| store(&mut it.encryption.key_length, key_length(value)),
        show: |it| shown_plain(&it.encryption.key_length.unwrap_or(0)),
    },
    KeyRow {
        facts: facts(
            "cipher",
            "\"auto\", \"ctr\" or \"gcm\"",
            NewConnections,
            "SRT: cryptomode",
            "the cipher: the caller's choice, AES-CTR or AES-GCM",
        ),
        set: |it, value| store(&mut it.encryption.cipher, value.choice(CIPHERS)),
        show: |it| shown_text(word(CIPHERS, it.encryption.cipher)),
    },
    KeyRow {
        facts: facts(
            "latency",
            "a time from \"0s\" to \"65.535s\", or \"listener\"",
            NewConnections,
            "",
            "the least latency of the stream's connections in place of the listener's",
        ),
        set: |it, value| {
            it.latency = match value.text(100) {
                Ok("listener") => None,
                _ => Some(value.time(LATENCIES)?),
            };
            Ok(())
        },
        show: |it| shown_text(it.latency.map_or_else(|| "listener".to_owned(), toml_text::time)),
    },
    KeyRow {
        facts: facts(
            "forward",
            "a list of tables, like [{ to = \"srt://192.0.2.1:8890?streamid=live\" }]",
            Live,
            "MediaMTX: forward",
            "the destinations that the stream is sent to; each starts, ends and retries for itself",
        ),
        set: |it, value| store(&mut it.forward, forward(value)),
        show: |it| shown_forward(&it.forward),
    },
    KeyRow {
        facts: facts(
            "record",
            "true or false",
            Live,
            "MediaMTX: record",
            "record the stream as it is received, with an index",
        ),
        set: |it, value| store(&mut it.record.enabled, value.switch()),
        show: |it| shown_plain(&it.record.enabled),
    },
    KeyRow {
        facts: facts(
            "record-path",
            "a path with `%path`, the stream's name, and `%s` or all of `%Y %m %d %H %M %S`; also \
             `%f`, microseconds, and `%z`",
            NewConnections,
            "MediaMTX: recordPath",
            "the files of the segments, without the extension; a relative path begins in the \
             working directory",
        ),
        set: |it, value| {
            it.record.path = RecordPath::parse(value.filled_text(1_000)?)?;
            Ok(())
        },
        show: |it| shown_text(it.record.path.as_str()),
    },
    KeyRow {
        facts: facts(
            "record-segment",
            "a time from \"1s\" to \"7d\"",
            Live,
            "MediaMTX: recordSegmentDuration",
            "the time of a segment, which begins at a random access point",
        ),
        set: |it, value| {
            store(&mut it.record.segment, value.time(Duration::from_secs(1)..=DAY * 7))
        },
        show: |it| shown_time(it.record.segment),
    },
    KeyRow {
        facts: facts(
            "record-delete-after",
            "a time from \"1min\" to \"36500d\", or \"0s\" for never",
            Live,
            "MediaMTX: recordDeleteAfter",
            "the age at which segments are deleted",
        ),
        set: |it, value| {
            let time = value.time(Duration::ZERO..=DAY * 36_500)?;
            if time > Duration::ZERO && time < MINUTE {
                return Err("segments would be deleted while they are written".into());
            }
            it.record.delete_after = time;
            Ok(())
        },
        show: |it| shown_time(it.record.delete_after),
    },
    KeyRow {
        facts: facts(
            "record-max-bytes",
            "a number of bytes from \"1MB\", like \"100GB\"; 0: no limit",
            Live,
            "",
            "the bytes of all segments of the stream, beyond which the oldest are deleted",
        ),
        set: |it, value| {
            let bytes = value.bytes(0..=u64::MAX)?;
            if (1..1_000_000).contains(&bytes) {
                return Err("no segment would fit".into());
            }
            it.record.max_bytes = bytes;
            Ok(())
        },
        show: |it| shown_text(toml_text::bytes(it.record.max_bytes)),
    },
];

/// The keys of a destination.
pub(crate) const FORWARD: &[KeyRow<ForwardSettings>] = &[
    KeyRow {
        facts: KeyFacts {
            section: "stream.forward",
            name: "to",
            form: "a URI of srt, srt+quic, udp, rtp or tcp",
            meaning: "the destination; `$0` is the stream's name, `$1` to `$9` are groups",
            habit: "MediaMTX: dest",
            reload: Live,
        },
        set: |it, value| {
            let text = value.filled_text(MOST_TEXT)?;
            store(&mut it.to, StreamUri::destination(text, value.files()).map(Some))
        },
        show: |it| shown_option(it.to.as_ref().map(StreamUri::shown)),
    },
    KeyRow {
        facts: KeyFacts {
            section: "stream.forward",
            name: "name",
            form: "a text; default: the number in the list, from 1",
            meaning: "the destination's name in the API and in metrics",
            habit: "",
            reload: Live,
        },
        set: |it, value| store(&mut it.name, value.filled_text(100).map(str::to_owned)),
        show: |it| shown_text(&it.name),
    },
];

const SECOND: &[(&str, SecondPublisher)] = &[
    ("replace", SecondPublisher::Replace),
    ("refuse", SecondPublisher::Refuse),
    ("standby", SecondPublisher::Standby),
];

const STARTS: &[(&str, ViewerStart)] = &[
    ("random-access", ViewerStart::RandomAccess),
    ("gop", ViewerStart::Gop),
    ("live", ViewerStart::Live),
];

const SLOW: &[(&str, SlowViewer)] =
    &[("skip", SlowViewer::Skip), ("disconnect", SlowViewer::Disconnect)];

const CIPHERS: &[(&str, CipherChoice)] =
    &[("auto", CipherChoice::Auto), ("ctr", CipherChoice::Ctr), ("gcm", CipherChoice::Gcm)];

const PUBLISHER: &str = "publisher";
const MOST_FORWARDS: usize = 100;
const TENTH: Duration = Duration::from_millis(100);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
