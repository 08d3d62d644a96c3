//! A part of a file that is written round and round.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// A part of a file of a fixed size. Positions go on for ever; each stands for the byte at the
/// position modulo the size.
#[derive(Debug)]
pub(super) struct Ring {
    file: File,
    /// The place of the part in the file.
    start: u64,
    size: u64,
}

impl Ring {
    /// The part of `file` of `size` bytes from `start` on.
    pub(super) const fn new(file: File, start: u64, size: u64) -> Self {
        Self { file, start, size }
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Writes `bytes`, at most as many as the ring has, from `position` on.
    pub(super) fn write(&mut self, position: u64, bytes: &[u8]) -> io::Result<()> {
        let (before, after) = bytes.split_at(self.before_end(position, bytes.len()));
        self.seek(position)?;
        self.file.write_all(before)?;
        if !after.is_empty() {
            self.seek(0)?;
            self.file.write_all(after)?;
        }
        Ok(())
    }

    /// Fills `bytes` from `position` on. Bytes that were never written are zero.
    pub(super) fn read(&mut self, position: u64, bytes: &mut [u8]) -> io::Result<()> {
        let (before, after) = bytes.split_at_mut(self.before_end(position, bytes.len()));
        self.seek(position)?;
        fill(&mut self.file, before)?;
        if !after.is_empty() {
            self.seek(0)?;
            fill(&mut self.file, after)?;
        }
        Ok(())
    }

    /// Writes `bytes` to the beginning of the file, before the ring.
    pub(super) fn write_header(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(bytes)
    }

    /// The number of `len` bytes that fit between `position` and the end of the ring.
    fn before_end(&self, position: u64, len: usize) -> usize {
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
