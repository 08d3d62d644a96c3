//! The target folder: what is there, files that come in under a temporary name, and how they get
//! their own.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::message::Digest;
use super::path::RelativePath;
use crate::exit::Failure;

/// The target folder.
#[derive(Debug)]
pub(crate) struct Store {
    root: PathBuf,
    /// Whether files that are there are replaced.
    pub(crate) overwrites: bool,
}

/// What there is of a file.
#[derive(Debug)]
pub(crate) enum Found {
    /// What came before an interruption; nothing at first.
    Part(Prefix),
    /// A whole file of its name and size.
    Whole(Digest),
}

/// The first bytes of a file, and their hash so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefix {
    pub(crate) len: u64,
    pub(crate) hash: Sha256,
}

/// A file that comes in.
#[derive(Debug)]
pub(crate) struct Incoming {
    file: File,
    part: PathBuf,
    target: PathBuf,
    overwrites: bool,
    prefix: Prefix,
}

impl Store {
    /// Opens the folder, and makes it if there is none.
    pub(crate) fn open(root: &Path, overwrites: bool) -> Result<Self, Failure> {
        fs::create_dir_all(root).map_err(|error| Failure::file(root, &error))?;
        Ok(Self { root: root.to_owned(), overwrites })
    }

    /// What there is of a file of `size` bytes. An error is an answer to its sender, in words.
    pub(crate) fn look(&self, path: &RelativePath, size: u64) -> Result<Found, String> {
        let Some(folder) = self.folder(path, false)? else {
            return Ok(Found::Part(Prefix::default()));
        };
        let target = folder.join(path.name());
        if let Some(len) = file_size(&target)? {
            if len == size {
                return Ok(Found::Whole(hash_file(&target).map_err(in_words)?.digest()));
            }
            if !self.overwrites {
                return Err(EXISTS.to_owned());
            }
        }
        let part = folder.join(path.part_name());
        match file_size(&part)? {
            Some(len) if len <= size => Ok(Found::Part(hash_file(&part).map_err(in_words)?)),
            _ => Ok(Found::Part(Prefix::default())),
        }
    }

    /// Begins to take in a file, behind what there is of it already.
    pub(crate) fn begin(&self, path: &RelativePath, prefix: Prefix) -> Result<Incoming, String> {
        let folder = self.folder(path, true)?.expect("it was made");
        let (part, target) = (folder.join(path.part_name()), folder.join(path.name()));
        if file_size(&target)?.is_some() && !self.overwrites {
            return Err(EXISTS.to_owned());
        }
        // Only a file is opened: writing follows links.
        file_size(&part)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&part).map_err(in_words)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err("another transfer writes it".to_owned());
        }
        let place = file.set_len(prefix.len).and_then(|()| file.seek(SeekFrom::Start(prefix.len)));
        place.map_err(in_words)?;
        Ok(Incoming { file, part, target, overwrites: self.overwrites, prefix })
    }

    /// The folder that the file lies in. It is made if it is not there and `make`; otherwise there
    /// is none. Links are not followed: they may lead out of the target folder.
    fn folder(&self, path: &RelativePath, make: bool) -> Result<Option<PathBuf>, String> {
        let mut folder = self.root.clone();
        for name in path.folders() {
            folder.push(name);
            match fs::symlink_metadata(&folder) {
                Ok(metadata) if metadata.is_dir() => {}
                Ok(_) => return Err(format!("`{name}` is not a folder there")),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(in_words(error));
                }
                Err(_) if !make => return Ok(None),
                Err(_) => fs::create_dir(&folder).map_err(in_words)?,
            }
        }
        Ok(Some(folder))
    }
}

impl Prefix {
    /// The digest of it.
    pub(crate) fn digest(&self) -> Digest {
        self.hash.clone().finalize().into()
    }
}

impl Incoming {
    /// Adds to it.
    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.file.write_all(data)?;
        self.prefix.hash.update(data);
        self.prefix.len += data.len() as u64;
        Ok(())
    }

    /// Bytes of it that are there.
    pub(crate) const fn len(&self) -> u64 {
        self.prefix.len
    }

    /// The digest of them.
    pub(crate) fn digest(&self) -> Digest {
        self.prefix.digest()
    }

    /// It is whole, and gets its name.
    pub(crate) fn finish(self) -> Result<(), String> {
        let Self { file, part, target, overwrites, .. } = self;
        drop(file);
        if !overwrites && file_size(&target)?.is_some() {
            return Err(EXISTS.to_owned());
        }
        fs::rename(&part, &target).map_err(in_words)
    }

    /// It is not what was sent: nothing of it is kept.
    pub(crate) fn discard(self) {
        drop(self.file);
        if let Err(error) = fs::remove_file(&self.part) {
            tracing::warn!("{}: {error}", self.part.display());
        }
    }
}

/// The size of a file; `None` if nothing is there. Whatever is there must be a file, and no link.
fn file_size(path: &Path) -> Result<Option<u64>, String> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
        Ok(_) => Err("something of its name that is no file is there".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(in_words(error)),
    }
}

fn hash_file(path: &Path) -> io::Result<Prefix> {
    let mut file = File::open(path)?;
    let mut prefix = Prefix::default();
    let mut buffer = vec![0; HASHED_AT_ONCE];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(prefix),
            count => {
                prefix.hash.update(&buffer[..count]);
                prefix.len += count as u64;
            }
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` gives")]
fn in_words(error: io::Error) -> String {
    error.to_string()
}

const EXISTS: &str = "a file of its name is there already; --overwrite replaces it";

/// Bytes that are read at once to be hashed.
const HASHED_AT_ONCE: usize = 1 << 20;

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
