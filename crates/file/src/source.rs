//! The files that are sent: one, or all below a folder.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::message::Digest;
use crate::path::RelativePath;

/// A file to send.
#[derive(Debug)]
pub struct Entry {
    /// Its place on this end's disk.
    pub path: PathBuf,
    /// Its path below the receiver's folder.
    pub name: RelativePath,
    /// Its size in bytes when it was listed.
    pub size: u64,
}

/// The files to send, in the order in which they are sent.
#[derive(Debug, Default)]
pub struct Listing {
    /// The files.
    pub files: Vec<Entry>,
    /// Everything in the folder that cannot be sent, each as a message with its path and the
    /// reason.
    pub problems: Vec<String>,
}

impl Listing {
    /// Lists one file, or all files below a folder in the order of their names. Symbolic links to
    /// files count as files; links to folders are not followed, as they may lead in circles.
    ///
    /// # Errors
    ///
    /// Nothing is at `source`, it cannot be read, or it is neither a file nor a folder.
    pub fn of(source: &Path) -> Result<Self, Error> {
        let failure = |error| Error::file(source, error);
        let metadata = fs::metadata(source).map_err(failure)?;
        let mut listing = Self::default();
        if metadata.is_dir() {
            listing.add_folder(source, "").map_err(failure)?;
            return Ok(listing);
        }
        let whole = fs::canonicalize(source).map_err(failure)?;
        // A link is sent under its own name.
        let name = source.file_name().or(whole.file_name()).unwrap_or_default();
        listing.add(source.to_owned(), &name.to_string_lossy(), &metadata);
        match listing.problems.pop() {
            Some(problem) => Err(Error::Unsendable(problem)),
            None => Ok(listing),
        }
    }

    /// The size of all files together, in bytes.
    pub fn size(&self) -> u64 {
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

/// A file that is read to be sent, with the digest of the bytes that have been read.
#[derive(Debug)]
pub(crate) struct Reading {
    file: File,
    /// Its size when it was opened: exactly this number of bytes is sent.
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

    /// Whether the file's first `len` bytes have this digest. If they do, reading goes on behind
    /// them, otherwise from the start.
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

    /// Fills `buffer`, or less of it at the end of the file; returns the number of bytes.
    pub(crate) fn next(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.size - self.read).unwrap_or(usize::MAX);
        let count = rest.min(buffer.len());
        self.fill(&mut buffer[..count])?;
        Ok(count)
    }

    /// Whether the whole file has been read.
    pub(crate) const fn is_over(&self) -> bool {
        self.read == self.size
    }

    /// The digest of the bytes that have been read.
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

/// Bytes that are read at once to be hashed only.
const HASHED_AT_ONCE: usize = 1 << 20;
