//! A stream of bytes, cut into messages.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use punctual_metrics::mpegts::{PACKET_LEN, SYNC_BYTE};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// Cuts what it reads into messages.
///
/// MPEG-TS is cut between its packets, seven of them for messages of 1316 bytes. Bytes that fill no
/// message wait for more, but not for long: a pipe should not hold a live stream back.
pub(crate) struct ByteReader {
    stream: Box<dyn AsyncRead + Send + Sync + Unpin>,
    buffer: BytesMut,
    message_size: usize,
    is_ended: bool,
}

impl ByteReader {
    /// Reads messages of at most `message_size` bytes.
    pub(crate) fn new(
        stream: impl AsyncRead + Send + Sync + Unpin + 'static,
        message_size: usize,
    ) -> Self {
        let stream = Box::new(stream);
        Self { stream, buffer: BytesMut::new(), message_size, is_ended: false }
    }

    /// Reads at least one message, unless the stream has ended. Cancel safe: bytes that were read
    /// stay for the next call.
    pub(crate) async fn read(&mut self, batch: &mut Vec<Bytes>) -> io::Result<bool> {
        let before = batch.len();
        loop {
            self.cut(batch);
            if batch.len() > before {
                return Ok(true);
            }
            if self.is_ended {
                return Ok(self.take_rest(batch));
            }
            let waits = !self.buffer.is_empty();
            self.buffer.reserve(READ_SIZE);
            let read = self.stream.read_buf(&mut self.buffer);
            let read = match waits {
                false => read.await?,
                true => match timeout(PATIENCE, read).await {
                    Ok(read) => read?,
                    Err(_) if self.take_whole_packets(batch) => return Ok(true),
                    Err(_) => self.stream.read_buf(&mut self.buffer).await?,
                },
            };
            self.is_ended = read == 0;
        }
    }

    /// Moves full messages from the buffer to `batch`.
    fn cut(&mut self, batch: &mut Vec<Bytes>) {
        loop {
            let size = self.cut_size();
            if self.buffer.len() < size {
                return;
            }
            batch.push(self.buffer.split_to(size).freeze());
        }
    }

    /// Moves what is there to `batch` although it fills no message: whole packets of a transport
    /// stream, anything of another stream.
    fn take_whole_packets(&mut self, batch: &mut Vec<Bytes>) -> bool {
        let len = match self.is_transport_stream() {
            true => self.buffer.len() / PACKET_LEN * PACKET_LEN,
            false => self.buffer.len(),
        };
        if len > 0 {
            batch.push(self.buffer.split_to(len).freeze());
        }
        len > 0
    }

    fn take_rest(&mut self, batch: &mut Vec<Bytes>) -> bool {
        let rest = self.buffer.split().freeze();
        let is_there = !rest.is_empty();
        batch.extend(Some(rest).filter(|_| is_there));
        is_there
    }

    /// Bytes of the next message: as many whole packets as it holds, if it is one of packets.
    fn cut_size(&self) -> usize {
        let packets = self.message_size / PACKET_LEN * PACKET_LEN;
        if packets > 0 && self.is_transport_stream() { packets } else { self.message_size }
    }

    /// Whether sync bytes stand where a transport stream has them, as far as the buffer reaches.
    fn is_transport_stream(&self) -> bool {
        let places = self.message_size.min(self.buffer.len());
        places > 0 && self.buffer[..places].iter().step_by(PACKET_LEN).all(|&b| b == SYNC_BYTE)
    }
}

/// How long bytes that fill no message wait for more.
const PATIENCE: Duration = Duration::from_millis(10);

/// Bytes to read at once.
const READ_SIZE: usize = 65_536;

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt;

    use super::*;

    fn packets(count: usize) -> Vec<u8> {
        (0..count * PACKET_LEN).map(|i| if i % PACKET_LEN == 0 { SYNC_BYTE } else { 1 }).collect()
    }

    async fn sizes(bytes: &'static [u8], message_size: usize) -> Vec<usize> {
        let mut reader = ByteReader::new(bytes, message_size);
        let mut batch = Vec::new();
        while reader.read(&mut batch).await.unwrap() {}
        assert_eq!(batch.concat(), bytes);
        batch.iter().map(Bytes::len).collect()
    }

    #[tokio::test]
    async fn a_transport_stream_is_cut_between_packets() {
        let stream: &'static [u8] = packets(16).leak();
        assert_eq!(sizes(stream, 1316).await, [1316, 1316, 2 * 188]);
        assert_eq!(sizes(stream, 1456).await, [1316, 1316, 2 * 188]);
        assert_eq!(sizes(stream, 100).await[..2], [100, 100]);
    }

    #[tokio::test]
    async fn other_bytes_are_cut_at_the_size_of_a_message() {
        assert_eq!(sizes(&[7; 2_700], 1316).await, [1316, 1316, 68]);
        assert!(sizes(&[], 1316).await.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_that_fill_no_message_do_not_wait_for_long() {
        let (mut pipe, end) = tokio::io::duplex(65_536);
        let mut reader = ByteReader::new(end, 1316);
        let stream = packets(3);
        pipe.write_all(&stream[..2 * 188 + 100]).await.unwrap();
        let mut batch = Vec::new();
        let start = tokio::time::Instant::now();
        assert!(reader.read(&mut batch).await.unwrap());
        assert_eq!(batch[0].len(), 2 * 188, "the third packet is not whole");
        assert_eq!(start.elapsed(), PATIENCE);
        pipe.write_all(&stream[2 * 188 + 100..]).await.unwrap();
        drop(pipe);
        assert!(reader.read(&mut batch).await.unwrap());
        assert_eq!(batch[1].len(), 188);
        assert!(!reader.read(&mut batch).await.unwrap());
    }
}
