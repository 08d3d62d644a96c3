//! Files that streams are written to.

use std::collections::VecDeque;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use tokio::fs::OpenOptions;
use tokio::time::sleep;

use crate::end::byte_writer::ByteWriter;
use crate::failure::Failure;
use crate::stop::Stop;

/// The treatment of a file that exists already and is not empty.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Existing {
    /// It is kept, and the end is not opened.
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
    /// The length of the file up to the end of the last batch.
    len: u64,
    /// Whether what could not be written is tried again.
    retries: bool,
    stop: Stop,
}

impl Recording {
    /// A recording at `path`.
    ///
    /// # Errors
    ///
    /// A file exists that must be kept, or cannot be written, or the folder does not exist or takes
    /// no files.
    pub(crate) fn new(path: &Path, existing: Existing) -> Result<Self, Failure> {
        match std::fs::metadata(path) {
            Ok(found) if existing == Existing::Keep && holds_something(&found) => {
                return Err(Failure::exists(path));
            }
            Ok(found) if found.is_dir() => {
                return Err(Failure::usage(format!("{} is a folder", path.display())));
            }
            // A device or a pipe may wait for its other end.
            Ok(found) if found.is_file() => {
                let opened = std::fs::OpenOptions::new().append(true).open(path);
                opened.map_err(|error| Failure::file(path, &error))?;
            }
            Ok(_) => {}
            Err(_) => check_folder(path)?,
        }
        Ok(Self {
            path: path.to_owned(),
            existing,
            file: None,
            len: 0,
            retries: false,
            stop: Stop::default(),
        })
    }

    /// The same, of a stream that `stop` ends.
    pub(crate) fn with_stop(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    /// The same; if `retries`, it tries again once a second, until it is time to stop, if it cannot
    /// write.
    pub(crate) fn with_retries(self, retries: bool) -> Self {
        Self { retries, ..self }
    }

    /// Writes all of `batch`.
    pub(crate) async fn write(&mut self, batch: &mut VecDeque<Bytes>) -> Result<(), Failure> {
        let mut has_failed = false;
        loop {
            let kept = batch.clone();
            let failure = match self.try_write(batch).await {
                Ok(()) => break,
                Err(failure) => failure,
            };
            if !self.retries || failure.is_usage() {
                return Err(failure);
            }
            if !std::mem::replace(&mut has_failed, true) {
                tracing::warn!("{failure}; trying again once a second");
            }
            if self.stop.or(sleep(PAUSE)).await.is_none() {
                return Err(failure);
            }
            *batch = kept;
            self.file = None;
        }
        if has_failed {
            tracing::info!("{}: the recording goes on", self.path.display());
        }
        Ok(())
    }

    /// Writes all of `batch`, or fails and leaves what it has written to be cut off.
    async fn try_write(&mut self, batch: &mut VecDeque<Bytes>) -> Result<(), Failure> {
        let file = match &mut self.file {
            Some(file) => file,
            None if batch.iter().all(Bytes::is_empty) => {
                batch.clear();
                return Ok(());
            }
            None => {
                let (file, len) = open(&self.path, self.existing, self.len).await?;
                // From now on the file is this recording's.
                (self.existing, self.len) = (Existing::Append, len);
                self.file.insert(file.with_stop(self.stop.clone()))
            }
        };
        let bytes: usize = batch.iter().map(Bytes::len).sum();
        file.write(batch).await.map_err(|error| Failure::file(&self.path, &error))?;
        self.len += bytes as u64;
        Ok(())
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

/// Opens the file, and gives its length. Of one that was written before, what comes after the first
/// `written` bytes is the rest of an attempt, and cut off.
async fn open(path: &Path, existing: Existing, written: u64) -> Result<(ByteWriter, u64), Failure> {
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
        return Err(Failure::exists(path));
    }
    let mut len = found.len();
    if written > 0 && len > written && found.is_file() {
        file.set_len(written).await.map_err(failed)?;
        len = written;
    }
    Ok((ByteWriter::new(Box::new(file)), len))
}

/// Whether writing would destroy data. Devices and pipes hold none.
fn holds_something(found: &Metadata) -> bool {
    found.is_file() && found.len() > 0
}

fn check_folder(path: &Path) -> Result<(), Failure> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => {
            check_access(folder).map_err(|error| Failure::file(path, &error))
        }
        Ok(_) => Err(Failure::runtime(format!("{} is not a folder", folder.display()))),
        Err(error) => Err(Failure::file(path, &error)),
    }
}

/// Checks that files can be made in a folder.
#[cfg(unix)]
fn check_access(folder: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};

    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// Elsewhere only the attempt shows whether files can be made.
#[cfg(not(unix))]
fn check_access(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The time between two attempts to write.
const PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind;

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
        assert!(error.is_usage() && error.kind() == FailureKind::Exists);
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

    #[tokio::test(start_paused = true)]
    async fn a_recording_goes_on_without_a_gap_or_a_torn_message() {
        let folder = Folder::new("again");
        let path = folder.file("a.ts", "before ");
        let mut recording = Recording::new(&path, Existing::Append).unwrap().with_retries(true);
        recording.write(&mut VecDeque::from(["one ".into()])).await.unwrap();
        // The disk takes a part of the next message, and then the folder is away.
        std::fs::write(&path, "before one tw").unwrap();
        recording.file = None;
        let away = folder.0.with_extension("away");
        std::fs::rename(&folder.0, &away).unwrap();
        let back = async {
            sleep(PAUSE * 5 / 2).await;
            std::fs::rename(&away, &folder.0).unwrap();
        };
        let mut batch = VecDeque::from(["two ".into(), "three".into()]);
        let (written, ()) = tokio::join!(recording.write(&mut batch), back);
        written.unwrap();
        recording.shutdown().await.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before one two three");
    }

    #[tokio::test(start_paused = true)]
    async fn attempts_end_when_it_is_time_to_stop() {
        let folder = Folder::new("stop");
        let stop = Stop::default();
        let mut recording = Recording::new(&folder.0.join("a.ts"), Existing::Keep)
            .unwrap()
            .with_stop(stop.clone())
            .with_retries(true);
        let away = folder.0.with_extension("stopped");
        std::fs::rename(&folder.0, &away).unwrap();
        let tell = async {
            sleep(PAUSE / 2).await;
            stop.tell();
        };
        let mut batch = VecDeque::from(["one".into()]);
        let (written, ()) = tokio::join!(recording.write(&mut batch), tell);
        assert!(written.unwrap_err().to_string().contains("a.ts"));
        std::fs::rename(&away, &folder.0).unwrap();
    }

    #[test]
    fn a_folder_that_does_not_exist_is_an_error_at_the_start() {
        let error = Recording::new(Path::new("/nowhere/a.ts"), Existing::Keep).err().unwrap();
        assert!(error.to_string().contains("/nowhere/a.ts"), "{error}");
        assert!(Recording::new(Path::new("/dev/null"), Existing::Keep).is_ok());
        assert!(Recording::new(Path::new("/"), Existing::Overwrite).is_err());
    }
}
