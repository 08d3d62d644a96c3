//! The target folder: the files that are there, and files that come in under a temporary name.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::message::{Digest, Fingerprint, SAMPLE};
use crate::path::RelativePath;

/// The folder into which files are received. Nothing is written outside of it.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    existing: ExistingFiles,
}

/// The fate of files that are there already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ExistingFiles {
    Stay,
    AreReplaced,
}

/// The reason for which a file is not taken in.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another file has its name.
    #[error("a file of this name exists; --overwrite replaces it")]
    Exists,
    /// Another transfer writes it at the same time.
    #[error("another transfer writes the file")]
    InUse,
    /// A folder, a link or a device has its name.
    #[error("a folder, a link or a device has this name")]
    NotAFile,
    /// One of the folders above it is a file or a link.
    #[error("`{0}` is not a folder there")]
    NotAFolder(String),
    /// The system refuses to read or to write it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A file that a sender offers.
#[derive(Clone, Debug)]
pub(crate) struct FileOffer {
    pub(crate) path: RelativePath,
    pub(crate) size: u64,
    pub(crate) fingerprint: Fingerprint,
}

/// The part of a file that is there.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Found {
    /// This number of bytes that an interrupted transfer left, or 0.
    Part(u64),
    /// A complete file of this name, size and fingerprint.
    Whole,
}

/// The first bytes of a file, by their number and their hash.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prefix {
    pub(crate) len: u64,
    hash: Sha256,
}

/// A file that is being received.
#[derive(Debug)]
pub(crate) struct IncomingFile {
    file: File,
    part: PathBuf,
    target: PathBuf,
    existing: ExistingFiles,
    prefix: Prefix,
}

impl Store {
    /// Opens the folder at `root`, and makes it if there is none. Files that are there already stay
    /// as they are, and others of their names are refused.
    ///
    /// # Errors
    ///
    /// The folder cannot be made.
    pub fn open(root: &Path) -> Result<Self, Error> {
        fs::create_dir_all(root).map_err(|error| Error::file(root, error))?;
        Ok(Self { root: root.to_owned(), existing: ExistingFiles::Stay })
    }

    /// The same folder, where a file that is there is replaced when the new one is complete.
    pub fn replacing(self) -> Self {
        Self { existing: ExistingFiles::AreReplaced, ..self }
    }

    /// Whether files that are there are replaced.
    pub(crate) fn replaces(&self) -> bool {
        self.existing == ExistingFiles::AreReplaced
    }

    /// Looks for an offered file. It reads no more of a file than its fingerprint covers, because
    /// anybody may offer one.
    pub(crate) fn look(&self, offer: &FileOffer) -> Result<Found, StoreError> {
        let Some(folder) = self.folder_of(&offer.path)? else { return Ok(Found::Part(0)) };
        let target = folder.join(offer.path.name());
        if let Some(len) = file_size(&target)? {
            if len == offer.size && fingerprint_of(File::open(&target)?)? == offer.fingerprint {
                return Ok(Found::Whole);
            }
            if !self.replaces() {
                return Err(StoreError::Exists);
            }
        }
        let part = folder.join(offer.path.part_name(Some(offer.fingerprint)));
        Ok(Found::Part(own_size(&part)?.filter(|len| *len <= offer.size).unwrap_or(0)))
    }

    /// The bytes of an offered file that are there, if their digest is this one. `compared` is told
    /// the number of bytes that were read.
    pub(crate) fn compare(
        &self,
        offer: &FileOffer,
        found: Found,
        digest: &Digest,
        mut compared: impl FnMut(usize),
    ) -> Result<Option<Prefix>, StoreError> {
        let Some(folder) = self.folder_of(&offer.path)? else { return Ok(None) };
        let (name, len) = match found {
            Found::Part(len) => (offer.path.part_name(Some(offer.fingerprint)), len),
            Found::Whole => (offer.path.name().to_owned(), offer.size),
        };
        let mut file = File::open(folder.join(name))?.take(len);
        let (mut prefix, mut buffer) = (Prefix::default(), vec![0; HASHED_AT_ONCE]);
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                count => {
                    prefix.add(&buffer[..count]);
                    compared(count);
                }
            }
        }
        Ok(Some(prefix).filter(|prefix| prefix.len == len && prefix.digest() == *digest))
    }

    /// Begins to receive a file behind its bytes that are there already; those of a file without a
    /// fingerprint are not found again.
    pub(crate) fn begin(
        &self,
        path: &RelativePath,
        fingerprint: Option<Fingerprint>,
        prefix: Prefix,
    ) -> Result<IncomingFile, StoreError> {
        let folder = self.make_folder_of(path)?;
        let (part, target) = (folder.join(path.part_name(fingerprint)), folder.join(path.name()));
        if file_size(&target)?.is_some() && !self.replaces() {
            return Err(StoreError::Exists);
        }
        // Checked before it is opened, because opening a link for writing follows it.
        let is_there = file_size(&part)?.is_some();
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        if is_there {
            let file = options.open(&part)?;
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                return Err(StoreError::InUse);
            }
            if prefix.len > 0 && own_size(&part)?.is_some() {
                return IncomingFile { file, part, target, existing: self.existing, prefix }
                    .ready();
            }
            // It may be another name of a file elsewhere, which must not be emptied.
            fs::remove_file(&part)?;
        }
        let file = options.create_new(true).open(&part)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(StoreError::InUse);
        }
        let (existing, prefix) = (self.existing, Prefix::default());
        IncomingFile { file, part, target, existing, prefix }.ready()
    }

    /// The folder that the file lies in; `None` if there is none yet.
    fn folder_of(&self, path: &RelativePath) -> Result<Option<PathBuf>, StoreError> {
        let mut folder = self.root.clone();
        for name in path.folders() {
            folder.push(name);
            if !is_folder(&folder, name)? {
                return Ok(None);
            }
        }
        Ok(Some(folder))
    }

    /// The folder that the file lies in, which is made if there is none yet.
    fn make_folder_of(&self, path: &RelativePath) -> Result<PathBuf, StoreError> {
        let mut folder = self.root.clone();
        for name in path.folders() {
            folder.push(name);
            if !is_folder(&folder, name)? {
                fs::create_dir(&folder)?;
            }
        }
        Ok(folder)
    }
}

impl Prefix {
    /// The digest of these bytes.
    pub(crate) fn digest(&self) -> Digest {
        self.hash.clone().finalize().into()
    }

    fn add(&mut self, data: &[u8]) {
        self.hash.update(data);
        self.len += data.len() as u64;
    }
}

impl IncomingFile {
    /// The same, of which nothing but the prefix is there.
    fn ready(mut self) -> Result<Self, StoreError> {
        self.file.set_len(self.prefix.len)?;
        self.file.seek(SeekFrom::Start(self.prefix.len))?;
        Ok(self)
    }

    /// The temporary name of the file.
    pub(crate) fn part_name(&self) -> String {
        self.part.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Adds bytes to the file.
    pub(crate) fn write(&mut self, data: &[u8]) -> io::Result<()> {
        self.file.write_all(data)?;
        self.prefix.add(data);
        Ok(())
    }

    /// The number of the file's bytes that are there.
    pub(crate) const fn len(&self) -> u64 {
        self.prefix.len
    }

    /// The digest of the bytes that are there.
    pub(crate) fn digest(&self) -> Digest {
        self.prefix.digest()
    }

    /// Gives the file, which is complete, its name.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let Self { file, part, target, existing, .. } = self;
        drop(file);
        if existing == ExistingFiles::Stay && file_size(&target)?.is_some() {
            return Err(StoreError::Exists);
        }
        Ok(fs::rename(&part, &target)?)
    }

    /// Removes the file, because it is not the one that was sent.
    pub(crate) fn discard(self) {
        drop(self.file);
        if let Err(error) = fs::remove_file(&self.part) {
            tracing::warn!("{}: {error}", self.part.display());
        }
    }
}

/// Whether a folder is there. Links are not followed, because they may lead out of the target
/// folder; `name` is for the error where something else is there.
fn is_folder(folder: &Path, name: &str) -> Result<bool, StoreError> {
    match fs::symlink_metadata(folder) {
        Ok(metadata) if metadata.is_dir() => Ok(true),
        Ok(_) => Err(StoreError::NotAFolder(name.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The size of a file; `None` if nothing is there. A link is not a file.
fn file_size(path: &Path) -> Result<Option<u64>, StoreError> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
        Ok(_) => Err(StoreError::NotAFile),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The size of a file that has this name alone; `None` if nothing is there, or a file that has
/// another name as well, which must not be written.
fn own_size(path: &Path) -> Result<Option<u64>, StoreError> {
    let size = file_size(path)?;
    #[cfg(unix)]
    if size.is_some() && std::os::unix::fs::MetadataExt::nlink(&fs::symlink_metadata(path)?) > 1 {
        return Ok(None);
    }
    Ok(size)
}

/// The fingerprint of a file.
pub(crate) fn fingerprint_of(file: impl Read) -> io::Result<Fingerprint> {
    let mut sample = Vec::new();
    file.take(SAMPLE).read_to_end(&mut sample)?;
    let digest: Digest = Sha256::digest(sample).into();
    let first = digest.first_chunk().expect("a digest has 32 bytes");
    Ok(Fingerprint(*first))
}

/// Bytes that are read at once to be hashed.
const HASHED_AT_ONCE: usize = 1 << 20;

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
