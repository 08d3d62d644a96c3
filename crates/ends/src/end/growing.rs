//! A file that another program still writes: after its end, more may come.

use std::io::{self, SeekFrom};
use std::path::PathBuf;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncSeekExt, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A file that is read as it grows. It ends when its marker exists and all of it was read; without
/// a marker never.
pub(crate) struct GrowingFile {
    file: File,
    path: PathBuf,
    marker: Option<PathBuf>,
    /// Bytes that were read.
    position: u64,
    /// The wait for more.
    wait: Option<Pin<Box<Sleep>>>,
    /// Whether the marker was seen, so that the next end of the file is the last.
    is_complete: bool,
}

impl GrowingFile {
    /// Opens the file at `path`, to read it from `position` on.
    pub(crate) async fn open(
        path: PathBuf,
        marker: Option<PathBuf>,
        position: u64,
    ) -> io::Result<Self> {
        let mut file = File::open(&path).await?;
        // A pipe, which cannot be read at any place, has no end to wait at: this is its error.
        file.seek(SeekFrom::Start(position)).await?;
        Ok(Self { file, path, marker, position, wait: None, is_complete: false })
    }

    /// At the end of the file: whether nothing more will come.
    fn check_end(&mut self) -> io::Result<bool> {
        if self.is_complete {
            return Ok(true);
        }
        let len = std::fs::metadata(&self.path)?.len();
        if len < self.position {
            return Err(io::Error::other(format!(
                "the file was cut to {len} bytes while it was read, after {} bytes",
                self.position
            )));
        }
        self.is_complete = self.marker.as_ref().is_some_and(|marker| marker.exists());
        Ok(false)
    }
}

impl AsyncRead for GrowingFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        loop {
            if let Some(wait) = &mut this.wait {
                if wait.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                this.wait = None;
            }
            let before = buf.filled().len();
            if Pin::new(&mut this.file).poll_read(cx, buf)?.is_pending() {
                return Poll::Pending;
            }
            let read = buf.filled().len() - before;
            this.position += read as u64;
            if read > 0 || buf.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            if this.check_end()? {
                return Poll::Ready(Ok(()));
            }
            // A file that is complete is read to its end once more, since its last bytes may have
            // been written between the reading and the marker.
            if !this.is_complete {
                this.wait = Some(Box::pin(sleep(LOOK)));
            }
        }
    }
}

/// The time between two looks at the file.
const LOOK: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::io::Write;
    use std::path::Path;

    use tokio::io::AsyncReadExt;

    use super::*;

    /// A path that no other test uses.
    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("punctual-growing-{name}-{}", std::process::id()))
    }

    fn append(path: &Path, bytes: &[u8]) {
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
    }

    #[tokio::test]
    async fn bytes_written_before_the_marker_are_read_to_the_end() {
        let (file, marker) = (path("file"), path("marker"));
        append(&file, b"begin");
        let mut stream = GrowingFile::open(file.clone(), Some(marker.clone()), 0).await.unwrap();
        let mut begin = [0; 5];
        stream.read_exact(&mut begin).await.unwrap();
        let mut rest = Vec::new();
        let write = async {
            for _ in 0..20 {
                sleep(Duration::from_millis(7)).await;
                append(&file, b", more");
            }
            append(&marker, b"");
        };
        let (read, ()) = tokio::join!(stream.read_to_end(&mut rest), write);
        read.unwrap();
        assert_eq!(rest, b", more".repeat(20));
        fs::remove_file(file).unwrap();
        fs::remove_file(marker).unwrap();
    }

    #[tokio::test]
    async fn a_file_that_is_cut_while_it_is_read_is_an_error() {
        let file = path("cut");
        append(&file, b"some bytes");
        let mut stream = GrowingFile::open(file.clone(), None, 0).await.unwrap();
        let mut begin = [0; 10];
        stream.read_exact(&mut begin).await.unwrap();
        fs::write(&file, b"new").unwrap();
        let error = stream.read(&mut begin).await.unwrap_err().to_string();
        assert!(error.contains("cut to 3 bytes") && error.contains("after 10 bytes"), "{error}");
        fs::remove_file(file).unwrap();
    }
}
