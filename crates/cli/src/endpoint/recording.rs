//! Files that streams are written to.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tokio::fs::OpenOptions;
use tokio::io::AsyncSeekExt;
use tokio::time::sleep;

use crate::endpoint::byte_writer::ByteWriter;
use crate::exit::Failure;
use crate::stop::Stop;

/// The treatment of a file that exists already and is not empty.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum Existing {
    /// It is kept, and the command does not start.
    #[default]
    Keep,
    /// It is emptied when the first bytes come.
    Overwrite,
    /// The stream is appended to it.
    Append,
}

/// A file that is opened when the first bytes come, and not touched before.
pub(crate) struct Recording {
    path: PathBuf,
    existing: Existing,
    file: Option<ByteWriter>,
    /// The length of the file, of which all is written.
    len: u64,
    /// Whether a full disk is waited for, and until when.
    patience: Option<Stop>,
    /// Whether the disk is full.
    is_full: bool,
}

impl Recording {
    /// A recording at `path`.
    ///
    /// # Errors
    ///
    /// A file exists that must be kept, or the folder does not exist.
    pub(crate) fn new(path: &Path, existing: Existing) -> Result<Self, Failure> {
        match std::fs::metadata(path) {
            Ok(found) if existing == Existing::Keep && holds_something(&found) => {
                return Err(kept(path));
            }
            Ok(found) if found.is_dir() => {
                return Err(Failure::usage(format!("{} is a folder", path.display())));
            }
            Ok(_) => {}
            Err(_) => check_folder(path)?,
        }
        let (path, len, patience) = (path.to_owned(), 0, None);
        Ok(Self { path, existing, file: None, len, patience, is_full: false })
    }

    /// The same, which waits for room on a full disk until `stop`, if it is given.
    pub(crate) fn with_patience(self, patience: Option<Stop>) -> Self {
        Self { patience, ..self }
    }

    /// Writes all of `batch`.
    pub(crate) async fn write(&mut self, batch: &mut VecDeque<Bytes>) -> Result<(), Failure> {
        if self.file.is_none() {
            if batch.iter().all(Bytes::is_empty) {
                batch.clear();
                return Ok(());
            }
            let (file, len) = open(&self.path, self.existing).await?;
            (self.file, self.len) = (Some(file), len);
        }
        let bytes: usize = batch.iter().map(Bytes::len).sum();
        loop {
            let error = match &mut self.file {
                Some(file) => match file.write(&mut batch.clone()).await {
                    Ok(()) => break,
                    Err(error) => error,
                },
                None => match open_again(&self.path, self.len).await {
                    Ok(file) => {
                        self.file = Some(file);
                        continue;
                    }
                    Err(error) => error,
                },
            };
            self.wait_for_room(&error).await?;
        }
        if std::mem::take(&mut self.is_full) {
            tracing::info!("{} is written again", self.path.display());
        }
        self.len += bytes as u64;
        batch.clear();
        Ok(())
    }

    /// Waits until the file is worth another try.
    async fn wait_for_room(&mut self, error: &io::Error) -> Result<(), Failure> {
        let failed = Failure::file(&self.path, error);
        let is_full = matches!(
            error.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        );
        let Some(stop) = self.patience.as_ref().filter(|_| is_full) else { return Err(failed) };
        if !std::mem::replace(&mut self.is_full, true) {
            tracing::warn!("{failed}; it is written again when there is room");
        }
        // A part of the last bytes may be in the file.
        self.file = None;
        stop.or(sleep(PAUSE)).await.ok_or(failed)
    }

    /// Ends the stream.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.shutdown().await,
            None => {
                tracing::info!("{} was not written, because nothing came", self.path.display());
                Ok(())
            }
        }
    }
}

/// Opens the file; returns it with its length.
async fn open(path: &Path, existing: Existing) -> Result<(ByteWriter, u64), Failure> {
    let mut options = OpenOptions::new();
    match existing {
        // The file may have been made since the start.
        Existing::Keep => options.write(true).create(true),
        Existing::Overwrite => options.write(true).create(true).truncate(true),
        Existing::Append => options.append(true).create(true),
    };
    let failed = |error| Failure::file(path, &error);
    let file = options.open(path).await.map_err(failed)?;
    let found = file.metadata().await.map_err(failed)?;
    if existing == Existing::Keep && holds_something(&found) {
        return Err(kept(path));
    }
    Ok((ByteWriter::new(Box::new(file)), found.len()))
}

/// Opens the file behind its first `len` bytes, and cuts off what is there of others.
async fn open_again(path: &Path, len: u64) -> io::Result<ByteWriter> {
    let mut file = OpenOptions::new().write(true).open(path).await?;
    file.set_len(len).await?;
    file.seek(SeekFrom::Start(len)).await?;
    Ok(ByteWriter::new(Box::new(file)))
}

/// Whether writing would destroy data. Devices and pipes hold none.
fn holds_something(found: &Metadata) -> bool {
    found.is_file() && found.len() > 0
}

/// The time from one try to write on a full disk to the next.
const PAUSE: Duration = Duration::from_secs(1);

fn kept(path: &Path) -> Failure {
    Failure::usage(format!(
        "{} exists already and is kept; --overwrite replaces it, --append adds to it",
        path.display()
    ))
}

fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => Ok(()),
        Ok(_) => Err(Failure::runtime(format!("{} is not a folder", folder.display()))),
        Err(error) => Err(Failure::file(path, &error)),
    }
}

/// Whether both paths lead to the same file, which need not exist yet.
pub(crate) fn is_same_file(one: &Path, other: &Path) -> bool {
    match same_file::is_same_file(one, other) {
        Ok(same) => same,
        Err(_) => place(one).is_some_and(|one| place(other) == Some(one)),
    }
}

/// The place at which a file would be made.
fn place(path: &Path) -> Option<PathBuf> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    Some(folder.canonicalize().ok()?.join(path.file_name()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path = format!("punctual-recording-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(path);
            std::fs::create_dir_all(&path).unwrap();
            Self(path)
        }

        fn file(&self, name: &str, content: &str) -> PathBuf {
            let path = self.0.join(name);
            std::fs::write(&path, content).unwrap();
            path
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.0).unwrap();
        }
    }

    async fn record(path: &Path, existing: Existing, content: &'static str) {
        let mut recording = Recording::new(path, existing).unwrap();
        recording.write(&mut VecDeque::from([content.into()])).await.unwrap();
        recording.shutdown().await.unwrap();
    }

    #[tokio::test]
    async fn a_file_that_holds_something_is_kept_unless_told_otherwise() {
        let folder = Folder::new("kept");
        let path = folder.file("a.ts", "before ");
        let error = Recording::new(&path, Existing::Keep).err().unwrap();
        assert_eq!(error.code(), 2);
        assert!(
            error.to_string().contains("--overwrite") && error.to_string().contains("--append")
        );
        record(&path, Existing::Append, "after").await;
        assert_eq!(std::fs::read(&path).unwrap(), b"before after");
        record(&path, Existing::Overwrite, "new").await;
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        record(&folder.file("empty.ts", ""), Existing::Keep, "first").await;
        record(&folder.0.join("none.ts"), Existing::Keep, "first").await;
    }

    #[tokio::test]
    async fn without_a_byte_nothing_happens_to_a_file() {
        let folder = Folder::new("untouched");
        let path = folder.file("a.ts", "before");
        for existing in [Existing::Overwrite, Existing::Append] {
            let mut recording = Recording::new(&path, existing).unwrap();
            recording.write(&mut VecDeque::new()).await.unwrap();
            recording.write(&mut VecDeque::from([Bytes::new()])).await.unwrap();
            recording.shutdown().await.unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), b"before");
        }
        let new = folder.0.join("new.ts");
        Recording::new(&new, Existing::Keep).unwrap().shutdown().await.unwrap();
        assert!(!new.exists());
    }

    #[tokio::test]
    async fn a_file_that_was_made_since_the_start_is_kept() {
        let folder = Folder::new("meanwhile");
        let path = folder.0.join("a.ts");
        let mut recording = Recording::new(&path, Existing::Keep).unwrap();
        folder.file("a.ts", "another's");
        let error = recording.write(&mut VecDeque::from(["mine".into()])).await.unwrap_err();
        assert!(error.to_string().contains("exists already"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"another's");
    }

    #[test]
    fn a_folder_that_does_not_exist_is_an_error_at_the_start() {
        let error = Recording::new(Path::new("/nowhere/a.ts"), Existing::Keep).err().unwrap();
        assert!(error.to_string().contains("/nowhere/a.ts"), "{error}");
        assert!(Recording::new(Path::new("/dev/null"), Existing::Keep).is_ok());
        assert!(Recording::new(Path::new("/"), Existing::Overwrite).is_err());
    }

    #[test]
    fn different_paths_to_one_file_are_recognised() {
        let folder = Folder::new("same");
        let path = folder.file("a.ts", "a");
        let (dotted, new) = (folder.0.join("./a.ts"), folder.0.join("new.ts"));
        std::os::unix::fs::symlink(&path, folder.0.join("link.ts")).unwrap();
        assert!(is_same_file(&path, &dotted));
        assert!(is_same_file(&path, &folder.0.join("link.ts")));
        assert!(is_same_file(&new, &folder.0.join("./new.ts")));
        assert!(!is_same_file(&path, &new));
        assert!(!is_same_file(&path, &folder.file("b.ts", "a")));
    }
}
