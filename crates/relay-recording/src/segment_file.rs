//! A segment on the disk: its file, and the index beside it.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use punctual_units::UtcTime;

use crate::index::{Index, IndexEntry, IndexHead, Tail, index_path, line};
use crate::segment_name::SegmentNames;

/// A segment that is written. Its index is locked for as long, so that other programs, and other
/// parts of this one, know that it is open.
///
/// Bytes and lines are collected, and [`flush`](Self::flush) hands them to the system: the bytes of
/// the stream first, then the lines about them. Another kind of crash than that of the system loses
/// nothing that was handed over.
#[derive(Debug)]
pub(crate) struct SegmentFile {
    path: PathBuf,
    time: UtcTime,
    media: File,
    index: File,
    bytes: Vec<u8>,
    lines: String,
    /// The length of the file up to the last flush.
    len: u64,
    is_dirty: bool,
}

/// The head of a segment, and the bytes of tables that it begins with.
#[derive(Clone, Debug)]
pub(crate) struct SegmentStart<'a> {
    pub(crate) stream: &'a str,
    /// The beginning of the recording; `None` for its first segment.
    pub(crate) recording: Option<UtcTime>,
    pub(crate) time: UtcTime,
    pub(crate) continues: bool,
    pub(crate) tables: &'a [u8],
}

impl SegmentFile {
    /// Makes both files. If there is a segment of this name, the new one is a microsecond later:
    /// no file is ever overwritten.
    ///
    /// # Errors
    ///
    /// A folder or a file cannot be made.
    pub(crate) fn create(names: &SegmentNames, start: &SegmentStart<'_>) -> io::Result<Self> {
        let mut time = start.time;
        let (path, media) = loop {
            let path = names.path(start.stream, time).ok_or(io::ErrorKind::InvalidInput)?;
            // A folder that has become empty may be removed meanwhile.
            let created = make_folder(&path).and_then(|()| create_new(&path)).or_else(|error| {
                match error.kind() {
                    io::ErrorKind::NotFound => make_folder(&path).and_then(|()| create_new(&path)),
                    _ => Err(error),
                }
            });
            match created {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    time = time + Duration::from_micros(1);
                }
                Err(error) => return Err(error),
            }
        };
        let index = create_new(&index_path(&path));
        let index = index.inspect_err(|_| drop(fs::remove_file(&path)))?;
        // Where there are no locks, the segment is merely not seen to be open.
        let _ = index.lock();
        let mut head = IndexHead::first(start.stream, time, start.tables.len() as u64);
        head.recording = start.recording.unwrap_or(time);
        head.continues = start.continues;
        let (bytes, lines) = (start.tables.to_vec(), line(&head));
        Ok(Self { path, time, media, index, bytes, lines, len: 0, is_dirty: true })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The time at which it begins.
    pub(crate) fn time(&self) -> UtcTime {
        self.time
    }

    /// The length, with the bytes that wait.
    pub(crate) fn len(&self) -> u64 {
        self.len + self.bytes.len() as u64
    }

    /// Adds bytes of the stream.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a line to the index.
    pub(crate) fn note(&mut self, entry: &IndexEntry) {
        self.lines.push_str(&line(entry));
    }

    /// Whether there is enough for a flush.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= FLUSH
    }

    /// Hands all to the system.
    ///
    /// # Errors
    ///
    /// The disk is full, or fails. The file then ends where the last flush ended, if it can be cut.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if self.bytes.is_empty() && self.lines.is_empty() {
            return Ok(());
        }
        let written = self.media.write_all(&self.bytes);
        if let Err(error) = written {
            let _ = self.media.set_len(self.len);
            self.bytes.clear();
            return Err(error);
        }
        self.len += self.bytes.len() as u64;
        self.bytes.clear();
        self.is_dirty = true;
        self.index.write_all(self.lines.as_bytes())?;
        self.lines.clear();
        Ok(())
    }

    /// Waits until the disk has all that was flushed.
    ///
    /// # Errors
    ///
    /// The disk fails.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_dirty) {
            self.media.sync_data()?;
            self.index.sync_data()?;
        }
        Ok(())
    }

    /// Closes the segment, and gives its length.
    ///
    /// # Errors
    ///
    /// The disk is full, or fails.
    pub(crate) fn complete(mut self, end: UtcTime) -> io::Result<u64> {
        self.lines.push_str(&line(&Tail { end, bytes: self.len(), recovered: false }));
        self.flush()?;
        self.sync()?;
        Ok(self.len)
    }

    /// Closes a segment after an error of the disk, as well as can be.
    pub(crate) fn give_up(self) -> u64 {
        let (path, len) = (self.path.clone(), self.len);
        drop(self);
        let _ = close_unfinished(&path);
        len
    }
}

/// Whether a segment is being written, by this program or another.
///
/// # Errors
///
/// Its index cannot be opened.
pub(crate) fn is_open(segment: &Path) -> io::Result<bool> {
    let index = File::open(index_path(segment))?;
    Ok(matches!(index.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Closes a segment that nobody writes any more and that has no end, and tells whether there was
/// something to close: a line of the index that was cut off is removed, a packet that was cut off
/// as well, and the end is noted.
///
/// # Errors
///
/// The files cannot be read or written.
pub(crate) fn close_unfinished(segment: &Path) -> io::Result<bool> {
    let index_path = index_path(segment);
    let mut file = OpenOptions::new().read(true).append(true).open(&index_path)?;
    if matches!(file.try_lock(), Err(TryLockError::WouldBlock)) {
        return Ok(false);
    }
    let index = Index::read(&file)?;
    if index.tail.is_some() {
        return Ok(false);
    }
    let media = OpenOptions::new().read(true).append(true).open(segment)?;
    let found = media.metadata()?;
    let mut bytes = found.len();
    let packets = bytes / PACKET * PACKET;
    if packets < bytes && begins_with_packets(&media)? {
        media.set_len(packets)?;
        bytes = packets;
    }
    file.set_len(index.len)?;
    let modified = found.modified().map(UtcTime::from).unwrap_or_default();
    let latest = index.entries.last().map_or(index.head.time, |entry| entry.time);
    file.write_all(line(&Tail { end: modified.max(latest), bytes, recovered: true }).as_bytes())?;
    Ok(true)
}

/// Whether a file begins with two packets of a transport stream.
pub(crate) fn begins_with_packets(file: &File) -> io::Result<bool> {
    use std::io::{Read, Seek, SeekFrom};

    let mut file = file;
    file.seek(SeekFrom::Start(0))?;
    let mut start = Vec::new();
    file.take(2 * PACKET).read_to_end(&mut start)?;
    let is_sync = |at: u64| start.get(usize::try_from(at).unwrap_or(0)).copied() == Some(0x47);
    Ok(is_sync(0) && (start.len() as u64 <= PACKET || is_sync(PACKET)))
}

fn make_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

fn create_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create_new(true).open(path)
}

/// Bytes in a packet.
const PACKET: u64 = punctual_mpegts::PACKET_LEN as u64;
/// Bytes that are written at once.
const FLUSH: usize = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::Discontinuity;

    fn time(seconds: u64) -> UtcTime {
        UtcTime::from_micros(seconds * 1_000_000)
    }

    fn start(time: UtcTime) -> SegmentStart<'static> {
        SegmentStart { stream: "live/a", recording: None, time, continues: false, tables: b"" }
    }

    fn names(folder: &Path) -> SegmentNames {
        format!("{}/%path/%s-%f", folder.display()).parse().unwrap()
    }

    fn packets(count: usize) -> Vec<u8> {
        [0x47; 188].repeat(count)
    }

    fn entry(seconds: u64, byte: u64) -> IndexEntry {
        let discontinuity = Some(Discontinuity::Overrun);
        IndexEntry { time: time(seconds), byte, pts: None, random_access: true, discontinuity }
    }

    #[test]
    fn a_segment_of_the_same_time_is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let names = names(folder.path());
        let mut paths = Vec::new();
        for content in ["one", "two"] {
            let mut file = SegmentFile::create(&names, &start(time(7))).unwrap();
            file.write(content.as_bytes());
            paths.push((file.path().to_owned(), file.time()));
            assert_eq!(file.complete(time(8)).unwrap(), 3);
        }
        assert_eq!(paths[1].1.micros(), 7_000_001);
        for ((path, _), content) in paths.iter().zip(["one", "two"]) {
            assert_eq!(fs::read_to_string(path).unwrap(), content);
        }
    }

    #[test]
    fn a_segment_is_seen_to_be_open_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = SegmentFile::create(&names(folder.path()), &start(time(7))).unwrap();
        file.flush().unwrap();
        let path = file.path().to_owned();
        assert!(is_open(&path).unwrap());
        assert!(!close_unfinished(&path).unwrap(), "another one writes it");
        file.complete(time(8)).unwrap();
        assert!(!is_open(&path).unwrap());
        assert!(!close_unfinished(&path).unwrap(), "it has an end");
    }

    #[test]
    fn a_segment_that_was_left_is_closed_with_whole_packets_and_lines() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = SegmentFile::create(&names(folder.path()), &start(time(7))).unwrap();
        file.write(&packets(3));
        file.note(&entry(4_000_000_000, 188));
        file.flush().unwrap();
        let path = file.path().to_owned();
        drop(file);
        let append = |path: &Path, bytes: &[u8]| {
            OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
        };
        append(&path, &packets(1)[..100]);
        append(&index_path(&path), b"{\"time\":\"2026-");
        assert!(close_unfinished(&path).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().len(), 3 * 188);
        let index = Index::read(&File::open(index_path(&path)).unwrap()).unwrap();
        assert_eq!(index.entries, [entry(4_000_000_000, 188)]);
        let tail = Tail { end: time(4_000_000_000), bytes: 3 * 188, recovered: true };
        assert_eq!(index.tail, Some(tail));
        assert_eq!(index.len, fs::metadata(index_path(&path)).unwrap().len());
    }

    #[test]
    fn other_files_under_such_a_name_are_left_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("7-000000.ts");
        fs::write(&path, [0x47; 100]).unwrap();
        fs::write(index_path(&path), "{\"mine\":true}").unwrap();
        assert!(close_unfinished(&path).is_err());
        assert_eq!(fs::read_to_string(index_path(&path)).unwrap(), "{\"mine\":true}");
        assert_eq!(fs::metadata(&path).unwrap().len(), 100);
    }
}
