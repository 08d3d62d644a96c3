//! The variables by which a command is told of an event.

use punctual_units::one_line;
use punctual_uri::{redacted, redacted_stream_id};

use crate::event::{HookConnection, HookEvent, HookEventKind};

/// The variables of an event, by our names and by MediaMTX's. Values are data of strangers: they
/// have no secrets, no control characters, and at most [`VALUE_MOST`] bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Variables(Vec<(String, String)>);

/// A word of a command that cannot have the value of a variable in it.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "the value of ${name} has characters that a program or a shell could take for more than data; \
     let the command read it from its environment"
)]
pub(crate) struct UnsafeValue {
    name: String,
}

impl Variables {
    pub(crate) fn of(event: &HookEvent) -> Self {
        let mut all = Self::default();
        all.add("PUNCTUAL_EVENT", Some(event.kind.name()));
        all.add("PUNCTUAL_TIME", Some(&event.time.to_string()));
        for name in ["PUNCTUAL_STREAM", "MTX_PATH"] {
            all.add(name, event.stream.as_deref());
        }
        all.add("PUNCTUAL_STREAM_FILE", event.stream.as_deref().map(file_name).as_deref());
        all.add("PUNCTUAL_REASON", event.reason.as_deref());
        all.add("PUNCTUAL_DESTINATION", event.destination.as_deref().map(redacted).as_deref());
        if let Some(connection) = &event.connection {
            all.add_connection(event.kind, connection);
        }
        if let Some(segment) = &event.segment {
            let path = segment.path.display().to_string();
            let seconds = segment.duration.map(|it| it.as_secs_f64().to_string());
            for (ours, theirs, value) in [
                ("PUNCTUAL_SEGMENT_PATH", "MTX_SEGMENT_PATH", Some(path)),
                ("PUNCTUAL_SEGMENT_SECONDS", "MTX_SEGMENT_DURATION", seconds),
            ] {
                all.add(ours, value.as_deref());
                all.add(theirs, value.as_deref());
            }
            let bytes = segment.bytes.map(|it| it.to_string());
            all.add("PUNCTUAL_SEGMENT_BYTES", bytes.as_deref());
        }
        for (place, group) in event.groups.iter().enumerate().take(GROUPS_MOST) {
            all.add(&format!("G{}", place + 1), Some(group));
        }
        all
    }

    fn add_connection(&mut self, kind: HookEventKind, connection: &HookConnection) {
        let HookConnection { id, protocol, is_pull, address, user, query } = connection;
        let query = query.as_deref().map(redacted_stream_id);
        self.add("PUNCTUAL_CONNECTION_ID", Some(id));
        self.add("PUNCTUAL_PROTOCOL", Some(protocol));
        self.add("PUNCTUAL_ADDRESS", address.as_deref());
        self.add("PUNCTUAL_USER", user.as_deref());
        self.add("PUNCTUAL_QUERY", query.as_deref());
        self.add("MTX_QUERY", query.as_deref());
        let role = match kind {
            HookEventKind::Read | HookEventKind::Unread => "READER",
            HookEventKind::Connect | HookEventKind::Disconnect | HookEventKind::Refused => "CONN",
            _ => "SOURCE",
        };
        // MediaMTX knows SRT over UDP only.
        let protocol = if protocol.starts_with("srt") { "srt" } else { protocol };
        let form = if *is_pull { "Source" } else { "Conn" };
        self.add(&format!("MTX_{role}_TYPE"), Some(&format!("{protocol}{form}")));
        self.add(&format!("MTX_{role}_ID"), Some(id));
    }

    fn add(&mut self, name: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        let mut value = one_line(value).into_owned();
        let mut ends = (0..=VALUE_MOST.min(value.len())).rev();
        value.truncate(ends.find(|end| value.is_char_boundary(*end)).unwrap_or(0));
        self.0.push((name.to_owned(), value));
    }

    /// All, with their names.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The arguments of a program with the values of these variables. The one after `-c` is a
    /// script, as in `sh -c '…'`: it reads its environment, and stays as it is.
    pub(crate) fn fill_words(&self, words: &[String]) -> Result<Vec<String>, UnsafeValue> {
        let mut filled = Vec::with_capacity(words.len());
        let mut is_script = false;
        for word in words {
            filled.push(if is_script { word.clone() } else { self.fill(word)? });
            is_script = word.starts_with('-') && !word.starts_with("--") && word.ends_with('c');
        }
        Ok(filled)
    }

    /// `word` with `$NAME` and `${NAME}` of these variables replaced. Other names stay.
    fn fill(&self, word: &str) -> Result<String, UnsafeValue> {
        let mut filled = String::new();
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('$') {
            filled.push_str(before);
            let (name, behind) = match after.strip_prefix('{') {
                Some(inside) => inside.split_once('}').unwrap_or(("", after)),
                None => after.split_at(name_len(after)),
            };
            match self.iter().find(|(it, _)| *it == name) {
                Some((_, value)) if is_safe(value) => {
                    filled.push_str(value);
                    rest = behind;
                }
                Some(_) => return Err(UnsafeValue { name: name.to_owned() }),
                None => {
                    filled.push('$');
                    rest = after;
                }
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }
}

fn name_len(text: &str) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.bytes().take_while(|byte| is_part(byte)).count()
}

/// Whether a value is plain data wherever it stands, even if a shell should read it: letters,
/// digits and some signs, and no option.
fn is_safe(value: &str) -> bool {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-/:@+,=%".contains(letter);
    !value.starts_with('-') && value.chars().all(is_plain)
}

/// The name of a stream as that of a file: other characters than letters, digits, `.`, `_` and `-`
/// become `_`.
fn file_name(stream: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "._-".contains(letter);
    let name: String = stream.chars().map(|it| if is_plain(it) { it } else { '_' }).collect();
    match name.strip_prefix(['-', '.']) {
        Some(rest) => format!("_{rest}"),
        None => name,
    }
}

/// The most bytes of a value.
const VALUE_MOST: usize = 1_024;
/// The most groups of a regular expression.
const GROUPS_MOST: usize = 16;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual_units::UtcTime;

    use super::*;
    use crate::event::HookSegment;

    fn event(kind: HookEventKind, stream: &str) -> HookEvent {
        let connection = HookConnection {
            id: "c7".to_owned(),
            protocol: "srt".to_owned(),
            is_pull: false,
            address: Some("192.0.2.1:4000".to_owned()),
            user: Some("ann".to_owned()),
            query: Some("bitrate=5&token=hush".to_owned()),
        };
        HookEvent::new(kind, UtcTime::default()).of_stream(stream).of_connection(connection)
    }

    fn of_kind(kind: HookEventKind) -> HookEvent {
        event(kind, "a")
    }

    fn value(variables: &Variables, name: &str) -> Option<String> {
        variables.iter().find(|(it, _)| *it == name).map(|(_, value)| value.to_owned())
    }

    #[test]
    fn a_command_has_the_variables_of_mediamtx_and_ours() {
        let mut event = event(HookEventKind::Online, "live/a b");
        event.groups = vec!["12".to_owned()];
        event.segment = Some(HookSegment {
            path: "/srv/a.ts".into(),
            duration: Some(Duration::from_millis(1_500)),
            bytes: Some(188),
        });
        let found = Variables::of(&event);
        for (name, expected) in [
            ("PUNCTUAL_EVENT", "online"),
            ("PUNCTUAL_TIME", "1970-01-01T00:00:00.000000Z"),
            ("PUNCTUAL_STREAM", "live/a b"),
            ("PUNCTUAL_STREAM_FILE", "live_a_b"),
            ("PUNCTUAL_CONNECTION_ID", "c7"),
            ("PUNCTUAL_ADDRESS", "192.0.2.1:4000"),
            ("PUNCTUAL_USER", "ann"),
            ("PUNCTUAL_QUERY", "bitrate=5&token=…"),
            ("PUNCTUAL_SEGMENT_BYTES", "188"),
            ("MTX_PATH", "live/a b"),
            ("MTX_QUERY", "bitrate=5&token=…"),
            ("MTX_SOURCE_TYPE", "srtConn"),
            ("MTX_SOURCE_ID", "c7"),
            ("MTX_SEGMENT_PATH", "/srv/a.ts"),
            ("MTX_SEGMENT_DURATION", "1.5"),
            ("G1", "12"),
        ] {
            assert_eq!(value(&found, name).as_deref(), Some(expected), "{name}");
        }
        let names = [HookEventKind::Read, HookEventKind::Connect].map(|kind| {
            let found = Variables::of(&of_kind(kind));
            ["MTX_READER_ID", "MTX_CONN_ID", "MTX_SOURCE_ID"].map(|it| value(&found, it).is_some())
        });
        assert_eq!(names, [[true, false, false], [false, true, false]]);
    }

    #[test]
    fn values_are_bounded_and_have_no_control_characters() {
        let found = Variables::of(&event(HookEventKind::Online, "a\nB=1\0"));
        assert_eq!(value(&found, "MTX_PATH").as_deref(), Some("a\\nB=1\\u{0}"));
        let long = Variables::of(&event(HookEventKind::Online, &"é".repeat(2_000)));
        assert_eq!(value(&long, "MTX_PATH").map(|it| it.len()), Some(1_024));
        assert_eq!(file_name("-rf"), "_rf");
        assert_eq!(file_name("../x$(y)"), "_._x__y_");
    }

    #[test]
    fn words_get_values_only_if_these_are_plain_data() {
        let plain = Variables::of(&event(HookEventKind::Online, "live/日本-1"));
        for (word, filled) in [
            ("$MTX_PATH", "live/日本-1"),
            ("srt://h?streamid=read:${MTX_PATH}&x", "srt://h?streamid=read:live/日本-1&x"),
            ("$MTX_PATHS ${MTX_PATH $ $$HOME ${}", "$MTX_PATHS ${MTX_PATH $ $$HOME ${}"),
            ("", ""),
        ] {
            assert_eq!(plain.fill(word).as_deref(), Ok(filled));
        }
        for stream in
            ["a b", "a;reboot", "$(reboot)", "`reboot`", "a'b", "a\"b", "-o", "a|b", "a\\b"]
        {
            let found = Variables::of(&event(HookEventKind::Online, stream));
            let error = found.fill("x $MTX_PATH").unwrap_err();
            assert!(error.to_string().starts_with("the value of $MTX_PATH has"), "{stream}");
            let script = ["-ec", "echo \"$MTX_PATH\"", "$HOME"].map(str::to_owned);
            assert_eq!(found.fill_words(&script), Ok(script.to_vec()));
        }
    }
}
