//! Names of segments: where a segment of a stream lies that begins at some time.

use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use punctual_units::{Calendar, UtcTime};
use thiserror::Error;

/// The pattern of the names of segments, as in MediaMTX's `recordPath`:
/// `./recordings/%path/%Y-%m-%d_%H-%M-%S-%f`.
///
/// | variable | stands for |
/// |---|---|
/// | `%path` | the name of the stream |
/// | `%Y %m %d %H %M %S %f` | the time at which the segment begins, to the microsecond, in UTC |
/// | `%s` | that time in seconds since 1970, in place of the six before `%f` |
/// | `%%` | a percent sign |
///
/// The times are in UTC, so that names sort by time, and no hour comes twice when a clock is set
/// back in autumn. The pattern must name the stream and the time to the microsecond, so that no two
/// segments have one name. `.ts` is appended.
///
/// ```
/// use punctual_relay_recording::SegmentNames;
///
/// let names: SegmentNames = "/srv/%path/%Y-%m-%d_%H-%M-%S-%f".parse()?;
/// let start = "2026-11-27T20:15:00.123456Z".parse()?;
/// let path = names.path("live/cam", start).expect("a name of a stream");
/// assert_eq!(path.to_str(), Some("/srv/live/cam/2026-11-27_20-15-00-123456.ts"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SegmentNames {
    /// The folder before the first part of the path with a variable.
    root: PathBuf,
    /// The parts of the path below the root.
    parts: Vec<Vec<NamePiece>>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum NamePiece {
    Text(String),
    Stream,
    Time(TimeField),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum TimeField {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Micros,
    /// Seconds since 1970.
    Seconds,
}

/// A text that is no pattern of names.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum SegmentNamesError {
    /// A variable is unknown.
    #[error("`%{0}` is no variable; known are %path %Y %m %d %H %M %S %f %s and %%")]
    Unknown(String),
    /// A variable is missing.
    #[error(
        "`{0}` is missing: a pattern has %path once, and the time as %Y %m %d %H %M %S %f or as \
         %s %f"
    )]
    Missing(&'static str),
    /// A variable comes twice.
    #[error("`{0}` comes twice")]
    Twice(&'static str),
    /// A part of the path is `..`, or the path ends with a slash.
    #[error("a part of the path is empty or `..`")]
    Part,
}

impl SegmentNames {
    /// The path of the segment of `stream` that begins at `start`; `None` if the stream's name
    /// could lead out of the folder: a part that is empty, `.` or `..`, a backslash, or a control
    /// character.
    pub fn path(&self, stream: &str, start: UtcTime) -> Option<PathBuf> {
        self.check(stream)?;
        let mut text = String::new();
        let calendar = start.calendar();
        for (place, part) in self.parts.iter().enumerate() {
            if place > 0 {
                text.push('/');
            }
            for piece in part {
                match piece {
                    NamePiece::Text(literal) => text.push_str(literal),
                    NamePiece::Stream => text.push_str(stream),
                    NamePiece::Time(field) => field.write(&mut text, start, &calendar),
                }
            }
        }
        Some(self.root.join(text + MEDIA))
    }

    /// The stream and the start of the segment at `path`; `None` if it is no name of this pattern.
    pub fn read(&self, path: &Path) -> Option<(String, UtcTime)> {
        let below = path.strip_prefix(&self.root).ok()?.to_str()?.strip_suffix(MEDIA)?;
        let mut pieces = Vec::new();
        for (place, part) in self.parts.iter().enumerate() {
            if place > 0 {
                pieces.push(NamePiece::Text("/".to_owned()));
            }
            pieces.extend_from_slice(part);
        }
        let mut found = FoundSegment::default();
        if !fits(&pieces, below, &mut found) {
            return None;
        }
        let stream = found.stream.take().filter(|stream| self.check(stream).is_some())?;
        Some((stream, found.time()?))
    }

    /// The folder in which the segments of `stream` lie, or folders with them, and the number of
    /// folders from there down to the segments. `None` as for [`path`](Self::path).
    pub(crate) fn folder(&self, stream: &str) -> Option<(PathBuf, usize)> {
        self.check(stream)?;
        let mut folder = self.root.clone();
        let inside = &self.parts[..self.parts.len() - 1];
        let fixed = inside
            .iter()
            .take_while(|part| part.iter().all(|piece| !matches!(piece, NamePiece::Time(_))));
        let mut depth = inside.len();
        for part in fixed {
            let text: String = part
                .iter()
                .map(|piece| match piece {
                    NamePiece::Text(text) => text.as_str(),
                    _ => stream,
                })
                .collect();
            folder.push(text);
            depth -= 1;
        }
        // The stream's name may be in the name of the file, or after the time.
        let is_below = self.parts[self.parts.len() - 1 - depth..]
            .iter()
            .flatten()
            .any(|piece| *piece == NamePiece::Stream);
        if is_below {
            depth += stream.matches('/').count();
        }
        Some((folder, depth))
    }

    /// The folder in which all segments lie, or folders with them.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    fn check(&self, stream: &str) -> Option<()> {
        let is_wrong = |part: &str| matches!(part, "" | "." | "..");
        let is_name = !stream.split('/').any(is_wrong)
            && !stream.contains(|letter: char| letter == '\\' || letter.is_control());
        is_name.then_some(())
    }
}

impl FromStr for SegmentNames {
    type Err = SegmentNamesError;

    fn from_str(text: &str) -> Result<Self, SegmentNamesError> {
        let mut root = PathBuf::new();
        let mut parts: Vec<Vec<NamePiece>> = Vec::new();
        if text.ends_with('/') {
            return Err(SegmentNamesError::Part);
        }
        for component in Path::new(text).components().filter(|it| *it != Component::CurDir) {
            let part = component.as_os_str().to_str().ok_or(SegmentNamesError::Part)?;
            if component == Component::ParentDir && !parts.is_empty() {
                return Err(SegmentNamesError::Part);
            }
            let pieces = pieces(part)?;
            match &pieces[..] {
                [NamePiece::Text(literal)] if parts.is_empty() => root.push(literal),
                _ => parts.push(pieces),
            }
        }
        let has = |piece: &NamePiece| parts.iter().flatten().filter(|it| *it == piece).count();
        if has(&NamePiece::Stream) == 0 {
            return Err(SegmentNamesError::Missing("%path"));
        }
        let fields = match has(&NamePiece::Time(TimeField::Seconds)) {
            0 => &FIELDS[..7],
            _ => &FIELDS[6..],
        };
        for (name, field) in fields {
            if has(&NamePiece::Time(*field)) == 0 {
                return Err(SegmentNamesError::Missing(name));
            }
        }
        let all = FIELDS.iter().map(|(name, field)| (*name, NamePiece::Time(*field)));
        for (name, piece) in all.chain([("%path", NamePiece::Stream)]) {
            if has(&piece) > 1 {
                return Err(SegmentNamesError::Twice(name));
            }
        }
        Ok(Self { root, parts })
    }
}

/// The pieces of a part of the path.
fn pieces(part: &str) -> Result<Vec<NamePiece>, SegmentNamesError> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = part;
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            text.push('%');
            rest = after;
            continue;
        }
        let known = |(name, _): &&(&str, TimeField)| after.starts_with(&name[1..]);
        let (piece, len) = if after.starts_with("path") {
            (NamePiece::Stream, 4)
        } else if let Some((_, field)) = FIELDS.iter().find(known) {
            (NamePiece::Time(*field), 1)
        } else {
            let name = after.chars().take(1).collect();
            return Err(SegmentNamesError::Unknown(name));
        };
        if !text.is_empty() {
            pieces.push(NamePiece::Text(std::mem::take(&mut text)));
        }
        pieces.push(piece);
        rest = &after[len..];
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(NamePiece::Text(text));
    }
    Ok(pieces)
}

/// The values of variables in a name.
#[derive(Debug, Default)]
struct FoundSegment {
    stream: Option<String>,
    /// By the order of [`FIELDS`].
    values: [Option<u64>; 8],
}

impl FoundSegment {
    fn time(&self) -> Option<UtcTime> {
        let micros = self.values[6]?;
        if let Some(seconds) = self.values[7] {
            return Some(UtcTime::from_micros(seconds.checked_mul(1_000_000)? + micros));
        }
        let [year, month, day, hour, minute, second] = [0, 1, 2, 3, 4, 5].map(|at| self.values[at]);
        let (year, month, day) = (year?, month?, day?);
        let (hour, minute, second) = (hour?, minute?, second?);
        let calendar = Calendar { year, month, day, hour, minute, second, micros };
        format!("{calendar}Z").parse().ok()
    }
}

/// Whether `text` is made of `pieces`; `found` has the values then.
fn fits(pieces: &[NamePiece], text: &str, found: &mut FoundSegment) -> bool {
    match pieces {
        [] => text.is_empty(),
        [NamePiece::Text(literal), rest @ ..] => {
            text.strip_prefix(&**literal).is_some_and(|text| fits(rest, text, found))
        }
        [NamePiece::Time(field), rest @ ..] => {
            let digits = text.bytes().take_while(u8::is_ascii_digit).count();
            let lens = field.digits().map_or(1..=digits.min(12), |len| len..=len);
            let mut lens = lens.rev().filter(|len| *len <= digits);
            let Some(len) = lens.find(|len| fits(rest, &text[*len..], found)) else { return false };
            found.values[*field as usize] = text[..len].parse().ok();
            true
        }
        [NamePiece::Stream, rest @ ..] => {
            let ends = text.char_indices().map(|(at, _)| at).skip(1).chain([text.len()]);
            let fitting = ends.filter(|end| *end > 0).find(|end| fits(rest, &text[*end..], found));
            let Some(end) = fitting else { return false };
            found.stream = Some(text[..end].to_owned());
            true
        }
    }
}

impl TimeField {
    /// The number of digits; `None` for any number.
    fn digits(self) -> Option<usize> {
        match self {
            Self::Year => Some(4),
            Self::Micros => Some(6),
            Self::Seconds => None,
            _ => Some(2),
        }
    }

    fn write(self, text: &mut String, time: UtcTime, calendar: &Calendar) {
        let value = match self {
            Self::Year => calendar.year,
            Self::Month => calendar.month,
            Self::Day => calendar.day,
            Self::Hour => calendar.hour,
            Self::Minute => calendar.minute,
            Self::Second => calendar.second,
            Self::Micros => calendar.micros,
            Self::Seconds => time.micros() / 1_000_000,
        };
        let width = self.digits().unwrap_or(1);
        let _ = write!(text, "{value:0width$}");
    }
}

const FIELDS: [(&str, TimeField); 8] = [
    ("%Y", TimeField::Year),
    ("%m", TimeField::Month),
    ("%d", TimeField::Day),
    ("%H", TimeField::Hour),
    ("%M", TimeField::Minute),
    ("%S", TimeField::Second),
    ("%f", TimeField::Micros),
    ("%s", TimeField::Seconds),
];

/// The ending of a segment's name.
pub(crate) const MEDIA: &str = ".ts";

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PATTERNS: [&str; 5] = [
        "./recordings/%path/%Y-%m-%d_%H-%M-%S-%f",
        "/srv/%path/%s%f",
        "%Y/%m/%d/%path_%H%M%S%f",
        "/a%%b/%Y-%m-%d/%H-%M-%S-%f/%path",
        "rec/x-%path-%Y%m%d/%H/%M%S.%f",
    ];

    fn names(pattern: &str) -> SegmentNames {
        pattern.parse().unwrap()
    }

    #[test]
    fn a_pattern_that_is_no_good_is_refused_with_the_reason() {
        for (pattern, reason) in [
            ("/srv/%Y-%m-%d_%H-%M-%S-%f", "`%path` is missing"),
            ("%path/%Y-%m-%d_%H-%M-%S", "`%f` is missing"),
            ("%path/%s", "`%f` is missing"),
            ("%path/%Y-%d_%H-%M-%S-%f", "`%m` is missing"),
            ("%path/%path-%s-%f", "`%path` comes twice"),
            ("%path/%s-%f-%f", "`%f` comes twice"),
            ("%path/%s-%f-%q", "`%q` is no variable"),
            ("%path/%s-%f%", "`%` is no variable"),
            ("%path/../%s-%f", "a part of the path"),
            ("%path/%s-%f/", "a part of the path"),
        ] {
            let error = pattern.parse::<SegmentNames>().unwrap_err().to_string();
            assert!(error.starts_with(reason), "{pattern}: {error}");
        }
    }

    #[test]
    fn no_stream_leads_out_of_the_folder() {
        let names = names(PATTERNS[0]);
        for stream in ["", "..", "a/../b", "/etc", "a//b", "a/", "a\\b", "a\nb", "."] {
            assert_eq!(names.path(stream, UtcTime::default()), None, "{stream:?}");
        }
        for path in [
            "recordings/../2026-01-01_00-00-00-000000.ts",
            "recordings/a/2026-01-01_00-00-00-000000.mp4",
            "recordings/a/2026-13-01_00-00-00-000000.ts",
            "recordings/a/2026-01-01_00-00-00.ts",
            "other/a/2026-01-01_00-00-00-000000.ts",
            "recordings/2026-01-01_00-00-00-000000.ts",
        ] {
            assert_eq!(names.read(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn the_folder_of_a_stream_is_the_part_of_the_path_without_time() {
        let folders = PATTERNS.map(|pattern| names(pattern).folder("a/b").unwrap());
        let expected = [("recordings/a/b", 0), ("/srv/a/b", 0), ("", 4), ("/a%b", 3), ("rec", 3)];
        assert_eq!(folders, expected.map(|(folder, depth)| (PathBuf::from(folder), depth)));
    }

    proptest! {
        #[test]
        fn a_name_is_read_as_it_is_written(
            pattern in 0..PATTERNS.len(),
            stream in "[a-z0-9_é-]{1,8}(/[a-z0-9_.]{1,4}x){0,2}",
            micros in 0..253_402_300_799_999_999_u64,
        ) {
            let names = names(PATTERNS[pattern]);
            let start = UtcTime::from_micros(micros);
            let path = names.path(&stream, start).unwrap();
            let (read, time) = names.read(&path).unwrap();
            prop_assert_eq!(time, start);
            prop_assert_eq!(read, stream);
        }

        #[test]
        fn any_path_is_read_without_a_panic(pattern in 0..PATTERNS.len(), path in "\\PC{0,80}") {
            let names = names(PATTERNS[pattern]);
            let _ = names.read(Path::new(&path));
            let _ = names.read(&names.root().join(path + MEDIA));
        }
    }
}
