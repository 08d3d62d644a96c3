use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Bytes that wait in a part of a file, which is written round and round.
///
/// The part has a fixed size. Positions count all bytes that were ever appended; each stands for
/// the byte of the part at the position modulo the size. The owner may have other bytes in the
/// file, such as a header before the part.
#[derive(Debug)]
pub struct FileRing {
    file: File,
    /// The place of the part in the file.
    start: u64,
    size: u64,
    /// The position of the oldest byte that is kept.
    begin: u64,
    /// The position after the newest byte.
    end: u64,
}

impl FileRing {
    /// The part of `file` of `size` bytes from `start` on, without any bytes yet. The next byte has
    /// the position `begin`.
    pub const fn new(file: File, start: u64, size: u64, begin: u64) -> Self {
        Self { file, start, size, begin, end: begin }
    }

    /// The number of bytes that can be kept at a time.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// The position of the oldest byte that is kept.
    pub const fn begin(&self) -> u64 {
        self.begin
    }

    /// The position after the newest byte.
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// The number of bytes that can be appended.
    pub const fn room(&self) -> u64 {
        self.size.saturating_sub(self.end - self.begin)
    }

    /// Appends all of these pieces.
    ///
    /// # Errors
    ///
    /// There is no room for them, or the file cannot be written. Then none of them is appended.
    pub fn append(&mut self, pieces: &[impl AsRef<[u8]>]) -> io::Result<()> {
        let len: u64 = pieces.iter().map(|piece| piece.as_ref().len() as u64).sum();
        if len > self.room() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let mut position = self.end;
        for piece in pieces {
            let mut rest = piece.as_ref();
            while !rest.is_empty() {
                let (now, later) = rest.split_at(self.before_turn(position, rest.len()));
                self.seek(position)?;
                self.file.write_all(now)?;
                position += now.len() as u64;
                rest = later;
            }
        }
        self.end = position;
        Ok(())
    }

    /// Fills `bytes` from `position` on. Bytes that were never written are zero.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or the ring has fewer bytes than are wanted.
    pub fn read_at(&mut self, mut position: u64, bytes: &mut [u8]) -> io::Result<()> {
        if bytes.len() as u64 > self.size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let (now, later) = rest.split_at_mut(self.before_turn(position, rest.len()));
            self.seek(position)?;
            fill(&mut self.file, now)?;
            position += now.len() as u64;
            rest = later;
        }
        Ok(())
    }

    /// Makes room: the bytes before `position` are no longer needed.
    pub fn free_up_to(&mut self, position: u64) {
        self.begin = position.clamp(self.begin, self.end);
    }

    /// Keeps the bytes up to `position` as well, which were appended before the file was opened.
    pub fn keep_up_to(&mut self, position: u64) {
        self.end = self.end.max(position);
    }

    /// Writes `header` to the beginning of the file, before the ring.
    ///
    /// # Errors
    ///
    /// It is longer than the file's part before the ring, or the file cannot be written.
    pub fn write_header(&mut self, header: &[u8]) -> io::Result<()> {
        if header.len() as u64 > self.start {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(header)
    }

    /// The number of `len` bytes that fit between `position` and the end of the part.
    fn before_turn(&self, position: u64, len: usize) -> usize {
        let room = self.size - position % self.size;
        usize::try_from(room).map_or(len, |room| len.min(room))
    }

    fn seek(&mut self, position: u64) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(self.start + position % self.size)).map(drop)
    }
}

/// Fills `bytes` from `file`, and the rest with zeros if the file ends.
fn fill(file: &mut File, mut bytes: &mut [u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.read(bytes) {
            Ok(0) => {
                bytes.fill(0);
                return Ok(());
            }
            Ok(count) => bytes = &mut bytes[count..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
#[expect(clippy::cast_possible_truncation, reason = "the numbers of a test are small")]
mod tests {
    use std::fs::OpenOptions;
    use std::path::PathBuf;

    use super::*;

    /// A file that is removed at the end.
    struct TestFile(PathBuf);

    impl TestFile {
        fn new(name: &str) -> Self {
            let path = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            std::fs::write(&path, "").unwrap();
            Self(path)
        }

        fn ring(&self, start: u64, size: u64, begin: u64) -> FileRing {
            let file = OpenOptions::new().read(true).write(true).open(&self.0).unwrap();
            FileRing::new(file, start, size, begin)
        }

        fn bytes(&self) -> Vec<u8> {
            std::fs::read(&self.0).unwrap()
        }
    }

    impl Drop for TestFile {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(&self.0);
        }
    }

    fn read(ring: &mut FileRing, position: u64, len: usize) -> Vec<u8> {
        let mut bytes = vec![1; len];
        ring.read_at(position, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn bytes_are_read_as_they_were_appended_over_many_turns() {
        let file = TestFile::new("ring-turns");
        let mut ring = file.ring(5, 37, 0);
        let bytes = |from: u64, len: u64| -> Vec<u8> {
            (from..from + len).map(|position| (position * 7 % 251) as u8).collect()
        };
        for round in 0..200 {
            let (one, two) = (round % 11, round % 17);
            let end = ring.end();
            ring.free_up_to((end + one + two).saturating_sub(ring.size()));
            ring.append(&[bytes(end, one), bytes(end + one, two)]).unwrap();
            let (begin, kept) = (ring.begin(), ring.end() - ring.begin());
            assert_eq!(read(&mut ring, begin, kept as usize), bytes(begin, kept));
        }
        assert!(ring.end() > 40 * ring.size());
    }

    #[test]
    fn a_byte_lies_in_the_file_at_its_position_modulo_the_size() {
        let file = TestFile::new("ring-layout");
        let mut ring = file.ring(2, 4, 6);
        ring.append(&["abc"]).unwrap();
        ring.write_header(b"hd").unwrap();
        assert_eq!(file.bytes(), b"hdc\0ab");
        assert!(ring.write_header(b"hdr").is_err(), "it would overwrite the ring");
        assert_eq!(file.bytes(), b"hdc\0ab");
    }

    #[test]
    fn a_full_ring_takes_nothing_until_bytes_are_freed() {
        let file = TestFile::new("ring-full");
        let mut ring = file.ring(0, 4, 0);
        ring.append(&["abc"]).unwrap();
        let full = ring.append(&["d", "e"]).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert_eq!((ring.end(), ring.room()), (3, 1));
        ring.free_up_to(1);
        ring.append(&["d", "e"]).unwrap();
        assert_eq!(read(&mut ring, 1, 4), b"bcde");
        ring.free_up_to(9);
        assert_eq!((ring.begin(), ring.room()), (5, 4), "no more is freed than was appended");
    }

    #[test]
    fn bytes_that_cannot_be_written_are_not_appended() {
        let file = TestFile::new("ring-read-only");
        let mut ring = FileRing::new(File::open(&file.0).unwrap(), 0, 4, 0);
        assert!(ring.append(&["ab"]).is_err());
        assert_eq!((ring.end(), ring.room()), (0, 4));
    }

    #[test]
    fn bytes_of_an_earlier_process_are_found_and_kept() {
        let file = TestFile::new("ring-again");
        file.ring(1, 8, 3).append(&["abcdef"]).unwrap();
        let mut ring = file.ring(1, 8, 3);
        assert_eq!(read(&mut ring, 3, 8), b"abcdef\0\0", "the rest was never written");
        ring.keep_up_to(9);
        assert_eq!(ring.room(), 2);
        ring.append(&["gh"]).unwrap();
        assert_eq!(read(&mut ring, 3, 8), b"abcdefgh");
    }

    #[test]
    fn a_ring_without_room_is_no_reason_to_panic() {
        let mut ring = TestFile::new("ring-none").ring(0, 0, 0);
        ring.append(&[""]).unwrap();
        ring.read_at(0, &mut []).unwrap();
        assert!(ring.append(&["a"]).is_err());
        assert!(ring.read_at(0, &mut [0]).is_err());
    }
}
