//! The bytes of a recording between two times, as one transport stream.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Take};
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
    open: Option<Take<File>>,
    len: u64,
}

/// Bytes of a file.
#[derive(Clone, Debug, Eq, PartialEq)]
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
            let place = if segment.start < from { index.place(from).byte } else { segment.tables };
            part(place, to);
        }
        if parts.is_empty() {
            return Err(PlaybackError::Nothing { stream: stream.to_owned(), at: from });
        }
        let len = parts.iter().map(|part| part.to - part.from).sum();
        parts.reverse();
        Ok(Self { parts, open: None, len })
    }

    /// The number of bytes in all.
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
        loop {
            if let Some(open) = &mut self.open {
                let read = open.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    return Ok(read);
                }
                if open.limit() > 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                self.open = None;
            }
            let Some(part) = self.parts.pop() else { return Ok(0) };
            let mut file = File::open(&part.path)?;
            file.seek(SeekFrom::Start(part.from))?;
            self.open = Some(file.take(part.to - part.from));
        }
    }
}
