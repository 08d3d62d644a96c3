//! The difference between two configurations, for a reload.

use std::collections::{BTreeMap, BTreeSet};

use punctual_relay_access::StreamName;
use serde::Serialize;

use crate::configuration::Configuration;
use crate::http::{DRAIN, HTTP};
use crate::listener::{LISTEN, ListenerSettings};
use crate::rows::{KeyFacts, ReloadEffect, differing};
use crate::streams::{STREAM, StreamSection};
use crate::users::{AUTH, UserTable};

/// The difference between two configurations.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct ConfigChange {
    /// The listeners, each by its URI.
    pub listeners: Vec<PartChange>,
    /// The keys of `[http]`.
    pub http: Vec<KeyChange>,
    /// The sections of streams, each by its pattern, and `[defaults]`, whose name is `defaults`.
    pub streams: Vec<PartChange>,
    /// The users, each by its name.
    pub users: Vec<PartChange>,
    /// The keys of `[auth]`.
    pub auth: Vec<KeyChange>,
    /// Whether hooks differ.
    pub hooks: bool,
    /// The keys of `[drain]`.
    pub drain: Vec<KeyChange>,
}

/// The change of a part with a name.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct PartChange {
    /// The name.
    pub name: String,
    /// The kind of the change.
    pub kind: ChangeKind,
    /// The keys that differ, if both configurations have the part.
    pub keys: Vec<KeyChange>,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    /// Only the new configuration has it.
    Added,
    /// Only the old configuration has it.
    Removed,
    /// Both have it, with a difference.
    Changed,
}

/// A key whose value differs.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct KeyChange {
    /// The key.
    pub key: &'static str,
    /// The time at which the new value has effect.
    pub effect: ReloadEffect,
}

impl ConfigChange {
    /// The difference between two configurations.
    pub fn between(old: &Configuration, new: &Configuration) -> Self {
        let defaults = keys(differing(STREAM, old.streams.defaults(), new.streams.defaults()));
        let pattern = |section: &StreamSection| section.pattern.as_str().to_owned();
        let mut streams = Vec::new();
        if !defaults.is_empty() {
            let name = "defaults".to_owned();
            streams.push(PartChange { name, kind: ChangeKind::Changed, keys: defaults });
        }
        streams.extend(parts(
            (named(old.streams.sections(), pattern), named(new.streams.sections(), pattern)),
            |old, new| keys(differing(STREAM, &old.settings, &new.settings)),
        ));
        Self {
            listeners: parts(
                (old.named_listeners(), new.named_listeners()),
                |old: &ListenerSettings, new| keys(differing(LISTEN, old, new)),
            ),
            http: keys(differing(HTTP, &old.http, &new.http)),
            streams,
            users: users(&old.users, &new.users),
            auth: keys(differing(AUTH, &old.auth, &new.auth)),
            hooks: old.hooks != new.hooks,
            drain: keys(differing(DRAIN, &old.drain, &new.drain)),
        }
    }

    /// The keys of one stream whose values differ, whatever sections they come from.
    pub fn of_stream(
        old: &Configuration,
        new: &Configuration,
        name: &StreamName,
    ) -> Vec<KeyChange> {
        keys(differing(STREAM, &old.stream(name), &new.stream(name)))
    }

    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The keys that count only after a restart, such as `http.listen`.
    pub fn needs_restart(&self) -> Vec<String> {
        let groups = [("http", &self.http), ("auth", &self.auth), ("drain", &self.drain)];
        let listeners = self.listeners.iter().map(|listener| ("listen", &listener.keys));
        let groups: Vec<_> = groups.into_iter().chain(listeners).collect();
        let keys = groups.iter().flat_map(|(part, keys)| keys.iter().map(move |key| (part, key)));
        keys.filter(|(_, key)| key.effect == ReloadEffect::Restart)
            .map(|(part, key)| format!("{part}.{}", key.key))
            .collect()
    }

    /// Whether rights may differ: users, or another judge of callers.
    pub fn rights(&self) -> bool {
        !self.users.is_empty() || !self.auth.is_empty()
    }
}

/// The parts that differ, each known by its name.
fn parts<T: PartialEq>(
    (old, new): (NamedParts<'_, T>, NamedParts<'_, T>),
    keys: impl Fn(&T, &T) -> Vec<KeyChange>,
) -> Vec<PartChange> {
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) =
        (old.into_iter().collect(), new.into_iter().collect());
    let mut found = Vec::new();
    for (name, part) in &old {
        let change = |kind, keys| PartChange { name: name.clone(), kind, keys };
        match new.get(name) {
            None => found.push(change(ChangeKind::Removed, Vec::new())),
            Some(other) if part == other => {}
            Some(other) => found.push(change(ChangeKind::Changed, keys(part, other))),
        }
    }
    for name in new.into_keys().filter(|name| !old.contains_key(name)) {
        found.push(PartChange { name, kind: ChangeKind::Added, keys: Vec::new() });
    }
    found
}

/// Parts, each with its name.
type NamedParts<'a, T> = Vec<(String, &'a T)>;

fn named<T>(parts: &[T], name: impl Fn(&T) -> String) -> NamedParts<'_, T> {
    parts.iter().map(|part| (name(part), part)).collect()
}

/// The users that differ. Several tables may have one name.
fn users(old: &[UserTable], new: &[UserTable]) -> Vec<PartChange> {
    let names: BTreeSet<&str> = old.iter().chain(new).map(|user| user.name.as_str()).collect();
    let of = |users: &'_ [UserTable], name: &str| -> Vec<UserTable> {
        users.iter().filter(|user| user.name == name).cloned().collect()
    };
    let change = |name: &str| {
        let kind = match (of(old, name), of(new, name)) {
            (old, new) if old == new => return None,
            (old, _) if old.is_empty() => ChangeKind::Added,
            (_, new) if new.is_empty() => ChangeKind::Removed,
            _ => ChangeKind::Changed,
        };
        Some(PartChange { name: name.to_owned(), kind, keys: Vec::new() })
    };
    names.into_iter().filter_map(change).collect()
}

fn keys(facts: Vec<&'static KeyFacts>) -> Vec<KeyChange> {
    facts.into_iter().map(|facts| KeyChange { key: facts.name, effect: facts.reload }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listener::TlsFiles;
    use crate::{Sources, check};

    fn configuration(text: &str) -> Configuration {
        check(&Sources::text("relay.toml", text)).unwrap().configuration
    }

    fn shown(parts: &[PartChange]) -> Vec<String> {
        let keys =
            |part: &PartChange| part.keys.iter().map(|it| it.key).collect::<Vec<_>>().join("+");
        parts.iter().map(|it| format!("{} {:?} {}", it.name, it.kind, keys(it))).collect()
    }

    const BEFORE: &str = r#"
[[listen]]
srt = ":8890"
[[listen]]
srt = ":8891"
[http]
listen = "127.0.0.1:9000"
[defaults]
max-viewers = 5
[stream.a]
read-passphrase = "hush, hush, hush"
[stream.b]
record = true
[[user]]
name = "ann"
token = "hush-hush"
permissions = [{ action = "read" }]
"#;

    #[test]
    fn the_same_configuration_has_no_difference() {
        let before = configuration(BEFORE);
        assert!(ConfigChange::between(&before, &before.clone()).is_empty());
        assert!(ConfigChange::between(&before, &configuration(BEFORE)).is_empty());
    }

    #[test]
    fn each_difference_is_told_with_the_time_of_its_effect() {
        let after = BEFORE
            .replace("srt = \":8891\"", "quic = \":8892\"")
            .replace("srt = \":8890\"", "srt = \":8890\"\nlatency = \"200ms\"")
            .replace("127.0.0.1:9000", "127.0.0.1:9001")
            .replace("max-viewers = 5", "max-viewers = 5\nkeep-viewers = \"3s\"")
            .replace("hush, hush, hush", "hush, hush, husH")
            .replace("[stream.b]\nrecord = true", "[stream.c]")
            .replace("hush-hush", "hush-hush2");
        let (before, after) = (configuration(BEFORE), configuration(&after));
        let change = ConfigChange::between(&before, &after);
        assert_eq!(
            shown(&change.listeners),
            [
                "srt://[::]:8890 Changed latency",
                "srt://[::]:8891 Removed ",
                "srt+quic://[::]:8892 Added "
            ]
        );
        assert_eq!(
            shown(&change.streams),
            [
                "defaults Changed keep-viewers",
                "a Changed keep-viewers+read-passphrase",
                "b Removed ",
                "c Added "
            ]
        );
        assert_eq!(shown(&change.users), ["ann Changed "]);
        assert!(change.rights() && !change.hooks && change.auth.is_empty());
        assert_eq!(change.needs_restart(), ["http.listen"]);
        let stream = |name| {
            let name = StreamName::new(name).unwrap();
            ConfigChange::of_stream(&before, &after, &name)
        };
        let live = KeyChange { key: "keep-viewers", effect: ReloadEffect::Live };
        let record = KeyChange { key: "record", effect: ReloadEffect::Live };
        assert_eq!(stream("b"), [live.clone(), record]);
        assert_eq!(stream("other"), [live]);
        let json = serde_json::to_string(&change).unwrap();
        assert!(!json.contains("hush"), "{json}");
    }

    #[test]
    fn another_certificate_of_a_listener_counts_after_a_restart() {
        let of = |certificate: &str, latency| {
            let key = Some("key.pem".into());
            let listener = ListenerSettings {
                srt: None,
                quic: Some(([127, 0, 0, 1], 8891).into()),
                tls: TlsFiles { certificate: Some(certificate.into()), key },
                latency: std::time::Duration::from_millis(latency),
                ..ListenerSettings::default()
            };
            Configuration { listeners: vec![listener], ..Configuration::default() }
        };
        let change = ConfigChange::between(&of("a.pem", 120), &of("b.pem", 200));
        assert_eq!(
            shown(&change.listeners),
            ["srt+quic://127.0.0.1:8891 Changed tls-cert+latency"]
        );
        assert_eq!(change.needs_restart(), ["listen.tls-cert"]);
    }
}
