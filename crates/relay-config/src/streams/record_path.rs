//! `record-path`: the names of the segments of a recording.

use std::fmt;

use punctual_relay_access::StreamName;

use super::uri::without_dots;

/// A pattern of the names of segments, without the extension.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RecordPath(String);

/// The time at which a segment begins, in parts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SegmentTime {
    /// The year.
    pub year: i32,
    /// The month, from 1.
    pub month: u8,
    /// The day of the month, from 1.
    pub day: u8,
    /// The hour, the minute and the second.
    pub hour: u8,
    /// The minute.
    pub minute: u8,
    /// The second.
    pub second: u8,
    /// The microsecond.
    pub microsecond: u32,
    /// Seconds since 1970, UTC.
    pub unix: i64,
    /// Minutes by which the clock is ahead of UTC.
    pub offset: i16,
}

impl RecordPath {
    /// Checks a pattern.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut names = Vec::new();
        let mut rest = text;
        while let Some((_, after)) = rest.split_once('%') {
            let name = if after.starts_with("path") { "path" } else { first(after) };
            if !VARIABLES.contains(&name) {
                let known: Vec<_> = VARIABLES.iter().map(|name| format!("%{name}")).collect();
                return Err(format!("there is no `%{name}`; known are {}", known.join(" ")));
            }
            names.push(name);
            rest = &after[name.len()..];
        }
        let has = |name: &&str| names.contains(name);
        if !has(&"s") && !["Y", "m", "d", "H", "M", "S"].iter().all(has) {
            let missing = "each segment needs a name of its own: write `%s`, or all of `%Y %m %d %H \
                           %M %S`";
            return Err(missing.to_owned());
        }
        if text.split(['/', '\\']).any(|part| part == "..") {
            return Err("`..` leads out of the folder".to_owned());
        }
        if text.ends_with('/') {
            return Err("the name of the file is missing".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// Whether the stream's name is part of the path.
    pub(crate) fn names_stream(&self) -> bool {
        self.0.contains("%path")
    }

    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path of a segment that begins at this time, without its extension.
    pub fn segment(&self, stream: &StreamName, time: &SegmentTime) -> String {
        let mut path = String::new();
        let mut rest = self.0.as_str();
        while let Some((before, after)) = rest.split_once('%') {
            path += before;
            let name = if after.starts_with("path") { "path" } else { first(after) };
            path += &match name {
                "path" => without_dots(stream.as_str()),
                "Y" => format!("{:04}", time.year),
                "m" => format!("{:02}", time.month),
                "d" => format!("{:02}", time.day),
                "H" => format!("{:02}", time.hour),
                "M" => format!("{:02}", time.minute),
                "S" => format!("{:02}", time.second),
                "f" => format!("{:06}", time.microsecond),
                "s" => time.unix.to_string(),
                _ => {
                    let sign = if time.offset < 0 { '-' } else { '+' };
                    let minutes = time.offset.unsigned_abs();
                    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
                }
            };
            rest = &after[name.len()..];
        }
        path + rest
    }

    /// The folder below which all segments of all streams lie: the part before the first variable.
    pub fn root(&self) -> &str {
        let fixed = self.0.split('%').next().unwrap_or_default();
        fixed
            .rsplit_once('/')
            .map_or(".", |(folder, _)| if folder.is_empty() { "/" } else { folder })
    }
}

impl Default for RecordPath {
    fn default() -> Self {
        Self("./recordings/%path/%Y-%m-%d_%H-%M-%S-%f".to_owned())
    }
}

impl fmt::Display for RecordPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first character of a text.
fn first(text: &str) -> &str {
    let end = text.chars().next().map_or(0, char::len_utf8);
    &text[..end]
}

/// The variables, which are MediaMTX's.
const VARIABLES: &[&str] = &["path", "Y", "m", "d", "H", "M", "S", "f", "s", "z"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_have_names_of_their_own() {
        let time = SegmentTime {
            year: 2026,
            month: 11,
            day: 7,
            hour: 20,
            minute: 15,
            second: 0,
            microsecond: 42,
            unix: 1_794_082_500,
            offset: -90,
        };
        let name = StreamName::new("live/cam").unwrap();
        let path = RecordPath::default();
        assert_eq!(path.segment(&name, &time), "./recordings/live/cam/2026-11-07_20-15-00-000042");
        assert_eq!(path.root(), "./recordings");
        let path = RecordPath::parse("/srv/%path_%s%z").unwrap();
        assert_eq!(path.segment(&name, &time), "/srv/live/cam_1794082500-0130");
        assert_eq!((path.root(), path.names_stream()), ("/srv", true));
        assert_eq!(RecordPath::parse("%s").unwrap().root(), ".");
    }

    #[test]
    fn wrong_patterns_are_refused_with_the_right_ones() {
        for (text, words) in [
            ("a/%path/%Y-%m-%d", "a name of its own"),
            ("a/%q", "there is no `%q`; known are %path %Y"),
            ("a/%", "there is no `%`"),
            ("../%path/%s", "leads out"),
            ("%path/%s/", "the name of the file is missing"),
            ("%é%s", "there is no `%é`"),
        ] {
            let error = RecordPath::parse(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
