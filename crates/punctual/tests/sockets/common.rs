//! Helpers of the tests. Nothing here depends on exact times: the timeout only turns a hang into a
//! failure.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual::{BufferSize, Config, Listener, Socket};
use tokio::net::UdpSocket;

/// Runs `future`, which must not take long.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(30), future).await.expect("no answer: it hangs")
}

/// Waits until `condition` holds, for state that can be read and is not announced.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    within(async {
        while !condition() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Waits until no UDP socket is bound to `address`.
pub(crate) async fn until_free(address: SocketAddr) {
    within(async {
        while UdpSocket::bind(address).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

pub(crate) fn local() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Short latency, and time to send buffered messages when it is closed.
pub(crate) fn config() -> Config {
    Config::default()
        .with_latency(Duration::from_millis(20))
        .unwrap()
        .with_linger(Duration::from_secs(10))
}

/// Messages are delivered as soon as they arrive, none is dropped for being late, and no more are
/// in flight than fit into the system's buffers: for tests that send more at once than a slow
/// machine can transfer within the latency.
pub(crate) fn prompt() -> Config {
    let few = BufferSize::Packets(512);
    config().with_tsbpd(false).with_too_late_drop(false).with_send_buffer(few)
}

/// A caller and the accepted connection.
pub(crate) async fn pair(config: Config) -> (Socket, Socket) {
    let listener = Listener::bind(local(), config.clone()).await.unwrap();
    let call = Socket::connect(listener.local_addr(), config);
    within(async { tokio::try_join!(call, listener.accept()) }).await.unwrap()
}

/// The `n`th of a series of distinct messages of different lengths.
pub(crate) fn message(n: u32) -> Bytes {
    let mut bytes = n.to_be_bytes().to_vec();
    bytes.resize(4 + (n as usize * 37) % 1_300, n.to_le_bytes()[0]);
    bytes.into()
}
