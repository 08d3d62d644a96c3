//! Messages as a stream of bytes, written together.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::stop::Stop;

/// A sink for bytes that can be sent between threads.
pub(crate) type ByteSink = Box<dyn AsyncWrite + Send + Sync + Unpin>;

/// Writes messages to a file, a pipe or TCP.
pub(crate) struct ByteWriter {
    sink: ByteSink,
    /// Messages side by side, for a sink that takes one piece of memory at a time.
    joined: Vec<u8>,
    /// The most bytes to write at once, if that is limited.
    write_size: Option<usize>,
    stop: Stop,
}

impl ByteWriter {
    /// Writes to `sink`.
    pub(crate) fn new(sink: ByteSink) -> Self {
        Self { sink, joined: Vec::new(), write_size: None, stop: Stop::default() }
    }

    /// The same, where at most this number of bytes is written at once, if it is given.
    pub(crate) fn with_write_size(self, size: Option<usize>) -> Self {
        Self { write_size: size, ..self }
    }

    /// The same, of a stream that `stop` ends.
    pub(crate) fn with_stop(self, stop: Stop) -> Self {
        Self { stop, ..self }
    }

    /// Writes all of `batch`. Once somebody has interrupted the stream, a sink that takes nothing
    /// is not waited for.
    pub(crate) async fn write(&mut self, batch: &mut VecDeque<Bytes>) -> io::Result<()> {
        if let Some(size) = self.write_size {
            self.write_in_parts(batch, size).await?;
        } else if self.sink.is_write_vectored() {
            self.write_vectored(batch).await?;
        } else {
            self.write_joined(batch).await?;
        }
        unless_stalled(&self.stop, self.sink.flush()).await
    }

    /// Ends the stream.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        unless_stalled(&self.stop, self.sink.shutdown()).await
    }

    async fn write_vectored(&mut self, batch: &mut VecDeque<Bytes>) -> io::Result<()> {
        while !batch.is_empty() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = batch.len().min(SLICES);
            for (slice, message) in slices.iter_mut().zip(&*batch) {
                *slice = IoSlice::new(message);
            }
            let written =
                unless_stalled(&self.stop, self.sink.write_vectored(&slices[..count])).await?;
            if written == 0 && batch.iter().any(|message| !message.is_empty()) {
                return Err(io::ErrorKind::WriteZero.into());
            }
            advance(batch, written);
        }
        Ok(())
    }

    /// Writes `size` bytes at a time.
    async fn write_in_parts(&mut self, batch: &mut VecDeque<Bytes>, size: usize) -> io::Result<()> {
        while !batch.is_empty() {
            self.joined.clear();
            while self.joined.len() < size
                && let Some(message) = batch.front_mut()
            {
                let part = message.len().min(size - self.joined.len());
                self.joined.extend_from_slice(&message.split_to(part));
                if message.is_empty() {
                    batch.pop_front();
                }
            }
            unless_stalled(&self.stop, self.sink.write_all(&self.joined)).await?;
        }
        Ok(())
    }

    async fn write_joined(&mut self, batch: &mut VecDeque<Bytes>) -> io::Result<()> {
        if batch.len() == 1 {
            unless_stalled(&self.stop, self.sink.write_all(&batch[0])).await?;
        } else {
            self.joined.clear();
            batch.iter().for_each(|message| self.joined.extend_from_slice(message));
            unless_stalled(&self.stop, self.sink.write_all(&self.joined)).await?;
        }
        batch.clear();
        Ok(())
    }
}

/// Waits for `work` with a sink, but not for long once somebody has interrupted the stream.
async fn unless_stalled<T>(
    stop: &Stop,
    work: impl Future<Output = io::Result<T>>,
) -> io::Result<T> {
    tokio::select! {
        biased;
        done = work => done,
        () = stop.interrupted_for(STALLED) => {
            Err(io::Error::new(io::ErrorKind::TimedOut, "nobody takes the rest"))
        }
    }
}

/// Takes `written` bytes from the front of `batch`, and the empty messages behind them.
fn advance(batch: &mut VecDeque<Bytes>, mut written: usize) {
    while let Some(message) = batch.front_mut() {
        if message.len() > written {
            message.advance(written);
            return;
        }
        written -= message.len();
        batch.pop_front();
    }
}

/// The time for which a sink that takes nothing is waited for once the stream is interrupted.
const STALLED: Duration = Duration::from_secs(2);

/// The most messages in one call; systems take more, but it makes no difference.
const SLICES: usize = 64;

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll};

    use tokio::io::AsyncReadExt;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;

    fn messages() -> VecDeque<Bytes> {
        (0..200_u8).map(|number| vec![number; usize::from(number) * 50].into()).collect()
    }

    #[tokio::test]
    async fn messages_written_by_tcp_arrive_as_they_were() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut server, _) = listener.accept().await.unwrap();
        let mut writer = ByteWriter::new(Box::new(client));
        assert!(writer.sink.is_write_vectored());
        let mut received = Vec::new();
        let write = async {
            let mut batch = messages();
            writer.write(&mut batch).await.unwrap();
            assert!(batch.is_empty());
            writer.shutdown().await.unwrap();
        };
        tokio::join!(write, async { server.read_to_end(&mut received).await.unwrap() });
        let sent: Vec<u8> = messages().iter().flatten().copied().collect();
        assert_eq!(received, sent);
    }

    /// A sink that takes one piece of memory at a time, as standard output does.
    #[derive(Clone, Default)]
    struct Plain(Arc<Mutex<Vec<Vec<u8>>>>);

    impl AsyncWrite for Plain {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            self.0.lock().unwrap().push(bytes.to_vec());
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn messages_are_joined_for_a_sink_that_takes_one_piece() {
        let sink = Plain::default();
        let mut writer = ByteWriter::new(Box::new(sink.clone()));
        writer.write(&mut messages()).await.unwrap();
        writer.write(&mut VecDeque::from([Bytes::from_static(b"end")])).await.unwrap();
        let sent: Vec<u8> = messages().iter().flatten().copied().collect();
        assert_eq!(*sink.0.lock().unwrap(), [sent, b"end".to_vec()]);
    }

    #[tokio::test]
    async fn a_write_size_joins_and_cuts_messages() {
        let sink = Plain::default();
        let mut writer = ByteWriter::new(Box::new(sink.clone())).with_write_size(Some(4_000));
        writer.write(&mut messages()).await.unwrap();
        let sent: Vec<u8> = messages().iter().flatten().copied().collect();
        let written = sink.0.lock().unwrap();
        assert_eq!(written.concat(), sent);
        let (last, full) = written.split_last().unwrap();
        assert!(full.iter().all(|part| part.len() == 4_000) && last.len() <= 4_000);
    }

    #[test]
    fn a_message_that_was_written_in_part_keeps_its_rest() {
        let mut batch: VecDeque<Bytes> =
            [&b"abc"[..], b"", b"def", b"g"].map(Bytes::from_static).into();
        advance(&mut batch, 5);
        assert_eq!(batch, [&b"f"[..], b"g"].map(Bytes::from_static));
        advance(&mut batch, 2);
        assert!(batch.is_empty());
    }
}
