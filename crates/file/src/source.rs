//! The files that are sent: one, or all below a folder.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use sha2::{Digest as _, Sha256};
use thiserror::Error as ThisError;

use crate::error::Error;
use crate::message::{Digest, Fingerprint};
use crate::path::RelativePath;
use crate::store::fingerprint_of;

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
    /// The folder, if it is one.
    folder: Option<PathBuf>,
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
            listing.folder = Some(source.to_owned());
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

    /// Files that came into the folder since it was listed.
    pub(crate) fn later_files(&self) -> Vec<RelativePath> {
        let Some(folder) = &self.folder else { return Vec::new() };
        let mut now = Self::default();
        if let Err(error) = now.add_folder(folder, "") {
            tracing::warn!("{}: {error}", folder.display());
        }
        let known: HashSet<&Path> = self.files.iter().map(|file| file.path.as_path()).collect();
        let later = now.files.into_iter().filter(|file| !known.contains(file.path.as_path()));
        later.map(|file| file.name).collect()
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

/// The state of a file by which a change of its bytes is noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Version {
    /// Its size in bytes.
    pub(crate) size: u64,
    /// The time of the last change, where the system knows it.
    changed: Option<SystemTime>,
}

/// A file that is read to be sent, with the digest of the bytes that have been read.
#[derive(Debug)]
pub(crate) struct Reading {
    file: File,
    /// The file when it was opened: exactly this number of bytes is sent.
    pub(crate) version: Version,
    read: u64,
    hash: Sha256,
}

impl Version {
    /// The version of the file at `path`, and its fingerprint.
    pub(crate) fn of(path: &Path) -> io::Result<(Self, Fingerprint)> {
        let file = File::open(path)?;
        let version = Self::from(&file.metadata()?);
        Ok((version, fingerprint_of(file)?))
    }
}

impl From<&Metadata> for Version {
    fn from(metadata: &Metadata) -> Self {
        Self { size: metadata.len(), changed: metadata.modified().ok() }
    }
}

impl Reading {
    /// Opens the file.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let version = Version::from(&file.metadata()?);
        Ok(Self { file, version, read: 0, hash: Sha256::new() })
    }

    /// Reads the file's first `len` bytes, which the receiver has perhaps. `compared` is told the
    /// number of bytes that were read.
    pub(crate) fn skip(&mut self, len: u64, mut compared: impl FnMut(usize)) -> io::Result<()> {
        if len == 0 {
            return Ok(());
        }
        let mut buffer = vec![0; HASHED_AT_ONCE];
        while self.read < len.min(self.version.size) {
            let most = usize::try_from(len - self.read).unwrap_or(usize::MAX);
            let count = self.next(&mut buffer[..most.min(HASHED_AT_ONCE)])?;
            compared(count);
        }
        Ok(())
    }

    /// Checks that the bytes that were read are of one version of the file.
    pub(crate) fn check_unchanged(&self) -> io::Result<()> {
        match Version::from(&self.file.metadata()?) == self.version {
            true => Ok(()),
            false => Err(changed()),
        }
    }

    /// Fills `buffer`, or less of it at the end of the file; returns the number of bytes.
    pub(crate) fn next(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(self.version.size - self.read).unwrap_or(usize::MAX);
        let count = rest.min(buffer.len());
        self.fill(&mut buffer[..count])?;
        Ok(count)
    }

    /// Whether the whole file has been read.
    pub(crate) const fn is_over(&self) -> bool {
        self.read == self.version.size
    }

    /// The digest of the bytes that have been read.
    pub(crate) fn digest(&self) -> Digest {
        self.hash.clone().finalize().into()
    }

    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => changed(),
            _ => error,
        })?;
        self.hash.update(&*buffer);
        self.read += buffer.len() as u64;
        Ok(())
    }
}

/// The error of a file that is another one than it was.
pub(crate) fn changed() -> io::Error {
    io::Error::other(Changed)
}

/// Whether this is the error of a file that is another one than it was.
pub(crate) fn is_change(error: &io::Error) -> bool {
    matches!(error.get_ref(), Some(inner) if inner.is::<Changed>())
}

#[derive(Debug, ThisError)]
#[error("the file changed while it was sent: send it again when no program writes it")]
struct Changed;

/// Bytes that are read at once to be hashed only.
const HASHED_AT_ONCE: usize = 1 << 20;
