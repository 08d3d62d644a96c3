//! The example `fan_out`: one stream for many viewers.

use punctual::{CloseReason, Listener, Socket};
use tokio::sync::broadcast;

use crate::common::{local, message, pair, prompt, within};
use crate::fan_out_example::{End, serve, view};

#[tokio::test]
async fn every_caller_gets_the_stream_from_its_call_on() {
    let listener = Listener::bind(local(), prompt()).await.unwrap();
    let address = listener.local_addr();
    let (stream, _) = broadcast::channel(100);
    let serving = tokio::spawn(serve(listener, stream.clone()));
    let mut viewers = Vec::new();
    for number in 0..3 {
        viewers.push(within(Socket::connect(address, prompt())).await.unwrap());
        while stream.receiver_count() < viewers.len() {
            tokio::task::yield_now().await;
        }
        stream.send(message(number)).unwrap();
    }
    for (first, viewer) in (0..).zip(&viewers) {
        for number in first..3 {
            assert_eq!(within(viewer.recv()).await.unwrap().payload, message(number));
        }
    }
    serving.abort();
}

#[tokio::test]
async fn a_slow_viewer_is_disconnected_and_delays_no_other() {
    let (slow_socket, slow_viewer) = pair(prompt()).await;
    let (quick_socket, quick_viewer) = pair(prompt()).await;
    let (stream, slow_messages) = broadcast::channel(10);
    let quick_messages = stream.subscribe();
    let quick = tokio::spawn(view(quick_socket, quick_messages));
    for number in 0..50 {
        stream.send(message(number)).unwrap();
        assert_eq!(within(quick_viewer.recv()).await.unwrap().payload, message(number));
    }
    // Its task has taken no message until now.
    assert_eq!(within(view(slow_socket, slow_messages)).await, End::Slow);
    let told = within(slow_viewer.recv()).await.unwrap_err();
    assert_eq!(told.close_reason(), Some(&CloseReason::Peer));
    drop(stream);
    assert_eq!(within(quick).await.unwrap(), End::Over);
}
