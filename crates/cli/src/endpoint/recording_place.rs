//! The place of a stream in the file to which it is recorded, for the time after a restart.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use punctual::resume::{Beginning, StreamIdentity};
use serde::{Deserialize, Serialize};

/// The place of a stream in a recording, which a file beside it keeps: `a.ts.resume` for `a.ts`.
/// The length of the recording then tells which bytes of the stream are there.
pub(crate) struct RecordingPlace {
    /// The file that keeps the place.
    beside: PathBuf,
    /// The length of the recording when this process started.
    len: u64,
    place: Option<Place>,
}

/// The content of the file.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
struct Place {
    /// The identity, as 32 hexadecimal digits.
    stream: String,
    /// The offset of a byte of the stream.
    stream_offset: u64,
    /// The place of this byte in the recording.
    file_offset: u64,
}

impl RecordingPlace {
    /// The place of the stream in the recording at `path`, which is appended to.
    pub(crate) fn of(path: &Path) -> Self {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".resume");
        let beside = PathBuf::from(beside);
        let len = fs::metadata(path).map_or(0, |found| found.len());
        let place = read(&beside).unwrap_or_else(|error| {
            tracing::warn!("{}: {error}; the stream begins anew", beside.display());
            None
        });
        Self { beside, len, place }
    }

    /// The stream in the recording and the offset after its last byte there.
    pub(crate) fn end(&self) -> Option<(StreamIdentity, u64)> {
        let place = self.place.as_ref()?;
        let recorded = self.len.checked_sub(place.file_offset)?;
        Some((identity(&place.stream)?, place.stream_offset.checked_add(recorded)?))
    }

    /// Keeps the place of a stream that begins, before its first byte is written.
    pub(crate) fn begin(&mut self, beginning: &Beginning) {
        let place = Place {
            stream: beginning.stream.to_string(),
            stream_offset: beginning.offset,
            file_offset: self.len + beginning.taken,
        };
        if beginning.is_known && beginning.missing == 0 {
            // It goes on at its place.
            return;
        }
        if let Err(error) = write(&self.beside, &place) {
            tracing::warn!(
                "{}: {error}; after a restart the stream will not go on at its byte",
                self.beside.display()
            );
        }
        self.place = Some(place);
    }
}

fn read(path: &Path) -> io::Result<Option<Place>> {
    match fs::read(path) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the file as a whole.
fn write(path: &Path, place: &Place) -> io::Result<()> {
    let new = path.with_extension("resume.new");
    fs::write(&new, serde_json::to_vec(place)?)?;
    fs::rename(&new, path)
}

fn identity(digits: &str) -> Option<StreamIdentity> {
    let number = u128::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 32)?;
    StreamIdentity::new(number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(number: u8) -> StreamIdentity {
        StreamIdentity::new([number; 16]).unwrap()
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
        let mut place = RecordingPlace::of(&path);
        place.begin(&beginning(7, 500, 0));
        fs::write(&path, [1; 1_300]).unwrap();
        assert_eq!(RecordingPlace::of(&path).end(), Some((stream(7), 800)));

        // Another follows when 400 bytes more were read, of which 300 are written.
        let mut place = RecordingPlace::of(&path);
        place.begin(&beginning(8, 0, 400));
        fs::write(&path, [1; 1_600]).unwrap();
        assert_eq!(RecordingPlace::of(&path).end(), None, "it has not begun in the file");
        fs::write(&path, [1; 1_750]).unwrap();
        assert_eq!(RecordingPlace::of(&path).end(), Some((stream(8), 50)));

        // It goes on where it is.
        place.begin(&Beginning { is_known: true, ..beginning(8, 50, 450) });
        assert_eq!(RecordingPlace::of(&path).end(), Some((stream(8), 50)));
        fs::write(folder.join("a.ts.resume"), "no place").unwrap();
        assert_eq!(RecordingPlace::of(&path).end(), None);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_identity_is_read_as_it_is_printed() {
        assert_eq!(identity(&stream(0xA7).to_string()), Some(stream(0xA7)));
        assert_eq!(identity("a7"), None);
        assert_eq!(identity(&"0".repeat(32)), None);
    }
}
