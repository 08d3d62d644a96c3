//! A stream of bytes, read as messages as they come.

use std::io;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::end::cut::Cut;

/// A stream of bytes that can be sent between threads.
pub(crate) type ByteStream = Box<dyn AsyncRead + Send + Sync + Unpin>;

/// Reads messages from a pipe, a file or TCP.
///
/// Bytes that fill no message wait for more, but not for long: a pipe should not hold a live stream
/// back.
pub(crate) struct ByteReader {
    stream: ByteStream,
    cut: Cut,
    is_ended: bool,
}

impl ByteReader {
    /// Reads messages of at most `message_size` bytes.
    pub(crate) fn new(stream: ByteStream, message_size: usize) -> Self {
        Self { stream, cut: Cut::new(message_size), is_ended: false }
    }

    /// The same, where at most this number of bytes is read at once, if it is given.
    pub(crate) fn with_read_size(self, size: Option<usize>) -> Self {
        Self { cut: self.cut.with_read_size(size), ..self }
    }

    /// Reads at least one message, or returns `false` at the end. Cancel safe: bytes that were read
    /// stay for the next call.
    pub(crate) async fn read(&mut self, batch: &mut Vec<Bytes>) -> io::Result<bool> {
        let before = batch.len();
        loop {
            batch.extend(std::iter::from_fn(|| self.cut.next_full()));
            if self.is_ended {
                batch.extend(self.cut.rest());
            }
            if batch.len() > before || self.is_ended {
                return Ok(batch.len() > before);
            }
            if self.cut.has_rest() {
                match timeout(PATIENCE, self.stream.read_buf(self.cut.input())).await {
                    Ok(read) => self.is_ended = read? == 0,
                    Err(_) => {
                        if let Some(whole) = self.cut.next_whole() {
                            batch.push(whole);
                            return Ok(true);
                        }
                        self.is_ended = self.stream.read_buf(self.cut.input()).await? == 0;
                    }
                }
            } else {
                self.is_ended = self.stream.read_buf(self.cut.input()).await? == 0;
            }
        }
    }
}

/// The longest time that bytes which fill no message wait for more.
const PATIENCE: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn a_stream_is_read_to_its_end() {
        let bytes: &'static [u8] = &[7; 200_000];
        let mut reader = ByteReader::new(Box::new(bytes), 1316);
        let mut batch = Vec::new();
        while reader.read(&mut batch).await.unwrap() {}
        assert_eq!(batch.concat(), bytes);
        assert_eq!(batch.len(), 200_000_usize.div_ceil(1316));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_fill_no_message_do_not_wait_for_long() {
        let (mut pipe, end) = tokio::io::duplex(65_536);
        let mut reader = ByteReader::new(Box::new(end), 1316);
        let packet = [&[0x47], &[1; 187][..]].concat();
        pipe.write_all(&[&packet[..], &packet, &packet[..100]].concat()).await.unwrap();
        let mut batch = Vec::new();
        let start = tokio::time::Instant::now();
        assert!(reader.read(&mut batch).await.unwrap());
        assert_eq!(batch[0].len(), 2 * 188, "the third packet is not whole");
        assert_eq!(start.elapsed(), PATIENCE);
        pipe.write_all(&packet[100..]).await.unwrap();
        drop(pipe);
        assert!(reader.read(&mut batch).await.unwrap());
        assert_eq!(batch[1].len(), 188);
        assert!(!reader.read(&mut batch).await.unwrap());
    }
}
