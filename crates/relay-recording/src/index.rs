//! The index beside each segment: lines of JSON that people's scripts can read.
//!
//! The first line (in two here) is the [`IndexHead`], the last the [`Tail`], and each line between
//! them an [`IndexEntry`]:
//!
//! ```json
//! {"index":"punctual 1","stream":"live/cam","recording":"2026-11-27T20:15:00.000000Z",
//!  "time":"2026-11-27T20:15:00.000000Z","continues":false,"tables":376}
//! {"time":"2026-11-27T20:15:00.000000Z","byte":376,"pts":126000,"random_access":true}
//! {"time":"2026-11-27T20:15:09.500000Z","byte":640000,"discontinuity":"gap"}
//! {"end":"2026-11-27T20:16:00.000000Z","bytes":3760000}
//! ```
//!
//! Each line is written after the bytes of the stream that it is about. So after a crash the index
//! describes bytes that are there. A line that was cut off is left out by the reader.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use punctual_units::UtcTime;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The first line of an index.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct IndexHead {
    index: String,
    /// The name of the stream.
    pub(crate) stream: String,
    /// The time at which the recording begins, of which this is a segment.
    #[serde(with = "text")]
    pub(crate) recording: UtcTime,
    /// The time at which the segment begins.
    #[serde(with = "text")]
    pub(crate) time: UtcTime,
    /// Whether its stream goes on, without a missing byte, where the segment before it ends.
    pub(crate) continues: bool,
    /// The number of bytes at the start of the segment that repeat tables of the stream, so that
    /// the segment can be played alone.
    pub(crate) tables: u64,
}

/// A place in a segment: a line of its index.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct IndexEntry {
    /// The time at which the bytes from this place on arrived, by the clock of the day.
    #[serde(with = "text")]
    pub time: UtcTime,
    /// The place in the segment, in bytes.
    pub byte: u64,
    /// The presentation time stamp at this place, in ticks of 90 kHz.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pts: Option<u64>,
    /// Whether a decoder can begin at this place.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub random_access: bool,
    /// The reason why the bytes from this place on do not follow those before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discontinuity: Option<Discontinuity>,
}

/// The reason why bytes of a recording do not follow those before them.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Discontinuity {
    /// Nothing came for a while, or packets were lost on the way.
    Gap,
    /// The stream comes from another source.
    Source,
    /// The disk was too slow for the stream, and packets were left out.
    Overrun,
}

/// The last line of an index.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Tail {
    /// The time at which the segment ends.
    #[serde(with = "text")]
    pub(crate) end: UtcTime,
    /// The length of the segment in bytes.
    pub(crate) bytes: u64,
    /// Whether the program ended without closing the segment, and a later one wrote this line.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) recovered: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum IndexLine {
    Entry(IndexEntry),
    Tail(Tail),
}

/// The content of an index.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Index {
    pub(crate) head: IndexHead,
    pub(crate) entries: Vec<IndexEntry>,
    /// `None` while the segment is written, and after a crash.
    pub(crate) tail: Option<Tail>,
    /// The length of the whole lines.
    pub(crate) len: u64,
}

impl IndexHead {
    /// The head of the first segment of a recording, which begins with this number of bytes of
    /// tables.
    pub(crate) fn first(stream: &str, time: UtcTime, tables: u64) -> Self {
        let (index, stream) = (FORMAT.to_owned(), stream.to_owned());
        Self { index, stream, recording: time, time, continues: false, tables }
    }

    /// Reads the head alone.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is no index.
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        let mut line = String::new();
        BufReader::new(file).take(LINE_MAX).read_line(&mut line)?;
        let head: Self = serde_json::from_str(&line)?;
        if head.index == FORMAT { Ok(head) } else { Err(io::ErrorKind::InvalidData.into()) }
    }
}

impl Tail {
    /// Reads the tail alone, if there is one.
    pub(crate) fn read(mut file: &File) -> io::Result<Option<Self>> {
        let len = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(len.saturating_sub(LINE_MAX)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let Some(lines) = end.strip_suffix(b"\n") else { return Ok(None) };
        let last = lines.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
        Ok(serde_json::from_slice(last).ok())
    }
}

impl Index {
    /// Reads an index. Lines that are no lines of an index are left out.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or its first line is no head.
    pub(crate) fn read(file: &File) -> io::Result<Self> {
        let mut file = file;
        file.seek(SeekFrom::Start(0))?;
        let head = IndexHead::read(file)?;
        file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(file);
        let (mut entries, mut tail, mut len) = (Vec::new(), None, 0);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
            if read == 0 || line.last() != Some(&b'\n') {
                break;
            }
            len += read as u64;
            match serde_json::from_slice(&line) {
                Ok(IndexLine::Entry(entry)) => entries.push(entry),
                Ok(IndexLine::Tail(last)) => tail = Some(last),
                Err(_) => {}
            }
        }
        Ok(Self { head, entries, tail, len })
    }

    /// The place to begin at for `at`: the last random access point that is not later, else the
    /// first one; in a segment without any, the last place that is not later, else its start.
    pub(crate) fn place(&self, at: UtcTime) -> IndexEntry {
        let start = IndexEntry {
            time: self.head.time,
            byte: self.head.tables,
            pts: None,
            random_access: false,
            discontinuity: None,
        };
        let has_points = self.entries.iter().any(|entry| entry.random_access);
        let mut places = self.entries.iter().filter(|entry| entry.random_access == has_points);
        let first = places.clone().next().filter(|_| has_points);
        let last = places.rfind(|entry| entry.time <= at);
        last.or(first).cloned().unwrap_or(start)
    }

    /// The byte at which an excerpt ends that covers the time up to `until`: that of the first
    /// random access point from then on, or of another place where there are none.
    pub(crate) fn end(&self, until: UtcTime) -> Option<u64> {
        let has_points = self.entries.iter().any(|entry| entry.random_access);
        let mut places = self.entries.iter().filter(|entry| entry.random_access == has_points);
        places.find(|entry| entry.time >= until).map(|entry| entry.byte)
    }
}

/// The line of an index with this content.
pub(crate) fn line(content: &impl Serialize) -> String {
    let mut line = serde_json::to_string(content).expect("plain data has a form in JSON");
    line.push('\n');
    line
}

/// The path of the index of a segment.
pub(crate) fn index_path(segment: &Path) -> PathBuf {
    segment.with_extension("jsonl")
}

/// Times as text.
mod text {
    use super::{Deserialize, Deserializer, Serializer, UtcTime};

    pub(super) fn serialize<S: Serializer>(time: &UtcTime, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(time)
    }

    pub(super) fn deserialize<'a, D: Deserializer<'a>>(from: D) -> Result<UtcTime, D::Error> {
        let text = std::borrow::Cow::<'a, str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// The mark of the first line: the program, and the version of the format.
const FORMAT: &str = "punctual 1";
/// The most bytes of a line.
const LINE_MAX: u64 = 4_096;

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn time(seconds: u64) -> UtcTime {
        UtcTime::from_micros(seconds * 1_000_000)
    }

    fn entry(seconds: u64, byte: u64, random_access: bool) -> IndexEntry {
        IndexEntry { time: time(seconds), byte, pts: None, random_access, discontinuity: None }
    }

    fn index(entries: &[IndexEntry]) -> Index {
        let head = IndexHead::first("a", time(10), 376);
        Index { head, entries: entries.to_vec(), tail: None, len: 0 }
    }

    fn file(text: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    #[test]
    fn an_index_is_read_as_it_is_written_up_to_the_line_that_was_cut_off() {
        let head = IndexHead { continues: true, ..IndexHead::first("live/\"cam\"", time(10), 376) };
        let gap = IndexEntry {
            pts: Some(7),
            discontinuity: Some(Discontinuity::Gap),
            ..entry(11, 752, true)
        };
        let tail = Tail { end: time(12), bytes: 1_128, recovered: false };
        let whole = line(&head) + &line(&gap) + "{\"future\":1}\n" + &line(&tail);
        assert!(whole.contains(r#""pts":7,"random_access":true,"discontinuity":"gap"}"#));
        let read = Index::read(&file(&whole)).unwrap();
        assert_eq!(
            (&read.head, &read.entries, &read.tail),
            (&head, &vec![gap.clone()], &Some(tail))
        );
        assert_eq!(read.len, whole.len() as u64);
        assert_eq!(Tail::read(&file(&whole)).unwrap(), read.tail);

        let cut = &whole[..whole.len() - 1];
        let read = Index::read(&file(cut)).unwrap();
        assert_eq!((read.entries, read.tail), (vec![gap], None));
        assert_eq!(read.len as usize, whole.trim_end().rfind('\n').unwrap() + 1);
        assert_eq!(Tail::read(&file(cut)).unwrap(), None);
    }

    #[test]
    fn a_file_without_our_first_line_is_no_index() {
        for text in ["", "\n", "{}\n", "{\"index\":\"other\"}\n", "\u{0}\u{0}", "[1]"] {
            assert!(Index::read(&file(text)).is_err(), "{text:?}");
        }
        let other = line(&IndexHead {
            index: "punctual 2".to_owned(),
            ..IndexHead::first("a", time(1), 0)
        });
        assert!(IndexHead::read(&file(&other)).is_err());
    }

    #[test]
    fn the_place_of_a_time_is_the_random_access_point_before_it() {
        let index = index(&[entry(10, 376, true), entry(11, 1_000, false), entry(12, 2_000, true)]);
        let byte = |seconds| index.place(time(seconds)).byte;
        assert_eq!([9, 10, 11, 12, 99].map(byte), [376, 376, 376, 2_000, 2_000]);
        assert_eq!(
            [10, 11, 12, 13].map(|it| index.end(time(it))),
            [Some(376), Some(2_000), Some(2_000), None]
        );
    }

    #[test]
    fn without_random_access_points_any_place_will_do() {
        let plain = index(&[entry(11, 1_000, false), entry(12, 2_000, false)]);
        assert_eq!([9, 11, 13].map(|it| plain.place(time(it)).byte), [376, 1_000, 2_000]);
        assert_eq!(plain.end(time(12)), Some(2_000));
        assert_eq!(index(&[]).place(time(11)).byte, 376);
    }
}
