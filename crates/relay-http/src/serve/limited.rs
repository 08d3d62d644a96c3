//! A connection that fails when its other end takes no bytes for some time.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection with a time limit for writing.
pub(super) struct Limited<T> {
    stream: T,
    limit: Duration,
    /// The end of the wait that goes on.
    deadline: Option<Pin<Box<Sleep>>>,
}

impl<T> Limited<T> {
    /// Fails a write that waits longer than `limit` for room.
    pub(super) fn new(stream: T, limit: Duration) -> Self {
        Self { stream, limit, deadline: None }
    }

    /// Gives an answer of the stream on, and begins or ends the wait.
    fn watch<R>(
        &mut self,
        context: &mut Context<'_>,
        answer: Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        if answer.is_ready() {
            self.deadline = None;
            return answer;
        }
        let limit = self.limit;
        let deadline = self.deadline.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(deadline.as_mut().poll(context));
        let text = format!("the client took no bytes for {limit:?}");
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)))
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Limited<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Limited<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, answer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.watch(context, answer)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, answer)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, answer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::time::{Instant, timeout};

    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_client_that_takes_nothing_is_given_up() {
        let (near, _far) = duplex(1_000);
        let mut limited = Limited::new(near, LIMIT);
        let begun = Instant::now();
        let error = limited.write_all(&[0; 2_000]).await.unwrap_err();
        assert_eq!((error.kind(), begun.elapsed().as_secs()), (io::ErrorKind::TimedOut, 10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_client_that_goes_on_is_not_given_up() {
        let (near, mut far) = duplex(1_000);
        let mut limited = Limited::new(near, LIMIT);
        let reader = async {
            let mut taken = 0;
            while taken < 20_000 {
                sleep(Duration::from_secs(9)).await;
                taken += far.read(&mut [0; 1_000]).await.unwrap();
            }
        };
        let (written, ()) =
            tokio::join!(timeout(20 * LIMIT, limited.write_all(&[0; 20_000])), reader);
        written.unwrap().unwrap();
    }
}
