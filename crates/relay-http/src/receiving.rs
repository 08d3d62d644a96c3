//! A channel as a stream that cannot fail, for bodies of answers.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::sync::mpsc;

/// The values of a channel, until its sender is gone.
pub(crate) struct Receiving<T>(pub(crate) mpsc::Receiver<T>);

impl<T> Stream for Receiving<T> {
    type Item = Result<T, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context).map(|value| value.map(Ok))
    }
}
