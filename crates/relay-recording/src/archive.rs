//! The recordings in a folder: which there are, what is removed, what a crash left.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_units::UtcTime;
use serde::Serialize;

use crate::index::{IndexHead, Tail, index_path};
use crate::retention::{KeptSegment, Retention};
use crate::segment_file::{close_unfinished, is_open};
use crate::segment_name::SegmentNames;

/// The recordings whose segments have names of one pattern.
///
/// A file is taken for a segment only if its name fits the pattern and an index of ours for the
/// same stream lies beside it. Other files are neither listed nor removed nor changed, and links
/// are not followed.
#[derive(Clone, Debug)]
pub struct Archive {
    names: SegmentNames,
}

/// A segment of a recording.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct RecordedSegment {
    /// Its file.
    pub path: PathBuf,
    /// The time at which it begins.
    #[serde(serialize_with = "as_text")]
    pub start: UtcTime,
    /// The time at which it ends; the latest so far of one that is open.
    #[serde(serialize_with = "as_text")]
    pub end: UtcTime,
    /// Its length in bytes.
    pub bytes: u64,
    /// Whether it is being written.
    pub is_open: bool,
    /// The time at which the recording begins, of which it is a segment.
    #[serde(skip)]
    pub(crate) recording: UtcTime,
    /// Whether it goes on where the segment before it ends.
    #[serde(skip)]
    pub(crate) continues: bool,
    /// Bytes of tables at its start.
    #[serde(skip)]
    pub(crate) tables: u64,
}

/// A recording: segments from its start to its end, with gaps where the stream had some.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct StreamRecording {
    /// The name of the stream.
    pub stream: String,
    /// The segments that there are still, from the oldest on.
    pub segments: Vec<RecordedSegment>,
}

impl StreamRecording {
    /// The time at which the first segment begins that is there still.
    pub fn start(&self) -> UtcTime {
        self.segments.first().map_or_else(UtcTime::default, |segment| segment.start)
    }

    /// The time at which the last segment ends.
    pub fn end(&self) -> UtcTime {
        self.segments.last().map_or_else(UtcTime::default, |segment| segment.end)
    }

    /// The sum of the times of the segments.
    pub fn duration(&self) -> Duration {
        self.segments.iter().map(RecordedSegment::duration).sum()
    }

    /// The length of all segments in bytes.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    /// Whether the recording goes on.
    pub fn is_running(&self) -> bool {
        self.segments.last().is_some_and(|segment| segment.is_open)
    }
}

impl RecordedSegment {
    /// The time from its start to its end.
    pub fn duration(&self) -> Duration {
        self.end.since(self.start)
    }

    /// The segment at `path`, if it is one of ours.
    fn read(path: &Path, stream: &str) -> Option<Self> {
        let index = File::open(index_path(path)).ok()?;
        let head = IndexHead::read(&index).ok().filter(|head| head.stream == stream)?;
        let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file)?;
        let tail = Tail::read(&index).ok()?;
        let is_open = tail.is_none() && is_open(path).ok()?;
        let end = tail.map_or_else(
            || found.modified().map(UtcTime::from).unwrap_or(head.time),
            |tail| tail.end,
        );
        Some(Self {
            path: path.to_owned(),
            start: head.time,
            end: end.max(head.time),
            bytes: found.len(),
            is_open,
            recording: head.recording,
            continues: head.continues,
            tables: head.tables,
        })
    }
}

impl Archive {
    /// The recordings with names of this pattern.
    pub fn new(names: SegmentNames) -> Self {
        Self { names }
    }

    /// The pattern.
    pub fn names(&self) -> &SegmentNames {
        &self.names
    }

    /// The names of the streams that have recordings, sorted.
    ///
    /// # Errors
    ///
    /// A folder cannot be read.
    pub fn streams(&self) -> io::Result<Vec<String>> {
        let mut files = Vec::new();
        walk(self.names.root(), FOLDERS_MOST, &mut files)?;
        let mut streams: Vec<String> = files
            .iter()
            .filter_map(|path| Some((path, self.names.read(path)?.0)))
            .filter(|(path, stream)| RecordedSegment::read(path, stream).is_some())
            .map(|(_, stream)| stream)
            .collect();
        streams.sort_unstable();
        streams.dedup();
        Ok(streams)
    }

    /// The segments of a stream, from the oldest on. There are none of a text that is no name.
    ///
    /// # Errors
    ///
    /// A folder cannot be read.
    pub fn segments(&self, stream: &str) -> io::Result<Vec<RecordedSegment>> {
        let mut segments: Vec<_> = self
            .paths(stream)?
            .iter()
            .filter_map(|path| RecordedSegment::read(path, stream))
            .collect();
        segments.sort_by_key(|segment| segment.start);
        Ok(segments)
    }

    /// The recordings of a stream, from the oldest on.
    ///
    /// # Errors
    ///
    /// A folder cannot be read.
    pub fn recordings(&self, stream: &str) -> io::Result<Vec<StreamRecording>> {
        let mut recordings: Vec<StreamRecording> = Vec::new();
        for segment in self.segments(stream)? {
            let last =
                recordings.last_mut().and_then(|it| Some((it.segments.last()?.recording, it)));
            match last {
                Some((recording, last)) if recording == segment.recording => {
                    last.segments.push(segment);
                }
                _ => {
                    let (stream, segments) = (stream.to_owned(), vec![segment]);
                    recordings.push(StreamRecording { stream, segments });
                }
            }
        }
        Ok(recordings)
    }

    /// Removes the segments of a stream that `retention` does not keep, and gives their paths.
    /// Folders between the stream's own and a removed segment are removed once they are empty.
    ///
    /// # Errors
    ///
    /// A folder cannot be read. A segment that cannot be removed is left, and told in the log.
    pub fn clean(
        &self,
        stream: &str,
        retention: &Retention,
        now: UtcTime,
    ) -> io::Result<Vec<PathBuf>> {
        if *retention == Retention::default() {
            return Ok(Vec::new());
        }
        let segments = self.segments(stream)?;
        let kept = |it: &RecordedSegment| KeptSegment {
            bytes: it.bytes,
            end: (!it.is_open).then_some(it.end),
        };
        let kept: Vec<_> = segments.iter().map(kept).collect();
        let mut removed = Vec::new();
        for place in retention.surplus(&kept, now) {
            let path = segments[place].path.clone();
            // The index last: a segment without it would be nobody's.
            match fs::remove_file(&path).and_then(|()| fs::remove_file(index_path(&path))) {
                Ok(()) => {
                    self.remove_empty_folders(stream, &path);
                    removed.push(path);
                }
                Err(error) => tracing::warn!("{}: {error}; it is not removed", path.display()),
            }
        }
        Ok(removed)
    }

    /// Closes the segments of a stream that a crash left open, and gives their paths.
    ///
    /// # Errors
    ///
    /// A folder cannot be read. A segment that cannot be closed is left, and told in the log.
    pub fn close_unfinished(&self, stream: &str) -> io::Result<Vec<PathBuf>> {
        let mut closed = Vec::new();
        for path in self.paths(stream)? {
            if RecordedSegment::read(&path, stream).is_none() {
                continue;
            }
            match close_unfinished(&path) {
                Ok(true) => closed.push(path),
                Ok(false) => {}
                Err(error) => tracing::warn!("{}: {error}; it is not closed", path.display()),
            }
        }
        Ok(closed)
    }

    /// The files that have the name of a segment of the stream.
    fn paths(&self, stream: &str) -> io::Result<Vec<PathBuf>> {
        let Some((folder, depth)) = self.names.folder(stream) else { return Ok(Vec::new()) };
        let mut files = Vec::new();
        walk(&folder, depth, &mut files)?;
        let is_of_stream =
            |path: &PathBuf| self.names.read(path).is_some_and(|(found, _)| found == stream);
        files.retain(is_of_stream);
        Ok(files)
    }

    fn remove_empty_folders(&self, stream: &str, segment: &Path) {
        let Some((top, _)) = self.names.folder(stream) else { return };
        for folder in segment.ancestors().skip(1).take_while(|folder| **folder != *top) {
            // One that is not empty is not removed.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

/// Collects the files in a folder, and in those `depth` levels below it. A folder that does not
/// exist has none.
fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> io::Result<()> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = match fs::read_dir(here) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        let path = folder.join(entry.file_name());
        if kind.is_file() {
            files.push(path);
        } else if kind.is_dir() && depth > 0 {
            walk(&path, depth - 1, files)?;
        }
    }
    Ok(())
}

fn as_text<S: serde::Serializer>(time: &UtcTime, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(time)
}

/// The most levels of folders below the root.
const FOLDERS_MOST: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::segment_file::{SegmentFile, SegmentStart};

    fn time(seconds: u64) -> UtcTime {
        UtcTime::from_micros(seconds * 1_000_000)
    }

    struct Folder {
        folder: tempfile::TempDir,
        archive: Archive,
    }

    impl Folder {
        fn new(pattern: &str) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let names = format!("{}/{pattern}", folder.path().display()).parse().unwrap();
            Self { folder, archive: Archive::new(names) }
        }

        /// Opens a segment of 100 bytes.
        fn open(&self, stream: &str, start: u64, recording: u64) -> SegmentFile {
            let start = SegmentStart {
                stream,
                recording: Some(time(recording)),
                time: time(start),
                continues: false,
                tables: b"",
            };
            let mut file = SegmentFile::create(&self.archive.names, &start).unwrap();
            file.write(&[0; 100]);
            file.flush().unwrap();
            file
        }

        fn segment(&self, stream: &str, start: u64, end: u64) {
            self.open(stream, start, start / 100 * 100).complete(time(end)).unwrap();
        }

        fn starts(&self, stream: &str) -> Vec<u64> {
            let segments = self.archive.segments(stream).unwrap();
            segments.iter().map(|it| it.start.micros() / 1_000_000).collect()
        }
    }

    #[test]
    fn streams_and_their_recordings_are_listed() {
        for pattern in ["%path/%s-%f", "x/%Y/%m-%d/%H%M%S%f-%path"] {
            let it = Folder::new(pattern);
            assert_eq!(it.archive.streams().unwrap(), [""; 0]);
            assert_eq!(it.archive.segments("live/a").unwrap(), []);
            for (stream, start) in
                [("live/a", 250), ("live/a", 110), ("live/a", 200), ("live", 150)]
            {
                it.segment(stream, start, start + 10);
            }
            let open = it.open("live/a", 300, 200);
            assert_eq!(it.archive.streams().unwrap(), ["live", "live/a"]);
            assert_eq!(it.starts("live"), [150]);
            assert_eq!(it.archive.segments("../x").unwrap(), []);
            let recordings = it.archive.recordings("live/a").unwrap();
            let starts: Vec<Vec<_>> = recordings
                .iter()
                .map(|it| it.segments.iter().map(|it| it.start.micros() / 1_000_000).collect())
                .collect();
            assert_eq!(starts, [vec![110], vec![200, 250, 300]]);
            assert_eq!((recordings[0].bytes(), recordings[0].duration().as_secs()), (100, 10));
            assert!(!recordings[0].is_running() && recordings[1].is_running());
            let json = serde_json::to_string(&recordings[0]).unwrap();
            assert!(json.contains(r#""start":"1970-01-01T00:01:50.000000Z""#), "{json}");
            drop(open);
            assert!(!it.archive.recordings("live/a").unwrap()[1].is_running());
        }
    }

    #[test]
    fn retention_removes_segments_and_nothing_else() {
        let it = Folder::new("%path/%Y-%m-%d/%H-%M-%S-%f");
        it.segment("live", 10, 20);
        it.segment("live", 90_000, 90_010);
        let open = it.open("live", 90_020, 90_000);
        it.segment("live/cam", 10, 20);
        // Files of somebody else: without an index, with a foreign one, with another name, and a
        // link to a segment.
        let folder = it.folder.path().join("live/1970-01-01");
        let others =
            ["00-00-30-000000.ts", "00-00-40-000000.ts", "00-00-40-000000.jsonl", "notes.txt"];
        others.iter().for_each(|name| fs::write(folder.join(name), "{}").unwrap());
        #[cfg(unix)]
        std::os::unix::fs::symlink("00-00-10-000000.ts", folder.join("00-00-50-000000.ts"))
            .unwrap();

        let all = Retention { delete_after: Some(Duration::ZERO), max_bytes: Some(0) };
        assert_eq!(it.archive.clean("live", &all, time(100_000)).unwrap().len(), 2);
        assert_eq!(it.starts("live"), [90_020]);
        assert_eq!(it.starts("live/cam"), [10]);
        assert!(others.iter().all(|name| folder.join(name).exists()));
        drop(open);
        let by_age = Retention { max_bytes: None, ..all };
        assert_eq!(it.archive.clean("live", &by_age, time(100_000)).unwrap().len(), 0, "it is new");
        let by_bytes = Retention { delete_after: None, max_bytes: Some(99) };
        assert_eq!(it.archive.clean("live", &by_bytes, time(100_000)).unwrap().len(), 1);
        assert!(!it.folder.path().join("live/1970-01-02").exists(), "an empty folder of a day");
        assert!(it.folder.path().join("live/cam/1970-01-01").exists());
    }

    #[test]
    fn a_crash_leaves_segments_that_are_closed_once() {
        let it = Folder::new("%path/%s-%f");
        it.segment("live", 10, 20);
        drop(it.open("live", 30, 30));
        let open = it.open("live", 50, 30);
        assert_eq!(it.archive.close_unfinished("live").unwrap().len(), 1);
        assert_eq!(it.archive.close_unfinished("live").unwrap().len(), 0);
        drop(open);
        assert_eq!(it.archive.close_unfinished("live").unwrap().len(), 1);
    }
}
