//! Connections as streams of bytes.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use futures_core::future::BoxFuture;
use punctual_proto::{CloseReason, Message};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::error::Error;
use crate::socket::Socket;

/// A connection whose [`Transmission`](crate::Transmission) is `Stream`, as [`AsyncRead`] and
/// [`AsyncWrite`]. Made by [`Socket::byte_stream`].
///
/// Bytes go both ways. Reading ends when either end has closed and all data sent before has been
/// read. It fails, with [`io::ErrorKind::UnexpectedEof`] if that is known, if data is missing.
///
/// Each write starts a new packet; buffer small writes ([`BufWriter`](tokio::io::BufWriter)).
/// Flushing does not wait: written data is sent without it. Shutting down closes the connection in
/// both directions, as [`Socket::close`] does: it waits until everything has arrived, for the
/// [linger](crate::Config::linger) at most.
///
/// ```
/// use punctual::{Config, Listener, Socket};
/// use tokio::io::{AsyncReadExt, AsyncWriteExt};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let listener = Listener::bind("127.0.0.1:0".parse()?, Config::file()).await?;
/// let address = listener.local_addr();
/// let receiver = tokio::spawn(async move {
///     let mut whole = Vec::new();
///     let socket = listener.accept().await.expect("a caller");
///     socket.byte_stream().read_to_end(&mut whole).await.map(|_| whole)
/// });
///
/// let mut stream = Socket::connect(address, Config::file()).await?.byte_stream();
/// stream.write_all(&[7; 1_000_000]).await?;
/// stream.shutdown().await?;
/// assert_eq!(receiver.await??, [7; 1_000_000]);
/// # Ok(())
/// # }
/// ```
pub struct ByteStream {
    socket: Socket,
    /// Bytes that were received and not read yet.
    unread: Bytes,
    receiving: Option<BoxFuture<'static, Result<Message, Error>>>,
    /// Completes when there is room to send.
    room: Option<BoxFuture<'static, ()>>,
    closing: Option<BoxFuture<'static, ()>>,
}

impl ByteStream {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, unread: Bytes::new(), receiving: None, room: None, closing: None }
    }

    /// The connection that carries the stream.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The next piece of the stream; empty at its end.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        let received = match &mut self.receiving {
            Some(receiving) => ready!(receiving.as_mut().poll(cx)),
            None => match self.socket.try_recv().transpose() {
                Some(received) => received,
                None => {
                    let socket = self.socket.clone();
                    let receiving =
                        self.receiving.insert(Box::pin(async move { socket.recv().await }));
                    ready!(receiving.as_mut().poll(cx))
                }
            },
        };
        self.receiving = None;
        Poll::Ready(match received {
            Ok(message) => Ok(message.payload),
            Err(Error::Closed(CloseReason::Local | CloseReason::Peer)) => Ok(Bytes::new()),
            Err(error) => Err(error.into()),
        })
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        while buffer.remaining() > 0 {
            if self.unread.is_empty() {
                let something = buffer.filled().len() > before;
                if something && self.receiving.is_some() {
                    break;
                }
                match self.poll_piece(cx) {
                    Poll::Ready(Ok(piece)) if piece.is_empty() => break,
                    Poll::Ready(Ok(piece)) => self.unread = piece,
                    // The bytes that were read are returned first; the next call returns the error
                    // again.
                    Poll::Pending | Poll::Ready(Err(_)) if something => break,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => return Poll::Pending,
                }
            }
            let count = self.unread.len().min(buffer.remaining());
            buffer.put_slice(&self.unread[..count]);
            self.unread.advance(count);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut data = Bytes::copy_from_slice(&buffer[..buffer.len().min(LARGEST_WRITE)]);
        loop {
            if let Some(taken) = self.socket.try_write(&mut data)? {
                self.room = None;
                return Poll::Ready(Ok(taken));
            }
            // The future `room` also reports room that is freed between its first poll and the next
            // attempt. So after that first poll, writing is tried once more before this waits.
            if let Some(room) = &mut self.room {
                ready!(room.as_mut().poll(cx));
                self.room = None;
            } else {
                let mut room = self.socket.room();
                if room.as_mut().poll(cx).is_pending() {
                    self.room = Some(room);
                }
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = self.socket.clone();
        let closing =
            self.closing.get_or_insert_with(|| Box::pin(async move { socket.close().await }));
        ready!(closing.as_mut().poll(cx));
        self.closing = None;
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ByteStream").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// The largest number of bytes that one write takes: they are copied, and the copy is discarded if
/// there is no room.
const LARGEST_WRITE: usize = 256 * 1_024;
