//! The example of a relay, with publishers and viewers over loopback.

#[expect(dead_code, reason = "its `main` is not called")]
#[path = "../examples/stream_relay.rs"]
mod example;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual::{Config, Error, Listener, RejectReason, Socket};
use punctual_ends::Stop;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};

async fn call(address: SocketAddr, stream_id: &str) -> Result<Socket, Error> {
    let config = Config::default().with_latency(LATENCY)?.with_stream_id(stream_id)?;
    Socket::connect(address, config).await
}

/// Calls until the stream is published.
async fn view(address: SocketAddr, name: &'static str) -> Socket {
    loop {
        match call(address, name).await {
            Ok(viewer) => return viewer,
            Err(error) => assert_eq!(error.reject_reason(), Some(RejectReason::NOT_FOUND)),
        }
        sleep(Duration::from_millis(1)).await;
    }
}

fn message(name: &str, number: u32) -> Bytes {
    let mut message = format!("{name} {number:06} ").into_bytes();
    message.resize(1_316, b'.');
    message.into()
}

async fn publish(publisher: Socket, name: &'static str) {
    let mut ticks = interval(Duration::from_millis(2));
    for number in 0..MESSAGES {
        ticks.tick().await;
        publisher.send(message(name, number)).await.expect("the relay takes it");
    }
    publisher.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_viewers_of_two_named_streams_get_each_message_of_theirs() {
    let local = "127.0.0.1:0".parse().expect("it is an address");
    let listener = Listener::bind(local, Config::default()).await.expect("a free port");
    let (address, stop) = (listener.local_addr(), Stop::default());
    let relay = tokio::spawn(example::relay(listener, stop.clone()));

    let mut publishers = Vec::new();
    let mut viewers = JoinSet::new();
    for name in ["live/one", "live/two"] {
        publishers
            .push((call(address, &format!("publish:{name}")).await.expect("it is free"), name));
        for _ in 0..25 {
            let viewer = view(address, name).await;
            viewers.spawn(async move {
                for number in 0..MESSAGES {
                    let received = viewer.recv().await.expect("the stream goes on");
                    assert_eq!(received.payload, message(name, number), "{name} {number}");
                }
                assert!(viewer.recv().await.is_err(), "the stream has ended");
            });
        }
    }
    let refused = call(address, "publish:live/one").await.expect_err("it is published");
    assert_eq!(refused.reject_reason(), Some(RejectReason::CONFLICT));
    let refused = call(address, "live/three").await.expect_err("nobody publishes it");
    assert_eq!(refused.reject_reason(), Some(RejectReason::NOT_FOUND));

    for (publisher, name) in publishers {
        tokio::spawn(publish(publisher, name));
    }
    let mut served = 0;
    while let Some(viewer) = viewers.join_next().await {
        viewer.expect("a viewer gets its stream");
        served += 1;
    }
    assert_eq!(served, 50);
    // The name is free again.
    call(address, "publish:live/one").await.expect("its publisher is gone");
    stop.tell();
    relay.await.expect("it does not panic").expect("it ends in good order");
}

/// Long enough that a machine that stalls loses nothing.
const LATENCY: Duration = Duration::from_secs(1);

const MESSAGES: u32 = 200;
