//! The place of a stream in the file to which it is recorded, for the time after a restart.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use punctual::resume::{Beginning, StreamSecret};
use serde::{Deserialize, Serialize};

/// The place of a stream in a recording, which a file beside it keeps: `a.ts.resume` for `a.ts`.
/// The length of the recording then tells which bytes of the stream are there.
pub struct RecordingPlace {
    /// The file that keeps the place; `None` once bytes of no such stream are in the recording.
    beside: Option<PathBuf>,
    /// The length of the recording when this process started.
    len: u64,
    place: Option<FileContent>,
}

/// The content of the file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct FileContent {
    /// The secret, as 32 hexadecimal digits.
    stream: String,
    /// The offset of a byte of the stream.
    stream_offset: u64,
    /// The place of this byte in the recording.
    file_offset: u64,
    /// Whether the stream has ended, and all of it is in the recording.
    #[serde(default)]
    is_complete: bool,
}

/// The end of a stream in a recording.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct PlaceEnd {
    /// The stream.
    pub(crate) stream: StreamSecret,
    /// The offset after its last byte in the recording.
    pub(crate) offset: u64,
    /// Whether there are no more bytes of it.
    pub(crate) is_complete: bool,
}

impl RecordingPlace {
    /// The place of the stream in the recording at `path`, which is appended to.
    pub fn of(path: &Path) -> Self {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".resume");
        let beside = PathBuf::from(beside);
        let len = fs::metadata(path).map_or(0, |found| found.len());
        let place = read(&beside).unwrap_or_else(|error| {
            tracing::warn!("{}: {error}; the stream begins anew", beside.display());
            None
        });
        Self { beside: Some(beside), len, place }
    }

    /// The file that keeps the place.
    pub(crate) fn file(&self) -> Option<&Path> {
        self.beside.as_deref()
    }

    /// The end of the stream in the recording.
    pub(crate) fn end(&self) -> Option<PlaceEnd> {
        let place = self.place.as_ref()?;
        let recorded = self.len.checked_sub(place.file_offset)?;
        // No stream has more bytes.
        let offset = place.stream_offset.checked_add(recorded).filter(|end| *end <= 1 << 62)?;
        let is_complete = place.is_complete;
        Some(PlaceEnd { stream: secret(&place.stream)?, offset, is_complete })
    }

    /// Keeps the place of a stream that begins, before its first byte is written.
    pub(crate) fn begin(&mut self, beginning: &Beginning) {
        let place = FileContent {
            stream: digits(beginning.stream),
            stream_offset: beginning.offset,
            file_offset: self.len + beginning.taken,
            is_complete: false,
        };
        if beginning.is_known && beginning.missing == 0 {
            // It goes on at its place.
            return;
        }
        self.keep(place);
    }

    /// The stream has ended, and all of it is in the recording: another one may follow.
    pub(crate) fn complete(&mut self) {
        if let Some(place) = self.place.take() {
            self.keep(FileContent { is_complete: true, ..place });
        }
    }

    /// Bytes of a peer that resumes no stream come into the recording: from now on its length does
    /// not tell any more which bytes of a stream are there.
    pub(crate) fn give_up(&mut self) {
        self.place = None;
        if let Some(beside) = self.beside.take()
            && let Err(error) = fs::remove_file(&beside)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!("{}: {error}; remove it before the next start", beside.display());
        }
    }

    fn keep(&mut self, place: FileContent) {
        let Some(beside) = &self.beside else { return };
        if let Err(error) = write(beside, &place) {
            tracing::warn!(
                "{}: {error}; after a restart the stream will not go on at its byte",
                beside.display()
            );
        }
        self.place = Some(place);
    }
}

fn read(path: &Path) -> io::Result<Option<FileContent>> {
    match fs::read(path) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the file as a whole. Nobody else may read it, because it has the secret of the stream.
fn write(path: &Path, place: &FileContent) -> io::Result<()> {
    let new = path.with_extension("resume.new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(&new)?.write_all(&serde_json::to_vec(place)?)?;
    fs::rename(&new, path)
}

fn digits(secret: StreamSecret) -> String {
    format!("{:032x}", u128::from_be_bytes(secret.bytes()))
}

fn secret(digits: &str) -> Option<StreamSecret> {
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 32)?;
    StreamSecret::new(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(number: u8) -> StreamSecret {
        StreamSecret::new([number; 16]).unwrap()
    }

    fn beginning(number: u8, offset: u64, taken: u64) -> Beginning {
        Beginning {
            stream: stream(number),
            offset,
            taken,
            is_known: false,
            missing: 0,
            unfinished: None,
        }
    }

    #[test]
    fn the_length_of_a_recording_tells_its_end_in_the_stream() {
        let name = format!("punctual-place-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.ts");
        assert_eq!(RecordingPlace::of(&path).end(), None);

        // A stream whose first 500 bytes went elsewhere comes after 1000 bytes of another.
        fs::write(&path, [1; 1_000]).unwrap();
        let end = |number, offset, is_complete| {
            Some(PlaceEnd { stream: stream(number), offset, is_complete })
        };
        let mut place = RecordingPlace::of(&path);
        place.begin(&beginning(7, 500, 0));
        fs::write(&path, [1; 1_300]).unwrap();
        assert_eq!(RecordingPlace::of(&path).end(), end(7, 800, false));

        // Another follows when 400 bytes more were read, of which 300 are written.
        let mut place = RecordingPlace::of(&path);
        place.begin(&beginning(8, 0, 400));
        fs::write(&path, [1; 1_600]).unwrap();
        assert_eq!(RecordingPlace::of(&path).end(), None, "it has not begun in the file");
        fs::write(&path, [1; 1_750]).unwrap();
        assert_eq!(RecordingPlace::of(&path).end(), end(8, 50, false));

        // It goes on where it is, and ends.
        place.begin(&Beginning { is_known: true, ..beginning(8, 50, 450) });
        assert_eq!(RecordingPlace::of(&path).end(), end(8, 50, false));
        place.complete();
        assert_eq!(RecordingPlace::of(&path).end(), end(8, 50, true));
        let beside = folder.join("a.ts.resume");
        let whole = fs::read(&beside).unwrap();
        for damaged in [&b"no place"[..], &whole[..whole.len() / 2], b"", b"{}"] {
            fs::write(&beside, damaged).unwrap();
            assert_eq!(RecordingPlace::of(&path).end(), None);
        }

        // Bytes of a peer that resumes nothing take the meaning from the recording's length.
        fs::write(&beside, whole).unwrap();
        let mut place = RecordingPlace::of(&path);
        place.give_up();
        place.begin(&beginning(9, 0, 0));
        assert!(!beside.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_secret_is_read_as_it_is_written() {
        assert_eq!(secret(&digits(stream(0xA7))), Some(stream(0xA7)));
        assert_eq!(secret("a7"), None);
        assert_eq!(secret(&"0".repeat(32)), None);
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_reads_the_secret_beside_a_recording() {
        use std::os::unix::fs::PermissionsExt;
        let folder = std::env::temp_dir().join(format!("punctual-secret-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.ts");
        // A file of somebody else under the temporary name is not written through.
        fs::write(folder.join("a.ts.resume.new"), "another's").unwrap();
        RecordingPlace::of(&path).begin(&beginning(7, 0, 0));
        let found = fs::metadata(folder.join("a.ts.resume")).unwrap();
        assert_eq!(found.permissions().mode() & 0o077, 0);
        fs::remove_dir_all(&folder).unwrap();
    }
}
