//! What is to be sent: a file, or all files below a folder.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::message::Digest;
use super::path::RelativePath;
use crate::exit::Failure;

/// A file to send.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// What the other end is told.
    pub(crate) name: RelativePath,
    /// Bytes of it, as they were counted at first.
    pub(crate) size: u64,
}

/// Files in the order in which they are sent, and what of the folder cannot be.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) files: Vec<Entry>,
    /// In words.
    pub(crate) problems: Vec<String>,
}

impl Listing {
    /// Lists a file, or what is below a folder in the order of the names. Symbolic links to files
    /// count as files; those to folders are not followed, as they may lead in circles.
    pub(crate) fn of(source: &Path) -> Result<Self, Failure> {
        let failure = |error: &io::Error| Failure::file(source, error);
        let metadata = fs::metadata(source).map_err(|error| failure(&error))?;
        let mut listing = Self::default();
        if metadata.is_dir() {
            listing.add_folder(source, "").map_err(|error| failure(&error))?;
            return Ok(listing);
        }
        let whole = fs::canonicalize(source).map_err(|error| failure(&error))?;
        // A link is sent under its own name.
        let name = source.file_name().or(whole.file_name()).unwrap_or_default();
        listing.add(source.to_owned(), &name.to_string_lossy(), &metadata);
        match listing.problems.pop() {
            Some(problem) => Err(Failure::runtime(problem)),
            None => Ok(listing),
        }
    }

    /// Bytes of all files.
    pub(crate) fn size(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }

    fn add_folder(&mut self, folder: &Path, prefix: &str) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let Some(name) = entry.file_name().to_str().map(|name| format!("{prefix}{name}"))
            else {
                self.problems.push(format!("{}: its name is not UTF-8", path.display()));
                continue;
            };
            match fs::metadata(&path) {
                Ok(_) if is_link_to_folder(&path) => {
                    tracing::warn!("{}: links to folders are not followed", path.display());
                }
                Ok(metadata) if metadata.is_dir() => {
                    if let Err(error) = self.add_folder(&path, &format!("{name}/")) {
                        self.problems.push(format!("{}: {error}", path.display()));
                    }
                }
                Ok(metadata) => self.add(path, &name, &metadata),
                Err(error) => self.problems.push(format!("{}: {error}", path.display())),
            }
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf, name: &str, metadata: &Metadata) {
        if !metadata.is_file() {
            self.problems.push(format!("{}: it is not a file", path.display()));
            return;
        }
        match RelativePath::parse(name.as_bytes()) {
            Ok(name) => self.files.push(Entry { path, name, size: metadata.len() }),
            Err(error) => self.problems.push(format!("{}: {error}", path.display())),
        }
    }
}

fn is_link_to_folder(path: &Path) -> bool {
    let link = fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink());
    link && path.is_dir()
}

/// A file that is read to be sent, with the digest of what was read so far.
#[derive(Debug)]
pub(crate) struct Reading {
    file: File,
    /// Bytes of it when it was opened: no more and no less are sent.
    pub(crate) size: u64,
    read: u64,
    hash: Sha256,
}

impl Reading {
    /// Opens the file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        Ok(Self { file, size, read: 0, hash: Sha256::new() })
    }

    /// Whether the file's first `len` bytes have this digest. If so, reading goes on behind them;
    /// otherwise from the start.
    pub(crate) fn skip(&mut self, len: u64, digest: &Digest) -> io::Result<bool> {
        if len <= self.size {
            let mut buffer = vec![0; HASHED_AT_ONCE];
            while self.read < len {
                let most = usize::try_from(len - self.read).unwrap_or(usize::MAX);
                let count = most.min(buffer.len());
                self.fill(&mut buffer[..count])?;
            }
            if self.digest() == *digest {
                return Ok(true);
            }
        }
        io::Seek::rewind(&mut self.file)?;
        (self.read, self.hash) = (0, Sha256::new());
        Ok(false)
    }

    /// Fills `buffer`, or what of it the rest of the file needs; gives how many bytes.
    pub(crate) fn next(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.size - self.read).unwrap_or(usize::MAX);
        let count = rest.min(buffer.len());
        self.fill(&mut buffer[..count])?;
        Ok(count)
    }

    /// Whether all of it was read.
    pub(crate) const fn is_over(&self) -> bool {
        self.read == self.size
    }

    /// The digest of what was read.
    pub(crate) fn digest(&self) -> Digest {
        self.hash.clone().finalize().into()
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::other("it became shorter meanwhile"),
            _ => error,
        })?;
        self.hash.update(&*buffer);
        self.read += buffer.len() as u64;
        Ok(())
    }
}

/// Bytes that are read at once where they are not sent.
const HASHED_AT_ONCE: usize = 1 << 20;
