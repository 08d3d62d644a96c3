//! A spool in a file.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::Path;

use bytes::{Buf, BufMut, Bytes};
use crc32fast::Hasher;
use punctual_io::FileRing;
use punctual_resume::{Kept, MemorySpool, Spool, SpoolError, StreamSecret};
use thiserror::Error;

use crate::resume::random::random_secret;

/// Keeps messages in a file, so that the stream goes on after its process was killed.
///
/// The file has a fixed size and is written round and round. A message is written before it is
/// sent, and given to the operating system: it survives the process, but a part of the newest may
/// be gone after a power failure. The newest messages are kept in memory as well. One process at a
/// time has the file.
#[derive(Debug)]
pub struct FileSpool {
    header: Header,
    /// The records from the place in the header on.
    ring: FileRing,
    kept: Kept,
    /// The newest messages.
    recent: MemorySpool,
    /// The places of some records, by their offsets, the oldest first.
    index: VecDeque<RecordPlace>,
    /// The place after the record that was read last.
    cursor: RecordPlace,
}

/// A failure to open a spool.
#[derive(Debug, Error)]
pub enum FileSpoolError {
    /// Another process has it.
    #[error("another process uses the spool")]
    InUse,
    /// It is another kind of file.
    #[error("the file is no spool of Punctual, so it is not changed")]
    NoSpool,
    /// It keeps the stream of another source.
    #[error(
        "the spool keeps the rest of the stream from `{0}`: finish that with the same source, or \
         remove the file"
    )]
    OtherSource(String),
    /// The operating system reported an error.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The record of a message, by its place.
#[derive(Clone, Copy, Debug, Default)]
struct RecordPlace {
    /// The offset of the message's first byte in the stream.
    offset: u64,
    /// The position of its record in the ring.
    position: u64,
}

impl FileSpool {
    /// Opens the spool at `path` for the stream of `source`, or creates one for `size` bytes, which
    /// include 16 bytes for each message. A spool that exists keeps its size. In addition up to
    /// `memory` bytes of the newest messages are kept in memory.
    ///
    /// # Errors
    ///
    /// Another process uses it, it is no spool, or the operating system does not allow it.
    pub fn open(path: &Path, source: &str, size: u64, memory: u64) -> Result<Self, FileSpoolError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        // Nobody else may read the secret of the stream.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FileSpoolError::InUse),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        if file.metadata()?.len() == 0 {
            let header = Header::new(source, size.max(LEAST_SIZE))?;
            return Ok(Self::create(file, header, memory)?);
        }
        let header = Header::read(&mut file)?;
        if header.source != name_of(source) {
            let source = String::from_utf8_lossy(&header.source).into_owned();
            return Err(FileSpoolError::OtherSource(source));
        }
        Ok(Self::recover(file, header, memory)?)
    }

    fn create(file: File, header: Header, memory: u64) -> io::Result<Self> {
        let mut ring = FileRing::new(file, HEADER_LEN, header.size, header.position);
        ring.write_header(&header.bytes())?;
        Ok(Self {
            header,
            ring,
            kept: Kept::default(),
            recent: MemorySpool::new(memory),
            index: VecDeque::new(),
            cursor: RecordPlace::default(),
        })
    }

    /// Finds the records that follow each other from the first one on.
    fn recover(file: File, header: Header, memory: u64) -> io::Result<Self> {
        let ring = FileRing::new(file, HEADER_LEN, header.size, header.position);
        let mut place = RecordPlace { offset: header.first_message, position: header.position };
        let mut spool = Self {
            kept: Kept { first: header.first, end: place.offset },
            header,
            ring,
            recent: MemorySpool::new(memory),
            index: VecDeque::new(),
            cursor: place,
        };
        while let Some(message) = spool.message_at(place)? {
            spool.remember(place);
            place = place.after(message.len());
            spool.kept.end = place.offset;
        }
        spool.ring.keep_up_to(place.position);
        // A kill may have come between the release of all bytes and the next message.
        spool.kept.first = spool.kept.first.min(spool.kept.end);
        spool.recent = MemorySpool::at(spool.kept.end, memory);
        Ok(spool)
    }

    /// The stream that the spool keeps.
    pub const fn stream(&self) -> StreamSecret {
        self.header.stream
    }

    /// The length and the checksum of the record at `place`; `None` if there is no such record.
    fn head_at(&mut self, place: RecordPlace) -> io::Result<Option<(usize, u32)>> {
        let mut head = [0; RECORD_LEN];
        self.ring.read_at(place.position, &mut head)?;
        let mut fields = &head[..];
        let (offset, len, checksum) = (fields.get_u64(), fields.get_u32(), fields.get_u32());
        let is_there = offset == place.offset && len > 0 && u64::from(len) <= self.ring.size();
        Ok(is_there.then_some((len as usize, checksum)))
    }

    /// The message of the record at `place`; `None` if there is no such record, or it was not
    /// written to its end.
    fn message_at(&mut self, place: RecordPlace) -> io::Result<Option<Bytes>> {
        let Some((len, checksum)) = self.head_at(place)? else { return Ok(None) };
        let mut message = vec![0; len];
        self.ring.read_at(place.position + RECORD_LEN as u64, &mut message)?;
        let is_whole = checksum_of(place.offset, &message) == checksum;
        Ok(is_whole.then(|| message.into()))
    }

    /// Notes the place of a record if it is far enough from the last one that was noted.
    fn remember(&mut self, place: RecordPlace) {
        if self.index.back().is_none_or(|last| place.position >= last.position + INDEX_STEP) {
            self.index.push_back(place);
        }
    }

    /// A place before or at the byte at `offset`, from which its record is found.
    fn before(&self, offset: u64) -> RecordPlace {
        let after = self.index.partition_point(|place| place.offset <= offset);
        let noted = after.checked_sub(1).map(|place| self.index[place]);
        let first =
            RecordPlace { offset: self.header.first_message, position: self.header.position };
        let cursor = Some(self.cursor).filter(|cursor| cursor.offset <= offset);
        noted.into_iter().chain(cursor).fold(first, |nearest, place| {
            if place.offset > nearest.offset { place } else { nearest }
        })
    }

    /// The place of the record that has the byte at `offset`.
    fn find(&mut self, offset: u64) -> Result<RecordPlace, SpoolError> {
        let mut place = self.before(offset);
        while let Some((len, _)) = self.head_at(place)? {
            let after = place.after(len);
            if offset < after.offset {
                return Ok(place);
            }
            place = after;
        }
        Err(SpoolError::Damaged(offset))
    }
}

impl Spool for FileSpool {
    fn kept(&self) -> Kept {
        self.kept
    }

    fn push(&mut self, message: Bytes) -> Result<(), SpoolError> {
        let place = RecordPlace { offset: self.kept.end, position: self.ring.end() };
        let after = place.after(message.len());
        if after.position - place.position > self.ring.room() {
            return Err(SpoolError::Full);
        }
        let mut record = Vec::with_capacity(RECORD_LEN + message.len());
        record.put_u64(place.offset);
        record.put_u32(u32::try_from(message.len()).map_err(|_| SpoolError::Full)?);
        record.put_u32(checksum_of(place.offset, &message));
        record.put_slice(&message);
        self.ring.append(&[record])?;
        self.remember(place);
        self.kept.end = after.offset;
        self.recent.push_newest(message);
        Ok(())
    }

    fn read(&mut self, offset: u64) -> Result<Option<Bytes>, SpoolError> {
        if offset >= self.kept.end {
            return Ok(None);
        }
        if offset >= self.recent.kept().first {
            return self.recent.read(offset);
        }
        let place = self.find(offset)?;
        let message = self.message_at(place)?.ok_or(SpoolError::Damaged(offset))?;
        self.cursor = place.after(message.len());
        let skipped = usize::try_from(offset - place.offset).unwrap_or(usize::MAX);
        Ok(Some(message.slice(skipped..)))
    }

    fn release(&mut self, offset: u64) -> Result<(), SpoolError> {
        if offset <= self.kept.first {
            return Ok(());
        }
        self.kept.first = offset.min(self.kept.end);
        let first = match self.kept.is_empty() {
            true => RecordPlace { offset: self.kept.end, position: self.ring.end() },
            false => self.find(self.kept.first)?,
        };
        while self.index.front().is_some_and(|place| place.offset < first.offset) {
            self.index.pop_front();
        }
        if self.cursor.offset < first.offset {
            self.cursor = first;
        }
        self.recent.release(self.kept.first)?;
        // If the header cannot be written, the records before this place stay, because the next
        // start needs them.
        let (before, at) = (self.header.place(), (self.kept.first, first));
        self.header.set_place(at);
        if let Err(error) = self.ring.write_header(&self.header.bytes()) {
            self.header.set_place(before);
            return Err(error.into());
        }
        self.ring.free_up_to(first.position);
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.header.has_begun
    }

    fn begin(&mut self) -> Result<(), SpoolError> {
        if !std::mem::replace(&mut self.header.has_begun, true) {
            self.ring.write_header(&self.header.bytes())?;
        }
        Ok(())
    }
}

impl RecordPlace {
    /// The place after the message of `len` bytes at this place.
    const fn after(self, len: usize) -> Self {
        let len = len as u64;
        Self { offset: self.offset + len, position: self.position + RECORD_LEN as u64 + len }
    }
}

/// The beginning of the file.
#[derive(Debug)]
struct Header {
    stream: StreamSecret,
    /// Whether a receiver has begun to receive the stream.
    has_begun: bool,
    /// The bytes of the ring.
    size: u64,
    /// The offset before which all bytes are confirmed.
    first: u64,
    /// The offset of the message that has this byte.
    first_message: u64,
    /// The position of that message's record.
    position: u64,
    /// The name of the stream's source.
    source: Vec<u8>,
}

impl Header {
    fn new(source: &str, size: u64) -> io::Result<Self> {
        let (stream, source) = (random_secret()?, name_of(source).to_vec());
        let has_begun = false;
        Ok(Self { stream, has_begun, size, first: 0, first_message: 0, position: 0, source })
    }

    /// The first byte that is not confirmed, and the place of its record.
    const fn place(&self) -> (u64, RecordPlace) {
        (self.first, RecordPlace { offset: self.first_message, position: self.position })
    }

    const fn set_place(&mut self, (first, place): (u64, RecordPlace)) {
        (self.first, self.first_message, self.position) = (first, place.offset, place.position);
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(64 + self.source.len());
        bytes.put_slice(MAGIC);
        bytes.put_slice(&self.stream.bytes());
        bytes.put_u8(self.has_begun.into());
        bytes.put_u64(self.size);
        bytes.put_u64(self.first);
        bytes.put_u64(self.first_message);
        bytes.put_u64(self.position);
        let len = u32::try_from(self.source.len()).unwrap_or(u32::MAX);
        bytes.put_u32(len);
        bytes.put_slice(&self.source);
        let checksum = crc32fast::hash(&bytes);
        bytes.put_u32(checksum);
        bytes
    }

    fn read(file: &mut File) -> Result<Self, FileSpoolError> {
        let mut bytes = Vec::new();
        file.take(HEADER_LEN).read_to_end(&mut bytes)?;
        Self::parse(&bytes).ok_or(FileSpoolError::NoSpool)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = bytes.strip_prefix(MAGIC)?;
        let mut stream = [0; 16];
        fields.try_copy_to_slice(&mut stream).ok()?;
        let header = Self {
            stream: StreamSecret::new(stream)?,
            has_begun: fields.try_get_u8().ok()? > 0,
            size: number(&mut fields).filter(|size| *size > 0)?,
            first: number(&mut fields)?,
            first_message: number(&mut fields)?,
            position: number(&mut fields)?,
            source: {
                let len = fields.try_get_u32().ok()?;
                fields.get(..len as usize)?.to_vec()
            },
        };
        bytes.starts_with(&header.bytes()).then_some(header)
    }
}

/// The part of a source's name that the header keeps.
fn name_of(source: &str) -> &[u8] {
    let name = source.as_bytes();
    &name[..name.len().min(LONGEST_SOURCE)]
}

/// The next number of a header, unless a stream is never so long.
fn number(fields: &mut &[u8]) -> Option<u64> {
    fields.try_get_u64().ok().filter(|number| *number <= MOST_BYTES)
}

fn checksum_of(offset: u64, message: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&offset.to_be_bytes());
    hasher.update(message);
    hasher.finalize()
}

const MAGIC: &[u8] = b"punctual spool 2\n";

/// More bytes than a stream has, to which those of the longest message can be added.
const MOST_BYTES: u64 = 1 << 62;

/// The bytes of the file before the ring.
const HEADER_LEN: u64 = 4_096;

/// The most bytes of a source's name, which fit into the header.
const LONGEST_SOURCE: usize = 3_900;

/// Bytes before the message in a record: offset, length and checksum.
const RECORD_LEN: usize = 16;

/// The least size of the ring: a message of the largest size fits.
const LEAST_SIZE: u64 = 1 << 20;

/// Bytes between two places that are noted: so much is read to find a byte.
const INDEX_STEP: u64 = 1 << 20;

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "the numbers of a test are small")]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A path in a folder of its own, which is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let name = format!("punctual-spool-{name}-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn open(&self, memory: u64) -> FileSpool {
            FileSpool::open(&self.0.join("spool"), "-", LEAST_SIZE, memory).unwrap()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    /// Message number `i`, of 1 to 2000 bytes.
    fn message(i: u64) -> Bytes {
        let len = 1 + (i * 7_919) % 2_000;
        (0..len).map(|at| (at ^ i) as u8).collect()
    }

    fn push(spool: &mut FileSpool, messages: std::ops::Range<u64>) {
        messages.for_each(|i| spool.push(message(i)).unwrap());
    }

    /// The rest of the stream from `offset` on.
    fn rest(spool: &mut FileSpool, mut offset: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while let Some(message) = spool.read(offset).unwrap() {
            offset += message.len() as u64;
            bytes.extend_from_slice(&message);
        }
        assert_eq!(offset, spool.kept().end);
        bytes
    }

    fn stream(messages: std::ops::Range<u64>) -> Vec<u8> {
        messages.flat_map(message).collect()
    }

    #[test]
    fn a_stream_is_there_after_its_process_has_ended() {
        let folder = Folder::new("reopened");
        let mut spool = folder.open(0);
        push(&mut spool, 0..500);
        spool.release(12_345).unwrap();
        assert!(!spool.has_begun());
        spool.begin().unwrap();
        let (secret, kept) = (spool.stream(), spool.kept());
        drop(spool);
        let mut spool = folder.open(0);
        assert_eq!((spool.stream(), spool.kept()), (secret, kept));
        assert!(spool.has_begun(), "a stranger would get the rest");
        assert_eq!(rest(&mut spool, 12_345), stream(0..500)[12_345..]);
        push(&mut spool, 500..600);
        assert_eq!(rest(&mut spool, 12_345), stream(0..600)[12_345..]);
    }

    #[test]
    fn a_ring_takes_more_than_its_size_when_the_oldest_is_released() {
        let folder = Folder::new("round");
        let mut spool = folder.open(10_000);
        let all = stream(0..5_000);
        assert!(all.len() as u64 > 4 * LEAST_SIZE);
        for i in 0..5_000 {
            push(&mut spool, i..i + 1);
            let confirmed = spool.kept().end.saturating_sub(500_000);
            spool.release(confirmed).unwrap();
            if i % 1_000 == 999 {
                drop(spool);
                spool = folder.open(10_000);
            }
            if i % 100 == 0 {
                let from = spool.kept().first + i * 13 % spool.kept().len();
                let end = spool.kept().end as usize;
                assert_eq!(rest(&mut spool, from), all[from as usize..end], "message {i}");
            }
        }
    }

    #[test]
    fn a_full_ring_takes_no_more_until_something_is_released() {
        let folder = Folder::new("full");
        let mut spool = folder.open(0);
        let mut count = 0;
        while spool.push(message(count)).is_ok() {
            count += 1;
        }
        assert!(matches!(spool.push(message(count)), Err(SpoolError::Full)));
        let end = spool.kept().end;
        assert!(end > LEAST_SIZE - 20_000 && end < LEAST_SIZE);
        spool.release(10_000).unwrap();
        spool.push(message(count)).unwrap();
        assert_eq!(rest(&mut spool, 10_000), stream(0..count + 1)[10_000..]);
    }

    #[test]
    fn a_message_that_was_written_in_part_is_not_there() {
        let folder = Folder::new("torn");
        let mut spool = folder.open(0);
        push(&mut spool, 0..100);
        let end = spool.ring.end();
        let last = stream(0..99).len() as u64;
        drop(spool);
        let file = OpenOptions::new().write(true).open(folder.0.join("spool")).unwrap();
        file.set_len(HEADER_LEN + end - 1).unwrap();
        assert_eq!(folder.open(0).kept(), Kept { first: 0, end: last });
    }

    #[test]
    fn a_spool_is_used_by_one_process_for_one_source() {
        let folder = Folder::new("used");
        let path = folder.0.join("spool");
        let open = |source| FileSpool::open(&path, source, 1, 0).map(drop);
        let spool = folder.open(0);
        assert!(matches!(open("-"), Err(FileSpoolError::InUse)));
        drop(spool);
        let other = open("a.ts").unwrap_err();
        assert!(other.to_string().contains("the stream from `-`"), "{other}");
        std::fs::write(&path, "a file of somebody else").unwrap();
        assert!(matches!(open("-"), Err(FileSpoolError::NoSpool)));
        assert_eq!(std::fs::read(&path).unwrap(), b"a file of somebody else");
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_the_secret_of_a_spool() {
        use std::os::unix::fs::PermissionsExt;
        let folder = Folder::new("private");
        drop(folder.open(0));
        let found = std::fs::metadata(folder.0.join("spool")).unwrap();
        assert_eq!(found.permissions().mode() & 0o077, 0);
    }

    #[test]
    fn a_header_with_a_number_that_no_stream_reaches_is_no_spool() {
        let header = Header::new("-", 1 << 20).unwrap();
        let far = Header { position: u64::MAX - 100, ..header };
        assert!(Header::parse(&far.bytes()).is_none());
    }

    #[test]
    fn a_changed_header_is_no_spool() {
        let header = Header::new("udp://:5000", 1 << 20).unwrap();
        let bytes = header.bytes();
        assert!(Header::parse(&bytes).is_some());
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(Header::parse(&changed).is_none(), "byte {at}");
            assert!(Header::parse(&bytes[..at]).is_none());
        }
    }
}
