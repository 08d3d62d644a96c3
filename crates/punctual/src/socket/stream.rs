//! Connections as streams and sinks.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use futures_core::future::BoxFuture;
use futures_sink::Sink;
use punctual_proto::{CloseReason, Message};

use crate::error::Error;
use crate::socket::Socket;

/// The messages of a connection as a [`Stream`]. Made by [`Socket::stream`].
///
/// It ends when either end has closed the connection and all received messages have been read. If
/// the connection ended in another way, the error is the last item.
pub struct MessageStream {
    socket: Socket,
    receiving: Option<BoxFuture<'static, Result<Message, Error>>>,
    ended: bool,
}

impl MessageStream {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, receiving: None, ended: false }
    }
}

impl Stream for MessageStream {
    type Item = Result<Message, Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let received = match &mut self.receiving {
            Some(receiving) => ready!(receiving.as_mut().poll(cx)),
            None => {
                // A future is created only if this has to wait: a message that is due costs no more
                // than by `recv`.
                let socket = self.socket.clone();
                match socket.try_recv().transpose() {
                    Some(received) => received,
                    None => {
                        self.receiving = Some(Box::pin(async move { socket.recv().await }));
                        return self.poll_next(cx);
                    }
                }
            }
        };
        self.receiving = None;
        self.ended = received.is_err();
        Poll::Ready(match received {
            Err(Error::Closed(CloseReason::Local | CloseReason::Peer)) => None,
            item => Some(item),
        })
    }
}

impl fmt::Debug for MessageStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageStream").field("socket", &self.socket).finish_non_exhaustive()
    }
}

/// A [`Sink`] for the payloads of messages to be sent over a connection. Made by [`Socket::sink`].
///
/// It is ready when the connection takes a message, and flushed when the connection has taken all:
/// messages are sent without a flush. Closing it closes the connection, as [`Socket::close`] does.
pub struct MessageSink {
    socket: Socket,
    /// The last payload, while the send buffer is full.
    sending: Option<BoxFuture<'static, Result<(), Error>>>,
    closing: Option<BoxFuture<'static, ()>>,
}

impl MessageSink {
    pub(crate) fn new(socket: Socket) -> Self {
        Self { socket, sending: None, closing: None }
    }
}

impl Sink<Bytes> for MessageSink {
    type Error = Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.poll_flush(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, payload: Bytes) -> Result<(), Error> {
        if !self.socket.try_send(&payload)? {
            let socket = self.socket.clone();
            self.sending = Some(Box::pin(async move { socket.send(payload).await }));
        }
        Ok(())
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Some(sending) = &mut self.sending {
            let sent = ready!(sending.as_mut().poll(cx));
            self.sending = None;
            sent?;
        }
        Poll::Ready(Ok(()))
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        ready!(self.as_mut().poll_flush(cx))?;
        let socket = self.socket.clone();
        let closing =
            self.closing.get_or_insert_with(|| Box::pin(async move { socket.close().await }));
        ready!(closing.as_mut().poll(cx));
        self.closing = None;
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for MessageSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageSink").field("socket", &self.socket).finish_non_exhaustive()
    }
}
