//! A stream of bytes that ends at a size, after a time, or when nothing comes any more.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use punctual_uri::Limits;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::{Sleep, sleep};

use crate::end::bytes::ByteStream;

/// A stream with limits, at which it ends as if its source had ended.
pub(crate) struct LimitedStream {
    stream: ByteStream,
    /// Bytes that may still be read.
    left: u64,
    io_size: Option<usize>,
    max_idle: Option<Duration>,
    /// The end of the stream by the time since its opening.
    end: Option<Timer>,
    /// The end of the stream unless a byte comes before.
    idle: Option<Timer>,
}

type Timer = Pin<Box<Sleep>>;

impl LimitedStream {
    /// Reads `stream` within `limits`; gives `stream` itself if there are none.
    pub(crate) fn within(limits: &Limits, stream: ByteStream) -> ByteStream {
        if *limits == Limits::default() {
            return stream;
        }
        let &Limits { max_size, max_time, max_idle, io_size } = limits;
        Box::new(Self {
            stream,
            left: max_size.unwrap_or(u64::MAX),
            io_size,
            max_idle,
            end: max_time.map(|time| Box::pin(sleep(time))),
            idle: None,
        })
    }
}

impl AsyncRead for LimitedStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { stream, left, io_size, max_idle, end, idle } = &mut *self;
        if is_over(end, cx) {
            *left = 0;
        }
        if *left == 0 {
            return Poll::Ready(Ok(()));
        }
        let room = usize::try_from(*left).unwrap_or(usize::MAX);
        let room = room.min(io_size.unwrap_or(usize::MAX)).min(buf.remaining());
        let mut part = ReadBuf::new(buf.initialize_unfilled_to(room));
        if Pin::new(stream).poll_read(cx, &mut part)?.is_ready() {
            let read = part.filled().len();
            buf.advance(read);
            *left -= read as u64;
            *idle = None;
            return Poll::Ready(Ok(()));
        }
        // The time counts from when there was nothing to read, not from the last reading: the
        // source did not wait while nobody read.
        if idle.is_none() {
            *idle = max_idle.map(|time| Box::pin(sleep(time)));
        }
        if is_over(idle, cx) {
            *left = 0;
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }
}

fn is_over(timer: &mut Option<Timer>, cx: &mut Context<'_>) -> bool {
    timer.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::Instant;

    use super::*;

    const NONE: Limits = Limits { max_size: None, max_time: None, max_idle: None, io_size: None };
    const SECOND: Duration = Duration::from_secs(1);

    async fn read(stream: &mut ByteStream) -> Vec<u8> {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).await.expect("it is read");
        bytes
    }

    #[tokio::test]
    async fn a_stream_ends_at_its_size_and_is_read_in_parts() {
        let bytes: &'static [u8] = &[7; 10_000];
        let limits = Limits { max_size: Some(1_000), io_size: Some(300), ..NONE };
        let mut stream = LimitedStream::within(&limits, Box::new(bytes));
        let mut part = [0; 400];
        assert_eq!(stream.read(&mut part).await.unwrap(), 300);
        assert_eq!(read(&mut stream).await.len(), 700);
        let mut short = LimitedStream::within(&limits, Box::new(&bytes[..10]));
        assert_eq!(read(&mut short).await.len(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_nothing_comes_for_the_idle_time() {
        let (mut source, end) = duplex(1_000);
        let limits = Limits { max_idle: Some(SECOND), ..NONE };
        let mut stream = LimitedStream::within(&limits, Box::new(end));
        let start = Instant::now();
        let write = async {
            for _ in 0..5 {
                source.write_all(b"abc").await.unwrap();
                sleep(SECOND * 9 / 10).await;
            }
        };
        let (bytes, ()) = tokio::join!(read(&mut stream), write);
        assert_eq!(bytes, b"abcabcabcabcabc");
        assert_eq!(start.elapsed(), SECOND * 9 / 10 * 4 + SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn time_in_which_nobody_reads_is_not_idle() {
        let (mut source, end) = duplex(1_000);
        let limits = Limits { max_idle: Some(SECOND), ..NONE };
        let mut stream = LimitedStream::within(&limits, Box::new(end));
        source.write_all(b"abc").await.unwrap();
        let mut bytes = [0; 3];
        stream.read_exact(&mut bytes).await.unwrap();
        sleep(SECOND * 10).await;
        let write = async {
            sleep(SECOND / 2).await;
            source.write_all(b"def").await.unwrap();
        };
        let (read, ()) = tokio::join!(stream.read_exact(&mut bytes), write);
        assert_eq!((read.unwrap(), &bytes), (3, b"def"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_after_its_time_whether_bytes_come_or_not() {
        for pause in [SECOND / 10, SECOND * 100] {
            let (mut source, end) = duplex(1_000);
            let limits = Limits { max_time: Some(SECOND), ..NONE };
            let mut stream = LimitedStream::within(&limits, Box::new(end));
            let start = Instant::now();
            let write = async {
                loop {
                    let _ = source.write_all(b"abc").await;
                    sleep(pause).await;
                }
            };
            tokio::select! {
                bytes = read(&mut stream) => assert!(bytes.starts_with(b"abc")),
                () = write => {}
            }
            assert_eq!(start.elapsed(), SECOND);
        }
    }
}
