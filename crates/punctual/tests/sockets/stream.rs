//! Streams and sinks.

use std::future::poll_fn;
use std::pin::Pin;

use futures_core::Stream;
use futures_sink::Sink;
use punctual::{CloseReason, MessageSink, MessageStream};

use crate::common::{message, pair, prompt, within};

async fn next(stream: &mut MessageStream) -> Option<Result<punctual::Message, punctual::Error>> {
    within(poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx))).await
}

async fn feed(sink: &mut MessageSink, n: u32) {
    within(poll_fn(|cx| Pin::new(&mut *sink).poll_ready(cx))).await.unwrap();
    Pin::new(sink).start_send(message(n)).unwrap();
}

#[tokio::test]
async fn all_that_is_fed_is_streamed_to_the_end() {
    let (a, b) = pair(prompt()).await;
    let (mut sink, mut stream) = (a.sink(), b.stream());
    let feeding = async {
        // More than the buffer holds, so the sink has to wait.
        for n in 0..3_000 {
            feed(&mut sink, n).await;
        }
        within(poll_fn(|cx| Pin::new(&mut sink).poll_flush(cx))).await.unwrap();
        within(poll_fn(|cx| Pin::new(&mut sink).poll_close(cx))).await.unwrap();
    };
    let reading = async {
        for n in 0..3_000 {
            assert_eq!(next(&mut stream).await.unwrap().unwrap().payload, message(n));
        }
        assert!(next(&mut stream).await.is_none());
        assert!(next(&mut stream).await.is_none());
    };
    tokio::join!(feeding, reading);
    assert_eq!(a.closed().await, CloseReason::Local);
}

#[tokio::test]
async fn a_sink_of_a_closed_connection_returns_an_error() {
    let (a, b) = pair(prompt()).await;
    within(b.close()).await;
    within(a.closed()).await;
    let error = Pin::new(&mut a.sink()).start_send(message(1)).unwrap_err();
    assert_eq!(error.close_reason(), Some(&CloseReason::Peer));
}
