//! The bytes of a recording between two times, as one transport stream.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use punctual_units::UtcTime;

use crate::archive::{Archive, RecordedSegment};
use crate::index::{Index, index_path};
use crate::playback::PlaybackError;

/// The bytes of a stream's recordings between two times: from the random access point at or before
/// the first, with the tables before it, to the one at or after the second. Gaps are left out.
///
/// A segment that is still written counts up to its length when the excerpt was made.
#[derive(Debug)]
pub struct Excerpt {
    /// The parts that are not read yet, the next one last.
    parts: Vec<Part>,
    /// The file of the next part, at its place.
    open: Option<File>,
    len: u64,
    start: UtcTime,
}

/// Bytes of a file.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
struct Part {
    path: PathBuf,
    from: u64,
    to: u64,
}

impl Excerpt {
    /// The bytes of `stream` from `from` to `until`.
    ///
    /// # Errors
    ///
    /// Nothing was recorded in this time, or the files cannot be read.
    pub fn new(
        archive: &Archive,
        stream: &str,
        from: UtcTime,
        until: UtcTime,
    ) -> Result<Self, PlaybackError> {
        let segments = archive.segments(stream)?;
        let is_within = |it: &&RecordedSegment| it.end > from && it.start < until;
        let mut parts = Vec::new();
        let mut start = None;
        for segment in segments.iter().filter(is_within) {
            let index = Index::read(&File::open(index_path(&segment.path))?)?;
            let mut part = |from, to| {
                if from < to {
                    parts.push(Part { path: segment.path.clone(), from, to });
                }
            };
            let to = index.end(until).unwrap_or(segment.bytes).min(segment.bytes);
            let is_first = segment.start <= from || !segment.continues;
            if is_first {
                part(0, segment.tables.min(segment.bytes));
            }
            let (place, time) = match segment.start < from {
                true => {
                    let place = index.place(from);
                    (place.byte, place.time)
                }
                false => (segment.tables, segment.start),
            };
            part(place, to);
            start.get_or_insert(time);
        }
        if parts.is_empty() {
            return Err(PlaybackError::Nothing { stream: stream.to_owned(), at: from });
        }
        let len = parts.iter().map(|part| part.to - part.from).sum();
        parts.reverse();
        Ok(Self { parts, open: None, len, start: start.unwrap_or(from) })
    }

    /// The time of the place at which it begins.
    pub fn start(&self) -> UtcTime {
        self.start
    }

    /// A text that differs from that of an excerpt with other bytes.
    pub fn version(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.parts.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// Leaves out this number of the bytes that are not read yet.
    pub fn skip(&mut self, mut bytes: u64) {
        self.open = None;
        while let Some(part) = self.parts.last_mut().filter(|_| bytes > 0) {
            let skipped = bytes.min(part.to - part.from);
            bytes -= skipped;
            part.from += skipped;
            if part.from == part.to {
                self.parts.pop();
            }
        }
    }

    /// The number of bytes in all, whatever was read or left out.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes; there is at least one.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Read for Excerpt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(part) = self.parts.last_mut().filter(|_| !buffer.is_empty()) else { return Ok(0) };
        let file = match &mut self.open {
            Some(file) => file,
            none => {
                let mut file = File::open(&part.path)?;
                file.seek(SeekFrom::Start(part.from))?;
                none.insert(file)
            }
        };
        let most = usize::try_from(part.to - part.from).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read(&mut buffer[..most])?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        part.from += read as u64;
        if part.from == part.to {
            self.parts.pop();
            self.open = None;
        }
        Ok(read)
    }
}
